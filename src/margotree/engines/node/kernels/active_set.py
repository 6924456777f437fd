"""Dual active-set method for one node problem.

Every pivot takes the item that violates its complementarity curve most, and moves along the direction that keeps all
free items at their margins and ``sum c mu = 0``, until the item is satisfied, or its own or a free item's multiplier
reaches the end of its free segment.  Each step raises the dual value, and every point on the way is dual feasible:
stopping at any moment leaves a valid lower bound.  Nothing is ever removed from the problem on the way down a search
tree, so the parent's point is a feasible start for its children.  Where features have prices, `priced` says how an item
enters.
"""

from __future__ import annotations

import numpy as np

from margotree.engines.node.kernels import cholesky, feature_penalties, safe_bounds
from margotree.engines.node.kernels.margins import follow, recompute, worst_item
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
    room,
    settle,
)
from margotree.engines.node.kernels.workspace import (
    AT_COST,
    AT_HARD,
    AT_LOWER,
    AT_MARGIN,
    COLUMN,
    COST,
    DELTA,
    DU,
    FIRM,
    FREE,
    ITEMS,
    KIND,
    N_FREE,
    N_ITEMS,
    NODE,
    NU,
    NUM,
    OUT,
    PENDING_HARD,
    PIVOTS,
    RATES,
    REST,
    RIGHT,
    SCALARS,
    SHIFT,
    STATUS,
    STOP,
    TOTAL,
    VALUE,
    WRONG,
    B,
    C,
    H,
    O,
    U,
    V,
    W,
    Workspace,
    cost_of,
    move_nu,
    put_off,
    square,
    stand,
)
from margotree.engines.numba_backend import inner

#: How often w is brought to the margins of the free items, and what is left of their violations then.
CORRECTIONS, EXACT = 3, 1e-12
#: Changes of multipliers below this share of the largest of them are rounding.
BELOW_DIGITS = 1e-13
#: Changes of w whose square is below this share of an item's are rounding; and free items may be off their margins by
#: this share of what counts as a violation.
NOTHING, ADRIFT = 1e-26, 0.01
#: So often a dual value that has passed the cut-off only in rounding is driven on.
AGAIN = 3


@inner(allocates=False)
def direction(ws: Workspace, s: int, e: int, move: float) -> tuple[float, float, bool]:
    """Where to go: item ``e`` moves, free items so that their margins stay (row RATES), w by row DU.

    Returns the change of b, the squared pivot ``e`` would have in the factor, and False if nobody can balance ``e``.
    """
    X, g, work, k, n = ws.X, ws.g, ws.work, ws.cnt[s, N_FREE], ws.X.shape[1]
    cholesky.gram_column(ws, s, e)
    pivot2 = cholesky.gram(ws, s, e, e)
    cholesky.solve_lower(ws, s, COLUMN)
    cz = 0.0
    cv = 0.0
    for p in range(k):
        pivot2 -= work[COLUMN, p] * work[COLUMN, p]
        cz += g[s, V, p] * work[COLUMN, p]
        cv += g[s, V, p] * g[s, V, p]
    beta = 0.0
    if ws.fixed[C, e] != cz:
        if cv <= 0.0:
            return 0.0, pivot2, False
        beta = move * (ws.fixed[C, e] - cz) / cv
    for p in range(k):
        work[RATES, p] = -move * work[COLUMN, p] - beta * g[s, V, p]
    cholesky.solve_upper(ws, s, RATES)
    for j in range(n):
        work[DU, j] = move * X[e, j]
    for p in range(k):
        i = ws.k[s, FREE, p]
        a = work[RATES, p]
        for j in range(n):
            work[DU, j] += a * X[i, j]
    return beta, pivot2, True


@inner(allocates=False)
def take_step(ws: Workspace, s: int, e: int, sign: float, step: float, beta: float, gain: float) -> None:
    """Move all multipliers, w, b and the dual value along the direction at hand."""
    f, g, work = ws.f, ws.g, ws.work
    move_nu(ws, s, e, sign * step)
    for p in range(ws.cnt[s, N_FREE]):
        i = ws.k[s, FREE, p]
        move_nu(ws, s, i, f[s, O, i] * work[RATES, p] * step)
    for j in range(ws.X.shape[1]):
        change = step * work[DU, j]
        g[s, W, j] += change
        work[TOTAL, j] += change
    g[s, NUM, B] += step * beta
    work[SCALARS, SHIFT] += step * beta
    g[s, NUM, VALUE] += gain


