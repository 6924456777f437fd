"""Directions along which the free items keep their margins and the features at kinks keep their ``u``.

In a direction a kink plays the role of ``b``: it is a column that the free items have to balance.  The columns are
orthogonalised first.  Rows of ``work`` from SCRATCH on hold them, ``n + 1`` at most; the next ``n + 2`` rows hold the
triangle of the original columns, and the last two the entries of the moving item and the solution.
"""

from __future__ import annotations

import numpy as np

from margotree.engines.node.kernels import cholesky
from margotree.engines.node.kernels.workspace import (
    COLUMN,
    DU,
    DW,
    FREE,
    FULL,
    KINKS,
    N_FREE,
    N_KINKS,
    RATES,
    SCRATCH,
    USE,
    C,
    V,
    Workspace,
)
from margotree.engines.numba_backend import inner

#: A column depends on the others if orthogonalisation leaves less than this share of its square.
_DEPENDENT = 1e-10
#: Changes of an item's margin below this share of their terms are rounding errors.
_ROUNDING = 1e-9


@inner(allocates=False)
def solution_row(n: int) -> int:
    """The row of ``work`` in which `orthogonalise` and `direction` leave the changes of b and of the kinks."""
    return SCRATCH + 2 * n + 4


@inner(allocates=False)
def _back_substitute(ws: Workspace, q: int) -> None:
    """Convert coefficients of the orthogonal columns to coefficients of the original ones, in the solution row."""
    work, n = ws.work, ws.X.shape[1]
    triangle, x = SCRATCH + n + 1, solution_row(n)
    for a in range(q - 1, -1, -1):
        if work[triangle + a, a] == 0.0:
            work[x, a] = 0.0
            continue
        work[x, a] /= work[triangle + a, a]
        for b in range(a):
            work[x, b] -= work[triangle + a, b] * work[x, a]


@inner(allocates=False)
def orthogonalise(ws: Workspace, s: int, e: int, dependent: bool) -> tuple[int, float]:
    """Orthogonalise the columns of b and the kinks, and find out whether the free items can balance item ``e``.

    If they cannot, some change of b and the kinks moves ``e`` and no free item.  It is left in the solution row; the
    function returns its number of columns and the rate at which ``e`` moves.  Otherwise it returns 0 columns; also if
    ``e`` is ``dependent`` on the free items, or -1 (no item).
    """
    X, work, n = ws.X, ws.work, ws.X.shape[1]
    k, q = ws.cnt[s, N_FREE], ws.cnt[s, N_KINKS] + 1
    triangle, x = SCRATCH + n + 1, solution_row(n)
    own_row = x - 1
    for a in range(q):
        row = SCRATCH + a
        own_part = 0.0  # entry of the moving item in this column
        if a == 0:
            for p in range(k):
                work[row, p] = ws.g[s, V, p]
            if e >= 0:
                own_part = ws.fixed[C, e]
        else:
            j = ws.k[s, KINKS, a - 1]
            for p in range(k):
                work[row, p] = X[ws.k[s, FREE, p], j]
            cholesky.solve_lower(ws, s, row)
            if e >= 0:
                own_part = X[e, j]
        size = 0.0
        for p in range(k):
            size += work[row, p] * work[row, p]
        scale = abs(own_part)
        for b in range(a):
            if work[triangle + b, b] == 0.0:
                work[triangle + a, b] = 0.0
                continue
            along = 0.0
            for p in range(k):
                along += work[SCRATCH + b, p] * work[row, p]
            for p in range(k):
                work[row, p] -= along * work[SCRATCH + b, p]
            work[triangle + a, b] = along
            own_part -= along * work[own_row, b]
            scale += abs(along * work[own_row, b])
        left = 0.0
        for p in range(k):
            left += work[row, p] * work[row, p]
        if left > _DEPENDENT * size:
            root = np.sqrt(left)
            work[triangle + a, a] = root
            for p in range(k):
                work[row, p] /= root
            work[own_row, a] = own_part / root
            continue
        work[triangle + a, a] = 0.0
        work[own_row, a] = 0.0
        if not dependent and abs(own_part) > _ROUNDING * scale:
            for b in range(a):
                work[x, b] = -work[triangle + a, b]
            _back_substitute(ws, a)
            work[x, a] = 1.0
            return a + 1, own_part
    return 0, 0.0


@inner(allocates=False)
def direction(ws: Workspace, s: int, e: int, move: float) -> float:
    """The direction, after `orthogonalise`, that keeps the margins of free items and all kinks while one thing moves.

    Row COLUMN holds the column of what moves: item ``e``, or a feature if ``e`` is -1, which has no entry in b and the
    kinks.  Returns the change of b.  Row RATES holds the changes of the multipliers, row DU their contribution to u.
    """
    X, work, n = ws.X, ws.work, ws.X.shape[1]
    k, q = ws.cnt[s, N_FREE], ws.cnt[s, N_KINKS] + 1
    triangle, x = SCRATCH + n + 1, solution_row(n)
    for p in range(k):
        work[RATES, p] = -move * work[COLUMN, p]
    for a in range(q):
        work[x, a] = 0.0
        if work[triangle + a, a] == 0.0:
            continue
        along = 0.0
        for p in range(k):
            along += work[SCRATCH + a, p] * work[COLUMN, p]
        along = -move * along if e < 0 else move * (work[x - 1, a] - along)
        work[x, a] = along
        for p in range(k):
            work[RATES, p] -= along * work[SCRATCH + a, p]
    _back_substitute(ws, q)
    cholesky.solve_upper(ws, s, RATES)
    for j in range(n):
        work[DU, j] = 0.0
    for p in range(k):
        i = ws.k[s, FREE, p]
        rate = work[RATES, p]
        for j in range(n):
            work[DU, j] += rate * X[i, j]
    return work[x, 0]


@inner(allocates=False)
def weight_change(ws: Workspace, s: int) -> float:
    """Set row DW to the change of w that follows from that of u; return the curvature of the step.

    At kinks w changes as in the solution row, and DU becomes 0.
    """
    work, n = ws.work, ws.X.shape[1]
    x = solution_row(n)
    bend = 0.0
    for j in range(n):
        work[DW, j] = 0.0
        if ws.k[s, USE, j] == FULL:
            work[DW, j] = work[DU, j]
            bend += work[DU, j] * work[DU, j]
    for a in range(ws.cnt[s, N_KINKS]):
        j = ws.k[s, KINKS, a]
        work[DU, j] = 0.0
        work[DW, j] = work[x, a + 1]
    return bend
