"""Dual active-set method for one node problem.

Every pivot takes the item that violates its staircase most, and moves along the direction that keeps all free items
at their margins and ``sum c mu = 0``, until the item is satisfied, or its own or a free item's multiplier reaches the
end of its riser.  Each step raises the dual value, and every point on the way is dual feasible: stopping at any
moment leaves a valid lower bound.  Nothing is ever removed from the problem on the way down a search tree, so the
parent's point is a feasible start for its children.  Where features have prices, `priced` says how an item enters.
"""

from __future__ import annotations

import numpy as np

from margotree.engines.kernels import certain, factor, features, priced
from margotree.engines.kernels.jit import bare, bare_kernel
from margotree.engines.kernels.margins import any_item, follow, recompute, worst_item
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
    room,
    settle,
)
from margotree.engines.kernels.state import (
    AT_HARD,
    AT_MARGIN,
    F8,
    LOW,
    MID,
    N_FREE,
    OUT,
    PENDING_HARD,
    PIVOTS,
    RIGHT,
    VALUE,
    WRONG,
    B,
    NodeState,
    dot,
    put_off,
    stand,
)

#: With prices: entering items that bring nothing before others have their turn, and before the point is left as it is.
PATIENCE, GIVE_UP = 20, 80
#: So often a dual value that has passed the cut-off only in rounding is driven on.
AGAIN = 3


@bare()
def direction(state: NodeState, e: int, s: float, work: F8) -> tuple[float, float, bool]:
    """Where to move: item ``e`` by ``s``, free items so that their margins stay (work[2]), w by work[4].

    Returns the change of b, the squared pivot ``e`` would have in the factor, and False if nobody can balance ``e``.
    """
    n = state.w.size
    y, dw, z = work[2], work[4], work[5]
    X, v, k = state.X, state.v, state.cnt[N_FREE]
    factor.gram_column(state, e, z)
    pivot2 = factor.gram(state, e, e)
    factor.solve_lower(state.L, z, k)
    cz = 0.0
    cv = 0.0
    for p in range(k):
        pivot2 -= z[p] * z[p]
        cz += v[p] * z[p]
        cv += v[p] * v[p]
    beta = 0.0
    if state.c[e] != cz:
        if cv <= 0.0:
            return 0.0, pivot2, False
        beta = s * (state.c[e] - cz) / cv
    for p in range(k):
        y[p] = -s * z[p] - beta * v[p]
    factor.solve_upper(state.L, y, k)
    for j in range(n):
        dw[j] = s * X[e, j]
    for p in range(k):
        f = state.free[p]
        a = y[p]
        for j in range(n):
            dw[j] += a * X[f, j]
    return beta, pivot2, True


@bare()
def take_step(state: NodeState, e: int, sign: float, step: float, beta: float, r: float, bend: float, work: F8) -> None:
    """Move all multipliers, w, b and the dual value along the direction in ``work``."""
    y, dw = work[2], work[4]
    state.nu[e] += sign * step
    for p in range(state.cnt[N_FREE]):
        f = state.free[p]
        state.nu[f] += state.o[f] * y[p] * step
    for j in range(state.w.size):
        change = step * dw[j]
        state.w[j] += change
        work[0, j] += change
    state.num[B] += step * beta
    work[1, 0] += step * beta
    state.num[VALUE] += step * (r - 0.5 * step * bend)


