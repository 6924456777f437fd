"""Directions that keep the free items at their margins and the kinks at their ``u``.

To a direction a kink is what ``b`` is: a column that the free items have to balance.  The columns are made orthogonal
first.  Scratch rows from SCRATCH on hold them, ``n + 1`` at most; the next ``n + 2`` what they were (a triangle), and
the last two the moving item's own part and the solution.
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

#: A column whose square shrinks to this share when made orthogonal to the others depends on them.
_DEPENDENT = 1e-10
#: Changes of an item's margin below this share of what makes them up are rounding.
_ROUNDING = 1e-9


@inner(allocates=False)
def solution_row(n: int) -> int:
    """Where `orthogonal` and `direction` leave what b and the kinks do."""
    return SCRATCH + 2 * n + 4


@inner(allocates=False)
def _back(ws: Workspace, q: int) -> None:
    """From coefficients of the orthogonal columns to those of the columns themselves, in the solution row."""
    work, n = ws.work, ws.X.shape[1]
    was, x = SCRATCH + n + 1, solution_row(n)
    for a in range(q - 1, -1, -1):
        if work[was + a, a] == 0.0:
            work[x, a] = 0.0
            continue
        work[x, a] /= work[was + a, a]
        for b in range(a):
            work[x, b] -= work[was + a, b] * work[x, a]


@inner(allocates=False)
def orthogonal(ws: Workspace, s: int, e: int, dependent: bool) -> tuple[int, float]:
    """Make the columns of b and the kinks orthogonal, and find out whether the free items can balance item ``e``.

    If not, there is a way to move b and the kinks that moves ``e`` and no free item: it is left in the solution row;
    returned are how many columns it has and how fast ``e`` moves.  Else 0 columns; so too if ``e`` is known to be
    ``dependent`` on the free items, or no item at all (-1).
    """
    X, work, n = ws.X, ws.work, ws.X.shape[1]
    k, q = ws.cnt[s, N_FREE], ws.cnt[s, N_KINKS] + 1
    was, x = SCRATCH + n + 1, solution_row(n)
    own = x - 1
    for a in range(q):
        row = SCRATCH + a
        mine = 0.0  # what the moving item has in this column
        if a == 0:
            for p in range(k):
                work[row, p] = ws.g[s, V, p]
            if e >= 0:
                mine = ws.fixed[C, e]
        else:
            j = ws.k[s, KINKS, a - 1]
            for p in range(k):
                work[row, p] = X[ws.k[s, FREE, p], j]
            cholesky.solve_lower(ws, s, row)
            if e >= 0:
                mine = X[e, j]
        size = 0.0
        for p in range(k):
            size += work[row, p] * work[row, p]
        scale = abs(mine)
        for b in range(a):
            if work[was + b, b] == 0.0:
                work[was + a, b] = 0.0
                continue
            along = 0.0
            for p in range(k):
                along += work[SCRATCH + b, p] * work[row, p]
            for p in range(k):
                work[row, p] -= along * work[SCRATCH + b, p]
            work[was + a, b] = along
            mine -= along * work[own, b]
            scale += abs(along * work[own, b])
        left = 0.0
        for p in range(k):
            left += work[row, p] * work[row, p]
        if left > _DEPENDENT * size:
            root = np.sqrt(left)
            work[was + a, a] = root
            for p in range(k):
                work[row, p] /= root
            work[own, a] = mine / root
            continue
        work[was + a, a] = 0.0
        work[own, a] = 0.0
        if not dependent and abs(mine) > _ROUNDING * scale:
            for b in range(a):
                work[x, b] = -work[was + a, b]
            _back(ws, a)
            work[x, a] = 1.0
            return a + 1, mine
    return 0, 0.0


@inner(allocates=False)
def direction(ws: Workspace, s: int, e: int, move: float) -> float:
    """Where to go after `orthogonal`: free items so that their margins and all kinks stay while one moves.

    Row COLUMN holds the column of what moves: item ``e`` or, if that is none (-1), a feature, whose own part in b and
    the kinks is nothing.  Returns the change of b; those of multipliers and, as far as free items make it, of u are
    left in rows RATES and DU.
    """
    X, work, n = ws.X, ws.work, ws.X.shape[1]
    k, q = ws.cnt[s, N_FREE], ws.cnt[s, N_KINKS] + 1
    was, x = SCRATCH + n + 1, solution_row(n)
    for p in range(k):
        work[RATES, p] = -move * work[COLUMN, p]
    for a in range(q):
        work[x, a] = 0.0
        if work[was + a, a] == 0.0:
            continue
        along = 0.0
        for p in range(k):
            along += work[SCRATCH + a, p] * work[COLUMN, p]
        along = -move * along if e < 0 else move * (work[x - 1, a] - along)
        work[x, a] = along
        for p in range(k):
            work[RATES, p] -= along * work[SCRATCH + a, p]
    _back(ws, q)
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
def spread(ws: Workspace, s: int) -> float:
    """What a change of u does to w, kinks apart; returns how much that bends the dual value."""
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