@inner(allocates=False)
def enter(ws: Workspace, s: int, e: int, cutoff: float) -> int:
    """Drive item ``e`` to where it fits, dropping free items that block.

    On return row TOTAL of the scratch is the total change of w, and SHIFT that of b.
    """
    f, g, work, cnt, n = ws.f, ws.g, ws.work, ws.cnt, ws.X.shape[1]
    for j in range(n):
        work[TOTAL, j] = 0.0
    work[SCALARS, SHIFT] = 0.0
    o = f[s, O, e]
    margin = o * f[s, H, e]
    sign, hard, goal = heading(ws, s, e)
    h_ee = cholesky.gram(ws, s, e, e)
    while True:
        cnt[s, PIVOTS] += 1
        r = abs(goal - margin)
        beta, pivot2, balanced = direction(ws, s, e, o * sign)
        if not balanced:
            # Nobody can balance e: move b alone, which costs the dual nothing, until e sits at its corner.
            shift = o * (goal - margin) * ws.fixed[C, e]
            g[s, NUM, B] += shift
            work[SCALARS, SHIFT] += shift
            break
        bend = square(work, DU, n)
        if bend <= NOTHING * h_ee:
            # The free items pin w already: what is left of its change is rounding, which a long step would make large.
            for j in range(n):
                work[DU, j] = 0.0
            beta = bend = 0.0
        full = r / bend if bend > 0.0 else np.inf
        step, block = longest_step(ws, s, e, hard, sign)
        fits = full <= step
        if fits and (pivot2 <= cholesky.DEPENDENT * h_ee or cnt[s, N_FREE] >= n + 2):
            # A dependent item cannot join the free ones; go on to the block if that costs nothing worth mentioning.
            scale = cost_of(ws, s, e) + abs(g[s, NUM, VALUE])
            fits = step == np.inf or bend * step * step > 1e-12 * scale
            if fits and cnt[s, N_FREE] >= n + 2:
                put_off(ws, s, e, hard)
                return STALLED
        if fits:
            step = full
        far = far_enough(ws, s, r, cutoff)
        if step > far:
            return leap(ws, s, e, hard, sign, far, bend < STRAIGHT * h_ee, cutoff)
        if step == np.inf:
            return INFEASIBLE
        take_step(ws, s, e, sign, step, beta, step * (r - 0.5 * step * bend))
        margin += sign * step * bend
        if fits:
            break
        if block < 0:
            settle(ws, s, e, hard, sign > 0)
            return CUT if g[s, NUM, VALUE] >= cutoff else OPTIMAL
        give_way(ws, s, block)
        if g[s, NUM, VALUE] >= cutoff:
            put_off(ws, s, e, hard)
            return CUT
    join(ws, s, e, hard, pivot2, h_ee)
    return CUT if g[s, NUM, VALUE] >= cutoff else OPTIMAL


@inner(allocates=False)
def run(ws: Workspace, s: int, cutoff: float, max_pivots: int, tol: float) -> int:
    """Pivot until no item violates by more than ``tol``, the dual value passes ``cutoff``, or pivots run out.

    Another thread may set the workspace's flag to stop it early.
    """
    g, cnt = ws.g, ws.cnt
    stop_at = cnt[s, PIVOTS] + max_pivots
    for _ in range(AGAIN):
        before = cnt[s, PIVOTS]
        outcome = OPTIMAL
        while outcome == OPTIMAL:
            if g[s, NUM, VALUE] >= cutoff:
                outcome = CUT
                break
            e = worst_item(ws, s, tol)
            if e < 0:
                break
            if cnt[s, PIVOTS] >= stop_at or ws.work[SCALARS, STOP] != 0.0:
                outcome = STALLED
                break
            outcome = enter(ws, s, e, cutoff)
            follow(ws, s)
            if off_margin(ws, s) > ADRIFT * tol:
                correct(ws, s)
        if cnt[s, PIVOTS] > before:
            g[s, NUM, VALUE] = feature_penalties.add_up(ws, s)
        if outcome != CUT or g[s, NUM, VALUE] >= cutoff:
            return outcome
    return STALLED


@inner(allocates=False)
def add_hard_row(ws: Workspace, s: int, i: int, side: float, delta: float) -> None:
    """Require ``side * h_i >= delta`` of a SOFT item; the dual value jumps at once if that is against its label, or
    beyond its margin."""
    f, k, cost = ws.f, ws.k, ws.fixed[COST + ws.cnt[s, NODE], i]
    along = f[s, O, i] == side
    if along and delta < 1.0:
        k[s, KIND, i] = RIGHT
        f[s, DELTA, i] = delta
        if k[s, STATUS, i] == AT_COST:
            stand(ws, s, i, AT_COST)
        return
    if k[s, STATUS, i] == AT_MARGIN:
        for p in range(ws.cnt[s, N_FREE]):
            if k[s, FREE, p] == i:
                cholesky.drop(ws, s, p)
                break
    f[s, DELTA, i] = delta
    if along:
        ws.g[s, NUM, VALUE] += (delta - 1.0) * f[s, NU, i] * (1.0 - 2.0 * safe_bounds.ROUNDOFF)
        k[s, KIND, i] = FIRM
        stand(ws, s, i, PENDING_HARD if f[s, NU, i] > 0.0 else AT_LOWER)
        return
    ws.g[s, NUM, VALUE] += (1.0 + delta) * (cost - f[s, NU, i] - safe_bounds.ROUNDOFF * cost)
    k[s, KIND, i] = WRONG
    f[s, O, i] = side
    f[s, NU, i], f[s, REST, i] = -f[s, NU, i], -f[s, REST, i]
    stand(ws, s, i, AT_LOWER if f[s, NU, i] == -cost else PENDING_HARD)


