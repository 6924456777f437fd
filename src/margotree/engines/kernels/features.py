"""What features with a price cost a node, and how they are used: off, at a kink, or in full."""

from __future__ import annotations

import numpy as np

from margotree.engines.kernels import certain, factor
from margotree.engines.kernels.jit import bare
from margotree.engines.kernels.state import (
    ALPHA,
    BUDGET,
    F8,
    FULL,
    KINK,
    N_KINKS,
    OFF,
    NodeState,
    dot,
)

# -- cost --------------------------------------------------------------------------------------------------------------


@bare()
def offset(r: F8, price: F8) -> float:
    """What features that are used whatever they do pay, less the budget."""
    return -price[ALPHA] * places(r, price)


@bare()
def places(r: F8, price: F8) -> int:
    """How many of the features that are not decided come without a price."""
    free = int(price[BUDGET])
    for j in range(r.size):
        free -= r[j] == 0.0
    return free


@bare()
def worth(value: float, u: F8, r: F8, price: F8) -> float:
    """A lower bound on the node: the dual ``value`` with the best price a feature between 0 and alpha.

    That price is alpha unless fewer features than the budget allows are worth it; then the features with the largest
    ``u`` within the budget pay nothing.
    """
    free = places(r, price)
    return value - price[ALPHA] * free + relief(u, r, price[ALPHA], free)


@bare()
def relief(u: F8, r: F8, alpha: float, free: int) -> float:
    """What ``alpha`` is more than ``u^2 / 2``, for the ``free`` largest ``|u|`` of features that are not decided.

    None is if ``r`` is empty.
    """
    total = 0.0
    ceiling = np.inf
    while free > 0 and alpha > 0.0:
        most = -1.0
        ties = 0
        for j in range(u.size):
            size = abs(u[j])
            if (r.size == 0 or 0.0 < r[j] < np.inf) and most <= size < ceiling:
                ties = ties + 1 if size == most else 1
                most = size
        if ties == 0:
            return total + free * alpha
        total += min(ties, free) * max(0.0, alpha - 0.5 * most * most)
        free -= ties
        ceiling = most
    return total


@bare()
def bonus(w: F8, price: F8) -> float:
    """What prices add to the dual value of a point that was found without them.

    The budget goes to the largest weights; every other feature takes back ``w^2 / 2`` or, if that is less, pays alpha.
    """
    total = -price[ALPHA] * price[BUDGET]
    for j in range(w.size):
        total += min(0.5 * w[j] * w[j], price[ALPHA])
    return max(0.0, total + relief(w, w[:0], price[ALPHA], int(price[BUDGET])))


@bare()
def cost_of(state: NodeState, j: int) -> float:
    """What feature ``j`` takes from the dual value."""
    return max(0.0, 0.5 * (state.u[j] * state.u[j] - state.r[j] * state.r[j]))


@bare()
def add_up(state: NodeState) -> float:
    """The dual value from scratch, with its rounding taken off; u, or w where features have no prices, follow."""
    if state.r.size == 0:
        total, gamma, off = certain.recompute(state, state.w)
        square = dot(state.w, state.w)
        return total - 0.5 * square - certain.taken_off(square, gamma, off)
    total, gamma, off = certain.recompute(state, state.u)
    square = 0.0
    for j in range(state.u.size):
        if state.r[j] < np.inf:
            total -= cost_of(state, j)
            square += state.u[j] * state.u[j]
    return total - certain.taken_off(square, gamma, off) - gamma * state.price[ALPHA] * state.u.size


# -- use ---------------------------------------------------------------------------------------------------------------


@bare()
def _to_kink(state: NodeState, j: int) -> None:
    """Put a feature that has come to ``|u| = r`` on the list of kinks."""
    side = 1.0 if state.u[j] > 0.0 else -1.0
    state.u[j] = side * state.r[j]
    state.w[j] = state.u[j] if state.use[j] == FULL else 0.0
    state.use[j] = KINK
    state.on[j] = 1.0
    state.kinks[state.cnt[N_KINKS]] = j
    state.cnt[N_KINKS] += 1


@bare()
def from_kink(state: NodeState, j: int, use: int) -> None:
    """Take feature ``j`` off the list of kinks."""
    state.use[j] = use
    state.on[j] = 1.0 if use == FULL else 0.0
    q = 0
    for a in range(state.cnt[N_KINKS]):
        if state.kinks[a] != j:
            state.kinks[q] = state.kinks[a]
            q += 1
    state.cnt[N_KINKS] = q


@bare()
def pass_end(state: NodeState, j: int, fuller: bool, scratch: F8) -> None:
    """Feature ``j`` has come to an end of where it was; it goes on at its kink, or from it."""
    before = state.on[j]
    if state.use[j] != KINK:
        _to_kink(state, j)
    else:
        from_kink(state, j, FULL if fuller else OFF)
        state.w[j] = state.u[j] if fuller else 0.0
    if state.on[j] != before:
        factor.switch(state, j, scratch)


@bare()
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
