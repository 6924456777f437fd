"""The dual active-set method where features have a price.

As in `pivot`, an item is driven to where it fits while the free items keep their margins.  Two things are new.  A
feature at a kink keeps its ``u`` and moves its ``w``: to the direction it is what ``b`` is, one more column that the
free items have to balance.  And a step may also end at a feature: one that is off or in full use arrives at its kink,
one at a kink has moved its ``w`` to either end.

The dual value is that of the perspective relaxation with every feature paying ``alpha``; `worth` turns it into a bound
for the node, with the budget taken off.
"""

from __future__ import annotations

import numpy as np

from margotree.engines.kernels import factor
from margotree.engines.kernels.jit import inner, kernel
from margotree.engines.kernels.riser import (
    CUT,
    INFEASIBLE,
    OPTIMAL,
    STALLED,
    enters_at_hard,
    longest_step,
    settle,
)
from margotree.engines.kernels.state import (
    ALPHA,
    AT_HARD,
    AT_MARGIN,
    BUDGET,
    F8,
    FULL,
    KINK,
    N_FREE,
    N_KINKS,
    OFF,
    OUT,
    PENDING_HARD,
    PENDING_MARGIN,
    PIVOTS,
    VALUE,
    B,
    NodeState,
    dual_term,
    stand,
)

# Rows of the work array: changes of w so far, of multipliers, of w and u a unit of step, and the item's column.
_TOTAL, _Y, _DW, _DU, _COLUMN = 0, 2, 3, 4, 5
#: A column whose square shrinks to this share when made orthogonal to the others depends on them.
_DEPENDENT = 1e-10
#: Changes of an item's margin below this share of what makes them up are rounding.
_ROUNDING = 1e-9
#: An entering item that has met so many ends, and so many more a feature, is going round in circles.
_MOST, _MOST_A_FEATURE = 200, 10


# -- value -------------------------------------------------------------------------------------------------------------


@inner()
def offset(state: NodeState) -> float:
    """What features that are used whatever they do pay, less the budget."""
    return -state.price[ALPHA] * places(state)


@inner()
def places(state: NodeState) -> int:
    """How many of the features that are not decided come without a price."""
    free = int(state.price[BUDGET])
    for j in range(state.r.size):
        free -= state.r[j] == 0.0
    return free


@kernel()
def worth(state: NodeState) -> float:
    """A lower bound on the node: the dual value with the best price a feature between 0 and alpha.

    That price is alpha unless fewer features than the budget allows are worth it; then the features with the largest
    ``u`` within the budget pay nothing.
    """
    free = places(state)
    value = state.num[VALUE] - state.price[ALPHA] * free
    return value + relief(state.u, state.r, state.price[ALPHA], free)


@inner()
def relief(u: F8, r: F8, alpha: float, free: int) -> float:
    """What ``alpha`` is more than ``u^2 / 2``, for the ``free`` largest ``|u|`` of features that are not decided."""
    total = 0.0
    ceiling = np.inf
    while free > 0 and alpha > 0.0:
        most = -1.0
        ties = 0
        for j in range(u.size):
            size = abs(u[j])
            if 0.0 < r[j] < np.inf and most <= size < ceiling:
                ties = ties + 1 if size == most else 1
                most = size
        if ties == 0:
            return total + free * alpha
        total += min(ties, free) * max(0.0, alpha - 0.5 * most * most)
        free -= ties
        ceiling = most
    return total


@kernel()
def bonus(w: F8, price: F8) -> float:
    """What prices add to the dual value of a point that was found without them.

    The budget goes to the largest weights; every other feature takes back ``w^2 / 2`` or, if that is less, pays alpha.
    """
    total = -price[ALPHA] * price[BUDGET]
    for j in range(w.size):
        total += min(0.5 * w[j] * w[j], price[ALPHA])
    return max(0.0, total + relief(w, np.ones(w.size), price[ALPHA], int(price[BUDGET])))


@inner()
def cost_of(state: NodeState, j: int) -> float:
    """What feature ``j`` takes from the dual value."""
    return max(0.0, 0.5 * (state.u[j] * state.u[j] - state.r[j] * state.r[j]))


# -- features ----------------------------------------------------------------------------------------------------------


@inner()
def _to_kink(state: NodeState, j: int) -> None:
    side = 1.0 if state.u[j] > 0.0 else -1.0
    state.u[j] = side * state.r[j]
    state.w[j] = state.u[j] if state.use[j] == FULL else 0.0
    state.use[j] = KINK
    state.on[j] = 1.0
    state.kinks[state.cnt[N_KINKS]] = j
    state.cnt[N_KINKS] += 1


