"""Cholesky factor of the Gram matrix of the free items, updated one item at a time.

The matrix is ``H = X_F X_F' + rho c_F c_F'``: the Gram matrix of the points with their bias coordinate, positive
definite as long as the free points are affinely independent.  The ``rho`` term drops out of every direction that keeps
``sum c mu`` fixed, so it changes only the conditioning.  ``v = L^-1 c_F`` is updated together with ``L``. With feature
penalties, ``X_F`` contains only the features that are on.  Right-hand sides are rows of ``work``.
"""

from __future__ import annotations

import math

from margotree.engines.node.kernels.workspace import (
    AT_HARD,
    COLUMN,
    FACTOR,
    FREE,
    N_FREE,
    ON,
    STATUS,
    C,
    V,
    Workspace,
    set_pending,
)
from margotree.engines.numba_backend import inner

#: Weight of the bias coordinate in the Gram matrix.
RHO = 1.0
#: Squared pivots below this share of the diagonal count as linear dependence.
DEPENDENT = 1e-11
#: The factor is rebuilt if switching a feature off leaves less than this share of a pivot.
REBUILD_BELOW = 1e-5


@inner(allocates=False)
def gram(ws: Workspace, s: int, i: int, e: int) -> float:
    """Entry of the Gram matrix for two items, over the features that are on."""
    X, g, n = ws.X, ws.g, ws.X.shape[1]
    rest = RHO * ws.fixed[C, i] * ws.fixed[C, e]
    s0 = s1 = s2 = s3 = 0.0
    if ws.with_penalties:
        even = n - n % 2
        for j in range(0, even, 2):
            s0 += X[i, j] * X[e, j] * g[s, ON, j]
            s1 += X[i, j + 1] * X[e, j + 1] * g[s, ON, j + 1]
        if even < n:
            s0 += X[i, even] * X[e, even] * g[s, ON, even]
        return s0 + s1 + rest
    k = n - n % 4
    for j in range(0, k, 4):
        s0 += X[i, j] * X[e, j]
        s1 += X[i, j + 1] * X[e, j + 1]
        s2 += X[i, j + 2] * X[e, j + 2]
        s3 += X[i, j + 3] * X[e, j + 3]
    for j in range(k, n):
        s0 += X[i, j] * X[e, j]
    return (s0 + s1) + (s2 + s3) + rest


@inner(allocates=False)
def gram_column(ws: Workspace, s: int, e: int) -> None:
    """Set row COLUMN of ``work`` to the Gram entries of item ``e`` with all free items."""
    X, g, fixed, work, n = ws.X, ws.g, ws.fixed, ws.work, ws.X.shape[1]
    even = n - n % 2
    for p in range(ws.cnt[s, N_FREE]):
        f = ws.k[s, FREE, p]
        s0 = s1 = 0.0
        if ws.with_penalties:
            for j in range(0, even, 2):
                s0 += X[f, j] * X[e, j] * g[s, ON, j]
                s1 += X[f, j + 1] * X[e, j + 1] * g[s, ON, j + 1]
            if even < n:
                s0 += X[f, even] * X[e, even] * g[s, ON, even]
        else:
            for j in range(0, even, 2):
                s0 += X[f, j] * X[e, j]
                s1 += X[f, j + 1] * X[e, j + 1]
            if even < n:
                s0 += X[f, even] * X[e, even]
        work[COLUMN, p] = s0 + s1 + RHO * fixed[C, f] * fixed[C, e]


@inner(allocates=False)
def solve_lower(ws: Workspace, s: int, row: int) -> None:
    """Multiply a row of ``work`` by ``L^-1``."""
    g, work = ws.g, ws.work
    for r in range(ws.cnt[s, N_FREE]):
        s0 = work[row, r]
        s1 = 0.0
        even = r - r % 2
        for q in range(0, even, 2):
            s0 -= g[s, FACTOR + r, q] * work[row, q]
            s1 -= g[s, FACTOR + r, q + 1] * work[row, q + 1]
        if even < r:
            s0 -= g[s, FACTOR + r, even] * work[row, even]
        work[row, r] = (s0 + s1) / g[s, FACTOR + r, r]


@inner(allocates=False)
def solve_upper(ws: Workspace, s: int, row: int) -> None:
    """Multiply a row of ``work`` by ``L^-T``."""
    g, work = ws.g, ws.work
    for r in range(ws.cnt[s, N_FREE] - 1, -1, -1):
        a = work[row, r] / g[s, FACTOR + r, r]
        work[row, r] = a
        for q in range(r):
            work[row, q] -= g[s, FACTOR + r, q] * a


@inner(allocates=False)
def append(ws: Workspace, s: int, i: int, pivot2: float) -> None:
    """Add item ``i`` as the last free item.

    Row COLUMN holds ``L^-1`` times its Gram column, and ``pivot2`` is its squared pivot.
    """
    g, work = ws.g, ws.work
    k = ws.cnt[s, N_FREE]
    root = math.sqrt(pivot2)
    a = ws.fixed[C, i]
    for q in range(k):
        g[s, FACTOR + k, q] = work[COLUMN, q]
        a -= work[COLUMN, q] * g[s, V, q]
    g[s, FACTOR + k, k] = root
    g[s, V, k] = a / root
    ws.k[s, FREE, k] = i
    ws.cnt[s, N_FREE] = k + 1


