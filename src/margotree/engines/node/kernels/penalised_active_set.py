"""The dual active-set method with feature penalties.

As in `active_set`, an item moves to its complementarity curve while the free items keep their margins.  There are two
differences.  A feature at a kink keeps its ``u`` and changes its ``w`` (`directions`).  And a step can also end at a
feature: one that is OFF or FULL reaches its kink, or the ``w`` of one at a kink reaches either end.

The dual value is that of the perspective relaxation with penalty ``alpha`` on every feature;
`feature_penalties.penalised_bound` turns it into a bound for the node, which takes the budget into account.
"""

from __future__ import annotations

import numpy as np

from margotree.engines.node.kernels import cholesky
from margotree.engines.node.kernels.active_set import RESTARTS
from margotree.engines.node.kernels.directions import direction, orthogonalise, solution_row, weight_change
from margotree.engines.node.kernels.feature_penalties import leave_kink, pass_breakpoint, safe_dual_value
from margotree.engines.node.kernels.margins import next_violating_item, update_margins, worst_item
from margotree.engines.node.kernels.ratio_test import (
    CUT,
    INFEASIBLE,
    OPTIMAL,
    STALLED,
    STRAIGHT_SHARE,
    add_free_item,
    cutoff_step,
    drop_blocking_item,
    longest_step,
    set_at_bound,
    target_corner,
    try_cutoff_step,
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
    set_pending,
)
from margotree.engines.numba_backend import inner

#: An entering item that has passed this number of breakpoints, plus a number per feature, is cycling.
_MAX_PIVOTS, _MAX_PIVOTS_PER_FEATURE = 60, 4
#: The index that stands for no item.
NO_ITEM = np.int64(-1)
#: Entering items without improvement before other violated items enter, and before the run ends as stalled.
ROTATE_AFTER, STALL_AFTER = 20, 80


@inner(allocates=False)
def _kink_room(u: float, w: float, r: float, rate: float) -> float:
    """How far the ``w`` of a feature at a kink can move at this rate before it reaches 0 or ``u``."""
    side = 1.0 if u > 0.0 else -1.0
    size = side * w
    if side * rate > 0.0:
        return max(0.0, r - size) / abs(rate)
    return max(0.0, size) / abs(rate)


@inner(allocates=False)
def _longest_step(ws: Workspace, s: int, e: int, hard: bool, sign: float) -> tuple[float, int, int]:
    """The longest step, the free item that limits it (-1 for ``e`` itself), and the feature that limits it, or -1."""
    g, work = ws.g, ws.work
    step, block = longest_step(ws, s, e, hard, sign)
    end = np.inf
    feature = -1
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
            feature = j
    return (end, -1, feature) if end < step else (step, block, -1)


@inner(allocates=False)
def _pass_block(ws: Workspace, s: int, block: int, feature: int) -> None:
    """Let the feature that limits the step change its use, or remove the free item that does from the free ones."""
    if feature >= 0:
        pass_breakpoint(ws, s, feature, ws.work[DW, feature] * ws.g[s, U, feature] > 0.0)
    else:
        drop_blocking_item(ws, s, block)


@inner(allocates=False)
def _reset_changes(ws: Workspace) -> None:
    """Set the total changes of w and b to 0."""
    for j in range(ws.X.shape[1]):
        ws.work[TOTAL, j] = 0.0
    ws.work[SCALARS, SHIFT] = 0.0


@inner(allocates=False)
def _take_step(ws: Workspace, s: int, e: int, sign: float, step: float, beta: float, gain: float) -> None:
    """Move all multipliers, w, u, b and the dual value along the current direction."""
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
def _move_offset_and_kinks(ws: Workspace, s: int, columns: int, rate: float, goal: float) -> tuple[float, bool]:
    """Move b and the kinks alone until the item has moved by ``goal`` or a kink ends; the dual value does not change.

    ``rate`` is that of the item.  Returns how much of ``goal`` is left, and whether this is 0.
    """
    g, k, work = ws.g, ws.k, ws.work
    x = solution_row(ws.X.shape[1])
    turn = 1.0 if goal * rate >= 0.0 else -1.0
    step, feature = goal / rate * turn, -1
    for a in range(1, columns):
        j = k[s, KINKS, a - 1]
        if work[x, a] != 0.0:
            limit = _kink_room(g[s, U, j], g[s, W, j], g[s, R, j], turn * work[x, a])
            if limit < step:
                step, feature = limit, j
    fuller = False
    for a in range(1, columns):
        j = k[s, KINKS, a - 1]
        change = turn * step * work[x, a]
        if j == feature:
            fuller = turn * work[x, a] * g[s, U, j] > 0.0
        g[s, W, j] += change
        work[TOTAL, j] += change
    shift = turn * step * work[x, 0]
    g[s, NUM, B] += shift
    work[SCALARS, SHIFT] += shift
    if feature < 0:
        return 0.0, True
    pass_breakpoint(ws, s, feature, fuller)
    return goal - turn * step * rate, False