@inner()
def _from_kink(state: NodeState, j: int, use: int) -> None:
    state.use[j] = use
    state.on[j] = 1.0 if use == FULL else 0.0
    q = 0
    for a in range(state.cnt[N_KINKS]):
        if state.kinks[a] != j:
            state.kinks[q] = state.kinks[a]
            q += 1
    state.cnt[N_KINKS] = q


@inner()
def pass_end(state: NodeState, j: int, fuller: bool, work: F8) -> None:
    """Feature ``j`` has come to an end of where it was; it goes on at its kink, or from it."""
    before = state.on[j]
    if state.use[j] != KINK:
        _to_kink(state, j)
    else:
        _from_kink(state, j, FULL if fuller else OFF)
        state.w[j] = state.u[j] if fuller else 0.0
    if state.on[j] != before:
        factor.rebuild(state, work[_COLUMN])


@inner()
def derive(state: NodeState) -> None:
    """Say of every feature how it is used, from ``u``; those marked as at a kink keep their ``w`` if they are there."""
    state.cnt[N_KINKS] = 0
    for j in range(state.r.size):
        size = abs(state.u[j])
        if state.use[j] == KINK and abs(size - state.r[j]) <= 1e-9 * (1.0 + state.r[j]):
            state.kinks[state.cnt[N_KINKS]] = j
            state.cnt[N_KINKS] += 1
        elif size > state.r[j] or state.r[j] == 0.0:
            state.use[j] = FULL
            state.w[j] = state.u[j]
        else:
            state.use[j] = OFF
            state.w[j] = 0.0
        state.on[j] = 0.0 if state.use[j] == OFF else 1.0


# -- directions --------------------------------------------------------------------------------------------------------


@inner()
def _own(state: NodeState, e: int, a: int) -> float:
    """Entry of item ``e`` in the column of b (0) or of the a-th kink."""
    return state.c[e] if a == 0 else state.X[e, state.kinks[a - 1]]


@inner()
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


@inner()
def orthogonal(state: NodeState, e: int, dependent: bool) -> tuple[int, float]:
    """Make the columns of b and the kinks orthogonal, and find out whether the free items can balance item ``e``.

    If not, there is a way to move b and the kinks that moves ``e`` and no free item: it is left in the last row of R;
    returned are how many columns it has and how fast ``e`` moves.  Else 0 columns; so too if ``e`` is known to be
    ``dependent`` on the free items, or no item at all (-1).
    """
    k, q = state.cnt[N_FREE], state.cnt[N_KINKS] + 1
    Z, R = state.Z, state.R
    own, x = R[R.shape[0] - 2], R[R.shape[0] - 1]
    for a in range(q):
        row = Z[a]
        if a == 0:
            for p in range(k):
                row[p] = state.v[p]
        else:
            j = state.kinks[a - 1]
            for p in range(k):
                row[p] = state.X[state.free[p], j]
            factor.solve_lower(state.L, row, k)
        size = 0.0
        for p in range(k):
            size += row[p] * row[p]
        mine = 0.0 if e < 0 else _own(state, e, a)
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


@inner()
def direction(state: NodeState, s: float, balanced: bool, work: F8) -> float:
    """Where to move after `orthogonal`: free items so that their margins and all kinks stay while one moves by ``s``.

    ``work`` holds the moving item's column; if it is a feature that moves, its own part in b and the kinks is nothing
    and it is ``balanced``.  Returns the change of b; those of multipliers and, as far as free items make it, of u are
    left in ``work``.
    """
    n, k, q = state.w.size, state.cnt[N_FREE], state.cnt[N_KINKS] + 1
    Z, R, X = state.Z, state.R, state.X
    own, x = R[R.shape[0] - 2], R[R.shape[0] - 1]
    y, du, z = work[_Y], work[_DU], work[_COLUMN]
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


@inner()
def spread(state: NodeState, work: F8) -> float:
    """What a change of u does to w, kinks apart; returns how much that bends the dual value."""
    dw, du = work[_DW], work[_DU]
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


# -- steps -------------------------------------------------------------------------------------------------------------


@inner()
def _kink_room(state: NodeState, j: int, rate: float) -> float:
    """How far a kink's w may move at this rate, before it is nothing or all."""
    side = 1.0 if state.u[j] > 0.0 else -1.0
    size = side * state.w[j]
    if side * rate > 0.0:
        return max(0.0, state.r[j] - size) / abs(rate)
    return max(0.0, size) / abs(rate)


