"""The node problems that come of sending a candidate one way or the other, set up in spare slots.

There are two ways to set them up, with and without features as candidates, and two to choose candidates; a dive is
handed those of its kind, so that a model without prices does not compile what prices need.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from margotree.engines.exact.kernels.feature_decisions import choose_features, is_headed_to_use, rank
from margotree.engines.exact.kernels.routing import PLACE, SCORE, SLOT, SPARE, Routing, headed, in_band
from margotree.engines.exact.kernels.side_costs import estimate
from margotree.engines.node.kernels.active_set import add_hard_row
from margotree.engines.node.kernels.margins import follow, update_stale_margins
from margotree.engines.node.kernels.penalised_active_set import decide
from margotree.engines.node.kernels.workspace import I8, LABEL, H, Workspace, add_item, copy_slot, numbers
from margotree.engines.numba_backend import inner

# Spares: candidate's (child it is headed for, its node flipped, the other child), the best candidate's, and one more.
SAME, FLIP, OTHER, BEST, _, _, SAME_NODE = numbers(7)
#: Pivots that are as good as no limit.
NO_LIMIT: Any = np.int64(100000)


@inner(allocates=False)
def feature_of(ws: Workspace, i: int) -> tuple[int, int]:
    """Tree node and feature of a candidate that is not a sample."""
    m, n = ws.X.shape
    return (i - m) // n, (i - m) % n


@inner(allocates=False)
def update_margins(ws: Workspace, rt: Routing) -> None:
    """Bring all samples' margins at all nodes up to date."""
    for t in range(rt.T):
        update_stale_margins(ws, rt.at[SLOT, t])


@inner(allocates=False)
def choose_samples(ws: Workspace, rt: Routing, cand: I8, features_first: bool) -> int:
    """Rank the waiting samples that would pay below their nodes by estimated damage on both sides.

    Fills ``cand`` and returns how many were found.
    """
    update_margins(ws, rt)
    estimate(ws, rt)
    found: Any = np.int64(0)
    for i in range(rt.samples):
        if rt.score[SCORE, i] >= 0.0:
            found = rank(rt, i, cand, found)
    return found


@inner(allocates=False)
def choose_both(ws: Workspace, rt: Routing, cand: I8, features_first: bool) -> int:
    """Rank samples and features together or, if asked to, upper nodes' features, samples, the last level's features."""
    first: Any = np.int64(0)
    last = rt.T // 2
    if not features_first:
        found = choose_samples(ws, rt, cand, features_first)
        return choose_features(ws, rt, cand, found, first, rt.T)
    found = choose_features(ws, rt, cand, first, first, last)
    if found == 0:
        found = choose_samples(ws, rt, cand, features_first)
    return found if found else choose_features(ws, rt, cand, first, last, rt.T)


@inner(allocates=False)
def set_up_sample(ws: Workspace, rt: Routing, i: int, flip: bool, part: int, flip_pivots: int) -> tuple[int, int, int]:
    """Sample ``i`` goes where it is headed, or flips: the first or second node problem of that.

    Returns the tree node, the spare and how many pivots it may take; tree node -1 if there is no second.  The cheaper
    part comes first, it may do: of a flip that is the node itself where features have prices, else the child.
    """
    t = rt.at[PLACE, i]
    child = headed(ws, rt, t, i)
    side = 1.0 if child == 2 * t + 2 else -1.0
    at, k, on_node = child, SAME, False
    if flip:
        side = -side
        at, k = 4 * t + 3 - child, OTHER
        on_node = (part == 0) == ws.priced
    elif part == 1:
        if not in_band(ws.f[rt.at[SLOT, t], H, i], rt.eps):
            return -1, k, 0
        on_node = True
    if on_node:
        at, k = t, FLIP if flip else SAME_NODE
    s = rt.at[SPARE, k]
    copy_slot(ws, rt.at[SLOT, at], s)
    if on_node:
        add_hard_row(ws, s, i, side, 0.0 if side > 0 else rt.eps)
        return at, k, flip_pivots
    add_item(ws, s, i, ws.fixed[LABEL, i])
    return at, k, NO_LIMIT


@inner(allocates=False)
def set_up_any(ws: Workspace, rt: Routing, i: int, flip: bool, part: int, flip_pivots: int) -> tuple[int, int, int]:
    """The same for a sample or a feature, which is decided the way it is headed or the other."""
    if i < ws.X.shape[0]:
        return set_up_sample(ws, rt, i, flip, part, flip_pivots)
    k = FLIP if flip else SAME
    if part == 1:
        return -1, k, 0
    t, j = feature_of(ws, i)
    source, s = rt.at[SLOT, t], rt.at[SPARE, k]
    copy_slot(ws, source, s)
    decide(ws, s, j, is_headed_to_use(ws, source, j) != flip)
    follow(ws, s)
    return t, k, NO_LIMIT
