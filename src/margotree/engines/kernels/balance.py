"""Directions that keep the free items at their margins and the kinks at their ``u``.

To a direction a kink is what ``b`` is: a column that the free items have to balance.  The columns are made orthogonal
first; ``Z`` holds them, ``R`` what they were, and its last two rows the moving item's own part and the solution.
"""

from __future__ import annotations

import numpy as np

from margotree.engines.kernels import factor
from margotree.engines.kernels.jit import bare
from margotree.engines.kernels.state import F8, FULL, N_FREE, N_KINKS, NodeState

# Rows of the work array: changes of w so far, of multipliers, of w and u a unit of step, and the item's column.
TOTAL, Y, DW, DU, COLUMN = 0, 2, 3, 4, 5
#: A column whose square shrinks to this share when made orthogonal to the others depends on them.
_DEPENDENT = 1e-10
#: Changes of an item's margin below this share of what makes them up are rounding.
_ROUNDING = 1e-9


@bare()
def _back(state: NodeState, q: int) -> None:
    """From coefficients of the orthogonal columns to those of the columns themselves, in the last row of R."""
    R = state.R
    x = R[R.shape[0] - 1]
    for a in range(q - 1, -1, -1):
        if R[a, a] == 0.0:
            x[a] = 0.0
            continue
        x[a] /= R[a, a]
        for b in range(a):
            x[b] -= R[a, b] * x[a]


@bare()
def orthogonal(state: NodeState, e: int, dependent: bool) -> tuple[int, float]:
    """Make the columns of b and the kinks orthogonal, and find out whether the free items can balance item ``e``.

    If not, there is a way to move b and the kinks that moves ``e`` and no free item: it is left in the last row of R;
    returned are how many columns it has and how fast ``e`` moves.  Else 0 columns; so too if ``e`` is known to be
    ``dependent`` on the free items, or no item at all (-1).
    """
    k, q = state.cnt[N_FREE], state.cnt[N_KINKS] + 1
    Z, R, X, free = state.Z, state.R, state.X, state.free
    own, x = R[R.shape[0] - 2], R[R.shape[0] - 1]
    for a in range(q):
        row = Z[a]
        mine = 0.0  # what the moving item has in this column
        if a == 0:
            for p in range(k):
                row[p] = state.v[p]
            if e >= 0:
                mine = state.c[e]
        else:
            j = state.kinks[a - 1]
            for p in range(k):
                row[p] = X[free[p], j]
            factor.solve_lower(state.L, row, k)
            if e >= 0:
                mine = X[e, j]
        size = 0.0
        for p in range(k):
            size += row[p] * row[p]
        scale = abs(mine)
        for b in range(a):
            if R[b, b] == 0.0:
                R[a, b] = 0.0
                continue
            along = 0.0
            for p in range(k):
                along += Z[b, p] * row[p]
            for p in range(k):
                row[p] -= along * Z[b, p]
            R[a, b] = along
            mine -= along * own[b]
            scale += abs(along * own[b])
        left = 0.0
        for p in range(k):
            left += row[p] * row[p]
        if left > _DEPENDENT * size:
            root = np.sqrt(left)
            R[a, a] = root
            for p in range(k):
                row[p] /= root
            own[a] = mine / root
            continue
        R[a, a] = 0.0
        own[a] = 0.0
        if not dependent and abs(mine) > _ROUNDING * scale:
            for b in range(a):
                x[b] = -R[a, b]
            _back(state, a)
            x[a] = 1.0
            return a + 1, mine
    return 0, 0.0


@bare()
def direction(state: NodeState, s: float, balanced: bool, work: F8) -> float:
    """Where to move after `orthogonal`: free items so that their margins and all kinks stay while one moves by ``s``.

    ``work`` holds the moving item's column; if it is a feature that moves, its own part in b and the kinks is nothing
    and it is ``balanced``.  Returns the change of b; those of multipliers and, as far as free items make it, of u are
    left in ``work``.
    """
    n, k, q = state.w.size, state.cnt[N_FREE], state.cnt[N_KINKS] + 1
    Z, R, X = state.Z, state.R, state.X
    own, x = R[R.shape[0] - 2], R[R.shape[0] - 1]
    y, du, z = work[Y], work[DU], work[COLUMN]
    for p in range(k):
        y[p] = -s * z[p]
    for a in range(q):
        x[a] = 0.0
        if R[a, a] == 0.0:
            continue
        along = 0.0
        for p in range(k):
            along += Z[a, p] * z[p]
        x[a] = -s * along if balanced else s * (own[a] - along)
        for p in range(k):
            y[p] -= x[a] * Z[a, p]
    _back(state, q)
    factor.solve_upper(state.L, y, k)
    for j in range(n):
        du[j] = 0.0
    for p in range(k):
        f = state.free[p]
        a = y[p]
        for j in range(n):
            du[j] += a * X[f, j]
    return x[0]


@bare()
def spread(state: NodeState, work: F8) -> float:
    """What a change of u does to w, kinks apart; returns how much that bends the dual value."""
    dw, du = work[DW], work[DU]
    x = state.R[state.R.shape[0] - 1]
    bend = 0.0
    for j in range(state.w.size):
        dw[j] = 0.0
        if state.use[j] == FULL:
            dw[j] = du[j]
            bend += du[j] * du[j]
    for a in range(state.cnt[N_KINKS]):
        j = state.kinks[a]
        du[j] = 0.0
        dw[j] = x[a + 1]
    return bend