@inner()
def first_end(state: NodeState, work: F8) -> tuple[float, int]:
    """How far until a feature comes to an end of where it is, and which."""
    dw, du = work[_DW], work[_DU]
    step = np.inf
    who = -1
    for j in range(state.r.size):
        limit = np.inf
        if state.use[j] == KINK:
            if dw[j] != 0.0:
                limit = _kink_room(state, j, dw[j])
        elif du[j] != 0.0 and 0.0 < state.r[j] < np.inf:
            if state.use[j] == OFF:
                limit = max(0.0, state.r[j] - state.u[j] * (1.0 if du[j] > 0.0 else -1.0)) / abs(du[j])
            elif du[j] * state.u[j] < 0.0:
                limit = max(0.0, abs(state.u[j]) - state.r[j]) / abs(du[j])
        if limit < step:
            step = limit
            who = j
    return step, who


@inner()
def take_step(state: NodeState, e: int, sign: float, step: float, beta: float, gain: float, work: F8) -> None:
    """Move all multipliers, w, u, b and the dual value along the direction in ``work``."""
    if e >= 0:
        state.nu[e] += sign * step
    for p in range(state.cnt[N_FREE]):
        f = state.free[p]
        state.nu[f] += state.o[f] * work[_Y, p] * step
    for j in range(state.w.size):
        state.u[j] += step * work[_DU, j]
        change = step * work[_DW, j]
        state.w[j] += change
        work[_TOTAL, j] += change
    state.num[B] += step * beta
    work[1, 0] += step * beta
    state.num[VALUE] += gain


@inner()
def slide(state: NodeState, columns: int, pace: float, goal: float, work: F8) -> tuple[float, bool]:
    """Move b and kinks alone, which costs the dual nothing, until the item has moved by ``goal`` or a kink ends.

    Returns how much of ``goal`` is left, and whether that is nothing.
    """
    x = state.R[state.R.shape[0] - 1]
    turn = 1.0 if goal * pace >= 0.0 else -1.0
    step, who = goal / pace * turn, -1
    for a in range(1, columns):
        j = state.kinks[a - 1]
        if x[a] != 0.0:
            limit = _kink_room(state, j, turn * x[a])
            if limit < step:
                step, who = limit, j
    fuller = False
    for a in range(1, columns):
        j = state.kinks[a - 1]
        change = turn * step * x[a]
        if j == who:
            fuller = turn * x[a] * state.u[j] > 0.0
        state.w[j] += change
        work[_TOTAL, j] += change
    shift = turn * step * x[0]
    state.num[B] += shift
    work[1, 0] += shift
    if who < 0:
        return 0.0, True
    pass_end(state, who, fuller, work)
    return goal - turn * step * pace, False


@inner()
def decide(state: NodeState, j: int, must: bool, work: F8) -> None:
    """Use feature ``j`` whatever it does, or do not use it.

    Its weight is moved to where it belongs (to ``u``, or to nothing) while the free items keep their margins; then the
    point at hand is the solved one for what is decided, but for items that do not fit any more.
    """
    n = state.w.size
    for i in range(n):
        work[_TOTAL, i] = 0.0
    work[1, 0] = 0.0
    if state.use[j] == KINK:
        _from_kink(state, j, OFF)
    state.use[j] = OFF
    state.on[j] = 0.0
    state.r[j] = np.inf  # nothing else about it counts while it moves
    factor.rebuild(state, work[_COLUMN])
    _move_weight(state, j, must, work)
    goal = state.u[j] if must else 0.0
    work[_TOTAL, j] += goal - state.w[j]  # what is left if the way was too long
    stuck = abs(goal - state.w[j]) > 1e-9 * (1.0 + abs(goal))
    state.w[j] = goal
    if must:
        state.r[j] = 0.0
        state.use[j] = FULL
        state.on[j] = 1.0
    if stuck:
        _release(state)
    else:
        factor.rebuild(state, work[_COLUMN])
    state.num[VALUE] = add_up(state)


@inner()
def add_up(state: NodeState) -> float:
    """The dual value from scratch: steps add up to it only as well as margins are kept, and multipliers may be huge."""
    total = 0.0
    u = state.u
    for j in range(u.size):
        u[j] = 0.0
    for i in range(state.h.size):
        if state.status[i] != OUT:
            total += dual_term(state, i)
            mu = state.o[i] * state.nu[i]
            if mu != 0.0:
                for j in range(u.size):
                    u[j] += mu * state.X[i, j]
    for j in range(u.size):
        total -= cost_of(state, j)
    return total


@inner()
def _release(state: NodeState) -> None:
    """Let all free items be solved anew."""
    for p in range(state.cnt[N_FREE]):
        i = state.free[p]
        stand(state, i, PENDING_HARD if state.status[i] == AT_HARD else PENDING_MARGIN)
    state.cnt[N_FREE] = 0


