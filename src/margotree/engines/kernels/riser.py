"""How items move on their staircases: how much room a multiplier has, and where it stands when that is used up."""

from __future__ import annotations

import numpy as np

from margotree.engines.kernels.jit import inner
from margotree.engines.kernels.state import AT_HARD, F8, LOW, MID, N_FREE, PENDING_HARD, RIGHT, WRONG, NodeState, stand

# Outcomes of a run of pivots.
OPTIMAL, CUT, STALLED, INFEASIBLE = 0, 1, 2, 3


@inner()
def room(state: NodeState, i: int, hard: bool, up: bool) -> float:
    """How far the multiplier of an item on a riser may still move up or down."""
    if up:
        return np.inf if hard else state.cost[i] - state.nu[i]
    if not hard:
        return state.nu[i]
    return state.nu[i] + (state.cost[i] if state.kind[i] == WRONG else -state.cost[i])


@inner()
def settle(state: NodeState, i: int, hard: bool, up: bool) -> None:
    """Put an item that ran out of room on the step it reached."""
    stand(state, i, MID if up or (hard and state.kind[i] == RIGHT) else LOW)


@inner()
def enters_at_hard(state: NodeState, e: int, sign: float) -> bool:
    """Whether a violating item is heading for its hard corner rather than its margin."""
    st = state.status[e]
    if st == PENDING_HARD or state.kind[e] == WRONG:
        return True
    return st == MID and sign > 0


@inner()
def longest_step(state: NodeState, e: int, hard: bool, sign: float, y: F8) -> tuple[float, int]:
    """Ratio test: how far until a multiplier runs out of room, and the free item that does (-1 for ``e`` itself).

    ``e`` may be no item (-1).
    """
    block = -1
    step = room(state, e, hard, sign > 0) if e >= 0 else np.inf
    o, nu, cost, status = state.o, state.nu, state.cost, state.status
    for p in range(state.cnt[N_FREE]):
        f = state.free[p]
        rate = o[f] * y[p]
        if rate == 0.0:
            continue
        if status[f] == AT_HARD:
            if rate > 0:
                continue
            space = nu[f] + cost[f] if state.kind[f] == WRONG else nu[f] - cost[f]
        else:
            space = cost[f] - nu[f] if rate > 0 else nu[f]
        limit = max(space, 0.0) / abs(rate)
        if limit < step:
            step = limit
            block = p
    return step, block
