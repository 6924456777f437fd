"""The dual active-set method where features have a price.

As in `pivot`, an item is driven to where it fits while the free items keep their margins.  Two things are new.  A
feature at a kink keeps its ``u`` and moves its ``w`` (`balance`).  And a step may also end at a feature: one that is
off or in full use arrives at its kink, one at a kink has moved its ``w`` to either end.

The dual value is that of the perspective relaxation with every feature paying ``alpha``; `features.worth` turns it into
a bound for the node, with the budget taken off.
"""

from __future__ import annotations

import numpy as np

from margotree.engines.kernels import factor
from margotree.engines.kernels.balance import COLUMN, DU, DW, TOTAL, Y, direction, orthogonal, spread
from margotree.engines.kernels.features import add_up, from_kink, pass_end
from margotree.engines.kernels.jit import bare
from margotree.engines.kernels.riser import (
    CUT,
    INFEASIBLE,
    OPTIMAL,
    STALLED,
    STRAIGHT,
    far_enough,
    give_way,
    heading,
    join,
    leap,
    longest_step,
    settle,
)
from margotree.engines.kernels.state import (
    AT_HARD,
    F8,
    FULL,
    KINK,
    N_FREE,
    OFF,
    PIVOTS,
    VALUE,
    B,
    NodeState,
    put_off,
)

#: An entering item that has met so many ends, and so many more a feature, is going round in circles.
_MOST, _MOST_A_FEATURE = 60, 4


@bare()
def _kink_room(u: float, w: float, r: float, rate: float) -> float:
    """How far a kink's w may move at this rate, before it is nothing or all."""
    side = 1.0 if u > 0.0 else -1.0
    size = side * w
    if side * rate > 0.0:
        return max(0.0, r - size) / abs(rate)
    return max(0.0, size) / abs(rate)


@bare()
def _first_end(state: NodeState, work: F8) -> tuple[float, int]:
    """How far until a feature comes to an end of where it is, and which."""
    dw, du, use, r, u, w = work[DW], work[DU], state.use, state.r, state.u, state.w
    step = np.inf
    who = -1
    for j in range(r.size):
        limit = np.inf
        if use[j] == KINK:
            if dw[j] != 0.0:
                limit = _kink_room(u[j], w[j], r[j], dw[j])
        elif du[j] != 0.0 and 0.0 < r[j] < np.inf:
            if use[j] == OFF:
                limit = max(0.0, r[j] - u[j] * (1.0 if du[j] > 0.0 else -1.0)) / abs(du[j])
            elif du[j] * u[j] < 0.0:
                limit = max(0.0, abs(u[j]) - r[j]) / abs(du[j])
        if limit < step:
            step = limit
            who = j
    return step, who


@bare()
def _nearest(state: NodeState, e: int, hard: bool, sign: float, work: F8) -> tuple[float, int, int]:
    """How far until somebody comes to an end: the step, the free item (-1 for ``e`` itself) and the feature, or -1."""
    step, block = longest_step(state, e, hard, sign, work[Y])
    end, feature = _first_end(state, work)
    return (end, -1, feature) if end < step else (step, block, -1)


@bare()
def _pass(state: NodeState, block: int, feature: int, work: F8) -> None:
    """Let the feature or the free item that has come to an end go on from there."""
    if feature >= 0:
        pass_end(state, feature, work[DW, feature] * state.u[feature] > 0.0, work[COLUMN])
    else:
        give_way(state, block, work[Y, block])


@bare()
def _begin(state: NodeState, work: F8) -> None:
    """Nothing has changed yet."""
    for j in range(state.w.size):
        work[TOTAL, j] = 0.0
    work[1, 0] = 0.0


@bare()
def _take_step(state: NodeState, e: int, sign: float, step: float, beta: float, gain: float, work: F8) -> None:
    """Move all multipliers, w, u, b and the dual value along the direction in ``work``."""
    if e >= 0:
        state.nu[e] += sign * step
    for p in range(state.cnt[N_FREE]):
        f = state.free[p]
        state.nu[f] += state.o[f] * work[Y, p] * step
    for j in range(state.w.size):
        state.u[j] += step * work[DU, j]
        change = step * work[DW, j]
        state.w[j] += change
        work[TOTAL, j] += change
    state.num[B] += step * beta
    work[1, 0] += step * beta
    state.num[VALUE] += gain


@bare()
def _slide(state: NodeState, columns: int, pace: float, goal: float, work: F8) -> tuple[float, bool]:
    """Move b and kinks alone, which costs the dual nothing, until the item has moved by ``goal`` or a kink ends.

    Returns how much of ``goal`` is left, and whether that is nothing.
    """
    x = state.R[state.R.shape[0] - 1]
    turn = 1.0 if goal * pace >= 0.0 else -1.0
    step, who = goal / pace * turn, -1
    for a in range(1, columns):
        j = state.kinks[a - 1]
        if x[a] != 0.0:
            limit = _kink_room(state.u[j], state.w[j], state.r[j], turn * x[a])
            if limit < step:
                step, who = limit, j
    fuller = False
    for a in range(1, columns):
        j = state.kinks[a - 1]
        change = turn * step * x[a]
        if j == who:
            fuller = turn * x[a] * state.u[j] > 0.0
        state.w[j] += change
        work[TOTAL, j] += change
    shift = turn * step * x[0]
    state.num[B] += shift
    work[1, 0] += shift
    if who < 0:
        return 0.0, True
    pass_end(state, who, fuller, work[COLUMN])
    return goal - turn * step * pace, False