@bare()
def enter(state: NodeState, e: int, cutoff: float, work: F8) -> int:
    """Drive item ``e`` to where it fits, dropping free items that block.

    ``work`` holds six vectors; on return row 0 is the total change of w, and work[1, 0] that of b.
    """
    n = state.w.size
    for j in range(n):
        work[0, j] = 0.0
    work[1, 0] = 0.0
    o = state.o[e]
    g = o * state.h[e]
    sign, hard, goal = heading(state, e)
    h_ee = factor.gram(state, e, e)
    while True:
        state.cnt[PIVOTS] += 1
        r = abs(goal - g)
        beta, pivot2, balanced = direction(state, e, o * sign, work)
        if not balanced:
            # Nobody can balance e: move b alone, which costs the dual nothing, until e sits at its corner.
            shift = o * (goal - g) * state.c[e]
            state.num[B] += shift
            work[1, 0] += shift
            break
        bend = dot(work[4, :n], work[4, :n])
        full = r / bend if bend > 0.0 else np.inf
        step, block = longest_step(state, e, hard, sign, work[2])
        fits = full <= step
        if fits and (pivot2 <= factor.DEPENDENT * h_ee or state.cnt[N_FREE] >= state.free.size):
            # A dependent item cannot join the free ones; go on to the block if that costs nothing worth mentioning.
            fits = step == np.inf or bend * step * step > 1e-12 * (state.cost[e] + abs(state.num[VALUE]))
            if fits and state.cnt[N_FREE] >= state.free.size:
                put_off(state, e, hard)
                return STALLED
        if fits:
            step = full
        far = far_enough(state, r, cutoff)
        if step > far:
            return leap(state, e, hard, sign, far, bend < STRAIGHT * h_ee, cutoff, work)
        if step == np.inf:
            return INFEASIBLE
        take_step(state, e, sign, step, beta, r, bend, work)
        g += sign * step * bend
        if fits:
            break
        if block < 0:
            settle(state, e, hard, sign > 0)
            return CUT if state.num[VALUE] >= cutoff else OPTIMAL
        give_way(state, block, work[2, block])
        if state.num[VALUE] >= cutoff:
            put_off(state, e, hard)
            return CUT
    join(state, e, hard, work[5], pivot2, h_ee)
    return CUT if state.num[VALUE] >= cutoff else OPTIMAL


@bare_kernel()
def run(state: NodeState, cutoff: float, max_pivots: int, tol: float, work: F8) -> int:
    """Pivot until no item violates by more than ``tol``, the dual value passes ``cutoff``, or pivots run out.

    Another thread may set work[1, 1] to stop it early.
    """
    stop_at = state.cnt[PIVOTS] + max_pivots
    outcome = STALLED
    for _ in range(AGAIN):
        before = state.cnt[PIVOTS]
        if state.r.size == 0:
            outcome = _run_plain(state, cutoff, stop_at, tol, work)
        else:
            outcome = _run_priced(state, cutoff, stop_at, tol, work)
        if state.cnt[PIVOTS] > before:
            state.num[VALUE] = features.add_up(state)
        if outcome != CUT or state.num[VALUE] >= cutoff:
            return outcome
    return STALLED


@bare()
def _run_plain(state: NodeState, cutoff: float, stop_at: int, tol: float, work: F8) -> int:
    while True:
        if state.num[VALUE] >= cutoff:
            return CUT
        e = worst_item(state, tol)
        if e < 0:
            return OPTIMAL
        if state.cnt[PIVOTS] >= stop_at or work[1, 1] != 0.0:
            return STALLED
        outcome = enter(state, e, cutoff, work)
        follow(state, work)
        if outcome != OPTIMAL:
            return outcome


@bare()
def _run_priced(state: NodeState, cutoff: float, stop_at: int, tol: float, work: F8) -> int:
    """Prices make ties common: when nothing has come of the worst items for a while, others have their turn."""
    idle = 0
    while True:
        before = state.num[VALUE]
        if before >= cutoff:
            return CUT
        e = worst_item(state, tol) if idle < PATIENCE else any_item(state, tol, state.cnt[PIVOTS])
        if e < 0:
            return OPTIMAL
        if state.cnt[PIVOTS] >= stop_at or work[1, 1] != 0.0 or idle > GIVE_UP:
            return STALLED
        outcome = priced.enter(state, e, cutoff, work)
        follow(state, work)
        idle = 0 if state.num[VALUE] > before + 1e-12 * abs(before) else idle + 1
        if outcome == STALLED:
            idle = max(idle, PATIENCE)
        elif outcome != OPTIMAL:
            return outcome


