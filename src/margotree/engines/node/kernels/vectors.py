"""Vector operations in plain loops.

They compile ten times as fast as Numba's slices, sums and searches, which include error messages about shapes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: Options for sums that may be computed in any order, so that the processor adds several terms at once.
ANY_ORDER = {"reassoc", "contract", "nsz"}


@inner(fastmath=ANY_ORDER)
def dot(u: F8, v: F8) -> float:
    """Scalar product."""
    t = 0.0
    for j in range(u.size):
        t += u[j] * v[j]
    return t


@inner(fastmath=ANY_ORDER)
def four_dots(z: F8, y: F8, x: F8, u: F8, w: F8) -> tuple[float, float, float, float]:
    """The scalar products of four vectors with ``w``, which is read once."""
    of_z = of_y = of_x = of_u = 0.0
    for j in range(w.size):
        of_z += z[j] * w[j]
        of_y += y[j] * w[j]
        of_x += x[j] * w[j]
        of_u += u[j] * w[j]
    return of_z, of_y, of_x, of_u


@inner(fastmath=ANY_ORDER)
def add_four(to: F8, z: F8, y: F8, x: F8, u: F8, rz: float, ry: float, rx: float, ru: float) -> None:
    """Add ``rz z + ry y + rx x + ru u`` to ``to``, and the sum of the factors to the entry after these."""
    k = z.size
    for a in range(k):
        to[a] += (rz * z[a] + ry * y[a]) + (rx * x[a] + ru * u[a])
    to[k] += (rz + ry) + (rx + ru)


@inner(allocates=False)
def fill(a: F8, value: float) -> None:
    """Set all entries to ``value``."""
    for i in range(a.size):
        a[i] = value


@inner(allocates=False)
def copy(source: F8, target: F8) -> None:
    """Copy ``source`` to the first entries of ``target``."""
    for i in range(source.size):
        target[i] = source[i]


@inner(allocates=False)
def pad(indices: I8, count: int) -> None:
    """Repeat the last of ``count`` entries up to a multiple of four, for loops that read four entries at a time."""
    for j in range(count, count + (-count) % 4):
        indices[j] = indices[count - 1]


@inner(allocates=False)
def nonzero(a: F8, indices: I8, values: F8) -> int:
    """Write the indices and the values of the non-zero entries, padded to a multiple of four, and return their number.

    The padding repeats the last index with the value 0.
    """
    count = 0
    for i in range(a.size):
        if a[i] != 0.0:
            indices[count], values[count] = i, a[i]
            count += 1
    pad(indices, count)
    for j in range(count, count + (-count) % 4):
        values[j] = 0.0
    return count


@inner(allocates=False)
def total(a: F8) -> float:
    """The sum, in order."""
    t = 0.0
    for i in range(a.size):
        t += a[i]
    return t


@inner()
def argsort_descending(a: F8) -> I8:
    """Indices that sort the numbers in descending order; equal numbers keep their order (merge sort)."""
    n = a.size
    order, merged = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        order[i] = i
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            p, q = start, middle
            for k in range(start, end):
                if p < middle and (q == end or a[order[p]] >= a[order[q]]):
                    merged[k] = order[p]
                    p += 1
                else:
                    merged[k] = order[q]
                    q += 1
        order, merged = merged, order
        width *= 2
    return order


@inner(allocates=False)
def count_less(ordered: F8, value: float) -> int:
    """The number of entries of the ascending array ``ordered`` that are less than ``value``."""
    low, high = 0, ordered.size
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