@bare()
def enter(state: NodeState, e: int, cutoff: float, work: F8) -> int:
    """Drive item ``e`` to where it fits, past the ends of free items and features.

    On return row 0 of ``work`` is the total change of w, and work[1, 0] that of b.
    """
    _begin(state, work)
    n, o = state.w.size, state.o[e]
    g = o * state.h[e]
    sign, hard, goal = heading(state, e)
    most = state.cnt[PIVOTS] + _MOST + _MOST_A_FEATURE * n
    column = work[COLUMN]
    while True:
        state.cnt[PIVOTS] += 1
        if state.cnt[PIVOTS] > most:
            put_off(state, e, hard)
            return STALLED
        k = state.cnt[N_FREE]
        factor.gram_column(state, e, column)
        factor.solve_lower(state.L, column, k)
        h_ee = factor.gram(state, e, e)
        pivot2 = h_ee
        for p in range(k):
            pivot2 -= column[p] * column[p]
        dependent = pivot2 <= factor.DEPENDENT * h_ee
        columns, pace = orthogonal(state, e, dependent)
        if columns:
            left, fits = _slide(state, columns, pace, o * (goal - g), work)
            g = goal - o * left
            if fits:
                break
            continue
        beta = direction(state, o * sign, False, work)
        for j in range(n):
            work[DU, j] += o * sign * state.X[e, j]
        bend = spread(state, work)
        r = abs(goal - g)
        full = r / bend if bend > 0.0 else np.inf
        step, block, feature = _nearest(state, e, hard, sign, work)
        fits = full <= step
        if fits and (dependent or k >= state.free.size):
            # A dependent item cannot join the free ones; go on if that costs nothing worth mentioning.
            fits = step == np.inf or bend * step * step > 1e-12 * (state.cost[e] + abs(state.num[VALUE]))
            if fits and k >= state.free.size:
                put_off(state, e, hard)
                return STALLED
        if fits:
            step = full
        far = far_enough(state, r, cutoff)
        if step > far:
            return leap(state, e, hard, sign, far, bend < STRAIGHT * h_ee, cutoff, work)
        if step == np.inf:
            return INFEASIBLE
        _take_step(state, e, sign, step, beta, step * (r - 0.5 * step * bend), work)
        g += sign * step * bend
        if fits:
            break
        if feature < 0 and block < 0:
            settle(state, e, hard, sign > 0)
            return CUT if state.num[VALUE] >= cutoff else OPTIMAL
        _pass(state, block, feature, work)
        if state.num[VALUE] >= cutoff:
            put_off(state, e, hard)
            return CUT
    join(state, e, hard, column, pivot2, h_ee)
    return CUT if state.num[VALUE] >= cutoff else OPTIMAL


@bare()
def decide(state: NodeState, j: int, must: bool, work: F8) -> None:
    """Use feature ``j`` whatever it does, or do not use it.

    Its weight is moved to where it belongs (to ``u``, or to nothing) while the free items keep their margins; then the
    point at hand is the solved one for what is decided, but for items that do not fit any more.
    """
    _begin(state, work)
    if state.use[j] == KINK:
        from_kink(state, j, OFF)
    state.use[j] = OFF
    state.on[j] = 0.0
    state.r[j] = np.inf  # nothing else about it counts while it moves
    factor.rebuild(state, work[COLUMN])
    _move_weight(state, j, must, work)
    goal = state.u[j] if must else 0.0
    work[TOTAL, j] += goal - state.w[j]  # what is left if the way was too long
    stuck = abs(goal - state.w[j]) > 1e-9 * (1.0 + abs(goal))
    state.w[j] = goal
    if must:
        state.r[j] = 0.0
        state.use[j] = FULL
        state.on[j] = 1.0
    if stuck:
        _release(state)
    else:
        factor.rebuild(state, work[COLUMN])
    state.num[VALUE] = add_up(state)


@bare()
def _release(state: NodeState) -> None:
    """Let all free items be solved anew."""
    for p in range(state.cnt[N_FREE]):
        i = state.free[p]
        put_off(state, i, state.status[i] == AT_HARD)
    state.cnt[N_FREE] = 0


@bare()
def _move_weight(state: NodeState, j: int, must: bool, work: F8) -> None:
    """Move the weight of feature ``j`` towards its ``u`` or nothing, past the ends of free items and other features."""
    for _ in range(_MOST):
        goal = state.u[j] if must else 0.0
        way = goal - state.w[j]
        if abs(way) <= 1e-14 * (1.0 + abs(goal)):
            return
        s = 1.0 if way > 0.0 else -1.0
        k = state.cnt[N_FREE]
        column = work[COLUMN]
        for p in range(k):
            column[p] = state.X[state.free[p], j]
        factor.solve_lower(state.L, column, k)
        orthogonal(state, -1, True)
        beta = direction(state, s, True, work)
        own = work[DU, j]
        spread(state, work)
        closing = 1.0 - s * own if must else 1.0
        full = abs(way) / closing if closing > 0.0 else np.inf
        step, block, feature = _nearest(state, -1, False, 1.0, work)
        fits = full <= step
        if fits:
            step = full
        if step == np.inf:
            return
        work[DW, j] = s
        _take_step(state, -1, 0.0, step, beta, 0.0, work)
        if fits:
            return
        _pass(state, block, feature, work)
