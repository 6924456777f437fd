"""The distance of the convex hulls of the samples on the two sides of a split (Wolfe's method)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.kernels.vectors import copy, fill
from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: The largest number of steps.
_STEPS = 60
#: Weights of points, and relative progress, that count as 0.
_NO_WEIGHT, _NO_PROGRESS = 1e-13, 1e-14


@inner()
def first_pair(Z: F8, side: F8, new: int, h: F8) -> tuple[int, int]:
    """A placed sample on the right and one on the left: ``new``, if it is not negative, and the nearest one on the
    other side. ``h`` is scratch."""
    pair = np.full(2, -1)
    if new < 0:
        for i in range(side.size):
            which = 0 if side[i] > 0.0 else 1
            pair[which] = i if pair[which] < 0 else pair[which]
        return pair[0], pair[1]
    fill(h[: side.size], 0.0)
    for r in range(Z.shape[0]):
        row, mine = Z[r], Z[r, new]
        for i in range(side.size):
            h[i] += (row[i] - mine) * (row[i] - mine)
    least = np.inf
    other = -1
    for i in range(side.size):
        if h[i] < least and side[i] == -side[new]:
            least, other = h[i], i
    return (new, other) if side[new] > 0.0 else (other, new)


@inner()
def nearest_points(
    Z: F8, side: F8, right: int, left: int, target: float, pairs: I8, lam: F8, h: F8
) -> tuple[int, float]:
    """Find points of the two sides' hulls with the least distance, or with a square below half of ``target`` (Wolfe's
    method).

    The points are given by pairs of samples on the right and on the left, with weights ``lam`` that sum to 1; the
    method starts with the pair ``right``, ``left``. ``pairs`` and ``lam`` have three rows more than there are features,
    which suffices, as at most one more is needed. ``h`` is scratch. Returns the number of pairs, and the square.
    """
    d = Z.shape[0]
    D, affine = np.empty((d + 3, d)), np.empty(d + 3)
    x = np.empty(d)
    size = 0
    xx = 0.0
    for _ in range(_STEPS):
        pairs[size, 0], pairs[size, 1], lam[size] = right, left, 1.0 if size == 0 else 0.0
        for r in range(d):
            D[size, r] = Z[r, right] - Z[r, left]
        size += 1
        while not _solve_affine_hull(D, lam, affine, size):
            size = _drop_point(pairs, D, lam, affine, size)
        xx = 0.0
        for r in range(d):
            x[r] = 0.0
            for q in range(size):
                x[r] += lam[q] * D[q, r]
            xx += x[r] * x[r]
        if xx <= 0.5 * target or size > d + 1:
            break
        right, left, far = _extremes(Z, side, x, h)
        if xx - far <= _NO_PROGRESS * xx:
            break
        again = False
        for q in range(size):
            again |= pairs[q, 0] == right and pairs[q, 1] == left
        if again:
            break
    return size, xx


@inner()
def _extremes(Z: F8, side: F8, x: F8, h: F8) -> tuple[int, int, float]:
    """The sample on the right with the smallest value along ``x``, the one on the left with the largest, and the
    difference."""
    fill(h[: side.size], 0.0)
    for r in range(x.size):
        row, along = Z[r], x[r]
        for i in range(side.size):
            h[i] += row[i] * along
    right = left = -1
    low, high = np.inf, -np.inf
    for i in range(side.size):
        if h[i] < low and side[i] > 0.0:
            low, right = h[i], i
        if h[i] > high and side[i] < 0.0:
            high, left = h[i], i
    return right, left, low - high


@inner()
def _solve_affine_hull(D: F8, lam: F8, affine: F8, size: int) -> bool:
    """Write to ``affine`` the weights of the point nearest to the origin in the affine hull of the corral.

    If all are above 0, they become ``lam``, and the result is True; otherwise a point has to be dropped.
    """
    d = D.shape[1]
    # An orthonormal basis of the directions from the first point to the others, and the coordinates in it (QR).
    basis, R = np.zeros((size, d)), np.zeros((size, size))
    for q in range(1, size):
        for r in range(d):
            basis[q, r] = D[q, r] - D[0, r]
        whole = np.sqrt(_dot(basis[q], basis[q]))
        for _ in range(2):
            for p in range(1, q):
                part = _dot(basis[p], basis[q])
                R[p, q] += part
                for r in range(d):
                    basis[q, r] -= part * basis[p, r]
        R[q, q] = np.sqrt(_dot(basis[q], basis[q]))
        if R[q, q] <= 1e-13 * whole:
            R[q, q] = 0.0
        for r in range(d):
            basis[q, r] = basis[q, r] / R[q, q] if R[q, q] > 0.0 else 0.0
    affine[0] = 1.0
    for q in range(size - 1, 0, -1):
        left = -_dot(basis[q], D[0])
        for p in range(q + 1, size):
            left -= R[q, p] * affine[p]
        affine[q] = left / R[q, q] if R[q, q] > 0.0 else 0.0
        affine[0] -= affine[q]
    for q in range(size):
        if affine[q] <= _NO_WEIGHT:
            return False
    copy(affine[:size], lam)
    return True


@inner()
def _dot(a: F8, b: F8) -> float:
    """The scalar product."""
    total = 0.0
    for r in range(a.size):
        total += a[r] * b[r]
    return total


@inner()
def _drop_point(pairs: I8, D: F8, lam: F8, affine: F8, size: int) -> int:
    """Move ``lam`` towards ``affine`` until a weight is 0, and drop that point; return the number of points left."""
    share, out = 1.0, 0
    for q in range(size):
        if affine[q] <= _NO_WEIGHT:
            part = lam[q] / max(lam[q] - affine[q], 1e-300)
            if part <= share:
                share, out = part, q
    kept, total = 0, 0.0
    for q in range(size):
        weight = (1.0 - share) * lam[q] + share * affine[q]
        if q == out or weight <= 1e-14:
            continue
        pairs[kept], lam[kept] = pairs[q], weight
        D[kept] = D[q]
        total += weight
        kept += 1
    for q in range(kept):
        lam[q] /= total
    return kept
