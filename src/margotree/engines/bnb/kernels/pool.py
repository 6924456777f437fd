"""Working memory of one worker: a slot for every tree node and a few to try things in.

Slots hold :class:`~margotree.engines.kernels.state.NodeState` arrays one after another, so that one compiled function
serves trees of any depth.  ``slot[t]`` says where tree node ``t`` lives now; the rest are spares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.kernels.jit import bare
from margotree.engines.kernels.state import F8, I1, I4, OUT, NodeState, norms, scratch

#: Spare slots: three for the candidate under test, three for the best so far, two for handing over.
SPARES = 8


class Pool(NamedTuple):
    X: F8
    XT: F8
    y: F8
    c: F8
    norm: F8  # |x_i|, from above
    norm2: F8  # |x_i|^2, never 0
    cost: F8  # cost[t, i] = C_t * weight_i
    kind: I1
    status: I1
    o: F8
    delta: F8
    nu: F8
    h: F8
    lo: F8
    hi: F8
    items: I4
    free: I4
    L: F8
    v: F8
    w: F8
    num: F8
    cnt: NDArray[np.int64]
    price: F8  # price[t] = what a feature costs at node t, and how many come without
    r: F8
    u: F8
    use: I1
    on: F8
    kinks: I4
    Z: F8
    R: F8
    work: F8
    slot: NDArray[np.int64]
    spare: NDArray[np.int64]
    place: NDArray[np.int64]  # deepest tree node known to contain each sample
    # A candidate for branching is a sample or, if they have prices, a feature of a tree node: number m + n t + j.
    score: F8  # scratch: how promising each candidate looks
    guess: F8  # scratch: estimated damage on the side a sample is headed for, and on the other
    worth: F8  # learnt a candidate: how much of the two estimates came true, as running means
    eps: float


def new_pool(
    X: F8, y: F8, cost: F8, eps: float, price: F8 | None = None, *, plain: bool = False, reach: float = np.inf
) -> Pool:
    """Memory for samples ``X`` and the tree nodes that ``cost`` has rows for; nothing is in it yet.

    A ``plain`` pool leaves prices out of the node problems and puts into its bounds what it can of them.  ``reach`` is
    how large ``|b|`` can be at any node of a tree of interest.
    """
    (m, n), T = X.shape, cost.shape[0]
    S, cap = T + SPARES, n + 2
    k = 0 if price is None or plain else n
    return Pool(
        X=X,
        XT=np.ascontiguousarray(X.T),
        y=y,
        c=np.ones(m),
        norm=norms(X),
        norm2=np.maximum(np.einsum("ij,ij->i", X, X), 1e-12),
        cost=cost,
        kind=np.zeros((S, m), np.int8),
        status=np.full((S, m), OUT, np.int8),
        o=np.zeros((S, m)),
        delta=np.zeros((S, m)),
        nu=np.zeros((S, m)),
        h=np.zeros((S, m)),
        lo=np.full((S, m), -np.inf),
        hi=np.full((S, m), np.inf),
        items=np.zeros((S, m), np.int32),
        free=np.zeros((S, cap), np.int32),
        L=np.zeros((S, cap, cap)),
        v=np.zeros((S, cap)),
        w=np.zeros((S, n)),
        num=np.tile([0.0, 0.0, reach], (S, 1)),
        cnt=np.zeros((S, 5), np.int64),
        price=np.zeros((T, 2)) if price is None else price,
        r=np.zeros((S, k)),
        u=np.zeros((S, k)),
        use=np.zeros((S, k), np.int8),
        on=np.zeros((S, k)),
        kinks=np.zeros((S, k), np.int32),
        **scratch(k),
        work=np.zeros((6, cap)),
        slot=np.arange(T),
        spare=np.arange(T, S),
        place=np.zeros(m, np.int64),
        score=np.zeros(m + T * k),
        guess=np.zeros((2, m + T * k)),
        worth=np.full((2, m + T * k), 0.5),
        eps=eps,
    )


@bare()
def at(pool: Pool, s: int, t: int) -> NodeState:
    """The state in slot ``s``, read as one of tree node ``t``."""
    return NodeState(
        pool.X,
        pool.XT,
        pool.c,
        pool.norm,
        pool.cost[t],
        pool.kind[s],
        pool.status[s],
        pool.o[s],
        pool.delta[s],
        pool.nu[s],
        pool.h[s],
        pool.lo[s],
        pool.hi[s],
        pool.items[s],
        pool.free[s],
        pool.L[s],
        pool.v[s],
        pool.w[s],
        pool.num[s],
        pool.cnt[s],
        pool.price[t],
        pool.r[s],
        pool.u[s],
        pool.use[s],
        pool.on[s],
        pool.kinks[s],
        pool.Z,
        pool.R,
    )


@bare()
def node(pool: Pool, t: int) -> NodeState:
    """The current state of tree node ``t``."""
    return at(pool, pool.slot[t], t)


@bare()
def swap_in(pool: Pool, t: int, k: int) -> None:
    """Make the k-th spare the current state of tree node ``t``; the old one becomes that spare."""
    s = pool.slot[t]
    pool.slot[t] = pool.spare[k]
    pool.spare[k] = s
