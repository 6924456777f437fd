"""The node problems of a candidate's two sides, set up in spare slots.

There are two functions that set them up, with and without features as candidates, and two that choose candidates. A
dive is made with those of its kind, so that a model without feature penalties does not compile the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from margotree.engines.exact.kernels.class_choices import choose_classes, class_of, guess_choices, is_headed_first
from margotree.engines.exact.kernels.feature_decisions import choose_features, is_headed_to_use, rank
from margotree.engines.exact.kernels.routing import PLACE, SCORE, SLOT, SPARE, Routing, headed
from margotree.engines.exact.kernels.sample_items import (
    add_sample,
    add_side,
    changes_node,
    decided_codes,
    set_codes,
    set_constant,
)
from margotree.engines.exact.kernels.side_costs import estimate
from margotree.engines.node.kernels.margins import update_margins, update_stale_margins
from margotree.engines.node.kernels.penalised_active_set import decide
from margotree.engines.node.kernels.workspace import I8, H, Workspace, copy_slot, index_constants
from margotree.engines.numba_backend import inner

# Spare slots: the candidate's (the child it is headed for, its node with the sample on the other side, the other
# child), the same three of the best candidate from BEST on, and the node with the sample on the side it is headed for.
SAME, FLIP, OTHER, BEST, _, _, SAME_NODE = index_constants(7)
#: A number of pivots without effect as a limit.
NO_LIMIT: Any = np.int64(100000)


@inner(allocates=False)
def feature_of(ws: Workspace, i: int) -> tuple[int, int]:
    """The tree node and the feature of a candidate that is a feature."""
    m, n = ws.X.shape
    return (i - m) // n, (i - m) % n


@inner(allocates=False)
def node_of(ws: Workspace, rt: Routing, i: int) -> int:
    """The tree node of a candidate."""
    if i < rt.samples:
        return rt.at[PLACE, i]
    return class_of(rt, i)[0] if i >= rt.first_choice else feature_of(ws, i)[0]


@inner(allocates=False)
def update_all_margins(ws: Workspace, rt: Routing) -> None:
    """Update all samples' margins at all tree nodes."""
    for t in range(rt.T):
        update_stale_margins(ws, rt.at[SLOT, t])


@inner(allocates=False)
def choose_samples(ws: Workspace, rt: Routing, cand: I8, features_first: bool) -> int:
    """Rank the undecided samples that would have a loss below their nodes by the estimates for both sides.

    Open choices of classes of which samples are known to reach the node come before samples: until they are decided,
    these samples have no loss there.  Writes the candidates to ``cand`` and returns their number.
    """
    update_all_margins(ws, rt)
    found: Any = np.int64(0)
    if rt.chooses:
        guess_choices(ws, rt)
        found = choose_classes(rt, cand, found)
        if found > 0:
            return found
    estimate(ws, rt)
    for i in range(rt.samples):
        if rt.score[SCORE, i] >= 0.0:
            found = rank(rt, i, cand, found)
    return found


@inner(allocates=False)
def choose_both(ws: Workspace, rt: Routing, cand: I8, features_first: bool) -> int:
    """Rank samples, choices and features together; with ``features_first``, features of upper nodes come before
    samples, and those of the last level after them."""
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
    """Set up one of the two node problems (``part`` 0 or 1) in which sample ``i`` goes where it is headed, or flips.

    Returns the tree node (-1 if there is no second problem), the spare slot and the largest number of pivots. The
    problem with fewer pivots comes first, as it may close the side: for a flip this is the tree node itself with
    feature penalties, and the child without.
    """
    if i >= rt.first_choice:
        return set_up_choice(ws, rt, i, flip, part)
    t = rt.at[PLACE, i]
    child = headed(ws, rt, t, i)
    side = 1.0 if child == 2 * t + 2 else -1.0
    at, k, on_node = child, SAME, False
    if flip:
        side = -side
        at, k = 4 * t + 3 - child, OTHER
        on_node = (part == 0) == ws.with_penalties
    elif part == 1:
        if not changes_node(ws, rt, t, i, ws.f[rt.at[SLOT, t], H, i], side):
            return -1, k, 0
        on_node = True
    if on_node:
        at, k = t, FLIP if flip else SAME_NODE
    s = rt.at[SPARE, k]
    copy_slot(ws, rt.at[SLOT, at], s)
    if on_node:
        add_side(ws, rt, s, t, i, side)
        return at, k, flip_pivots
    add_sample(ws, rt, s, at, i)
    set_constant(ws, rt, s, at, at, i)
    return at, k, NO_LIMIT


@inner(allocates=False)
def set_up_choice(ws: Workspace, rt: Routing, i: int, flip: bool, part: int) -> tuple[int, int, int]:
    """Set up the node problem in which the choice of a class is as the hyperplane suggests, or the other one."""
    k = FLIP if flip else SAME
    if part == 1:
        return -1, k, 0
    t, which = class_of(rt, i)
    s = rt.at[SPARE, k]
    copy_slot(ws, rt.at[SLOT, t], s)
    decided_codes(rt, t, which, is_headed_first(rt, t, which) != flip)
    set_codes(ws, rt, s, t)
    return t, k, NO_LIMIT


@inner(allocates=False)
def set_up_any(ws: Workspace, rt: Routing, i: int, flip: bool, part: int, flip_pivots: int) -> tuple[int, int, int]:
    """`set_up_sample` for any candidate; a feature is decided the way it is headed, or the other way."""
    if i < ws.X.shape[0] or i >= rt.first_choice:
        return set_up_sample(ws, rt, i, flip, part, flip_pivots)
    k = FLIP if flip else SAME
    if part == 1:
        return -1, k, 0
    t, j = feature_of(ws, i)
    source, s = rt.at[SLOT, t], rt.at[SPARE, k]
    copy_slot(ws, source, s)
    decide(ws, s, j, is_headed_to_use(ws, source, j) != flip)
    update_margins(ws, s)
    return t, k, NO_LIMIT