@inner(allocates=False)
def drop(ws: Workspace, s: int, p: int) -> None:
    """Remove the p-th free item; rotations of the columns restore the triangular form."""
    g, free = ws.g, ws.k
    k = ws.cnt[s, N_FREE]
    for r in range(p, k - 1):
        free[s, FREE, r] = free[s, FREE, r + 1]
        for q in range(r + 2):
            g[s, FACTOR + r, q] = g[s, FACTOR + r + 1, q]
    for r in range(p, k - 1):
        a = g[s, FACTOR + r, r]
        b = g[s, FACTOR + r, r + 1]
        rad = math.hypot(a, b)
        cs = a / rad
        sn = b / rad
        g[s, FACTOR + r, r] = rad
        for q in range(r + 1, k - 1):
            left = g[s, FACTOR + q, r]
            right = g[s, FACTOR + q, r + 1]
            g[s, FACTOR + q, r] = cs * left + sn * right
            g[s, FACTOR + q, r + 1] = cs * right - sn * left
        left = g[s, V, r]
        right = g[s, V, r + 1]
        g[s, V, r] = cs * left + sn * right
        g[s, V, r + 1] = cs * right - sn * left
    ws.cnt[s, N_FREE] = k - 1


@inner(allocates=False)
def switch(ws: Workspace, s: int, j: int) -> None:
    """Update the factor for feature ``j``, which has just been switched on or off: a change of rank one."""
    work, k = ws.work, ws.cnt[s, N_FREE]
    for p in range(k):
        work[COLUMN, p] = ws.X[ws.k[s, FREE, p], j]
    if ws.g[s, ON, j] == 1.0:
        _update_rank_one(ws, s)
        return
    solve_lower(ws, s, COLUMN)
    left = 1.0
    for p in range(k):
        left -= work[COLUMN, p] * work[COLUMN, p]
    if left > REBUILD_BELOW:
        _downdate_rank_one(ws, s, math.sqrt(left))
    else:
        rebuild(ws, s)


@inner(allocates=False)
def _update_rank_one(ws: Workspace, s: int) -> None:
    """Factor of ``L L' + x x'`` with ``x`` in row COLUMN, by rotations of the columns with ``x``."""
    g, work, k = ws.g, ws.work, ws.cnt[s, N_FREE]
    t = 0.0
    for r in range(k):
        rad = math.hypot(g[s, FACTOR + r, r], work[COLUMN, r])
        cs = g[s, FACTOR + r, r] / rad
        sn = work[COLUMN, r] / rad
        g[s, FACTOR + r, r] = rad
        for q in range(r + 1, k):
            left = g[s, FACTOR + q, r]
            g[s, FACTOR + q, r] = cs * left + sn * work[COLUMN, q]
            work[COLUMN, q] = cs * work[COLUMN, q] - sn * left
        left = g[s, V, r]
        g[s, V, r] = cs * left + sn * t
        t = cs * t - sn * left


@inner(allocates=False)
def _downdate_rank_one(ws: Workspace, s: int, root: float) -> None:
    """Factor of ``L L' - x x'`` with ``p = L^-1 x`` in row COLUMN and ``root = sqrt(1 - p.p)``, by rotations."""
    g, p, k = ws.g, ws.work, ws.cnt[s, N_FREE]
    t = 0.0
    for r in range(k):
        t -= p[COLUMN, r] * g[s, V, r]
    t /= root
    for r in range(k - 1, -1, -1):
        rad = math.hypot(root, p[COLUMN, r])
        cs = root / rad
        sn = p[COLUMN, r] / rad
        root = rad
        p[COLUMN, r] = 0.0  # from here on the row holds the rotated x
        for q in range(r, k):
            left = g[s, FACTOR + q, r]
            g[s, FACTOR + q, r] = cs * left - sn * p[COLUMN, q]
            p[COLUMN, q] = cs * p[COLUMN, q] + sn * left
        left = g[s, V, r]
        g[s, V, r] = cs * left - sn * t
        t = cs * t + sn * left


@inner(allocates=False)
def rebuild(ws: Workspace, s: int) -> None:
    """Factorise anew from the free items; linearly dependent ones become PENDING."""
    k = ws.cnt[s, N_FREE]
    ws.cnt[s, N_FREE] = 0
    for p in range(k):
        i = ws.k[s, FREE, p]
        gram_column(ws, s, i)
        solve_lower(ws, s, COLUMN)
        h_ii = gram(ws, s, i, i)
        pivot2 = h_ii
        for r in range(ws.cnt[s, N_FREE]):
            pivot2 -= ws.work[COLUMN, r] * ws.work[COLUMN, r]
        if pivot2 > DEPENDENT * h_ii:
            append(ws, s, i, pivot2)
        else:
            set_pending(ws, s, i, ws.k[s, STATUS, i] == AT_HARD)
