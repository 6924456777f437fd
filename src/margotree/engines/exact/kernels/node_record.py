"""A search node as a short string of bytes: where each sample is known to be, and the duals to start from.

Only what cannot be derived is kept: the place of every sample, the step each item stands on at every node above its
place, and the multipliers of the few items on a free segment; where features have prices, what is decided about them,
and the weights of those at a kink.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.routing import PLACE, SLOT, Routing, level_of, side_towards
from margotree.engines.node.kernels.active_set import add_hard_row, refresh
from margotree.engines.node.kernels.workspace import (
    ALPHA,
    AT_COST,
    AT_HARD,
    AT_LOWER,
    AT_MARGIN,
    F8,
    FREE,
    KINK,
    LABEL,
    N_FREE,
    NU,
    NUM,
    OUT,
    STATUS,
    USE,
    VALUE,
    B,
    R,
    W,
    Workspace,
    add_item,
    clear,
    set_nu,
    stand,
)
from margotree.engines.numba_backend import inner, kernel

Bytes = NDArray[np.uint8]

#: Items that may wait unresolved at one node beyond its free ones; more than that and the node starts cold.
_SPARE_FLOATS = 16
#: Written instead of a status where a node has to start cold.
COLD = 255
# What is known of a feature with a price: nothing, it is at its kink, it is used whatever it does, it is not used.
_UNDECIDED, FEATURE_AT_KINK, FEATURE_USED, _FEATURE_UNUSED = 0, 1, 2, 3


def sizes(
    m: int, n: int, depth: int, priced: bool = False, all_multipliers: bool = False, with_weight_limit: bool = False
) -> tuple[int, int]:
    """Bytes and floats that one record takes at most; a ``all_multipliers`` one has room for all multipliers there can be.

    Where weights are ``with_weight_limit``, every tree node has two rows per feature of its own.
    """
    nodes = 2**depth - 1
    k = n if priced else 0
    return m * (2 + depth) + nodes * (k + 2 * n * with_weight_limit), nodes * (
        2 + k + (m if all_multipliers else n + 2 + _SPARE_FLOATS)
    )


@inner(allocates=False)
def save_record(ws: Workspace, rt: Routing, codes: Bytes, floats: F8, row: int) -> int:
    """Write the search node to one row of these arrays; returns how many floats were used."""
    f, g, k, at = ws.f, ws.g, ws.k, rt.at
    m, n = ws.X.shape
    for i in range(rt.samples):
        codes[row, 2 * i] = at[PLACE, i] & 255
        codes[row, 2 * i + 1] = at[PLACE, i] >> 8
    used = 0
    room = floats.shape[1] // rt.T - 2 - (n if ws.priced else 0)
    for t in range(rt.T):
        s = at[SLOT, t]
        base, rows = status_offsets(ws, rt, t)
        floats[row, used] = g[s, NUM, B]
        floats[row, used + 1] = g[s, NUM, VALUE]
        used += 2
        count = 0
        for i in range(m):
            code = k[s, STATUS, i]
            if code == OUT:
                continue  # nodes of one level share their bytes: each writes its own members only
            codes[row, (base if i < rt.samples else rows) + i] = code
            if code != AT_LOWER and code != AT_COST:
                count += 1
                if count <= room:
                    floats[row, used] = f[s, NU, i]
                    used += 1
        if count > room:
            used -= room
            for i in range(m):
                if k[s, STATUS, i] != OUT:
                    codes[row, (base if i < rt.samples else rows) + i] = COLD
        if ws.priced:
            used = save_features(ws, s, codes, feature_offset(ws, rt, t), floats, used, row, count > room)
    return used


@inner(allocates=False)
def status_offsets(ws: Workspace, rt: Routing, t: int) -> tuple[int, int]:
    """Where the bytes for the statuses of tree node ``t`` would begin if all items were samples, and if all were rows
    that bound weights, of which every tree node has its own."""
    samples = rt.samples
    rows = ws.X.shape[0] - samples
    return samples * (2 + level_of(t)), samples * (2 + level_of(rt.T)) + t * rows - samples


@inner(allocates=False)
def feature_offset(ws: Workspace, rt: Routing, t: int) -> int:
    """Where the bytes for features of tree node ``t`` begin."""
    m, n = ws.X.shape
    return rt.samples * (2 + level_of(rt.T)) + rt.T * (m - rt.samples) + t * n


@inner(allocates=False)
def save_features(ws: Workspace, s: int, codes: Bytes, at: int, floats: F8, used: int, row: int, cold: bool) -> int:
    g = ws.g
    for j in range(ws.X.shape[1]):
        codes[row, at + j] = _UNDECIDED
        if g[s, NUM, ALPHA] == 0.0:
            continue
        if g[s, R, j] == 0.0:
            codes[row, at + j] = FEATURE_USED
        elif g[s, R, j] == np.inf:
            codes[row, at + j] = _FEATURE_UNUSED
        elif ws.k[s, USE, j] == KINK and not cold:
            codes[row, at + j] = FEATURE_AT_KINK
            floats[row, used] = g[s, W, j]
            used += 1
    return used


@inner(allocates=False)
def load_features(ws: Workspace, s: int, codes: Bytes, at: int, floats: F8, used: int) -> int:
    for j in range(ws.X.shape[1]):
        if codes[at + j] == FEATURE_USED:
            ws.g[s, R, j] = 0.0
        elif codes[at + j] == _FEATURE_UNUSED:
            ws.g[s, R, j] = np.inf
        elif codes[at + j] == FEATURE_AT_KINK:
            ws.k[s, USE, j] = KINK
            ws.g[s, W, j] = floats[used]
            used += 1
    return used


@inner(allocates=False)
def rebuild_node(ws: Workspace, rt: Routing, t: int) -> None:
    """Empty tree node ``t`` and give it its items and hard rows as their places tell, with all multipliers 0."""
    s = rt.at[SLOT, t]
    clear(ws, s)
    for i in range(rt.samples, ws.X.shape[0]):
        add_item(ws, s, i, ws.fixed[LABEL, i])
        add_hard_row(ws, s, i, -ws.fixed[LABEL, i], -rt.limit)
    for i in range(rt.samples):
        side = side_towards(rt.at[PLACE, i], t)
        if side == 2.0:
            continue
        add_item(ws, s, i, ws.fixed[LABEL, i])
        if side != 0.0:
            add_hard_row(ws, s, i, side, 0.0 if side > 0 else rt.eps)


@inner(allocates=False)
def load_here(ws: Workspace, rt: Routing, codes: Bytes, floats: F8) -> None:
    """Read a search node back and rebuild everything that was derived."""
    g, k, at = ws.g, ws.k, rt.at
    for i in range(rt.samples):
        at[PLACE, i] = np.int64(codes[2 * i]) | (np.int64(codes[2 * i + 1]) << 8)
    used = 0
    for t in range(rt.T):
        s = at[SLOT, t]
        rebuild_node(ws, rt, t)
        base, rows = status_offsets(ws, rt, t)
        g[s, NUM, B] = floats[used]
        used += 2
        free = 0
        for i in range(ws.X.shape[0]):
            code = np.int64(codes[(base if i < rt.samples else rows) + i])
            if k[s, STATUS, i] == OUT or code == COLD:
                continue
            if code != AT_LOWER and code != AT_COST:
                set_nu(ws, s, i, floats[used])
                used += 1
                if code == AT_MARGIN or code == AT_HARD:
                    k[s, FREE, free] = i
                    free += 1
            stand(ws, s, i, code)
        ws.cnt[s, N_FREE] = free
        if ws.priced:
            used = load_features(ws, s, codes, feature_offset(ws, rt, t), floats, used)
        refresh(ws, s)


@kernel(allocates=False)
def save(ws: Workspace, rt: Routing, codes: Bytes, floats: F8) -> int:
    """`save_record` for Python."""
    return save_record(ws, rt, codes, floats, np.int64(0))