@inner(allocates=False)
def enter(ws: Workspace, s: int, e: int, cutoff: float) -> int:
    """Move item ``e`` to its complementarity curve, past the ends of free items and features.

    Returns an outcome of `ratio_test`.  Row TOTAL of ``work`` then holds the total change of w, and SHIFT that of b.
    """
    _reset_changes(ws)
    g, work, cnt, n, o = ws.g, ws.work, ws.cnt, ws.X.shape[1], ws.f[s, O, e]
    margin = o * ws.f[s, H, e]
    sign, hard, goal = target_corner(ws, s, e)
    most = cnt[s, PIVOTS] + _MAX_PIVOTS + _MAX_PIVOTS_PER_FEATURE * n
    while True:
        cnt[s, PIVOTS] += 1
        if cnt[s, PIVOTS] > most:
            set_pending(ws, s, e, hard)
            return STALLED
        k = cnt[s, N_FREE]
        cholesky.gram_column(ws, s, e)
        cholesky.solve_lower(ws, s, COLUMN)
        h_ee = cholesky.gram(ws, s, e, e)
        pivot2 = h_ee
        for p in range(k):
            pivot2 -= work[COLUMN, p] * work[COLUMN, p]
        dependent = pivot2 <= cholesky.DEPENDENT * h_ee
        columns, rate = orthogonalise(ws, s, e, dependent)
        if columns:
            left, fits = _move_offset_and_kinks(ws, s, columns, rate, o * (goal - margin))
            margin = goal - o * left
            if fits:
                break
            continue
        beta = direction(ws, s, e, o * sign)
        for j in range(n):
            work[DU, j] += o * sign * ws.X[e, j]
        bend = weight_change(ws, s)
        r = abs(goal - margin)
        full = r / bend if bend > 0.0 else np.inf
        step, block, feature = _longest_step(ws, s, e, hard, sign)
        fits = full <= step
        if fits and (dependent or k >= n + 2):
            # A dependent item cannot become free; continue to the block if the dual value hardly changes.
            scale = cost_of(ws, s, e) + abs(g[s, NUM, VALUE])
            fits = step == np.inf or bend * step * step > 1e-12 * scale
            if fits and k >= n + 2:
                set_pending(ws, s, e, hard)
                return STALLED
        if fits:
            step = full
        far = cutoff_step(ws, s, r, cutoff)
        if step > far:
            return try_cutoff_step(ws, s, e, hard, sign, far, bend < STRAIGHT_SHARE * h_ee, cutoff)
        if step == np.inf:
            return INFEASIBLE
        _take_step(ws, s, e, sign, step, beta, step * (r - 0.5 * step * bend))
        margin += sign * step * bend
        if fits:
            break
        if feature < 0 and block < 0:
            set_at_bound(ws, s, e, hard, sign > 0)
            return CUT if g[s, NUM, VALUE] >= cutoff else OPTIMAL
        _pass_block(ws, s, block, feature)
        if g[s, NUM, VALUE] >= cutoff:
            set_pending(ws, s, e, hard)
            return CUT
    add_free_item(ws, s, e, hard, pivot2, h_ee)
    return CUT if g[s, NUM, VALUE] >= cutoff else OPTIMAL