@inner()
def _move_weight(state: NodeState, j: int, must: bool, work: F8) -> None:
    """Move the weight of feature ``j`` towards its ``u`` or nothing, past the ends of free items and other features."""
    for _ in range(_MOST):
        goal = state.u[j] if must else 0.0
        way = goal - state.w[j]
        if abs(way) <= 1e-14 * (1.0 + abs(goal)):
            return
        s = 1.0 if way > 0.0 else -1.0
        k = state.cnt[N_FREE]
        column = work[_COLUMN]
        for p in range(k):
            column[p] = state.X[state.free[p], j]
        factor.solve_lower(state.L, column, k)
        orthogonal(state, -1, True)
        beta = direction(state, s, True, work)
        own = work[_DU, j]
        spread(state, work)
        closing = 1.0 - s * own if must else 1.0
        full = abs(way) / closing if closing > 0.0 else np.inf
        step, block = longest_step(state, -1, False, 1.0, work[_Y])
        end, feature = first_end(state, work)
        if end < step:
            step = end
        else:
            feature = -1
        fits = full <= step
        if fits:
            step = full
        if step == np.inf:
            return
        work[_DW, j] = s
        take_step(state, -1, 0.0, step, beta, 0.0, work)
        if fits:
            return
        if feature >= 0:
            pass_end(state, feature, work[_DW, feature] * state.u[feature] > 0.0, work)
        else:
            f = state.free[block]
            settle(state, f, state.status[f] == AT_HARD, state.o[f] * work[_Y, block] > 0)
            factor.drop(state, block)


@inner()
def enter(state: NodeState, e: int, cutoff: float, work: F8) -> int:
    """Drive item ``e`` to where it fits, past the ends of free items and features.

    On return row 0 of ``work`` is the total change of w, and work[1, 0] that of b.
    """
    n = state.w.size
    for j in range(n):
        work[_TOTAL, j] = 0.0
    work[1, 0] = 0.0
    o = state.o[e]
    g = o * state.h[e]
    sign = 1.0 if max(state.lo[e] - state.h[e], 0.0) * o + min(state.hi[e] - state.h[e], 0.0) * o >= 0.0 else -1.0
    hard = enters_at_hard(state, e, sign)
    goal = state.delta[e] if hard else 1.0
    most = state.cnt[PIVOTS] + _MOST + _MOST_A_FEATURE * n
    waiting = PENDING_HARD if hard else PENDING_MARGIN
    column = work[_COLUMN]
    while True:
        state.cnt[PIVOTS] += 1
        if state.cnt[PIVOTS] > most:
            stand(state, e, waiting)
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
            left, fits = slide(state, columns, pace, o * (goal - g), work)
            g = goal - o * left
            if fits:
                break
            continue
        beta = direction(state, o * sign, False, work)
        for j in range(n):
            work[_DU, j] += o * sign * state.X[e, j]
        bend = spread(state, work)
        r = abs(goal - g)
        full = r / bend if bend > 0.0 else np.inf
        step, block = longest_step(state, e, hard, sign, work[_Y])
        end, feature = first_end(state, work)
        if end < step:
            step = end
        else:
            feature = -1
        fits = full <= step
        if fits and (dependent or k >= state.free.size):
            # A dependent item cannot join the free ones; go on if that costs nothing worth mentioning.
            fits = step == np.inf or bend * step * step > 1e-12 * (1.0 + abs(state.num[VALUE]))
            if fits and k >= state.free.size:
                stand(state, e, waiting)
                return STALLED
        if fits:
            step = full
        if step == np.inf:
            return INFEASIBLE
        take_step(state, e, sign, step, beta, step * (r - 0.5 * step * bend), work)
        g += sign * step * bend
        if fits:
            break
        if feature >= 0:
            pass_end(state, feature, work[_DW, feature] * state.u[feature] > 0.0, work)
        elif block < 0:
            settle(state, e, hard, sign > 0)
            return CUT if state.num[VALUE] >= cutoff else OPTIMAL
        else:
            f = state.free[block]
            settle(state, f, state.status[f] == AT_HARD, state.o[f] * work[_Y, block] > 0)
            factor.drop(state, block)
        if state.num[VALUE] >= cutoff:
            stand(state, e, waiting)
            return CUT
    stand(state, e, AT_HARD if hard else AT_MARGIN)
    factor.append(state, e, column, max(pivot2, factor.DEPENDENT * h_ee))
    return CUT if state.num[VALUE] >= cutoff else OPTIMAL
