"""One node problem from the beginning to the end: the compiled entry point behind `engines.node`."""

from __future__ import annotations

from margotree.engines.kernels import pivot
from margotree.engines.kernels.jit import bare_kernel
from margotree.engines.kernels.ratio import CUT, INFEASIBLE, OPTIMAL, STALLED
from margotree.engines.kernels.workspace import F8, N_ITEMS, NUM, SINGLE, STOP, VALUE, Workspace, add_item

#: Violations at which the point is recomputed and corrected, and the relative duality gap that is good enough.
_FIRST_TOLERANCE, _NEXT, _TOLERANCES, _GAP = 1e-7, 1e-2, 3, 1e-10


@bare_kernel()
def solve(ws: Workspace, y: F8, side: F8, delta: F8, cutoff: float, max_pivots: int) -> int:
    """Pivot, recompute from the multipliers, correct, until primal and dual values agree, pivots run out or somebody
    raises the workspace's flag.

    Samples with a ``side`` other than 0 must lie there by ``delta``.  Without pivots only the bound is recomputed.
    """
    if ws.cnt[0, N_ITEMS] == 0:
        for i in range(y.size):
            add_item(ws, 0, i, y[i])
            if side[i] != 0.0:
                pivot.harden(ws, 0, i, side[i], delta[i])
    if max_pivots == 0:
        pivot.refresh(ws, 0)
        return STALLED
    outcome = STALLED
    tol = _FIRST_TOLERANCE
    for _ in range(_TOLERANCES):
        outcome = pivot.run(ws, 0, cutoff, max_pivots, tol)
        if outcome == INFEASIBLE:
            return outcome
        pivot.refresh(ws, 0)
        pivot.correct(ws, 0)
        if outcome == CUT or ws.work[SINGLE, STOP] != 0.0:
            return outcome
        value = ws.g[0, NUM, VALUE]
        if pivot.primal_value(ws, 0) - value <= _GAP * abs(value):
            return OPTIMAL
        tol *= _NEXT
    return outcome
