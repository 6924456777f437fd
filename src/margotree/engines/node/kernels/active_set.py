"""Dual active-set method for one node problem.

Every pivot takes the item that violates its complementarity curve most and moves along the direction that keeps all
free items at their margins and ``sum c mu = 0``, until the item satisfies its curve, or a multiplier (its own or that
of a free item) reaches the end of its free segment.  Each step raises the dual value, and every point on the way is
dual feasible: the bound is valid wherever the method stops.  Along a path of the tree search items are only added, so
the parent's point is a feasible start for its children.  With feature penalties, `penalised_active_set` computes the
steps.
"""

from __future__ import annotations

import numpy as np

from margotree.engines.node.kernels import cholesky, feature_penalties, safe_bounds
from margotree.engines.node.kernels.margins import recompute, update_margins, worst_item
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
    remaining_range,
    set_at_bound,
    target_corner,
    try_cutoff_step,
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
    corner_of,
    cost_of,
    move_nu,
    set_pending,
    set_status,
    squared_norm,
)
from margotree.engines.numba_backend import inner

#: Largest number of corrections of w after a recomputation, and the error of free items' margins at which they end.
CORRECTIONS, EXACT_MARGIN = 3, 1e-12
#: Rates of change of multipliers below this share of the largest multiplier are rounding errors.
RATE_ROUNDING = 1e-13
#: A change of w whose square is below this share of the item's own is a rounding error; and the share of the tolerance
#: by which free items may be off their margins.
DIRECTION_ROUNDING, MARGIN_DRIFT = 1e-26, 0.01
#: How often the method continues after a dual value that passed the cutoff only by rounding.
RESTARTS = 3


