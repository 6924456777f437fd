"""What a sample would cost on either side of the node where it waits, by dual solves."""

from __future__ import annotations

import numpy as np

from margotree.engines.bnb.kernels.pool import Pool, at, node
from margotree.engines.kernels import features
from margotree.engines.kernels.jit import bare
from margotree.engines.kernels.pivot import harden, run
from margotree.engines.kernels.riser import INFEASIBLE
from margotree.engines.kernels.state import ALPHA, F8, VALUE, NodeState, add_item, copy_state

#: Violations below this are rounding; where the last digits of a bound count, below that.
TOL, TIGHT = 1e-7, 1e-11


@bare()
def below(t: int, h: float) -> int:
    """The child of ``t`` that a sample with this margin goes to."""
    return 2 * t + 2 if h >= -TOL else 2 * t + 1


@bare()
def headed(pool: Pool, t: int, i: int) -> int:
    """The child of ``t`` that the current hyperplane sends sample ``i`` to."""
    return below(t, pool.h[pool.slot[t], i])


@bare()
def in_band(h: float, eps: float) -> bool:
    return h < -TOL and h > -eps + TOL


@bare()
def try_member(pool: Pool, t: int, i: int, k: int, cutoff: float, pivots: int) -> float:
    """Value of tree node ``t`` with sample ``i`` added, left in the k-th spare."""
    state = at(pool, pool.spare[k], t)
    copy_state(node(pool, t), state)
    add_item(state, i, pool.y[i])
    return finish(pool, t, k, cutoff, pivots)


@bare()
def try_side(pool: Pool, t: int, i: int, side: float, k: int, cutoff: float, pivots: int) -> float:
    """Value of tree node ``t`` with its member ``i`` sent to ``side``, left in the k-th spare."""
    state = at(pool, pool.spare[k], t)
    copy_state(node(pool, t), state)
    harden(state, i, side, 0.0 if side > 0 else pool.eps)
    return finish(pool, t, k, cutoff, pivots)


@bare()
def value(state: NodeState) -> float:
    """The tree node's part of the bound."""
    if state.r.size:
        return features.worth(state.num[VALUE], state.u, state.r, state.price)
    return state.num[VALUE] + bonus(state)


@bare()
def bonus(state: NodeState) -> float:
    """What prices add where they are left out of the node problem."""
    return features.bonus(state.w, state.price) if state.price[ALPHA] > 0.0 and state.r.size == 0 else 0.0


@bare()
def pivot_to(state: NodeState, cutoff: float, pivots: int, tol: float, work: F8) -> int:
    """Pivot until the tree node is solved to ``tol``, its part of the bound past the cut-off, or pivots run out."""
    return run(state, cutoff - (features.offset(state.r, state.price) if state.r.size else 0.0), pivots, tol, work)


@bare()
def finish(pool: Pool, t: int, k: int, cutoff: float, pivots: int) -> float:
    """Pivot in a spare until solved, past the cut-off or out of pivots; an impossible routing is worth infinity."""
    state = at(pool, pool.spare[k], t)
    before = max(value(node(pool, t)), value(state))
    if before >= cutoff:
        return before
    if pivot_to(state, cutoff, pivots, TOL, pool.work) == INFEASIBLE:
        return np.inf
    return max(before, value(state))


@bare()
def total_value(pool: Pool) -> float:
    total = 0.0
    for t in range(pool.slot.size):
        total += value(node(pool, t))
    return total
