"""The ratio test: how far multipliers can move on their complementarity curves, and the status of items afterwards.

A complementarity curve (`workspace`) is a staircase of the multiplier ``nu`` over the margin ``g``.  On its vertical
segments, the free segments, the multiplier moves while the margin stays at a corner: ``g = 1``, or ``g = delta`` (the
hard corner).  An item inside a free segment whose margin is kept is a free item.

In one step of the active-set method, the multiplier of the entering item ``e`` moves by ``sign`` times the step length,
and those of the free items by their rates (row RATES of ``work``) times the step length, such that the margins of the
free items do not change.

Common arguments
----------------
ws, s
    The workspace and a slot.
e
    The entering item.
hard
    Whether an item moves to or at its hard corner instead of ``g = 1``.
sign
    1 if the multiplier ``nu`` of the entering item increases, -1 if it decreases.
cutoff
    The dual value at which the node problem needs no further solution.
"""

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
    corner_of,
    cost_of,
    index_constants,
    set_pending,
    set_status,
)
from margotree.engines.numba_backend import inner

# Outcomes of a run of pivots: solved; the dual value passed the cutoff; stopped early; the hard rows contradict each
# other.
OPTIMAL, CUT, STALLED, INFEASIBLE = index_constants(4)
#: A step that passes the cutoff goes beyond it by this share of the distance, and by this share of the cutoff.
CUTOFF_EXCESS, CUTOFF_MARGIN = 0.25, 1e-9
#: A direction counts as straight if the curvature of the dual value along it is below this share of the entering item's
#: own.
STRAIGHT_SHARE = 1e-10


@inner(allocates=False)
def remaining_range(ws: Workspace, s: int, i: int, hard: bool, rate: float) -> float:
    """How far the multiplier of item ``i`` can move to the end of its free segment: up if ``rate`` > 0, else down."""
    nu, rest, cost = ws.f[s, NU, i], ws.f[s, REST, i], cost_of(ws, s, i)
    if rate > 0:
        return np.inf if hard else (cost - nu) - rest
    if not hard:
        return nu + rest
    return nu + (cost if ws.k[s, KIND, i] == WRONG else -cost) + rest


@inner(allocates=False)
def set_at_bound(ws: Workspace, s: int, i: int, hard: bool, up: bool) -> None:
    """Set the status of item ``i``, whose multiplier has reached an end of its free segment, the upper if ``up``."""
    set_status(ws, s, i, AT_COST if up or (hard and ws.k[s, KIND, i] == RIGHT) else AT_LOWER)


@inner(allocates=False)
def longest_step(ws: Workspace, s: int, e: int, hard: bool, sign: float) -> tuple[float, int]:
    """Ratio test: the longest step that keeps all multipliers on their free segments.

    Returns it with the position of the free item that limits it (-1: the entering item).  ``e`` is -1 if there is no
    entering item.
    """
    f, k, work = ws.f, ws.k, ws.work
    block = -1
    step = remaining_range(ws, s, e, hard, sign) if e >= 0 else np.inf
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
def cutoff_step(ws: Workspace, s: int, r: float, cutoff: float) -> float:
    """The length of a step after which the dual value is above the cutoff, or the maximum along the step is passed.

    Along a step, the dual value is a parabola; ``r``, its slope at the beginning, is the distance of the entering
    item's margin from its corner.  If a routing is infeasible, multipliers would increase without limit otherwise, and
    rounding errors would make the dual value useless.
    """
    if cutoff == np.inf:
        return np.inf
    return 2.0 * (1.0 + CUTOFF_EXCESS) * (max(cutoff - ws.g[s, NUM, VALUE], 0.0) + CUTOFF_MARGIN * abs(cutoff)) / r


