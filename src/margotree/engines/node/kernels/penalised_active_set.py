"""The dual active-set method where features have a price.

As in `pivot`, an item is driven to where it fits while the free items keep their margins.  Two things are new.  A
feature at a kink keeps its ``u`` and moves its ``w`` (`balance`).  And a step may also end at a feature: one that is
off or in full use arrives at its kink, one at a kink has moved its ``w`` to either end.

The dual value is that of the perspective relaxation with every feature paying ``alpha``; `features.worth` turns it into
a bound for the node, with the budget taken off.
"""

from __future__ import annotations

import numpy as np

from margotree.engines.node.kernels import cholesky
from margotree.engines.node.kernels.active_set import AGAIN
from margotree.engines.node.kernels.directions import direction, orthogonal, solution_row, spread
from margotree.engines.node.kernels.feature_penalties import add_up, from_kink, pass_end
from margotree.engines.node.kernels.margins import any_item, follow, worst_item
from margotree.engines.node.kernels.ratio_test import (
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
from margotree.engines.node.kernels.workspace import (
    AT_HARD,
    COLUMN,
    DU,
    DW,
    FREE,
    FULL,
    KINK,
    KINKS,
    N_FREE,
    NUM,
    OFF,
    ON,
    PIVOTS,
    RATES,
    SCALARS,
    SHIFT,
    STATUS,
    STOP,
    TOTAL,
    USE,
    VALUE,
    B,
    H,
    O,
    R,
    U,
    W,
    Workspace,
    cost_of,
    move_nu,
    put_off,
)
from margotree.engines.numba_backend import inner

#: An entering item that has met so many ends, and so many more a feature, is going round in circles.
_MOST, _MOST_A_FEATURE = 60, 4
#: Stands for no item.
NOBODY = np.int64(-1)
#: Entering items that bring nothing before others have their turn, and before the point is left as it is.
PATIENCE, GIVE_UP = 20, 80


@inner(allocates=False)
def _kink_room(u: float, w: float, r: float, rate: float) -> float:
    """How far a kink's w may move at this rate, before it is nothing or all."""
    side = 1.0 if u > 0.0 else -1.0
    size = side * w
    if side * rate > 0.0:
        return max(0.0, r - size) / abs(rate)
    return max(0.0, size) / abs(rate)


@inner(allocates=False)
def _nearest(ws: Workspace, s: int, e: int, hard: bool, sign: float) -> tuple[float, int, int]:
    """How far until somebody comes to an end: the step, the free item (-1 for ``e`` itself) and the feature, or -1."""
    g, work = ws.g, ws.work
    step, block = longest_step(ws, s, e, hard, sign)
    end = np.inf
    who = -1
    for j in range(ws.X.shape[1]):
        limit = np.inf
        dw, du, use, r, u = work[DW, j], work[DU, j], ws.k[s, USE, j], g[s, R, j], g[s, U, j]
        if use == KINK:
            if dw != 0.0:
                limit = _kink_room(u, g[s, W, j], r, dw)
        elif du != 0.0 and 0.0 < r < np.inf:
            if use == OFF:
                limit = max(0.0, r - u * (1.0 if du > 0.0 else -1.0)) / abs(du)
            elif du * u < 0.0:
                limit = max(0.0, abs(u) - r) / abs(du)
        if limit < end:
            end = limit
            who = j
    return (end, -1, who) if end < step else (step, block, -1)


@inner(allocates=False)
def _pass(ws: Workspace, s: int, block: int, feature: int) -> None:
    """Let the feature or the free item that has come to an end go on from there."""
    if feature >= 0:
        pass_end(ws, s, feature, ws.work[DW, feature] * ws.g[s, U, feature] > 0.0)
    else:
        give_way(ws, s, block)


@inner(allocates=False)
def _begin(ws: Workspace) -> None:
    """Nothing has changed yet."""
    for j in range(ws.X.shape[1]):
        ws.work[TOTAL, j] = 0.0
    ws.work[SCALARS, SHIFT] = 0.0


@inner(allocates=False)
def _take_step(ws: Workspace, s: int, e: int, sign: float, step: float, beta: float, gain: float) -> None:
    """Move all multipliers, w, u, b and the dual value along the direction at hand."""
    f, g, work = ws.f, ws.g, ws.work
    if e >= 0:
        move_nu(ws, s, e, sign * step)
    for p in range(ws.cnt[s, N_FREE]):
        i = ws.k[s, FREE, p]
        move_nu(ws, s, i, f[s, O, i] * work[RATES, p] * step)
    for j in range(ws.X.shape[1]):
        g[s, U, j] += step * work[DU, j]
        change = step * work[DW, j]
        g[s, W, j] += change
        work[TOTAL, j] += change
    g[s, NUM, B] += step * beta
    work[SCALARS, SHIFT] += step * beta
    g[s, NUM, VALUE] += gain


@inner(allocates=False)
def _slide(ws: Workspace, s: int, columns: int, pace: float, goal: float) -> tuple[float, bool]:
    """Move b and kinks alone, which costs the dual nothing, until the item has moved by ``goal`` or a kink ends.

    Returns how much of ``goal`` is left, and whether that is nothing.
    """
    g, k, work = ws.g, ws.k, ws.work
    x = solution_row(ws.X.shape[1])
    turn = 1.0 if goal * pace >= 0.0 else -1.0
    step, who = goal / pace * turn, -1
    for a in range(1, columns):
        j = k[s, KINKS, a - 1]
        if work[x, a] != 0.0:
            limit = _kink_room(g[s, U, j], g[s, W, j], g[s, R, j], turn * work[x, a])
            if limit < step:
                step, who = limit, j
    fuller = False
    for a in range(1, columns):
        j = k[s, KINKS, a - 1]
        change = turn * step * work[x, a]
        if j == who:
            fuller = turn * work[x, a] * g[s, U, j] > 0.0
        g[s, W, j] += change
        work[TOTAL, j] += change
    shift = turn * step * work[x, 0]
    g[s, NUM, B] += shift
    work[SCALARS, SHIFT] += shift
    if who < 0:
        return 0.0, True
    pass_end(ws, s, who, fuller)
    return goal - turn * step * pace, False


@inner(allocates=False)
def enter(ws: Workspace, s: int, e: int, cutoff: float) -> int:
    """Drive item ``e`` to where it fits, past the ends of free items and features.

    On return row TOTAL of the scratch is the total change of w, and SHIFT that of b.
    """
    _begin(ws)
    g, work, cnt, n, o = ws.g, ws.work, ws.cnt, ws.X.shape[1], ws.f[s, O, e]
    margin = o * ws.f[s, H, e]
    sign, hard, goal = heading(ws, s, e)
    most = cnt[s, PIVOTS] + _MOST + _MOST_A_FEATURE * n
    while True:
        cnt[s, PIVOTS] += 1
        if cnt[s, PIVOTS] > most:
            put_off(ws, s, e, hard)
            return STALLED
        k = cnt[s, N_FREE]
        cholesky.gram_column(ws, s, e)
        cholesky.solve_lower(ws, s, COLUMN)
        h_ee = cholesky.gram(ws, s, e, e)
        pivot2 = h_ee
        for p in range(k):
            pivot2 -= work[COLUMN, p] * work[COLUMN, p]
        dependent = pivot2 <= cholesky.DEPENDENT * h_ee
        columns, pace = orthogonal(ws, s, e, dependent)
        if columns:
            left, fits = _slide(ws, s, columns, pace, o * (goal - margin))
            margin = goal - o * left
            if fits:
                break
            continue
        beta = direction(ws, s, e, o * sign)
        for j in range(n):
            work[DU, j] += o * sign * ws.X[e, j]
        bend = spread(ws, s)
        r = abs(goal - margin)
        full = r / bend if bend > 0.0 else np.inf
        step, block, feature = _nearest(ws, s, e, hard, sign)
        fits = full <= step
        if fits and (dependent or k >= n + 2):
            # A dependent item cannot join the free ones; go on if that costs nothing worth mentioning.
            scale = cost_of(ws, s, e) + abs(g[s, NUM, VALUE])
            fits = step == np.inf or bend * step * step > 1e-12 * scale
            if fits and k >= n + 2:
                put_off(ws, s, e, hard)
                return STALLED
        if fits:
            step = full
        far = far_enough(ws, s, r, cutoff)
        if step > far:
            return leap(ws, s, e, hard, sign, far, bend < STRAIGHT * h_ee, cutoff)
        if step == np.inf:
            return INFEASIBLE
        _take_step(ws, s, e, sign, step, beta, step * (r - 0.5 * step * bend))
        margin += sign * step * bend
        if fits:
            break
        if feature < 0 and block < 0:
            settle(ws, s, e, hard, sign > 0)
            return CUT if g[s, NUM, VALUE] >= cutoff else OPTIMAL
        _pass(ws, s, block, feature)
        if g[s, NUM, VALUE] >= cutoff:
            put_off(ws, s, e, hard)
            return CUT
    join(ws, s, e, hard, pivot2, h_ee)
    return CUT if g[s, NUM, VALUE] >= cutoff else OPTIMAL


@inner(allocates=False)
def run(ws: Workspace, s: int, cutoff: float, max_pivots: int, tol: float) -> int:
    """As `pivot.run`.  Prices make ties common: when the worst items have brought nothing for a while, others have
    their turn."""
    g, cnt = ws.g, ws.cnt
    stop_at = cnt[s, PIVOTS] + max_pivots
    for _ in range(AGAIN):
        pivots = cnt[s, PIVOTS]
        outcome = OPTIMAL
        idle = 0
        while outcome == OPTIMAL:
            before = g[s, NUM, VALUE]
            if before >= cutoff:
                outcome = CUT
                break
            e = worst_item(ws, s, tol) if idle < PATIENCE else any_item(ws, s, tol, cnt[s, PIVOTS])
            if e < 0:
                break
            if cnt[s, PIVOTS] >= stop_at or ws.work[SCALARS, STOP] != 0.0 or idle > GIVE_UP:
                outcome = STALLED
                break
            outcome = enter(ws, s, e, cutoff)
            follow(ws, s)
            idle = 0 if g[s, NUM, VALUE] > before + 1e-12 * abs(before) else idle + 1
            if outcome == STALLED:
                idle = max(idle, PATIENCE)
                outcome = OPTIMAL
        if cnt[s, PIVOTS] > pivots:
            g[s, NUM, VALUE] = add_up(ws, s)
        if outcome != CUT or g[s, NUM, VALUE] >= cutoff:
            return outcome
    return STALLED


@inner(allocates=False)
def decide(ws: Workspace, s: int, j: int, must: bool) -> None:
    """Use feature ``j`` whatever it does, or do not use it.

    Its weight is moved to where it belongs (to ``u``, or to nothing) while the free items keep their margins; then the
    point at hand is the solved one for what is decided, but for items that do not fit any more.
    """
    g, k = ws.g, ws.k
    _begin(ws)
    if k[s, USE, j] == KINK:
        from_kink(ws, s, j, OFF)
    k[s, USE, j] = OFF
    g[s, ON, j] = 0.0
    g[s, R, j] = np.inf  # nothing else about it counts while it moves
    cholesky.rebuild(ws, s)
    _move_weight(ws, s, j, must)
    goal = g[s, U, j] if must else 0.0
    ws.work[TOTAL, j] += goal - g[s, W, j]  # what is left if the way was too long
    stuck = abs(goal - g[s, W, j]) > 1e-9 * (1.0 + abs(goal))
    g[s, W, j] = goal
    if must:
        g[s, R, j] = 0.0
        k[s, USE, j] = FULL
        g[s, ON, j] = 1.0
    if stuck:
        _release(ws, s)
    else:
        cholesky.rebuild(ws, s)
    g[s, NUM, VALUE] = add_up(ws, s)


@inner(allocates=False)
def _release(ws: Workspace, s: int) -> None:
    """Let all free items be solved anew."""
    for p in range(ws.cnt[s, N_FREE]):
        i = ws.k[s, FREE, p]
        put_off(ws, s, i, ws.k[s, STATUS, i] == AT_HARD)
    ws.cnt[s, N_FREE] = 0


@inner(allocates=False)
def _move_weight(ws: Workspace, s: int, j: int, must: bool) -> None:
    """Move the weight of feature ``j`` towards its ``u`` or nothing, past the ends of free items and other features."""
    g, work = ws.g, ws.work
    for _ in range(_MOST):
        goal = g[s, U, j] if must else 0.0
        way = goal - g[s, W, j]
        if abs(way) <= 1e-14 * (1.0 + abs(goal)):
            return
        move = 1.0 if way > 0.0 else -1.0
        for p in range(ws.cnt[s, N_FREE]):
            work[COLUMN, p] = ws.X[ws.k[s, FREE, p], j]
        cholesky.solve_lower(ws, s, COLUMN)
        orthogonal(ws, s, NOBODY, NOBODY < 0)
        beta = direction(ws, s, NOBODY, move)
        own = work[DU, j]
        spread(ws, s)
        closing = 1.0 - move * own if must else 1.0
        full = abs(way) / closing if closing > 0.0 else np.inf
        step, block, feature = _nearest(ws, s, NOBODY, NOBODY >= 0, 1.0)
        fits = full <= step
        if fits:
            step = full
        if step == np.inf:
            return
        work[DW, j] = move
        _take_step(ws, s, NOBODY, 0.0, step, beta, 0.0)
        if fits:
            return
        _pass(ws, s, block, feature)
