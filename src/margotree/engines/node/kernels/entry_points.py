"""Compiled functions that solve one node problem, called by `margotree.engines.node.svm` and `best_subset`."""

from __future__ import annotations

import numpy as np

from margotree.engines.node.kernels import active_set, penalised_active_set
from margotree.engines.node.kernels.margins import update_margins
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
    set_pending,
    set_status,
)
from margotree.engines.numba_backend import inner, kernel

#: Violations at which the point is first recomputed and corrected, the factor of the next tolerance, the number of
#: tolerances, and the relative duality gap at which the work ends.
_FIRST_TOLERANCE, _TOLERANCE_FACTOR, _TOLERANCES, _GAP = 1e-7, 1e-2, 3, 1e-10


@kernel(allocates=False)
def solve(ws: Workspace, y: F8, side: F8, delta: F8, cutoff: float, max_pivots: int) -> int:
    """Solve the node problem of slot 0: pivot, recompute from the multipliers, correct, until the gap is closed.

    The work ends early when pivots run out or another thread sets the stop flag of the workspace.

    Parameters
    ----------
    y, side, delta : arrays
        Label of every item; its side (+1 right, -1 left, 0 free); its distance from the hyperplane on that side.
    cutoff : float
        The work ends when the dual value reaches it.
    max_pivots : int
        Pivots per tolerance; with 0 only the bound is recomputed.
    """
    _add_all_items(ws, y, side, delta)
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
        active_set.correct_margins(ws, 0)
        if outcome == CUT or ws.work[SCALARS, STOP] != 0.0:
            return outcome
        value = ws.g[0, NUM, VALUE]
        if active_set.primal_value(ws, 0) - value <= _GAP * abs(value):
            return OPTIMAL
        tol *= _TOLERANCE_FACTOR
    return outcome


@kernel(allocates=False)
def relax(ws: Workspace, y: F8, side: F8, delta: F8, thresholds: F8, cutoff: float, max_pivots: int) -> int:
    """Solve the relaxation in which penalised features are used in part, for bounds.

    It starts from the multipliers and thresholds in the workspace.  Features that ``thresholds`` decides (0: used, inf:
    not allowed) move to their new weights.  If other thresholds have changed, items with a margin to keep enter anew.
    """
    _add_all_items(ws, y, side, delta)
    n = thresholds.size
    anew = False
    for j in range(n):
        anew = anew or (0.0 < thresholds[j] < np.inf and thresholds[j] != ws.g[0, R, j])
    _restore_statuses(ws, y.size, anew)
    for j in range(n):
        use = ws.k[0, USE, j]
        # No weight moves if the feature is unused and not allowed, or used and must be.
        if anew or (use == OFF and thresholds[j] == np.inf) or (use == FULL and thresholds[j] == 0.0):
            ws.g[0, R, j] = thresholds[j]
        if anew and thresholds[j] == np.inf:
            ws.k[0, USE, j] = OFF
    active_set.refresh(ws, 0)
    for j in range(n):
        if ws.g[0, R, j] != thresholds[j]:
            penalised_active_set.decide(ws, 0, j, thresholds[j] == 0.0)
            update_margins(ws, 0)
    return penalised_active_set.run(ws, 0, cutoff, max_pivots, _FIRST_TOLERANCE)


@inner(allocates=False)
def _restore_statuses(ws: Workspace, m: int, anew: bool) -> None:
    """Set LO and HI of all items from their status; items that keep a margin become free, or PENDING if ``anew``."""
    ws.cnt[0, N_FREE] = 0
    for i in range(m):
        ws.f[0, REST, i] = 0.0
        status = ws.k[0, STATUS, i]
        hard = status == AT_HARD or status == PENDING_HARD
        if hard or status == AT_MARGIN or status == PENDING_MARGIN:
            if anew or status == PENDING_HARD or status == PENDING_MARGIN:
                set_pending(ws, 0, i, hard)
                continue
            ws.k[0, FREE, ws.cnt[0, N_FREE]] = i
            ws.cnt[0, N_FREE] += 1
        set_status(ws, 0, i, status)


@inner(allocates=False)
def _add_all_items(ws: Workspace, y: F8, side: F8, delta: F8) -> None:
    """Add all samples as items, if there are no items yet."""
    if ws.cnt[0, N_ITEMS] == 0:
        for i in range(y.size):
            add_item(ws, 0, i, y[i])
            if side[i] != 0.0:
                active_set.add_hard_row(ws, 0, i, side[i], delta[i])
