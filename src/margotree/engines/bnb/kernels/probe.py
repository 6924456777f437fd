"""What a sample would cost on either side of the node where it waits: estimates first, then dual solves."""

from __future__ import annotations

import numpy as np

from margotree.engines.bnb.kernels.pool import Pool, at, node
from margotree.engines.kernels import priced
from margotree.engines.kernels.jit import inner
from margotree.engines.kernels.pivot import advance, harden, run
from margotree.engines.kernels.riser import INFEASIBLE
from margotree.engines.kernels.state import ALPHA, F8, FULL, KINK, N_ITEMS, VALUE, NodeState, add_item, copy_state

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
def try_feature(pool: Pool, t: int, j: int, must: bool, k: int, cutoff: float, pivots: int) -> float:
    """Value of tree node ``t`` with feature ``j`` used whatever it does, or not at all, left in the k-th spare."""
    state = at(pool, pool.spare[k], t)
    copy_state(node(pool, t), state)
    priced.decide(state, j, must, pool.work)
    advance(state, pool.work[0, : state.w.size], pool.work[1, 0])
    return finish(pool, t, k, cutoff, pivots)


@inner()
def value(state: NodeState) -> float:
    """The tree node's part of the bound."""
    return priced.worth(state) if state.r.size else state.num[VALUE] + bonus(state)


@inner()
def bonus(state: NodeState) -> float:
    """What prices add where they are left out of the node problem."""
    return priced.bonus(state.w, state.price) if state.price[ALPHA] > 0.0 and state.r.size == 0 else 0.0


@inner()
def pivot_to(state: NodeState, cutoff: float, pivots: int, work: F8) -> int:
    """Pivot until the tree node is solved, its part of the bound past the cut-off, or pivots run out."""
    return run(state, cutoff - (priced.offset(state) if state.r.size else 0.0), pivots, TOL, work)


@inner()
def finish(pool: Pool, t: int, k: int, cutoff: float, pivots: int) -> float:
    """Pivot in a spare until solved, past the cut-off or out of pivots; an impossible routing is worth infinity."""
    state = at(pool, pool.spare[k], t)
    before = max(value(node(pool, t)), value(state))
    if before >= cutoff:
        return before
    if pivot_to(state, cutoff, pivots, pool.work) == INFEASIBLE:
        return np.inf
    return max(before, value(state))


@inner()
def total_value(pool: Pool) -> float:
    total = 0.0
    for t in range(pool.slot.size):
        total += value(node(pool, t))
    return total


# -- features ----------------------------------------------------------------------------------------------------------

#: Shares of a feature below this, or above one less this, are rounding.
WHOLE = 1e-6


@inner()
def share(state: NodeState, j: int) -> float:
    """How much of a feature is used, between 0 and 1, as far as that is not decided."""
    return abs(state.w[j]) / state.r[j] if state.use[j] == KINK else 0.0


@inner()
def undecided(state: NodeState, j: int, shortest: float) -> bool:
    """Whether the bound can rise by deciding about feature ``j``.

    Either it is used in part, or not at all although it has a place in the budget: ``|u|`` is at least ``shortest``.
    """
    if not 0.0 < state.r[j] < np.inf or state.use[j] == FULL:
        return False
    z = share(state, j)
    return z < 1.0 - WHOLE and (z > WHOLE or abs(state.u[j]) >= shortest)


@inner()
def shortest_free(state: NodeState) -> float:
    """The least ``|u|`` that has a place in the budget which nobody takes for sure; infinite if there is none."""
    places = priced.places(state)
    if places <= 0 or state.price[0] == 0.0:
        return np.inf
    least = np.inf
    ceiling = np.inf
    for _ in range(places):
        most = 0.0
        for j in range(state.r.size):
            size = abs(state.u[j])
            if 0.0 < state.r[j] < np.inf and size < ceiling:
                most = max(most, size)
        if most <= WHOLE * np.sqrt(2.0 * state.price[0]):
            break
        least = ceiling = most
    return least


@inner()
def must_first(state: NodeState, j: int) -> bool:
    """Whether a feature is nearer to being used than not: that is the side it is headed for."""
    return share(state, j) >= 0.5 or state.use[j] != KINK
