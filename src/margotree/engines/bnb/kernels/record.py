"""A search node as a short string of bytes: where each sample is known to be, and the duals to start from.

Only what cannot be derived is kept: the place of every sample, the step each item stands on at every node above its
place, and the multipliers of the few items that stand on a riser; where features have prices, what is decided about
them, and the weights of those at a kink.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.bnb.kernels.pool import Pool, node
from margotree.engines.kernels.jit import bare, bare_kernel
from margotree.engines.kernels.pivot import harden, refresh
from margotree.engines.kernels.state import (
    AT_HARD,
    AT_MARGIN,
    F8,
    KINK,
    LOW,
    MID,
    N_FREE,
    OUT,
    VALUE,
    B,
    NodeState,
    add_item,
    clear,
    stand,
)

Bytes = NDArray[np.uint8]

#: Items that may wait unresolved at one node beyond its free ones; more than that and the node starts cold.
_WAITING = 16
#: Written instead of a status where a node has to start cold.
COLD = 255
# What is known of a feature with a price: nothing, it is at its kink, it is used whatever it does, it is not used.
_OPEN, _KINK, _MUST, _NEVER = 0, 1, 2, 3


def sizes(m: int, n: int, depth: int, priced: bool = False) -> tuple[int, int]:
    """Bytes and floats that one record takes at most."""
    nodes = 2**depth - 1
    k = n if priced else 0
    return m * (2 + depth) + nodes * k, nodes * (n + 4 + _WAITING + k)


@bare()
def level_of(t: int) -> int:
    k = 0
    while t > 0:
        t = (t - 1) // 2
        k += 1
    return k


@bare_kernel()
def save(pool: Pool, codes: Bytes, floats: F8) -> int:
    """Write the pool's search node; returns how many floats were used."""
    m = pool.y.size
    for i in range(m):
        codes[2 * i] = pool.place[i] & 255
        codes[2 * i + 1] = pool.place[i] >> 8
    used = 0
    room = pool.w.shape[1] + 2 + _WAITING
    for t in range(pool.slot.size):
        state = node(pool, t)
        base = 2 * m + level_of(t) * m
        floats[used] = state.num[B]
        floats[used + 1] = state.num[VALUE]
        used += 2
        count = 0
        for i in range(m):
            code = state.status[i]
            if code == OUT:
                continue  # nodes of one level share their bytes: each writes its own members only
            codes[base + i] = code
            if code != LOW and code != MID:
                count += 1
                if count <= room:
                    floats[used] = state.nu[i]
                    used += 1
        if count > room:
            used -= room
            for i in range(m):
                if state.status[i] != OUT:
                    codes[base + i] = COLD
        used = save_features(state, codes, features_at(pool, t), floats, used, count > room)
    return used


@bare()
def features_at(pool: Pool, t: int) -> int:
    """Where the bytes for features of tree node ``t`` begin."""
    return pool.y.size * (2 + level_of(pool.slot.size)) + t * pool.r.shape[1]


@bare()
def save_features(state: NodeState, codes: Bytes, at: int, floats: F8, used: int, cold: bool) -> int:
    for j in range(state.r.size):
        codes[at + j] = _OPEN
        if state.price[0] == 0.0:
            continue
        if state.r[j] == 0.0:
            codes[at + j] = _MUST
        elif state.r[j] == np.inf:
            codes[at + j] = _NEVER
        elif state.use[j] == KINK and not cold:
            codes[at + j] = _KINK
            floats[used] = state.w[j]
            used += 1
    return used


@bare()
def load_features(state: NodeState, codes: Bytes, at: int, floats: F8, used: int) -> int:
    for j in range(state.r.size):
        if codes[at + j] == _MUST:
            state.r[j] = 0.0
        elif codes[at + j] == _NEVER:
            state.r[j] = np.inf
        elif codes[at + j] == _KINK:
            state.use[j] = KINK
            state.w[j] = floats[used]
            used += 1
    return used


@bare()
def in_subtree(place: int, t: int) -> bool:
    """Whether tree node ``place`` is ``t`` or below it."""
    while place > t:
        place = (place - 1) // 2
    return place == t


@bare()
def step_below(place: int, t: int) -> float:
    """Side taken at ``t`` on the way to ``place``: -1 left, +1 right, 0 if ``place`` is ``t`` itself."""
    if place == t:
        return 0.0
    while (place - 1) // 2 != t:
        place = (place - 1) // 2
    return 1.0 if place == 2 * t + 2 else -1.0


@bare()
def fill(pool: Pool, t: int) -> NodeState:
    """Empty tree node ``t`` and give it its items and hard rows as ``place`` tells, with all multipliers 0."""
    state = node(pool, t)
    clear(state)
    for i in range(pool.y.size):
        if in_subtree(pool.place[i], t):
            add_item(state, i, pool.y[i])
            side = step_below(pool.place[i], t)
            if side != 0.0:
                harden(state, i, side, 0.0 if side > 0 else pool.eps)
    return state


@bare_kernel()
def load(pool: Pool, codes: Bytes, floats: F8) -> None:
    """Read a search node back and rebuild everything that was derived."""
    m = pool.y.size
    for i in range(m):
        pool.place[i] = np.int64(codes[2 * i]) | (np.int64(codes[2 * i + 1]) << 8)
    used = 0
    for t in range(pool.slot.size):
        state = fill(pool, t)
        base = 2 * m + level_of(t) * m
        state.num[B] = floats[used]
        used += 2
        k = 0
        for i in range(m):
            code = codes[base + i]
            if state.status[i] == OUT or code == COLD:
                continue
            if code != LOW and code != MID:
                state.nu[i] = floats[used]
                used += 1
                if code == AT_MARGIN or code == AT_HARD:
                    state.free[k] = i
                    k += 1
            stand(state, i, code)
        state.cnt[N_FREE] = k
        used = load_features(state, codes, features_at(pool, t), floats, used)
        refresh(state, pool.work)
