"""Newton steps of an SVM: its curvature, kept from step to step, and the factorisation that a step takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.kernels.vectors import ANY_ORDER, copy, dot, fill, nonzero
from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: Up to so many features the curvature is a matrix; beyond, it is only multiplied with.
DENSE = 400
#: Multiplications for one step where it is.
_PRODUCTS = 200
#: Pivots smaller than this share of what they were before elimination are rounding.
_SMALL = 1e-13


class Curvature(NamedTuple):
    """With what weight each row is held, and two matrices, of which the upper halves count: the sum of the products of
    the rows (and a one for the offset) with themselves, and the factor of the last Newton matrix."""

    held: F8
    matrices: F8
    who: I8  # for the work, and the next as well
    those: F8


@inner()
def new_curvature(m: int, k: int) -> Curvature:
    """None for ``m`` rows of ``k`` features."""
    size = k + 1 if k <= DENSE else 0
    now = Curvature(np.empty(m), np.empty((2, size, size)), np.empty(m + 3, np.int64), np.empty(m + 3))
    fill(now.held, 0.0)
    for a in range(size):
        fill(now.matrices[0, a], 0.0)
    return now


@inner(fastmath=ANY_ORDER)
def _add_four(H: F8, z: F8, y: F8, x: F8, u: F8, qz: float, qy: float, qx: float, qu: float) -> None:
    """Add the products of four rows with themselves; what is read of them serves two rows of ``H``."""
    k = z.size
    for a in range(0, k - 1, 2):
        vz, vy, vx, vu = qz * z[a], qy * y[a], qx * x[a], qu * u[a]
        tz, ty, tx, tu = qz * z[a + 1], qy * y[a + 1], qx * x[a + 1], qu * u[a + 1]
        first, second = H[a], H[a + 1]
        first[a] += (vz * z[a] + vy * y[a]) + (vx * x[a] + vu * u[a])
        for c in range(a + 1, k):
            first[c] += (vz * z[c] + vy * y[c]) + (vx * x[c] + vu * u[c])
            second[c] += (tz * z[c] + ty * y[c]) + (tx * x[c] + tu * u[c])
        first[k] += (vz + vy) + (vx + vu)
        second[k] += (tz + ty) + (tx + tu)
    if k % 2:
        a = k - 1
        vz, vy, vx, vu = qz * z[a], qy * y[a], qx * x[a], qu * u[a]
        H[a, a] += (vz * z[a] + vy * y[a]) + (vx * x[a] + vu * u[a])
        H[a, k] += (vz + vy) + (vx + vu)
    H[k, k] += (qz + qy) + (qx + qu)


@inner()
def _update(Z: F8, q: F8, now: Curvature) -> None:
    """Bring the sum to the weights ``q``: by what has changed, or anew where that is less."""
    held, H, who, by = now.held, now.matrices[0], now.who, now.those
    changed = active = 0
    for i in range(q.size):
        changed += q[i] != held[i]
        active += q[i] != 0.0
    if changed > active:
        fill(held, 0.0)
        for a in range(H.shape[0]):
            fill(H[a], 0.0)
    for i in range(q.size):
        held[i] = q[i] - held[i]
    for j in range(0, nonzero(held, who, by), 4):
        _add_four(
            H, Z[who[j]], Z[who[j + 1]], Z[who[j + 2]], Z[who[j + 3]], by[j], by[j + 1], by[j + 2], by[j + 3]
        )  # fmt: skip
    copy(q, held)


@inner(fastmath=ANY_ORDER)
def _factorise(H: F8, times: float, ridge: float, U: F8) -> None:
    """``U'U`` is so many ``times`` the matrix, and one more on the diagonal, but for the offset ``ridge``.

    Four rows at a time; pivots are kept positive.
    """
    n = H.shape[0]
    for a in range(n):
        row, of = U[a], H[a]
        for c in range(a, n):
            row[c] = times * of[c]
        row[a] += 1.0 if a < n - 1 else ridge
    for start in range(0, n, 4):
        end = min(start + 4, n)
        for c in range(start, end):
            row = U[c]
            for b in range(start, c):
                above, far = U[b], U[b, c]
                for j in range(c, n):
                    row[j] -= far * above[j]
            pivot = np.sqrt(max(row[c], _SMALL * (1.0 + times * H[c, c])))
            row[c], inverse = pivot, 1.0 / pivot
            for j in range(c + 1, n):
                row[j] *= inverse
        if end == start + 4:
            _take_off(U, U[start], U[start + 1], U[start + 2], U[start + 3], end)


@inner(fastmath=ANY_ORDER)
def _take_off(H: F8, z: F8, y: F8, x: F8, u: F8, first: int) -> None:
    """Take the products of four rows with themselves off the rows from ``first`` on."""
    n = z.size
    for a in range(first, n):
        row, vz, vy, vx, vu = H[a], z[a], y[a], x[a], u[a]
        for c in range(a, n):
            row[c] -= (vz * z[c] + vy * y[c]) + (vx * x[c] + vu * u[c])


@inner(fastmath=ANY_ORDER)
def _solve(U: F8, grad: F8, step: F8) -> None:
    """``step = -H^-1 grad`` from the factor of ``H``."""
    n = grad.size
    for r in range(n):
        step[r] = -grad[r]
    for r in range(n):
        row = U[r]
        step[r] /= row[r]
        far = step[r]
        for c in range(r + 1, n):
            step[c] -= far * row[c]
    for r in range(n - 1, -1, -1):
        row, t = U[r], step[r]
        for c in range(r + 1, n):
            t -= row[c] * step[c]
        step[r] = t / row[r]


@inner()
def newton_step(Z: F8, q: F8, delta: float, ridge: float, grad: F8, now: Curvature, same: bool, step: F8) -> None:
    """``step = -H^-1 grad``, where ``H`` is the sum of the rows' products with themselves, weighed ``q / delta``, and
    one more on the diagonal, but for the offset ``ridge``; it may be the ``same`` as the last time."""
    if Z.shape[1] > DENSE:
        _by_products(Z, q, delta, ridge, grad, step)
        return
    if not same:
        _update(Z, q, now)
        _factorise(now.matrices[0], 1.0 / delta, ridge, now.matrices[1])
    _solve(now.matrices[1], grad, step)


@inner()
def _by_products(Z: F8, q: F8, delta: float, ridge: float, grad: F8, step: F8) -> None:
    """The same by conjugate gradients, scaled by the diagonal."""
    m, k = Z.shape
    diagonal, left, scaled = np.empty(k + 1), np.empty(k + 1), np.empty(k + 1)
    fill(diagonal, 1.0)
    diagonal[k] = ridge
    for i in range(m):
        if q[i] != 0.0:
            for a in range(k):
                diagonal[a] += q[i] / delta * Z[i, a] * Z[i, a]
            diagonal[k] += q[i] / delta
    d, image = np.empty(k + 1), np.empty(k + 1)
    for a in range(k + 1):
        left[a] = -grad[a]
        step[a] = 0.0
        scaled[a] = left[a] / diagonal[a]
        d[a] = scaled[a]
    size = dot(left, scaled)
    first = size
    for _ in range(_PRODUCTS):
        if size <= 1e-6 * first:
            break
        copy(d, image)
        image[k] = ridge * d[k]
        for i in range(m):
            if q[i] != 0.0:
                t = q[i] / delta * (dot(Z[i], d[:k]) + d[k])
                for a in range(k):
                    image[a] += t * Z[i, a]
                image[k] += t
        far = size / dot(d, image)
        for a in range(k + 1):
            step[a] += far * d[a]
            left[a] -= far * image[a]
            scaled[a] = left[a] / diagonal[a]
        now = dot(left, scaled)
        for a in range(k + 1):
            d[a] = scaled[a] + now / size * d[a]
        size = now