@inner(allocates=False)
def run(ws: Workspace, s: int, cutoff: float, max_pivots: int, tol: float) -> int:
    """Pivot as `active_set.run` does.

    Penalties make ties common: after a number of entering items without improvement, other violated items enter.
    """
    g, cnt = ws.g, ws.cnt
    stop_at = cnt[s, PIVOTS] + max_pivots
    for _ in range(RESTARTS):
        pivots = cnt[s, PIVOTS]
        outcome = OPTIMAL
        idle = 0
        while outcome == OPTIMAL:
            before = g[s, NUM, VALUE]
            if before >= cutoff:
                outcome = CUT
                break
            e = worst_item(ws, s, tol) if idle < ROTATE_AFTER else next_violating_item(ws, s, tol, cnt[s, PIVOTS])
            if e < 0:
                break
            if cnt[s, PIVOTS] >= stop_at or ws.work[SCALARS, STOP] != 0.0 or idle > STALL_AFTER:
                outcome = STALLED
                break
            outcome = enter(ws, s, e, cutoff)
            update_margins(ws, s)
            idle = 0 if g[s, NUM, VALUE] > before + 1e-12 * abs(before) else idle + 1
            if outcome == STALLED:
                idle = max(idle, ROTATE_AFTER)
                outcome = OPTIMAL
        if cnt[s, PIVOTS] > pivots:
            g[s, NUM, VALUE] = safe_dual_value(ws, s)
        if outcome != CUT or g[s, NUM, VALUE] >= cutoff:
            return outcome
    return STALLED


@inner(allocates=False)
def decide(ws: Workspace, s: int, j: int, must: bool) -> None:
    """Fix feature ``j`` as used (``must``) or not used.

    Its weight moves to its new value (``u``, or 0) while the free items keep their margins.  The result solves the node
    problem with this decision, except for items that have come to violate their curves.
    """
    g, k = ws.g, ws.k
    _reset_changes(ws)
    if k[s, USE, j] == KINK:
        leave_kink(ws, s, j, OFF)
    k[s, USE, j] = OFF
    g[s, ON, j] = 0.0
    g[s, R, j] = np.inf  # its use does not change while it moves
    cholesky.rebuild(ws, s)
    _move_weight(ws, s, j, must)
    goal = g[s, U, j] if must else 0.0
    ws.work[TOTAL, j] += goal - g[s, W, j]  # the rest, if the moves ended early
    stuck = abs(goal - g[s, W, j]) > 1e-9 * (1.0 + abs(goal))
    g[s, W, j] = goal
    if must:
        g[s, R, j] = 0.0
        k[s, USE, j] = FULL
        g[s, ON, j] = 1.0
    if stuck:
        _make_all_pending(ws, s)
    else:
        cholesky.rebuild(ws, s)
    g[s, NUM, VALUE] = safe_dual_value(ws, s)


@inner(allocates=False)
def _make_all_pending(ws: Workspace, s: int) -> None:
    """Make all free items PENDING, so that they are solved for anew."""
    for p in range(ws.cnt[s, N_FREE]):
        i = ws.k[s, FREE, p]
        set_pending(ws, s, i, ws.k[s, STATUS, i] == AT_HARD)
    ws.cnt[s, N_FREE] = 0


@inner(allocates=False)
def _move_weight(ws: Workspace, s: int, j: int, must: bool) -> None:
    """Move the weight of feature ``j`` to its ``u`` or to 0, past the ends of free items and other features."""
    g, work = ws.g, ws.work
    for _ in range(_MAX_PIVOTS):
        goal = g[s, U, j] if must else 0.0
        way = goal - g[s, W, j]
        if abs(way) <= 1e-14 * (1.0 + abs(goal)):
            return
        move = 1.0 if way > 0.0 else -1.0
        for p in range(ws.cnt[s, N_FREE]):
            work[COLUMN, p] = ws.X[ws.k[s, FREE, p], j]
        cholesky.solve_lower(ws, s, COLUMN)
        orthogonalise(ws, s, NO_ITEM, NO_ITEM < 0)
        beta = direction(ws, s, NO_ITEM, move)
        own = work[DU, j]
        weight_change(ws, s)
        closing = 1.0 - move * own if must else 1.0
        full = abs(way) / closing if closing > 0.0 else np.inf
        step, block, feature = _longest_step(ws, s, NO_ITEM, NO_ITEM >= 0, 1.0)
        fits = full <= step
        if fits:
            step = full
        if step == np.inf:
            return
        work[DW, j] = move
        _take_step(ws, s, NO_ITEM, 0.0, step, beta, 0.0)
        if fits:
            return
        _pass_block(ws, s, block, feature)
