"""The ratio test: how much room multipliers have on their complementarity curves, and where they stand afterwards."""

from __future__ import annotations

import numpy as np

from margotree.engines.node.kernels import cholesky, feature_penalties
from margotree.engines.node.kernels.workspace import (
    AT_COST,
    AT_HARD,
    AT_LOWER,
    AT_MARGIN,
    COLUMN,
    DELTA,
    DU,
    DW,
    FREE,
    HI,
    KIND,
    LO,
    N_FREE,
    NU,
    NUM,
    ON,
    PENDING_HARD,
    RATES,
    REST,
    RIGHT,
    STATUS,
    VALUE,
    WRONG,
    C,
    H,
    O,
    Workspace,
    cost_of,
    numbers,
    put_off,
    stand,
)
from margotree.engines.numba_backend import inner

# Outcomes of a run of pivots.
OPTIMAL, CUT, STALLED, INFEASIBLE = numbers(4)
#: A step need not go on when the dual value has passed the cut-off by this share of what was missing, or of itself.
PAST, CLEARLY = 0.25, 1e-9
#: Along a straight direction the dual value bends by less than this share of what the entering item alone would.
STRAIGHT = 1e-10


@inner(allocates=False)
def room(ws: Workspace, s: int, i: int, hard: bool, rate: float) -> float:
    """How far the multiplier of an item on a free segment may still move the way of ``rate``."""
    nu, rest, cost = ws.f[s, NU, i], ws.f[s, REST, i], cost_of(ws, s, i)
    if rate > 0:
        return np.inf if hard else (cost - nu) - rest
    if not hard:
        return nu + rest
    return nu + (cost if ws.k[s, KIND, i] == WRONG else -cost) + rest


@inner(allocates=False)
def settle(ws: Workspace, s: int, i: int, hard: bool, up: bool) -> None:
    """Put an item that ran out of room on the step it reached."""
    stand(ws, s, i, AT_COST if up or (hard and ws.k[s, KIND, i] == RIGHT) else AT_LOWER)


@inner(allocates=False)
def longest_step(ws: Workspace, s: int, e: int, hard: bool, sign: float) -> tuple[float, int]:
    """Ratio test: how far until a multiplier runs out of room, and the free item that does (-1 for ``e`` itself).

    ``e`` may be no item (-1).
    """
    f, k, work = ws.f, ws.k, ws.work
    block = -1
    step = room(ws, s, e, hard, sign) if e >= 0 else np.inf
    for p in range(ws.cnt[s, N_FREE]):
        i = k[s, FREE, p]
        rate = f[s, O, i] * work[RATES, p]
        if rate == 0.0:
            continue
        nu, rest, cost = f[s, NU, i], f[s, REST, i], cost_of(ws, s, i)
        if k[s, STATUS, i] == AT_HARD:
            if rate > 0:
                continue
            space = (nu + cost if k[s, KIND, i] == WRONG else nu - cost) + rest
        else:
            space = (cost - nu) - rest if rate > 0 else nu + rest
        limit = max(space, 0.0) / abs(rate)
        if limit < step:
            step = limit
            block = p
    return step, block


@inner(allocates=False)
def far_enough(ws: Workspace, s: int, r: float, cutoff: float) -> float:
    """A step after which the dual value is past the cut-off, if it is not longer than to the top of the parabola.

    Where a routing is impossible steps could go on forever, and multipliers without measure prove nothing.
    """
    if cutoff == np.inf:
        return np.inf
    return 2.0 * (1.0 + PAST) * (max(cutoff - ws.g[s, NUM, VALUE], 0.0) + CLEARLY * abs(cutoff)) / r


@inner(allocates=False)
def sharpen(ws: Workspace, s: int, e: int, move: float) -> None:
    """Correct the free items' rates so that moving item ``e`` leaves ``u`` and ``sum c mu`` where they are.

    Where nothing bends that is so but for the digits that the factor has lost.
    """
    X, work, free, fixed = ws.X, ws.work, ws.k, ws.fixed
    n, k = X.shape[1], ws.cnt[s, N_FREE]
    unbalanced = move * fixed[C, e]
    for j in range(n):
        work[DU, j] = move * X[e, j]
    for p in range(k):
        i = free[s, FREE, p]
        unbalanced += work[RATES, p] * fixed[C, i]
        for j in range(n):
            work[DU, j] += work[RATES, p] * X[i, j]
    for p in range(k):
        i = free[s, FREE, p]
        work[DW, p] = -cholesky.RHO * fixed[C, i] * unbalanced
        for j in range(n):
            if not ws.priced or ws.g[s, ON, j] == 1.0:
                work[DW, p] -= X[i, j] * work[DU, j]
    cholesky.solve_lower(ws, s, DW)
    cholesky.solve_upper(ws, s, DW)
    for p in range(k):
        work[RATES, p] += work[DW, p]


@inner(allocates=False)
def leap(ws: Workspace, s: int, e: int, hard: bool, sign: float, step: float, straight: bool, cutoff: float) -> int:
    """Take a step along the direction at hand that ought to bring the dual value past the cut-off, or none.

    Directions along which nothing bends (``straight``) are known to a few digits only, and multipliers may become huge;
    so the value is added up anew, and if it is not past the cut-off all is as it was.
    """
    f, work, free, k = ws.f, ws.work, ws.k, ws.cnt[s, N_FREE]
    before = f[s, NU, e]
    for _ in range(2 if straight else 0):
        sharpen(ws, s, e, f[s, O, e] * sign)
    put_off(ws, s, e, hard)
    f[s, NU, e] += sign * step
    for p in range(k):
        i = free[s, FREE, p]
        work[COLUMN, p] = f[s, NU, i]
        f[s, NU, i] += f[s, O, i] * work[RATES, p] * step
    value = feature_penalties.add_up(ws, s)
    past = value >= cutoff
    if not past:
        f[s, NU, e] = before
        for p in range(k):
            f[s, NU, free[s, FREE, p]] = work[COLUMN, p]
        value = feature_penalties.add_up(ws, s)
    ws.g[s, NUM, VALUE] = value
    return CUT if past else STALLED


@inner(allocates=False)
def heading(ws: Workspace, s: int, e: int) -> tuple[float, bool, float]:
    """Which way the multiplier of a violating item has to move, whether to its hard corner, and the margin there."""
    f, status = ws.f, ws.k[s, STATUS, e]
    off = max(f[s, LO, e] - f[s, H, e], 0.0) + min(f[s, HI, e] - f[s, H, e], 0.0)
    sign = 1.0 if f[s, O, e] * off >= 0.0 else -1.0
    hard = status == PENDING_HARD or ws.k[s, KIND, e] >= WRONG or (status == AT_COST and sign > 0)
    return sign, hard, f[s, DELTA, e] if hard else 1.0


@inner(allocates=False)
def give_way(ws: Workspace, s: int, p: int) -> None:
    """The p-th free item has run out of room at the rate its multiplier moves: it is free no longer."""
    i = ws.k[s, FREE, p]
    settle(ws, s, i, ws.k[s, STATUS, i] == AT_HARD, ws.f[s, O, i] * ws.work[RATES, p] > 0)
    cholesky.drop(ws, s, p)


@inner(allocates=False)
def join(ws: Workspace, s: int, e: int, hard: bool, pivot2: float, h_ee: float) -> None:
    """Item ``e`` sits at its corner from now on: it is free."""
    stand(ws, s, e, AT_HARD if hard else AT_MARGIN)
    cholesky.append(ws, s, e, max(pivot2, cholesky.DEPENDENT * h_ee))
