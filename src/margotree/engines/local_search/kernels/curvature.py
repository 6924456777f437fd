"""Newton steps of an SVM: its Hessian, updated from step to step, and the linear system of a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.kernels.vectors import ANY_ORDER, copy, dot, fill, nonzero
from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: Up to this number of features the Hessian is a matrix; beyond, it is only multiplied with.
DENSE = 400
#: Products with the Hessian per step where it is not a matrix.
_MAX_PRODUCTS = 200
#: Pivots below this share of their value before the elimination are rounding errors.
_MIN_PIVOT = 1e-13


class Curvature(NamedTuple):
    """The Hessian of the smoothed loss and its factor; of both matrices only the upper triangles are used.

    ``weights`` are the weights of the rows in ``matrices[0]``, the weighted sum of the outer products of the rows (each
    with a 1 appended for the offset); ``matrices[1]`` is the factor of the last Newton matrix.
    """

    weights: F8
    matrices: F8
    rows: I8  # work array: indices of the rows with a non-zero value
    values: F8  # work array: these values


@inner()
def new_curvature(m: int, k: int) -> Curvature:
    """The curvature of ``m`` rows with ``k`` features, all with weight 0."""
    size = k + 1 if k <= DENSE else 0
    curvature = Curvature(np.empty(m), np.empty((2, size, size)), np.empty(m + 3, np.int64), np.empty(m + 3))
    fill(curvature.weights, 0.0)
    for a in range(size):
        fill(curvature.matrices[0, a], 0.0)
    return curvature


@inner(fastmath=ANY_ORDER)
def _add_four(H: F8, z: F8, y: F8, x: F8, u: F8, qz: float, qy: float, qx: float, qu: float) -> None:
    """Add the weighted outer products of four rows; two rows of ``H`` are updated at a time."""
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
def _update(Z: F8, q: F8, curvature: Curvature) -> None:
    """Bring the weighted sum to the weights ``q``: by the changes, or from scratch where that takes fewer rows."""
    weights, H, rows, by = curvature.weights, curvature.matrices[0], curvature.rows, curvature.values
    changed = active = 0
    for i in range(q.size):
        changed += q[i] != weights[i]
        active += q[i] != 0.0
    if changed > active:
        fill(weights, 0.0)
        for a in range(H.shape[0]):
            fill(H[a], 0.0)
    for i in range(q.size):
        weights[i] = q[i] - weights[i]
    for j in range(0, nonzero(weights, rows, by), 4):
        _add_four(
            H, Z[rows[j]], Z[rows[j + 1]], Z[rows[j + 2]], Z[rows[j + 3]], by[j], by[j + 1], by[j + 2], by[j + 3]
        )  # fmt: skip
    copy(q, weights)


@inner(fastmath=ANY_ORDER)
def _factorise(H: F8, scale: float, ridge: float, U: F8) -> None:
    """Write to ``U`` the factor ``U'U = scale H + diag(1, ..., 1, ridge)``; the last diagonal entry is the offset's.

    Four rows are eliminated at a time; pivots are kept positive.
    """
    n = H.shape[0]
    for a in range(n):
        row, source = U[a], H[a]
        for c in range(a, n):
            row[c] = scale * source[c]
        row[a] += 1.0 if a < n - 1 else ridge
    for start in range(0, n, 4):
        end = min(start + 4, n)
        for c in range(start, end):
            row = U[c]
            for b in range(start, c):
                above, factor = U[b], U[b, c]
                for j in range(c, n):
                    row[j] -= factor * above[j]
            pivot = np.sqrt(max(row[c], _MIN_PIVOT * (1.0 + scale * H[c, c])))
            row[c], inverse = pivot, 1.0 / pivot
            for j in range(c + 1, n):
                row[j] *= inverse
        if end == start + 4:
            _subtract_four(U, U[start], U[start + 1], U[start + 2], U[start + 3], end)


@inner(fastmath=ANY_ORDER)
def _subtract_four(H: F8, z: F8, y: F8, x: F8, u: F8, first: int) -> None:
    """Subtract the outer products of four rows from the rows from ``first`` on."""
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
        factor = step[r]
        for c in range(r + 1, n):
            step[c] -= factor * row[c]
    for r in range(n - 1, -1, -1):
        row, t = U[r], step[r]
        for c in range(r + 1, n):
            t -= row[c] * step[c]
        step[r] = t / row[r]


@inner()
def newton_step(Z: F8, q: F8, delta: float, ridge: float, grad: F8, curvature: Curvature, same: bool, step: F8) -> None:
    """Write ``-H^-1 grad`` to ``step``, where ``H`` is the sum of the outer products of the rows with weights ``q /
    delta``, plus 1 on the diagonal, but ``ridge`` for the offset.

    If ``same`` is set, the factor of the previous call is used again.
    """
    if Z.shape[1] > DENSE:
        _by_products(Z, q, delta, ridge, grad, step)
        return
    if not same:
        _update(Z, q, curvature)
        _factorise(curvature.matrices[0], 1.0 / delta, ridge, curvature.matrices[1])
    _solve(curvature.matrices[1], grad, step)


@inner()
def _by_products(Z: F8, q: F8, delta: float, ridge: float, grad: F8, step: F8) -> None:
    """The same step by conjugate gradients, preconditioned by the diagonal."""
    m, k = Z.shape
    diagonal, residual, scaled = np.empty(k + 1), np.empty(k + 1), np.empty(k + 1)
    fill(diagonal, 1.0)
    diagonal[k] = ridge
    for i in range(m):
        if q[i] != 0.0:
            for a in range(k):
                diagonal[a] += q[i] / delta * Z[i, a] * Z[i, a]
            diagonal[k] += q[i] / delta
    d, product = np.empty(k + 1), np.empty(k + 1)
    for a in range(k + 1):
        residual[a] = -grad[a]
        step[a] = 0.0
        scaled[a] = residual[a] / diagonal[a]
        d[a] = scaled[a]
    norm = dot(residual, scaled)
    initial = norm
    for _ in range(_MAX_PRODUCTS):
        if norm <= 1e-6 * initial:
            break
        copy(d, product)
        product[k] = ridge * d[k]
        for i in range(m):
            if q[i] != 0.0:
                t = q[i] / delta * (dot(Z[i], d[:k]) + d[k])
                for a in range(k):
                    product[a] += t * Z[i, a]
                product[k] += t
        length = norm / dot(d, product)
        for a in range(k + 1):
            step[a] += length * d[a]
            residual[a] -= length * product[a]
            scaled[a] = residual[a] / diagonal[a]
        next_norm = dot(residual, scaled)
        for a in range(k + 1):
            d[a] = scaled[a] + next_norm / norm * d[a]
        norm = next_norm
