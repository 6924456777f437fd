"""Features with a price as candidates for branching: which are worth deciding, and what a decision costs."""

from __future__ import annotations

import numpy as np

from margotree.engines.bnb.kernels.pool import Pool, at, node
from margotree.engines.bnb.kernels.probe import finish, value
from margotree.engines.kernels.features import places
from margotree.engines.kernels.jit import bare
from margotree.engines.kernels.margins import follow
from margotree.engines.kernels.priced import decide
from margotree.engines.kernels.state import ALPHA, FULL, KINK, NodeState, copy_state

#: Shares of a feature below this, or above one less this, are rounding.
WHOLE = 1e-6


@bare()
def share(use: int, w: float, r: float) -> float:
    """How much of a feature is used, between 0 and 1, as far as that is not decided."""
    return abs(w) / r if use == KINK else 0.0


@bare()
def undecided(use: int, u: float, w: float, r: float, shortest: float) -> bool:
    """Whether the bound can rise by deciding about a feature.

    Either it is used in part, or not at all although it has a place in the budget: ``|u|`` is at least ``shortest``.
    """
    if not 0.0 < r < np.inf or use == FULL:
        return False
    z = share(use, w, r)
    return z < 1.0 - WHOLE and (z > WHOLE or abs(u) >= shortest)


@bare()
def shortest_free(state: NodeState) -> float:
    """The least ``|u|`` that has a place in the budget which nobody takes for sure; infinite if there is none."""
    free = places(state.r, state.price)
    if free <= 0 or state.price[ALPHA] == 0.0:
        return np.inf
    least = np.inf
    ceiling = np.inf
    for _ in range(free):
        most = 0.0
        for j in range(state.r.size):
            size = abs(state.u[j])
            if 0.0 < state.r[j] < np.inf and size < ceiling:
                most = max(most, size)
        if most <= WHOLE * np.sqrt(2.0 * state.price[ALPHA]):
            break
        least = ceiling = most
    return least


@bare()
def must_first(state: NodeState, j: int) -> bool:
    """Whether a feature is nearer to being used than not: that is the side it is headed for."""
    return state.use[j] != KINK or share(KINK, state.w[j], state.r[j]) >= 0.5


@bare()
def damage(state: NodeState, j: int) -> tuple[float, float]:
    """Rough costs of deciding feature ``j`` the way it is headed, and the other way."""
    alpha = state.price[ALPHA]
    z = abs(state.w[j]) / state.r[j] if state.use[j] == KINK else 0.5 * state.u[j] * state.u[j] / alpha
    return alpha * max(min(z, 1.0 - z), WHOLE), alpha * max(z, 1.0 - z)


@bare()
def feature_of(pool: Pool, i: int) -> tuple[int, int]:
    """Tree node and feature of a candidate that is not a sample."""
    k = i - pool.y.size
    n = pool.X.shape[1]
    return k // n, k % n


@bare()
def decided_gain(pool: Pool, i: int, same: bool, k: int, slack: float, pivots: int) -> float:
    """What the bound gains from deciding candidate ``i`` the way it is headed or the other; the state is in a spare.

    No more than ``slack`` is of interest.
    """
    t, j = feature_of(pool, i)
    before = node(pool, t)
    base = value(before)
    state = at(pool, pool.spare[k], t)
    copy_state(before, state)
    decide(state, j, must_first(before, j) == same, pool.work)
    follow(state, pool.work)
    return finish(pool, t, k, base + slack, pivots) - base
