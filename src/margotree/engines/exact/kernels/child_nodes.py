"""From a search node to its children: going there, and writing down those that are not followed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.node_record import save_record
from margotree.engines.exact.kernels.probing import BEST, FLIP, OTHER, SAME, SAME_NODE, feature_of
from margotree.engines.exact.kernels.routing import PLACE, SLOT, SPARE, Routing, headed, in_band, swap_in
from margotree.engines.node.kernels.active_set import add_hard_row
from margotree.engines.node.kernels.feature_penalties import value
from margotree.engines.node.kernels.workspace import (
    AT_LOWER,
    F8,
    I8,
    NU,
    PENDING_HARD,
    STATUS,
    H,
    O,
    Workspace,
    copy_slot,
    numbers,
)
from margotree.engines.numba_backend import inner

# What a row of a logged dive is: a child put aside or closed, the other child, closed as well; or the search node that
# the dive ended at, to be gone on with, closed, or settled.
OPEN_CHILD, CLOSED_CHILD, CLOSED_SIBLING, LAST_OPEN, LAST_CLOSED, LAST_SETTLED = numbers(6)


@inner(allocates=False)
def follow_candidate(ws: Workspace, rt: Routing, i: int, flip: bool) -> None:
    """Send candidate ``i`` where it is headed or the other way, with the states from the best candidate's spares."""
    if i >= ws.X.shape[0]:
        swap_in(rt, feature_of(ws, i)[0], BEST + (FLIP if flip else SAME))
        return
    t = rt.at[PLACE, i]
    child = headed(ws, rt, t, i)
    if flip:
        child = 4 * t + 3 - child
        swap_in(rt, t, BEST + FLIP)
        swap_in(rt, child, BEST + OTHER)
    else:
        side = 1.0 if child == 2 * t + 2 else -1.0
        add_hard_row(ws, rt.at[SLOT, t], i, side, 0.0 if side > 0 else rt.eps)
        swap_in(rt, child, BEST + SAME)
    rt.at[PLACE, i] = child


@inner(allocates=False)
def own_bound(ws: Workspace, rt: Routing) -> float:
    """What the node problems at hand add up to."""
    total = 0.0
    for t in range(rt.T):
        total += value(ws, rt.at[SLOT, t])
    return total


class Rows(NamedTuple):
    """Search nodes that a dive writes down, one per row: records, how many floats each has, what its node problems add
    up to, and what the row is, with the item that was decided about."""

    codes: NDArray[np.uint8]
    floats: F8
    used: I8
    bounds: F8
    log: I8


@inner(allocates=False)
def write_row(ws: Workspace, rt: Routing, what: int, i: int, rows: Rows, row: int) -> None:
    """Write down the search node at hand, which came of a decision about item ``i`` (-1: of none)."""
    rows.used[row] = save_record(ws, rt, rows.codes, rows.floats, row)
    rows.bounds[row] = own_bound(ws, rt)
    rows.log[row, 0] = what
    rows.log[row, 1] = i


@inner(allocates=False)
def write_partial_child(ws: Workspace, rt: Routing, i: int, flip: bool, what: int, rows: Rows, row: int) -> None:
    """Write down a child of which only the first node problem was set up: in the second, sample ``i`` keeps the
    multiplier that it has, or starts with 0."""
    f, k, at = ws.f, ws.k, rt.at
    t = at[PLACE, i]
    child = headed(ws, rt, t, i)
    if flip:
        child = 4 * t + 3 - child
    turned = flip and ws.priced  # which of the two `set_up_sample` begins with
    done, spare = (t, FLIP) if turned else (child, OTHER if flip else SAME)
    swap_in(rt, done, BEST + spare)
    at[PLACE, i] = child
    s = at[SLOT, child if turned else t]
    status, nu = k[s, STATUS, i], f[s, NU, i]
    if turned:
        k[s, STATUS, i] = AT_LOWER
    elif (f[s, O, i] > 0.0) != (child == 2 * t + 2):
        k[s, STATUS, i], f[s, NU, i] = PENDING_HARD, -nu  # as `add_hard_row` would have it
    elif child == 2 * t + 1 and rt.eps >= 1.0 and status != AT_LOWER:
        k[s, STATUS, i] = PENDING_HARD
    write_row(ws, rt, what, i, rows, row)
    k[s, STATUS, i], f[s, NU, i] = status, nu
    swap_in(rt, done, BEST + spare)
    at[PLACE, i] = t


@inner(allocates=False)
def write_child(ws: Workspace, rt: Routing, i: int, flip: bool, what: int, rows: Rows, row: int, whole: bool) -> None:
    """Write down a child with the bound that its own node problems have, and restore the memory.

    Where a first node problem has closed a child, and it is not ``whole``, its parent's multipliers do for the other.
    """
    sample = i < ws.X.shape[0]
    if sample and not whole and what != OPEN_CHILD:
        write_partial_child(ws, rt, i, flip, what, rows, row)
        return
    t = rt.at[PLACE, i] if sample else feature_of(ws, i)[0]
    in_spare = False
    if sample and not flip:
        # A side closed by its probe ends the search for candidates, so that its node is still in the spare.
        in_spare = what != OPEN_CHILD and in_band(ws.f[rt.at[SLOT, t], H, i], rt.eps)
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
        return
    child = rt.at[PLACE, i]
    swap_in(rt, child, BEST + (OTHER if flip else SAME))
    swap_in(rt, t, BEST + FLIP if flip else SAME_NODE)
    rt.at[PLACE, i] = t
