"""What a sample would cost on either side of the node where it waits: estimates first, then dual solves."""

from __future__ import annotations

import numpy as np

from margotree.engines.bnb.kernels.pool import Pool, at, node
from margotree.engines.kernels.jit import inner
from margotree.engines.kernels.pivot import INFEASIBLE, harden, run
from margotree.engines.kernels.state import N_ITEMS, VALUE, add_item, copy_state

#: Violations below this are rounding.
TOL = 1e-7
#: Stand-in for a cost that is not known yet, as a share of C: an empty node, a sample inside a band.
NOMINAL = 1e-2


@inner()
def headed(pool: Pool, t: int, i: int) -> int:
    """The child of ``t`` that the current hyperplane sends sample ``i`` to."""
    return 2 * t + 2 if pool.h[pool.slot[t], i] >= -TOL else 2 * t + 1


@inner()
def in_band(h: float, eps: float) -> bool:
    return h < -TOL and h > -eps + TOL


@inner()
def path_cost(pool: Pool, t: int, i: int) -> float:
    """What sample ``i`` would pay at ``t`` and below it under the current hyperplanes."""
    total = 0.0
    T = pool.slot.size
    while t < T:
        s = pool.slot[t]
        h = pool.h[s, i]
        if pool.cnt[s, N_ITEMS] == 0:
            return total + NOMINAL * pool.cost[t, i]
        hinge = 1.0 - pool.y[i] * h
        if hinge > TOL:
            total += pool.cost[t, i] * hinge
        if 2 * t + 1 < T and in_band(h, pool.eps):
            total += NOMINAL * pool.cost[t, i]
        t = 2 * t + 2 if h >= -TOL else 2 * t + 1
    return total


@inner()
def flip_estimate(pool: Pool, t: int, i: int) -> float:
    """Rough cost of forcing sample ``i`` to the side of ``t`` that the hyperplane does not send it to."""
    state = node(pool, t)
    h = state.h[i]
    side = -1.0 if h >= -TOL else 1.0
    jump = 0.0
    if side != pool.y[i]:
        jump = state.cost[i] - (state.nu[i] if state.o[i] == pool.y[i] else 0.0)
    other = 2 * t + 1 if side < 0 else 2 * t + 2
    return jump + 0.5 * h * h / pool.norm2[i] + path_cost(pool, other, i)


@inner()
def try_member(pool: Pool, t: int, i: int, k: int, cutoff: float, pivots: int) -> float:
    """Value of tree node ``t`` with sample ``i`` added, left in the k-th spare."""
    state = at(pool, pool.spare[k], t)
    copy_state(node(pool, t), state)
    add_item(state, i, pool.y[i])
    return finish(pool, t, k, cutoff, pivots)


@inner()
def try_side(pool: Pool, t: int, i: int, side: float, k: int, cutoff: float, pivots: int) -> float:
    """Value of tree node ``t`` with its member ``i`` sent to ``side``, left in the k-th spare."""
    state = at(pool, pool.spare[k], t)
    copy_state(node(pool, t), state)
    harden(state, i, side, 0.0 if side > 0 else pool.eps)
    return finish(pool, t, k, cutoff, pivots)


@inner()
def finish(pool: Pool, t: int, k: int, cutoff: float, pivots: int) -> float:
    """Pivot in a spare until solved, past the cut-off or out of pivots; an impossible routing is worth infinity."""
    state = at(pool, pool.spare[k], t)
    before = node(pool, t).num[VALUE]
    if state.num[VALUE] >= cutoff:
        return state.num[VALUE]
    outcome = run(state, cutoff, pivots, TOL, pool.work)
    if outcome == INFEASIBLE:
        return np.inf
    return max(before, state.num[VALUE])


@inner()
def total_value(pool: Pool) -> float:
    total = 0.0
    for t in range(pool.slot.size):
        total += pool.num[pool.slot[t], VALUE]
    return total
