"""Vectors in kernels, in plain loops: they compile in a tenth of the time that slices, sums and searches of Numba take.

(Those bring along messages about shapes that do not fit, and all that it takes to put a message together.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: For sums that may be taken in any order, so that the processor takes several terms at once.
ANY_ORDER = {"reassoc", "contract", "nsz"}


@inner(fastmath=ANY_ORDER)
def dot(u: F8, v: F8) -> float:
    t = 0.0
    for j in range(u.size):
        t += u[j] * v[j]
    return t


@inner(fastmath=ANY_ORDER)
def four_dots(z: F8, y: F8, x: F8, u: F8, w: F8) -> tuple[float, float, float, float]:
    """The products of four vectors with one, which is read once."""
    of_z = of_y = of_x = of_u = 0.0
    for j in range(w.size):
        of_z += z[j] * w[j]
        of_y += y[j] * w[j]
        of_x += x[j] * w[j]
        of_u += u[j] * w[j]
    return of_z, of_y, of_x, of_u


@inner(fastmath=ANY_ORDER)
def add_four(to: F8, z: F8, y: F8, x: F8, u: F8, rz: float, ry: float, rx: float, ru: float) -> None:
    """Add so many times four vectors, and to the number after them as many times one."""
    k = z.size
    for a in range(k):
        to[a] += (rz * z[a] + ry * y[a]) + (rx * x[a] + ru * u[a])
    to[k] += (rz + ry) + (rx + ru)


@inner(allocates=False)
def fill(a: F8, value: float) -> None:
    for i in range(a.size):
        a[i] = value


@inner(allocates=False)
def copy(source: F8, target: F8) -> None:
    """As many numbers as the source has."""
    for i in range(source.size):
        target[i] = source[i]


@inner(allocates=False)
def pad(who: I8, count: int) -> None:
    """Repeat the last of so many entries until four go into their number, for those who take four at a time."""
    for j in range(count, count + (-count) % 4):
        who[j] = who[count - 1]


@inner(allocates=False)
def nonzero(a: F8, who: I8, those: F8) -> int:
    """How many numbers are not zero, which ones, and these, followed by zeros for those who take four at a time."""
    count = 0
    for i in range(a.size):
        if a[i] != 0.0:
            who[count], those[count] = i, a[i]
            count += 1
    pad(who, count)
    for j in range(count, count + (-count) % 4):
        those[j] = 0.0
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
    """What sorts the numbers, the largest first; equal ones keep their order (merging longer and longer runs)."""
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
def place(ordered: F8, value: float) -> int:
    """How many of the numbers, which ascend, are less than the value."""
    low, high = 0, ordered.size
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
