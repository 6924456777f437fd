"""One node problem from the beginning to the end: the compiled entry points behind `engines.node` and `subset`."""

from __future__ import annotations

import numpy as np

from margotree.engines.node.kernels import active_set, penalised_active_set
from margotree.engines.node.kernels.margins import follow
from margotree.engines.node.kernels.ratio_test import CUT, INFEASIBLE, OPTIMAL, STALLED
from margotree.engines.node.kernels.workspace import (
    AT_HARD,
    AT_MARGIN,
    F8,
    FREE,
    FULL,
    N_FREE,
    N_ITEMS,
    NUM,
    OFF,
    PENDING_HARD,
    PENDING_MARGIN,
    REST,
    SCALARS,
    STATUS,
    STOP,
    USE,
    VALUE,
    R,
    Workspace,
    add_item,
    put_off,
    stand,
)
from margotree.engines.numba_backend import inner, kernel

#: Violations at which the point is recomputed and corrected, and the relative duality gap that is good enough.
_FIRST_TOLERANCE, _NEXT, _TOLERANCES, _GAP = 1e-7, 1e-2, 3, 1e-10


@kernel(allocates=False)
def solve(ws: Workspace, y: F8, side: F8, delta: F8, cutoff: float, max_pivots: int) -> int:
    """Pivot, recompute from the multipliers, correct, until primal and dual values agree, pivots run out or somebody
    raises the workspace's flag.

    Samples with a ``side`` other than 0 must lie there by ``delta``.  Without pivots only the bound is recomputed.
    """
    _enlist(ws, y, side, delta)
    if max_pivots == 0:
        active_set.refresh(ws, 0)
        return STALLED
    outcome = STALLED
    tol = _FIRST_TOLERANCE
    for _ in range(_TOLERANCES):
        outcome = active_set.run(ws, 0, cutoff, max_pivots, tol)
        if outcome == INFEASIBLE:
            return outcome
        active_set.refresh(ws, 0)
        active_set.correct(ws, 0)
        if outcome == CUT or ws.work[SCALARS, STOP] != 0.0:
            return outcome
        value = ws.g[0, NUM, VALUE]
        if active_set.primal_value(ws, 0) - value <= _GAP * abs(value):
            return OPTIMAL
        tol *= _NEXT
    return outcome


@kernel(allocates=False)
def relax(ws: Workspace, y: F8, side: F8, delta: F8, thresholds: F8, cutoff: float, max_pivots: int) -> int:
    """The same where features have prices: the relaxation in which they are used in part, for bounds.

    It begins at the multipliers that the workspace has, and at its thresholds: features that are decided by those that
    are given are moved to where they belong.  Where prices have changed, items with a margin to keep enter anew.
    """
    _enlist(ws, y, side, delta)
    n = thresholds.size
    anew = False
    for j in range(n):
        anew = anew or (0.0 < thresholds[j] < np.inf and thresholds[j] != ws.g[0, R, j])
    _stand_again(ws, y.size, anew)
    for j in range(n):
        use = ws.k[0, USE, j]
        # Nothing moves if it is not used and never may be, or is and must be.
        if anew or (use == OFF and thresholds[j] == np.inf) or (use == FULL and thresholds[j] == 0.0):
            ws.g[0, R, j] = thresholds[j]
        if anew and thresholds[j] == np.inf:
            ws.k[0, USE, j] = OFF
    active_set.refresh(ws, 0)
    for j in range(n):
        if ws.g[0, R, j] != thresholds[j]:
            penalised_active_set.decide(ws, 0, j, thresholds[j] == 0.0)
            follow(ws, 0)
    return penalised_active_set.run(ws, 0, cutoff, max_pivots, _FIRST_TOLERANCE)


@inner(allocates=False)
def _stand_again(ws: Workspace, m: int, anew: bool) -> None:
    """Put all items where their status says; those that keep a margin are free, or will be when they enter ``anew``."""
    ws.cnt[0, N_FREE] = 0
    for i in range(m):
        ws.f[0, REST, i] = 0.0
        status = ws.k[0, STATUS, i]
        hard = status == AT_HARD or status == PENDING_HARD
        if hard or status == AT_MARGIN or status == PENDING_MARGIN:
            if anew or status == PENDING_HARD or status == PENDING_MARGIN:
                put_off(ws, 0, i, hard)
                continue
            ws.k[0, FREE, ws.cnt[0, N_FREE]] = i
            ws.cnt[0, N_FREE] += 1
        stand(ws, 0, i, status)


@inner(allocates=False)
def _enlist(ws: Workspace, y: F8, side: F8, delta: F8) -> None:
    """Let all samples take part, if none does yet."""
    if ws.cnt[0, N_ITEMS] == 0:
        for i in range(y.size):
            add_item(ws, 0, i, y[i])
            if side[i] != 0.0:
                active_set.add_hard_row(ws, 0, i, side[i], delta[i])