@bare_kernel()
def harden(state: NodeState, i: int, side: float, delta: float) -> None:
    """Require ``side * h_i >= delta`` of a SOFT item; the dual value jumps at once if that is against its label."""
    if state.o[i] == side:
        state.kind[i] = RIGHT
        state.delta[i] = delta
        if state.status[i] == MID:
            stand(state, i, MID)
        return
    if state.status[i] == AT_MARGIN:
        for p in range(state.cnt[N_FREE]):
            if state.free[p] == i:
                factor.drop(state, p)
                break
    state.num[VALUE] += (1.0 + delta) * (state.cost[i] - state.nu[i] - certain.ROUNDOFF * state.cost[i])
    state.kind[i] = WRONG
    state.delta[i] = delta
    state.o[i] = side
    state.nu[i] = -state.nu[i]
    stand(state, i, LOW if state.nu[i] == -state.cost[i] else PENDING_HARD)


@bare_kernel()
def refresh(state: NodeState, work: F8) -> None:
    """Recompute w, the factor, all margins and the dual value from the multipliers, and repair ``sum c mu = 0``."""
    m = state.h.size
    balance = 0.0
    for i in range(m):
        if state.status[i] != OUT:
            balance += state.c[i] * state.o[i] * state.nu[i]
    _rebalance(state, balance)
    state.num[VALUE] = features.add_up(state)
    if state.r.size:
        features.derive(state)
    recompute(state)
    factor.rebuild(state, work[5])


@bare()
def _rebalance(state: NodeState, balance: float) -> None:
    """Take a rounding residual of ``sum c mu`` from the free item with most room."""
    if balance == 0.0:
        return
    best = -1
    most = 0.0
    for i in range(state.h.size):
        st = state.status[i]
        if state.c[i] == 0.0 or st == LOW or st == MID or st == OUT:
            continue
        hard = st == AT_HARD or st == PENDING_HARD
        space = min(room(state, i, hard, True), room(state, i, hard, False))
        if space > most:
            most = space
            best = i
    if best >= 0 and abs(balance) <= most:
        state.nu[best] -= state.o[best] * balance


@bare_kernel()
def correct(state: NodeState, work: F8) -> None:
    """One Newton correction of the free items' margins, as far as their multipliers have room; then `refresh`."""
    k = state.cnt[N_FREE]
    if k == 0:
        return
    r = work[4]
    for p in range(k):
        i = state.free[p]
        goal = 1.0 if state.status[i] == AT_MARGIN else state.delta[i]
        r[p] = state.o[i] * goal - state.h[i]
    factor.solve_lower(state.L, r, k)
    cv = 0.0
    cr = 0.0
    for p in range(k):
        cv += state.v[p] * state.v[p]
        cr += state.v[p] * r[p]
    beta = cr / cv if cv > 0.0 else 0.0
    for p in range(k):
        r[p] -= beta * state.v[p]
    factor.solve_upper(state.L, r, k)
    step = 1.0
    for p in range(k):
        i = state.free[p]
        rate = state.o[i] * r[p]
        if rate != 0.0:
            step = min(step, max(0.0, room(state, i, state.status[i] == AT_HARD, rate > 0)) / abs(rate))
    for p in range(k):
        i = state.free[p]
        state.nu[i] += step * state.o[i] * r[p]
    state.num[B] += step * beta
    refresh(state, work)


@bare_kernel()
def primal_value(state: NodeState) -> float:
    """Value of (w, b) with the soft losses only; hard rows are not checked here."""
    total = 0.5 * dot(state.w, state.w)
    for i in range(state.h.size):
        if state.status[i] != OUT:
            y = -state.o[i] if state.kind[i] == WRONG else state.o[i]
            total += state.cost[i] * max(0.0, 1.0 - y * state.h[i])
    return total
