"""How items move on their staircases: how much room a multiplier has, and where it stands when that is used up."""

from __future__ import annotations

import numpy as np

from margotree.engines.kernels import factor, features
from margotree.engines.kernels.jit import bare
from margotree.engines.kernels.state import (
    AT_HARD,
    AT_MARGIN,
    F8,
    LOW,
    MID,
    N_FREE,
    PENDING_HARD,
    RIGHT,
    VALUE,
    WRONG,
    NodeState,
    put_off,
    stand,
)

# Outcomes of a run of pivots.
OPTIMAL, CUT, STALLED, INFEASIBLE = 0, 1, 2, 3
#: A step need not go on when the dual value has passed the cut-off by this share of what was missing, or of itself.
PAST, CLEARLY = 0.25, 1e-9
#: Along a straight direction the dual value bends by less than this share of what the entering item alone would.
STRAIGHT = 1e-10


@bare()
def room(state: NodeState, i: int, hard: bool, up: bool) -> float:
    """How far the multiplier of an item on a riser may still move up or down."""
    if up:
        return np.inf if hard else state.cost[i] - state.nu[i]
    if not hard:
        return state.nu[i]
    return state.nu[i] + (state.cost[i] if state.kind[i] == WRONG else -state.cost[i])


@bare()
def settle(state: NodeState, i: int, hard: bool, up: bool) -> None:
    """Put an item that ran out of room on the step it reached."""
    stand(state, i, MID if up or (hard and state.kind[i] == RIGHT) else LOW)


@bare()
def enters_at_hard(state: NodeState, e: int, sign: float) -> bool:
    """Whether a violating item is heading for its hard corner rather than its margin."""
    st = state.status[e]
    if st == PENDING_HARD or state.kind[e] == WRONG:
        return True
    return st == MID and sign > 0


@bare()
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


@bare()
def far_enough(state: NodeState, r: float, cutoff: float) -> float:
    """A step after which the dual value is past the cut-off, if it is not longer than to the top of the parabola.

    Where a routing is impossible steps could go on forever, and multipliers without measure prove nothing.
    """
    if cutoff == np.inf:
        return np.inf
    return 2.0 * (1.0 + PAST) * (max(cutoff - state.num[VALUE], 0.0) + CLEARLY * abs(cutoff)) / r


@bare()
def sharpen(state: NodeState, e: int, s: float, rates: F8, rhs: F8, du: F8) -> None:
    """Correct the free items' rates so that moving item ``e`` by ``s`` leaves ``u`` and ``sum c mu`` where they are.

    Where nothing bends that is so but for the digits that the factor has lost.
    """
    X, c, free, on = state.X, state.c, state.free, state.on
    n, k = state.w.size, state.cnt[N_FREE]
    unbalanced = s * c[e]
    for j in range(n):
        du[j] = s * X[e, j]
    for p in range(k):
        unbalanced += rates[p] * c[free[p]]
        for j in range(n):
            du[j] += rates[p] * X[free[p], j]
    for p in range(k):
        rhs[p] = -factor.RHO * c[free[p]] * unbalanced
        for j in range(n):
            if on.size == 0 or on[j] == 1.0:
                rhs[p] -= X[free[p], j] * du[j]
    factor.solve_lower(state.L, rhs, k)
    factor.solve_upper(state.L, rhs, k)
    for p in range(k):
        rates[p] += rhs[p]


@bare()
def leap(
    state: NodeState, e: int, hard: bool, sign: float, step: float, straight: bool, cutoff: float, work: F8
) -> int:
    """Take a step along the direction in ``work`` that ought to bring the dual value past the cut-off, or none.

    Directions along which nothing bends (``straight``) are known to a few digits only, and multipliers may become huge;
    so the value is added up anew, and if it is not past the cut-off all is as it was.
    """
    rates, saved, before = work[2], work[5], state.nu[e]
    for _ in range(2 if straight else 0):
        sharpen(state, e, state.o[e] * sign, rates, work[3], work[4])
    put_off(state, e, hard)
    state.nu[e] += sign * step
    for p in range(state.cnt[N_FREE]):
        f = state.free[p]
        saved[p] = state.nu[f]
        state.nu[f] += state.o[f] * rates[p] * step
    value = features.add_up(state)
    past = value >= cutoff
    if not past:
        state.nu[e] = before
        for p in range(state.cnt[N_FREE]):
            state.nu[state.free[p]] = saved[p]
        value = features.add_up(state)
    state.num[VALUE] = value
    return CUT if past else STALLED


@bare()
def heading(state: NodeState, e: int) -> tuple[float, bool, float]:
    """Which way the multiplier of a violating item has to move, whether to its hard corner, and the margin there."""
    o = state.o[e]
    off = max(state.lo[e] - state.h[e], 0.0) + min(state.hi[e] - state.h[e], 0.0)
    sign = 1.0 if o * off >= 0.0 else -1.0
    hard = enters_at_hard(state, e, sign)
    return sign, hard, state.delta[e] if hard else 1.0


@bare()
def give_way(state: NodeState, p: int, rate: float) -> None:
    """The p-th free item has run out of room at this rate of its multiplier: it is free no longer."""
    f = state.free[p]
    settle(state, f, state.status[f] == AT_HARD, state.o[f] * rate > 0)
    factor.drop(state, p)


@bare()
def join(state: NodeState, e: int, hard: bool, column: F8, pivot2: float, h_ee: float) -> None:
    """Item ``e`` sits at its corner from now on: it is free."""
    stand(state, e, AT_HARD if hard else AT_MARGIN)
    factor.append(state, e, column, max(pivot2, factor.DEPENDENT * h_ee))
