"""Dual active-set method for one node problem.

Every pivot takes the item that violates its staircase most, and moves along the direction that keeps all free items
at their margins and ``sum c mu = 0``, until the item is satisfied, or its own or a free item's multiplier reaches the
end of its riser.  Each step raises the dual value, and every point on the way is dual feasible: stopping at any
moment leaves a valid lower bound.  Nothing is ever removed from the problem on the way down a search tree, so the
parent's point is a feasible start for its children.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from margotree.engines.kernels import factor
from margotree.engines.kernels.state import (
    AT_HARD,
    AT_MARGIN,
    F8,
    LOW,
    MID,
    N_FREE,
    N_ITEMS,
    PENDING_HARD,
    PENDING_MARGIN,
    PIVOTS,
    RIGHT,
    VALUE,
    WRONG,
    B,
    NodeState,
    dot,
    dual_term,
    low_end,
)

# Outcomes of a run.
OPTIMAL, CUT, STALLED, INFEASIBLE = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def violation(state: NodeState, i: int) -> float:
    """How much ``g_i`` should grow (or shrink, if negative) to fit where the item stands; 0 if it fits."""
    st = state.status[i]
    if st == AT_MARGIN or st == AT_HARD:
        return 0.0
    g = state.o[i] * state.h[i]
    if st == LOW:
        corner = state.delta[i] if state.kind[i] == WRONG else 1.0
        return max(0.0, corner - g)
    if st == MID:
        if g > 1.0:
            return 1.0 - g
        if state.kind[i] == RIGHT and g < state.delta[i]:
            return state.delta[i] - g
        return 0.0
    return (state.delta[i] if st == PENDING_HARD else 1.0) - g


@njit(cache=True, nogil=True)
def room(state: NodeState, i: int, hard: bool, up: bool) -> float:
    """How far the multiplier of an item on a riser may still move up or down."""
    if up:
        return np.inf if hard else state.cost[i] - state.nu[i]
    if hard:
        return state.nu[i] - (low_end(state, i) if state.kind[i] == WRONG else state.cost[i])
    return state.nu[i]


@njit(cache=True, nogil=True)
def settle(state: NodeState, i: int, hard: bool, up: bool) -> None:
    """Put an item that ran out of room on the step it reached."""
    if up or (hard and state.kind[i] == RIGHT):
        state.nu[i] = state.cost[i]
        state.status[i] = MID
    else:
        state.nu[i] = low_end(state, i)
        state.status[i] = LOW


@njit(cache=True, nogil=True)
def enters_at_hard(state: NodeState, e: int, sign: float) -> bool:
    """Whether a violating item is heading for its hard corner rather than its margin."""
    st = state.status[e]
    if st == PENDING_HARD or state.kind[e] == WRONG:
        return True
    return st == MID and sign > 0


@njit(cache=True, nogil=True)
def enter(state: NodeState, e: int, cutoff: float, work: F8) -> int:
    """Drive item ``e`` to where it fits, dropping free items that block.  ``work`` holds six vectors; on return row 0
    is the total change of w, and work[1, 0] that of b."""
    n = state.w.size
    dw_all, y, v, dw, z = work[0, :n], work[2], work[3], work[4, :n], work[5]
    dw_all[:] = 0.0
    work[1, 0] = 0.0
    g = state.o[e] * state.h[e]
    sign = 1.0 if violation(state, e) >= 0.0 else -1.0
    hard = enters_at_hard(state, e, sign)
    goal = state.delta[e] if hard else 1.0
    s = state.o[e] * sign
    h_ee = factor.gram(state, e, e)
    while True:
        state.cnt[PIVOTS] += 1
        k = state.cnt[N_FREE]
        r = abs(goal - g)
        # Direction: e moves by s, the free items by q so that their margins stay; b moves by beta.
        for p in range(k):
            f = state.free[p]
            z[p] = factor.gram(state, f, e)
            v[p] = state.c[f]
        factor.solve_lower(state.L, z, k)
        factor.solve_lower(state.L, v, k)
        pivot2 = h_ee
        cz = 0.0
        cv = 0.0
        for p in range(k):
            pivot2 -= z[p] * z[p]
            cz += v[p] * z[p]
            cv += v[p] * v[p]
        beta = 0.0
        if state.c[e] != 0.0 or cz != 0.0:
            if cv <= 0.0:
                # No free sample can balance e: move b alone, which costs the dual nothing, until e sits at its corner.
                shift = state.o[e] * (goal - g) * state.c[e]
                state.num[B] += shift
                work[1, 0] += shift
                state.status[e] = AT_HARD if hard else AT_MARGIN
                state.h[e] = state.o[e] * goal
                factor.append(state, e, z, max(pivot2, factor.DEPENDENT * h_ee))
                return OPTIMAL
            beta = s * (state.c[e] - cz) / cv
        for p in range(k):
            y[p] = -s * z[p] - beta * v[p]
        factor.solve_upper(state.L, y, k)
        for j in range(n):
            dw[j] = s * state.X[e, j]
        for p in range(k):
            row = state.X[state.free[p]]
            for j in range(n):
                dw[j] += y[p] * row[j]
        curvature = dot(dw, dw)
        dependent = pivot2 <= factor.DEPENDENT * h_ee or k >= state.free.size
        full = r / curvature if curvature > 0.0 else np.inf
        # Ratio test: who runs out of room first?
        block = -1
        step = room(state, e, hard, sign > 0)
        for p in range(k):
            f = state.free[p]
            rate = state.o[f] * y[p]
            if rate == 0.0:
                continue
            limit = room(state, f, state.status[f] == AT_HARD, rate > 0) / abs(rate)
            if limit < step:
                step = max(limit, 0.0)
                block = p
        done = full <= step
        if done and dependent and curvature * step * step <= 1e-12 * (1.0 + abs(state.num[VALUE])):
            done = False
        if done:
            step = full
        if step == np.inf or (curvature > 0 and r * r > 2e13 * curvature * (1.0 + abs(state.num[VALUE])) and done):
            return INFEASIBLE
        # Take the step.
        state.nu[e] += sign * step
        for p in range(k):
            f = state.free[p]
            state.nu[f] += state.o[f] * y[p] * step
        for j in range(n):
            state.w[j] += step * dw[j]
            dw_all[j] += step * dw[j]
        state.num[B] += step * beta
        work[1, 0] += step * beta
        g += sign * step * curvature
        state.num[VALUE] += step * (r - 0.5 * step * curvature)
        if done:
            state.status[e] = AT_HARD if hard else AT_MARGIN
            state.h[e] = state.o[e] * goal
            factor.append(state, e, z, max(pivot2, factor.DEPENDENT * h_ee))
            break
        if block < 0:
            settle(state, e, hard, sign > 0)
            break
        f = state.free[block]
        settle(state, f, state.status[f] == AT_HARD, state.o[f] * y[block] > 0)
        factor.drop(state, block)
        if state.num[VALUE] >= cutoff:
            break
    if state.num[VALUE] >= cutoff:
        if state.status[e] != AT_MARGIN and state.status[e] != AT_HARD and block >= 0 and not done:
            state.status[e] = PENDING_HARD if hard else PENDING_MARGIN
        return CUT
    return OPTIMAL


@njit(cache=True, nogil=True)
def advance_and_price(state: NodeState, dw: F8, db: float, tol: float) -> int:
    """Move all margins by the last change of (w, b) and return the item that now violates most, or -1."""
    worst = tol
    who = -1
    moved = db != 0.0
    for j in range(dw.size):
        moved = moved or dw[j] != 0.0
    for p in range(state.cnt[N_ITEMS]):
        i = state.items[p]
        st = state.status[i]
        if st == AT_MARGIN or st == AT_HARD:
            state.h[i] = state.o[i] * (1.0 if st == AT_MARGIN else state.delta[i])
            continue
        if moved:
            state.h[i] += dot(state.X[i], dw) + state.c[i] * db
        size = abs(violation(state, i))
        if st == PENDING_HARD or st == PENDING_MARGIN:
            size += tol * 1.01
        if size > worst:
            worst = size
            who = i
    return who


@njit(cache=True, nogil=True)
def run(state: NodeState, cutoff: float, max_pivots: int, tol: float, work: F8) -> int:
    """Pivot until no item violates by more than ``tol``, the dual value passes ``cutoff``, or pivots run out."""
    dw = work[0, : state.w.size]
    dw[:] = 0.0
    stop_at = state.cnt[PIVOTS] + max_pivots
    e = advance_and_price(state, dw, 0.0, tol)
    while e >= 0:
        outcome = enter(state, e, cutoff, work)
        if outcome == INFEASIBLE:
            return INFEASIBLE
        if outcome == CUT:
            advance_and_price(state, dw, work[1, 0], tol)
            return CUT
        e = advance_and_price(state, dw, work[1, 0], tol)
        if state.cnt[PIVOTS] >= stop_at:
            return STALLED if e >= 0 else OPTIMAL
    return CUT if state.num[VALUE] >= cutoff else OPTIMAL


@njit(cache=True, nogil=True)
def harden(state: NodeState, i: int, side: float, delta: float) -> None:
    """Require ``side * h_i >= delta`` of a SOFT item; the dual value jumps at once if that is against its label."""
    if state.o[i] == side:
        state.kind[i] = RIGHT
        state.delta[i] = delta
        return
    if state.status[i] == AT_MARGIN:
        for p in range(state.cnt[N_FREE]):
            if state.free[p] == i:
                factor.drop(state, p)
                break
    state.num[VALUE] += (1.0 + delta) * (state.cost[i] - state.nu[i])
    state.kind[i] = WRONG
    state.delta[i] = delta
    state.o[i] = side
    state.nu[i] = -state.nu[i]
    state.status[i] = LOW if state.nu[i] == -state.cost[i] else PENDING_HARD


@njit(cache=True, nogil=True)
def refresh(state: NodeState) -> None:
    """Recompute w, the factor, all margins and the dual value from the multipliers, and repair ``sum c mu = 0``."""
    state.w[:] = 0.0
    balance = 0.0
    for p in range(state.cnt[N_ITEMS]):
        i = state.items[p]
        balance += state.c[i] * state.o[i] * state.nu[i]
    _rebalance(state, balance)
    value = 0.0
    for p in range(state.cnt[N_ITEMS]):
        i = state.items[p]
        mu = state.o[i] * state.nu[i]
        value += dual_term(state, i)
        if mu != 0.0:
            for j in range(state.w.size):
                state.w[j] += mu * state.X[i, j]
    state.num[VALUE] = value - 0.5 * dot(state.w, state.w)
    for p in range(state.cnt[N_ITEMS]):
        i = state.items[p]
        state.h[i] = dot(state.X[i], state.w) + state.c[i] * state.num[B]
    refactor(state)


@njit(cache=True, nogil=True)
def _rebalance(state: NodeState, balance: float) -> None:
    """Take a rounding residual of ``sum c mu`` from the free item with most room."""
    if balance == 0.0:
        return
    best = -1
    most = 0.0
    for p in range(state.cnt[N_ITEMS]):
        i = state.items[p]
        st = state.status[i]
        if state.c[i] == 0.0 or st == LOW or st == MID:
            continue
        hard = st == AT_HARD or st == PENDING_HARD
        space = min(room(state, i, hard, True), room(state, i, hard, False))
        if space > most:
            most = space
            best = i
    if best >= 0 and abs(balance) <= most:
        state.nu[best] -= state.o[best] * balance


@njit(cache=True, nogil=True)
def refactor(state: NodeState) -> None:
    """Build the factor anew from the free items; dependent ones become PENDING."""
    k = state.cnt[N_FREE]
    state.cnt[N_FREE] = 0
    z = np.empty(state.free.size)
    for p in range(k):
        i = state.free[p]
        q = state.cnt[N_FREE]
        for r in range(q):
            z[r] = factor.gram(state, state.free[r], i)
        factor.solve_lower(state.L, z, q)
        h_ii = factor.gram(state, i, i)
        pivot2 = h_ii
        for r in range(q):
            pivot2 -= z[r] * z[r]
        if pivot2 > factor.DEPENDENT * h_ii:
            factor.append(state, i, z, pivot2)
        else:
            state.status[i] = PENDING_HARD if state.status[i] == AT_HARD else PENDING_MARGIN


@njit(cache=True, nogil=True)
def correct(state: NodeState) -> float:
    """One Newton correction of the free items' margins after :func:`refresh`; returns the residual it saw."""
    k = state.cnt[N_FREE]
    if k == 0:
        return 0.0
    r = np.empty(k)
    v = np.empty(k)
    worst = 0.0
    for p in range(k):
        i = state.free[p]
        goal = 1.0 if state.status[i] == AT_MARGIN else state.delta[i]
        r[p] = state.o[i] * goal - state.h[i]
        worst = max(worst, abs(r[p]))
        v[p] = state.c[i]
    factor.solve_lower(state.L, r, k)
    factor.solve_lower(state.L, v, k)
    cv = 0.0
    cr = 0.0
    for p in range(k):
        cv += v[p] * v[p]
        cr += v[p] * r[p]
    beta = cr / cv if cv > 0.0 else 0.0
    for p in range(k):
        r[p] -= beta * v[p]
    factor.solve_upper(state.L, r, k)
    step = 1.0
    for p in range(k):
        i = state.free[p]
        rate = state.o[i] * r[p]
        if rate != 0.0:
            step = min(step, max(0.0, room(state, i, state.status[i] == AT_HARD, rate > 0) / abs(rate)))
    for p in range(k):
        i = state.free[p]
        state.nu[i] += step * state.o[i] * r[p]
    state.num[B] += step * beta
    return worst


@njit(cache=True, nogil=True)
def primal_value(state: NodeState) -> float:
    """Value of (w, b) with the soft losses only; hard rows are not checked here."""
    total = 0.5 * dot(state.w, state.w)
    for p in range(state.cnt[N_ITEMS]):
        i = state.items[p]
        y = -state.o[i] if state.kind[i] == WRONG else state.o[i]
        total += state.cost[i] * max(0.0, 1.0 - y * state.h[i])
    return total