@inner(allocates=False)
def direction(ws: Workspace, s: int, e: int, move: float) -> tuple[float, float, bool]:
    """The direction in which the multiplier of item ``e`` changes by ``move`` and the free items keep their margins.

    The changes of the free multipliers are in row RATES and the change of w in row DU.  Returns the change of b, the
    squared pivot that ``e`` would have in the factor, and False if the free items cannot balance ``e`` in ``sum c mu``.
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
    """Move all multipliers, w, b and the dual value along the current direction."""
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
    """Move item ``e`` to its complementarity curve and drop the free items that block the way.

    Returns an outcome of `ratio_test`.  Row TOTAL of ``work`` then holds the total change of w, and SHIFT that of b.
    """
    f, g, work, cnt, n = ws.f, ws.g, ws.work, ws.cnt, ws.X.shape[1]
    for j in range(n):
        work[TOTAL, j] = 0.0
    work[SCALARS, SHIFT] = 0.0
    o = f[s, O, e]
    margin = o * f[s, H, e]
    sign, hard, goal = target_corner(ws, s, e)
    h_ee = cholesky.gram(ws, s, e, e)
    while True:
        cnt[s, PIVOTS] += 1
        r = abs(goal - margin)
        beta, pivot2, balanced = direction(ws, s, e, o * sign)
        if not balanced:
            # No free item can balance e: move b alone until e is at its corner; the dual value does not change.
            shift = o * (goal - margin) * ws.fixed[C, e]
            g[s, NUM, B] += shift
            work[SCALARS, SHIFT] += shift
            break
        bend = squared_norm(work, DU, n)
        if bend <= DIRECTION_ROUNDING * h_ee:
            # The free items determine w: the computed change is a rounding error, which a long step would amplify.
            for j in range(n):
                work[DU, j] = 0.0
            beta = bend = 0.0
        full = r / bend if bend > 0.0 else np.inf
        step, block = longest_step(ws, s, e, hard, sign)
        fits = full <= step
        if fits and (pivot2 <= cholesky.DEPENDENT * h_ee or cnt[s, N_FREE] >= n + 2):
            # A dependent item cannot become free; continue to the blocking item if the dual value hardly changes.
            scale = cost_of(ws, s, e) + abs(g[s, NUM, VALUE])
            fits = step == np.inf or bend * step * step > 1e-12 * scale
            if fits and cnt[s, N_FREE] >= n + 2:
                set_pending(ws, s, e, hard)
                return STALLED
        if fits:
            step = full
        far = cutoff_step(ws, s, r, cutoff)
        if step > far:
            return try_cutoff_step(ws, s, e, hard, sign, far, bend < STRAIGHT_SHARE * h_ee, cutoff)
        if step == np.inf:
            return INFEASIBLE
        take_step(ws, s, e, sign, step, beta, step * (r - 0.5 * step * bend))
        margin += sign * step * bend
        if fits:
            break
        if block < 0:
            set_at_bound(ws, s, e, hard, sign > 0)
            return CUT if g[s, NUM, VALUE] >= cutoff else OPTIMAL
        drop_blocking_item(ws, s, block)
        if g[s, NUM, VALUE] >= cutoff:
            set_pending(ws, s, e, hard)
            return CUT
    add_free_item(ws, s, e, hard, pivot2, h_ee)
    return CUT if g[s, NUM, VALUE] >= cutoff else OPTIMAL


@inner(allocates=False)
def run(ws: Workspace, s: int, cutoff: float, max_pivots: int, tol: float) -> int:
    """Pivot until no item violates its curve by more than ``tol``, the dual value passes ``cutoff``, or pivots run out.

    Another thread can set the stop flag of the workspace to end the run early.
    """
    g, cnt = ws.g, ws.cnt
    stop_at = cnt[s, PIVOTS] + max_pivots
    for _ in range(RESTARTS):
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
            update_margins(ws, s)
            if largest_margin_error(ws, s) > MARGIN_DRIFT * tol:
                correct_margins(ws, s)
        if cnt[s, PIVOTS] > before:
            g[s, NUM, VALUE] = feature_penalties.safe_dual_value(ws, s)
        if outcome != CUT or g[s, NUM, VALUE] >= cutoff:
            return outcome
    return STALLED


@inner(allocates=False)
def add_hard_row(ws: Workspace, s: int, i: int, side: float, delta: float) -> None:
    """Require ``side * h_i >= delta`` of a SOFT item.

    The dual value rises at once if the side is against the label, or ``delta`` is beyond the margin.
    """
    f, k, cost, corner = ws.f, ws.k, ws.fixed[COST + 2 * ws.cnt[s, NODE], i], corner_of(ws, s, i)
    along = f[s, O, i] == side
    if along and delta < corner:
        k[s, KIND, i] = RIGHT
        f[s, DELTA, i] = delta
        if k[s, STATUS, i] == AT_COST:
            set_status(ws, s, i, AT_COST)
        return
    if k[s, STATUS, i] == AT_MARGIN:
        for p in range(ws.cnt[s, N_FREE]):
            if k[s, FREE, p] == i:
                cholesky.drop(ws, s, p)
                break
    f[s, DELTA, i] = delta
    if along:
        ws.g[s, NUM, VALUE] += (delta - corner) * f[s, NU, i] * (1.0 - 2.0 * safe_bounds.ROUNDOFF)
        k[s, KIND, i] = FIRM
        set_status(ws, s, i, PENDING_HARD if f[s, NU, i] > 0.0 else AT_LOWER)
        return
    ws.g[s, NUM, VALUE] += (corner + delta) * (cost - f[s, NU, i] - safe_bounds.ROUNDOFF * cost)
    k[s, KIND, i] = WRONG
    f[s, O, i] = side
    f[s, NU, i], f[s, REST, i] = -f[s, NU, i], -f[s, REST, i]
    set_status(ws, s, i, AT_LOWER if f[s, NU, i] == -cost else PENDING_HARD)


@inner(allocates=False)
def refresh(ws: Workspace, s: int) -> None:
    """Recompute w, the factor, all margins and the dual value from the multipliers, and restore ``sum c mu = 0``.

    Huge multipliers do not determine w to the last digits; there the margins of the free items do.
    """
    f, k, fixed = ws.f, ws.k, ws.fixed
    balance = 0.0
    for i in range(ws.X.shape[0]):
        if k[s, STATUS, i] != OUT:
            balance += fixed[C, i] * f[s, O, i] * f[s, NU, i]
    if balance != 0.0:
        _absorb_imbalance(ws, s, balance)
    ws.g[s, NUM, VALUE] = feature_penalties.safe_dual_value(ws, s)
    if ws.with_penalties:
        feature_penalties.derive_uses(ws, s)
    else:
        for j in range(ws.X.shape[1]):
            ws.g[s, W, j] = ws.g[s, U, j]
    recompute(ws, s)
    cholesky.rebuild(ws, s)
    if not ws.with_penalties:
        for _ in range(CORRECTIONS):
            if largest_margin_error(ws, s) <= EXACT_MARGIN:
                return
            correct_margins(ws, s)


@inner(allocates=False)
def largest_margin_error(ws: Workspace, s: int) -> float:
    """The largest distance of a free item from the margin that it keeps."""
    most = 0.0
    for p in range(ws.cnt[s, N_FREE]):
        most = max(most, abs(_margin_error(ws, s, ws.k[s, FREE, p])))
    return most


@inner(allocates=False)
def _margin_error(ws: Workspace, s: int, i: int) -> float:
    """The change of ``h`` that brings a free item to its margin."""
    goal = corner_of(ws, s, i) if ws.k[s, STATUS, i] == AT_MARGIN else ws.f[s, DELTA, i]
    return ws.f[s, O, i] * goal - ws.f[s, H, i]


@inner(allocates=False)
def _absorb_imbalance(ws: Workspace, s: int, balance: float) -> None:
    """Subtract the rounding error ``balance`` of ``sum c mu`` from the free item with the largest remaining range."""
    best = -1
    most = 0.0
    for i in range(ws.X.shape[0]):
        status = ws.k[s, STATUS, i]
        if ws.fixed[C, i] == 0.0 or status == AT_LOWER or status == AT_COST or status == OUT:
            continue
        hard = status == AT_HARD or status == PENDING_HARD
        space = min(remaining_range(ws, s, i, hard, 1.0), remaining_range(ws, s, i, hard, -1.0))
        if space > most:
            most = space
            best = i
    if best >= 0 and abs(balance) <= most:
        move_nu(ws, s, best, -ws.f[s, O, best] * balance)


@inner(allocates=False)
def correct_margins(ws: Workspace, s: int) -> None:
    """One Newton correction of the margins of free items, as far as the ranges of their multipliers allow.

    It applies to node problems without feature penalties.  w changes by the unrounded changes of the multipliers: it
    holds digits that the multipliers cannot hold.
    """
    f, g, work, k, n = ws.f, ws.g, ws.work, ws.cnt[s, N_FREE], ws.X.shape[1]
    if k == 0:
        return
    for p in range(k):
        work[DU, p] = _margin_error(ws, s, ws.k[s, FREE, p])
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
        if abs(rate) > RATE_ROUNDING * largest:
            space = remaining_range(ws, s, i, ws.k[s, STATUS, i] == AT_HARD, rate)
            step = min(step, max(0.0, space) / abs(rate))
    for p in range(k):
        i = ws.k[s, FREE, p]
        rate = step * f[s, O, i] * work[DU, p]
        space = max(0.0, remaining_range(ws, s, i, ws.k[s, STATUS, i] == AT_HARD, rate))
        move_nu(ws, s, i, min(rate, space) if rate > 0.0 else max(rate, -space))
        for j in range(n):
            g[s, W, j] += step * work[DU, p] * ws.X[i, j]
    g[s, NUM, B] += step * beta
    g[s, NUM, VALUE] = feature_penalties.safe_dual_value(ws, s)
    recompute(ws, s)


@inner(allocates=False)
def primal_value(ws: Workspace, s: int) -> float:
    """Objective of (w, b) with the hinge losses; hard rows are not checked."""
    f, k, cost_row = ws.f, ws.k, COST + 2 * ws.cnt[s, NODE]
    total = 0.5 * squared_norm(ws.g[s], W, ws.X.shape[1])
    for i in range(ws.X.shape[0]):
        if k[s, STATUS, i] != OUT:
            y = -f[s, O, i] if k[s, KIND, i] == WRONG else f[s, O, i]
            total += ws.fixed[cost_row, i] * max(0.0, corner_of(ws, s, i) - y * f[s, H, i])
    return total
