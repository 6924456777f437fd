"""The children of a search node: entering one of them, and writing records of the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.class_choices import class_of, is_headed_first
from margotree.engines.exact.kernels.node_record import save_record
from margotree.engines.exact.kernels.probing import BEST, FLIP, OTHER, SAME, SAME_NODE, node_of
from margotree.engines.exact.kernels.routing import ABOVE, BELOW, BOTH, PLACE, SLOT, SPARE, Routing, headed, swap_in
from margotree.engines.exact.kernels.sample_items import add_side, changes_node, decided_codes
from margotree.engines.node.kernels.feature_penalties import node_bound
from margotree.engines.node.kernels.workspace import (
    AT_LOWER,
    CORNER,
    F8,
    I8,
    NU,
    PENDING_HARD,
    STATUS,
    H,
    O,
    Workspace,
    copy_slot,
    index_constants,
)
from margotree.engines.numba_backend import inner

# Kinds of rows of a dive: a child that is not followed, open or closed; the other child, if it is closed as well; or
# the last search node of the dive, which is open, closed or settled.
OPEN_CHILD, CLOSED_CHILD, CLOSED_SIBLING, LAST_OPEN, LAST_CLOSED, LAST_SETTLED = index_constants(6)


@inner(allocates=False)
def follow_candidate(ws: Workspace, rt: Routing, i: int, flip: bool) -> None:
    """Send candidate ``i`` where it is headed or the other way, with the slots of the best candidate."""
    if i >= rt.samples:
        if i >= rt.first_choice:
            _take_codes(rt, i, flip)
        swap_in(rt, node_of(ws, rt, i), BEST + (FLIP if flip else SAME))
        return
    t = rt.at[PLACE, i]
    child = headed(ws, rt, t, i)
    if flip:
        child = 4 * t + 3 - child
        swap_in(rt, t, BEST + FLIP)
        swap_in(rt, child, BEST + OTHER)
    else:
        add_side(ws, rt, rt.at[SLOT, t], t, i, 1.0 if child == 2 * t + 2 else -1.0)
        swap_in(rt, child, BEST + SAME)
    rt.at[PLACE, i] = child


@inner(allocates=False)
def _take_codes(rt: Routing, i: int, flip: bool) -> None:
    """Make the codes after choice ``i`` those of its tree node; the codes before it go to the last row."""
    t, k = class_of(rt, i)
    decided_codes(rt, t, k, is_headed_first(rt, t, k) != flip)
    for q in range(rt.n_groups):
        rt.code[rt.T + 1, q] = rt.code[t, q]
        rt.code[t, q] = rt.code[rt.T, q]


@inner(allocates=False)
def own_bound(ws: Workspace, rt: Routing) -> float:
    """The sum of the values of the current node problems."""
    total = 0.0
    for t in range(rt.T):
        total += node_bound(ws, rt.at[SLOT, t])
    return total


class Rows(NamedTuple):
    """Records of search nodes that a dive writes, one per row.

    ``used`` is the number of floats of each record, ``bounds`` the sum of its node problems' values, and ``log`` the
    kind of the row and the item that was decided (-1: none).
    """

    codes: NDArray[np.uint8]
    floats: F8
    used: I8
    bounds: F8
    log: I8


@inner(allocates=False)
def write_row(ws: Workspace, rt: Routing, what: int, i: int, rows: Rows, row: int) -> None:
    """Write the current search node, which results from a decision about item ``i`` (-1: none)."""
    rows.used[row] = save_record(ws, rt, rows.codes, rows.floats, row)
    rows.bounds[row] = own_bound(ws, rt)
    rows.log[row, 0] = what
    rows.log[row, 1] = i


@inner(allocates=False)
def write_partial_child(ws: Workspace, rt: Routing, i: int, flip: bool, what: int, rows: Rows, row: int) -> None:
    """Write a child of which only the first node problem was set up.

    In the second node problem sample ``i`` keeps its multiplier, or starts with 0.
    """
    f, k, at = ws.f, ws.k, rt.at
    t = at[PLACE, i]
    child = headed(ws, rt, t, i)
    if flip:
        child = 4 * t + 3 - child
    turned = flip and ws.with_penalties  # whether `set_up_sample` begins with the node itself
    done, spare = (t, FLIP) if turned else (child, OTHER if flip else SAME)
    swap_in(rt, done, BEST + spare)
    at[PLACE, i] = child
    other = child if turned else t
    s, second = at[SLOT, other], rt.samples + i if rt.items > rt.samples else i
    status, nu, second_status = k[s, STATUS, i], f[s, NU, i], k[s, STATUS, second]
    code = rt.code[other, rt.group[i]]
    if turned:
        if code == BELOW or code == ABOVE or code == BOTH:
            k[s, STATUS, i] = AT_LOWER
        if code == BOTH:
            k[s, STATUS, second] = AT_LOWER
    elif code != BELOW and code != ABOVE:
        k[s, STATUS, i] = AT_LOWER
    elif (f[s, O, i] > 0.0) != (child == 2 * t + 2):
        k[s, STATUS, i], f[s, NU, i] = PENDING_HARD, -nu  # the same as in `add_hard_row`
    elif child == 2 * t + 1 and rt.eps >= ws.fixed[CORNER + 2 * t, i] and status != AT_LOWER:
        k[s, STATUS, i] = PENDING_HARD
    write_row(ws, rt, what, i, rows, row)
    k[s, STATUS, i], f[s, NU, i] = status, nu
    if second != i:
        k[s, STATUS, second] = second_status
    swap_in(rt, done, BEST + spare)
    at[PLACE, i] = t


@inner(allocates=False)
def write_child(ws: Workspace, rt: Routing, i: int, flip: bool, what: int, rows: Rows, row: int, whole: bool) -> None:
    """Write a child with the bound of its own node problems, and restore the memory.

    ``whole`` tells that both of its node problems are set up. Otherwise the first one has closed the child, and the
    parent's multipliers are used for the second.
    """
    sample = i < rt.samples
    if sample and not whole and what != OPEN_CHILD:
        write_partial_child(ws, rt, i, flip, what, rows, row)
        return
    t = node_of(ws, rt, i)
    in_spare = False
    if sample and not flip:
        # A side that its probe closes ends the search for candidates, so that the spare slot still holds its node.
        h = ws.f[rt.at[SLOT, t], H, i]
        side = 1.0 if headed(ws, rt, t, i) == 2 * t + 2 else -1.0
        in_spare = what != OPEN_CHILD and changes_node(ws, rt, t, i, h, side)
        if not in_spare:
            copy_slot(ws, rt.at[SLOT, t], rt.at[SPARE, SAME_NODE])
    if in_spare:
        child = headed(ws, rt, t, i)
        swap_in(rt, t, SAME_NODE)
        swap_in(rt, child, BEST + SAME)
        rt.at[PLACE, i] = child
    else:
        if sample and not flip:
            swap_in(rt, t, SAME_NODE)
        follow_candidate(ws, rt, i, flip)
    write_row(ws, rt, what, i, rows, row)
    if not sample:
        swap_in(rt, t, BEST + (FLIP if flip else SAME))
        for q in range(rt.n_groups if i >= rt.first_choice else 0):
            rt.code[t, q] = rt.code[rt.T + 1, q]
        return
    child = rt.at[PLACE, i]
    swap_in(rt, child, BEST + (OTHER if flip else SAME))
    swap_in(rt, t, BEST + FLIP if flip else SAME_NODE)
    rt.at[PLACE, i] = t