@inner(allocates=False)
def refine_rates(ws: Workspace, s: int, e: int, move: float) -> None:
    """Correct the rates of the free items, such that a step does not change ``u`` and ``sum c mu``.

    ``move`` is the change of the multiplier ``mu`` of item ``e`` per unit of the step.  Along a straight direction, the
    rates have this property up to the rounding errors of the Cholesky factor, which the correction reduces.
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
            if not ws.with_penalties or ws.g[s, ON, j] == 1.0:
                work[DW, p] -= X[i, j] * work[DU, j]
    cholesky.solve_lower(ws, s, DW)
    cholesky.solve_upper(ws, s, DW)
    for p in range(k):
        work[RATES, p] += work[DW, p]


@inner(allocates=False)
def try_cutoff_step(
    ws: Workspace, s: int, e: int, hard: bool, sign: float, step: float, straight: bool, cutoff: float
) -> int:
    """Take a step after which the dual value should be above the cutoff; undo it if it is not.

    The computed direction is inaccurate if it is straight, and multipliers may become very large.  Therefore the rates
    of a straight direction are refined, and the dual value is computed again after the step.

    Parameters
    ----------
    ws, s, e, hard, sign
        The common arguments of this module.
    step : float
        The step length, as returned by `cutoff_step`.
    straight : bool
        Whether the direction is straight (see STRAIGHT_SHARE).
    cutoff : float
        The required dual value.

    Returns
    -------
    int
        CUT if the dual value is at least ``cutoff``, otherwise STALLED; the multipliers are then unchanged.
    """
    f, work, free, k = ws.f, ws.work, ws.k, ws.cnt[s, N_FREE]
    before = f[s, NU, e]
    for _ in range(2 if straight else 0):
        refine_rates(ws, s, e, f[s, O, e] * sign)
    set_pending(ws, s, e, hard)
    f[s, NU, e] += sign * step
    for p in range(k):
        i = free[s, FREE, p]
        work[COLUMN, p] = f[s, NU, i]
        f[s, NU, i] += f[s, O, i] * work[RATES, p] * step
    value = feature_penalties.safe_dual_value(ws, s)
    past = value >= cutoff
    if not past:
        f[s, NU, e] = before
        for p in range(k):
            f[s, NU, free[s, FREE, p]] = work[COLUMN, p]
        value = feature_penalties.safe_dual_value(ws, s)
    ws.g[s, NUM, VALUE] = value
    return CUT if past else STALLED


@inner(allocates=False)
def target_corner(ws: Workspace, s: int, e: int) -> tuple[float, bool, float]:
    """How a violated item must move: ``sign``, ``hard``, and the margin ``g`` at the corner to which it moves."""
    f, status = ws.f, ws.k[s, STATUS, e]
    off = max(f[s, LO, e] - f[s, H, e], 0.0) + min(f[s, HI, e] - f[s, H, e], 0.0)
    sign = 1.0 if f[s, O, e] * off >= 0.0 else -1.0
    hard = status == PENDING_HARD or ws.k[s, KIND, e] >= WRONG or (status == AT_COST and sign > 0)
    return sign, hard, f[s, DELTA, e] if hard else corner_of(ws, s, e)


@inner(allocates=False)
def drop_blocking_item(ws: Workspace, s: int, p: int) -> None:
    """Remove the p-th free item, whose multiplier has reached the end of its free segment, from the free items."""
    i = ws.k[s, FREE, p]
    set_at_bound(ws, s, i, ws.k[s, STATUS, i] == AT_HARD, ws.f[s, O, i] * ws.work[RATES, p] > 0)
    cholesky.drop(ws, s, p)


@inner(allocates=False)
def add_free_item(ws: Workspace, s: int, e: int, hard: bool, pivot2: float, h_ee: float) -> None:
    """Make item ``e``, whose margin is at its corner, a free item.

    ``pivot2`` is the square of its new diagonal entry of the Cholesky factor, ``h_ee`` its entry of the Gram matrix.
    """
    set_status(ws, s, e, AT_HARD if hard else AT_MARGIN)
    cholesky.append(ws, s, e, max(pivot2, cholesky.DEPENDENT * h_ee))
