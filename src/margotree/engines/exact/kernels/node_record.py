"""A search node as a short record of bytes and floats: the place of each sample, and the multipliers of a warm start.

Only what cannot be derived is stored: the place of every sample, the status of each item at every tree node on the path
to its place, and the multipliers of the few items on a free segment; with feature penalties also the decision about
each feature, and the weights of the features at a kink; with choices of classes the code of each class at each node.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.routing import PLACE, SLOT, Routing, level_of, side_towards
from margotree.engines.exact.kernels.sample_items import add_sample, add_side, set_constant
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
    set_status,
)
from margotree.engines.numba_backend import inner, kernel

Bytes = NDArray[np.uint8]

#: Floats for pending items of one tree node beyond its free ones; with more of them the node starts cold.
_SPARE_FLOATS = 16
#: The status of all items of a node that starts cold.
COLD = 255
#: Added to the code of a class, so that it is a byte.
CODE_SHIFT = 1
# States of a feature with a penalty: undecided, undecided and at its kink, decided to be used, decided not to be used.
_UNDECIDED, FEATURE_AT_KINK, FEATURE_USED, _FEATURE_UNUSED = 0, 1, 2, 3


def sizes(
    m: int,
    n: int,
    depth: int,
    *,
    items: int,
    choices: int = 0,
    penalised: bool = False,
    all_multipliers: bool = False,
    with_weight_limit: bool = False,
) -> tuple[int, int]:
    """The largest number of bytes and of floats in one record.

    Parameters
    ----------
    m, n, items, choices
        Numbers of samples, of features, of items of samples, and of classes with choices.
    penalised
        Whether node problems contain feature penalties.
    all_multipliers
        Reserve space for the multipliers of all items.
    with_weight_limit
        Every tree node has two rows per feature.
    """
    nodes = 2**depth - 1
    k = n if penalised else 0
    return m * (1 + depth) + items + nodes * (k + choices + 2 * n * with_weight_limit), nodes * (
        2 + k + (items if all_multipliers else n + 2 + _SPARE_FLOATS)
    )


@inner(allocates=False)
def save_record(ws: Workspace, rt: Routing, codes: Bytes, floats: F8, row: int) -> int:
    """Write the current search node to row ``row`` of these arrays; return the number of floats in it."""
    f, g, k, at = ws.f, ws.g, ws.k, rt.at
    m, n = ws.X.shape
    for i in range(rt.samples):
        codes[row, 2 * i] = at[PLACE, i] & 255
        codes[row, 2 * i + 1] = at[PLACE, i] >> 8
    used = 0
    room = floats.shape[1] // rt.T - 2 - (n if ws.with_penalties else 0)
    for t in range(rt.T):
        s = at[SLOT, t]
        base, second, rows = status_offsets(ws, rt, t)
        floats[row, used] = g[s, NUM, B]
        floats[row, used + 1] = g[s, NUM, VALUE]
        used += 2
        count = 0
        for i in range(m):
            code = k[s, STATUS, i]
            if code == OUT:
                continue  # nodes of one level share their bytes; each writes those of its own samples
            codes[row, (base if i < rt.samples else second if i < rt.items else rows) + i] = code
            if code != AT_LOWER and code != AT_COST:
                count += 1
                if count <= room:
                    floats[row, used] = f[s, NU, i]
                    used += 1
        if count > room:
            used -= room
            for i in range(m):
                if k[s, STATUS, i] != OUT:
                    codes[row, (base if i < rt.samples else second if i < rt.items else rows) + i] = COLD
        if ws.with_penalties:
            used = save_features(ws, s, codes, feature_offset(ws, rt, t), floats, used, row, count > room)
    if rt.chooses:
        start = choice_offset(ws, rt)
        for t in range(rt.T):
            for q in range(rt.n_groups):
                codes[row, start + t * rt.n_groups + q] = rt.code[t, q] + CODE_SHIFT
    return used


@inner(allocates=False)
def status_offsets(ws: Workspace, rt: Routing, t: int) -> tuple[int, int, int]:
    """The positions of the statuses at tree node ``t``, as offsets to which the number of an item is added: for
    samples, for their losses above, which only last-level nodes have, and for the rows that limit weights, of which
    every tree node has its own."""
    samples = rt.samples
    rows = ws.X.shape[0] - rt.items
    second = samples * (1 + level_of(rt.T))
    return samples * (2 + level_of(t)), second, second + t * rows


@inner(allocates=False)
def choice_offset(ws: Workspace, rt: Routing) -> int:
    """The position of the codes of classes."""
    return rt.samples * (1 + level_of(rt.T)) + rt.items + rt.T * (ws.X.shape[0] - rt.items)


@inner(allocates=False)
def feature_offset(ws: Workspace, rt: Routing, t: int) -> int:
    """The position of the bytes for the features of tree node ``t``."""
    return choice_offset(ws, rt) + (rt.T * rt.n_groups if rt.chooses else 0) + t * ws.X.shape[1]


@inner(allocates=False)
def save_features(ws: Workspace, s: int, codes: Bytes, at: int, floats: F8, used: int, row: int, cold: bool) -> int:
    """Write the decisions about the features of slot ``s``, and their weights at kinks; return the number of floats."""
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
    """Read what `save_features` has written; return the number of floats."""
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
    """Clear tree node ``t`` and add the items and hard rows given by the places, with all multipliers 0."""
    s = rt.at[SLOT, t]
    clear(ws, s)
    for i in range(rt.items, ws.X.shape[0]):
        add_item(ws, s, i, ws.fixed[LABEL, i])
        add_hard_row(ws, s, i, -ws.fixed[LABEL, i], -rt.limit)
    for i in range(rt.samples):
        side = side_towards(rt.at[PLACE, i], t)
        if side == 0.0:
            add_sample(ws, rt, s, t, i)
        elif side != 2.0:
            add_sample(ws, rt, s, t, i)
            add_side(ws, rt, s, t, i, side)
    set_constant(ws, rt, s, t, t, -1)


@inner(allocates=False)
def load_record(ws: Workspace, rt: Routing, codes: Bytes, floats: F8) -> None:
    """Read a search node and compute everything that is derived from it."""
    g, k, at = ws.g, ws.k, rt.at
    for i in range(rt.samples):
        at[PLACE, i] = np.int64(codes[2 * i]) | (np.int64(codes[2 * i + 1]) << 8)
    if rt.chooses:
        start = choice_offset(ws, rt)
        for t in range(rt.T):
            for q in range(rt.n_groups):
                rt.code[t, q] = np.int64(codes[start + t * rt.n_groups + q]) - CODE_SHIFT
    used = 0
    for t in range(rt.T):
        s = at[SLOT, t]
        rebuild_node(ws, rt, t)
        base, second, rows = status_offsets(ws, rt, t)
        g[s, NUM, B] = floats[used]
        used += 2
        free = 0
        for i in range(ws.X.shape[0]):
            code = np.int64(codes[(base if i < rt.samples else second if i < rt.items else rows) + i])
            if k[s, STATUS, i] == OUT or code == COLD:
                continue
            if code != AT_LOWER and code != AT_COST:
                set_nu(ws, s, i, floats[used])
                used += 1
                if code == AT_MARGIN or code == AT_HARD:
                    k[s, FREE, free] = i
                    free += 1
            set_status(ws, s, i, code)
        ws.cnt[s, N_FREE] = free
        if ws.with_penalties:
            used = load_features(ws, s, codes, feature_offset(ws, rt, t), floats, used)
        refresh(ws, s)


@kernel(allocates=False)
def save(ws: Workspace, rt: Routing, codes: Bytes, floats: F8) -> int:
    """`save_record` for Python."""
    return save_record(ws, rt, codes, floats, np.int64(0))