@inner(allocates=False)
def refresh(ws: Workspace, s: int) -> None:
    """Recompute w, the factor, all margins and the dual value from the multipliers, and repair ``sum c mu = 0``.

    Where multipliers are so large that they cannot give w to the last digits, the free items' margins do.
    """
    f, k, fixed = ws.f, ws.k, ws.fixed
    balance = 0.0
    for i in range(ws.X.shape[0]):
        if k[s, STATUS, i] != OUT:
            balance += fixed[C, i] * f[s, O, i] * f[s, NU, i]
    if balance != 0.0:
        _rebalance(ws, s, balance)
    ws.g[s, NUM, VALUE] = feature_penalties.add_up(ws, s)
    if ws.priced:
        feature_penalties.derive(ws, s)
    else:
        for j in range(ws.X.shape[1]):
            ws.g[s, W, j] = ws.g[s, U, j]
    recompute(ws, s)
    cholesky.rebuild(ws, s)
    if not ws.priced:
        for _ in range(CORRECTIONS):
            if off_margin(ws, s) <= EXACT:
                return
            correct(ws, s)


@inner(allocates=False)
def off_margin(ws: Workspace, s: int) -> float:
    """How far free items are from the margins they keep, at most."""
    most = 0.0
    for p in range(ws.cnt[s, N_FREE]):
        most = max(most, abs(_off_goal(ws, s, ws.k[s, FREE, p])))
    return most


@inner(allocates=False)
def _off_goal(ws: Workspace, s: int, i: int) -> float:
    """By how much the ``h`` of a free item has to change."""
    goal = 1.0 if ws.k[s, STATUS, i] == AT_MARGIN else ws.f[s, DELTA, i]
    return ws.f[s, O, i] * goal - ws.f[s, H, i]


@inner(allocates=False)
def _rebalance(ws: Workspace, s: int, balance: float) -> None:
    """Take a rounding residual of ``sum c mu`` from the free item with most room."""
    best = -1
    most = 0.0
    for i in range(ws.X.shape[0]):
        status = ws.k[s, STATUS, i]
        if ws.fixed[C, i] == 0.0 or status == AT_LOWER or status == AT_COST or status == OUT:
            continue
        hard = status == AT_HARD or status == PENDING_HARD
        space = min(room(ws, s, i, hard, 1.0), room(ws, s, i, hard, -1.0))
        if space > most:
            most = space
            best = i
    if best >= 0 and abs(balance) <= most:
        move_nu(ws, s, best, -ws.f[s, O, best] * balance)


@inner(allocates=False)
def correct(ws: Workspace, s: int) -> None:
    """One Newton correction of the free items' margins, as far as their multipliers have room; without prices.

    w moves by what the multipliers would move by if nothing were rounded: it holds digits that they cannot hold.
    """
    f, g, work, k, n = ws.f, ws.g, ws.work, ws.cnt[s, N_FREE], ws.X.shape[1]
    if k == 0:
        return
    for p in range(k):
        work[DU, p] = _off_goal(ws, s, ws.k[s, FREE, p])
    cholesky.solve_lower(ws, s, DU)
    cv = 0.0
    cr = 0.0
    for p in range(k):
        cv += g[s, V, p] * g[s, V, p]
        cr += g[s, V, p] * work[DU, p]
    beta = cr / cv if cv > 0.0 else 0.0
    for p in range(k):
        work[DU, p] -= beta * g[s, V, p]
    cholesky.solve_upper(ws, s, DU)
    largest = 0.0
    for q in range(ws.cnt[s, N_ITEMS]):
        largest = max(largest, abs(f[s, NU, ws.k[s, ITEMS, q]]))
    step = 1.0
    for p in range(k):
        i = ws.k[s, FREE, p]
        rate = f[s, O, i] * work[DU, p]
        if abs(rate) > BELOW_DIGITS * largest:
            space = room(ws, s, i, ws.k[s, STATUS, i] == AT_HARD, rate)
            step = min(step, max(0.0, space) / abs(rate))
    for p in range(k):
        i = ws.k[s, FREE, p]
        rate = step * f[s, O, i] * work[DU, p]
        space = max(0.0, room(ws, s, i, ws.k[s, STATUS, i] == AT_HARD, rate))
        move_nu(ws, s, i, min(rate, space) if rate > 0.0 else max(rate, -space))
        for j in range(n):
            g[s, W, j] += step * work[DU, p] * ws.X[i, j]
    g[s, NUM, B] += step * beta
    g[s, NUM, VALUE] = feature_penalties.add_up(ws, s)
    recompute(ws, s)


@inner(allocates=False)
def primal_value(ws: Workspace, s: int) -> float:
    """Value of (w, b) with the soft losses only; hard rows are not checked here."""
    f, k, cost_row = ws.f, ws.k, COST + ws.cnt[s, NODE]
    total = 0.5 * square(ws.g[s], W, ws.X.shape[1])
    for i in range(ws.X.shape[0]):
        if k[s, STATUS, i] != OUT:
            y = -f[s, O, i] if k[s, KIND, i] == WRONG else f[s, O, i]
            total += ws.fixed[cost_row, i] * max(0.0, 1.0 - y * f[s, H, i])
    return total
