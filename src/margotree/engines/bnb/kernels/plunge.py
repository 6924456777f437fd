"""One dive of the search: branch, follow the more promising child, put the other aside, until nothing is left.

A search node is a partial routing and, if they have prices, what is decided about features.  Its bound is the sum of
the node problems' dual values.  It is *settled* when every waiting sample would travel to the bottom at no further
cost and no feature is used in part: then the hyperplanes at hand are a tree of exactly that value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margotree.engines.bnb.kernels.estimate import FLOOR
from margotree.engines.bnb.kernels.probe import (
    BEST,
    FLIP,
    HAND,
    MANY,
    OTHER,
    SAME,
    choose_both,
    choose_samples,
    feature_of,
    look,
    set_up_any,
    set_up_sample,
)
from margotree.engines.bnb.kernels.record import load_here, save_here
from margotree.engines.bnb.kernels.routing import (
    GUESS,
    PLACE,
    SLOT,
    SPARE,
    TIGHT,
    TOL,
    TRUE,
    Routing,
    headed,
    in_band,
    swap_in,
)
from margotree.engines.kernels import pivot, priced
from margotree.engines.kernels.features import bonus, places, value
from margotree.engines.kernels.jit import bare, bare_kernel, part
from margotree.engines.kernels.pivot import harden, refresh
from margotree.engines.kernels.ratio import INFEASIBLE
from margotree.engines.kernels.workspace import ALPHA, F8, I8, NUM, SINGLE, STOP, H, Workspace, copy_slot, numbers

# How a dive ends.  Memory that leaves prices out settles where prices could make the difference.
EXHAUSTED, SETTLED, PAUSED = 0, 1, 2
# Entries of the counters.
STEPS, EMITTED, FIXED, SOLVES = 0, 1, 2, 3
# Entries of the options: candidates in a row that bring nothing, pivots of a flip, when prices come into node problems
# (see `Tactics.prices`), whether features are decided first, whether search nodes that are closed are written down too.
PATIENCE, FLIP_PIVOTS, PRICES, FEATURES_FIRST, LOGGED = 0, 1, 2, 3, 4
# What a row of a logged dive is: a child put aside or closed, the other child, closed as well; or the search node that
# the dive ended at, to be gone on with, closed, or settled.
ASIDE, SHUT, SHUT_TOO, HERE, HERE_SHUT, HERE_SETTLED = numbers(6)
# Ways to go.
AS_HEADED, OTHERWISE = numbers(2)
# Weight of the newest observation in a running mean.
LEARN = 0.25


@part()
def solved(ws: Workspace, s: int, cutoff: float, pivots: int, tol: float, run: Callable[..., int]) -> float:
    """The tree node's part of the bound once it is solved to ``tol``, past the cut-off or out of pivots.

    An impossible routing is worth infinity.
    """
    offset = ws.g[s, NUM, ALPHA] * places(ws, s) if ws.priced else 0.0
    if run(ws, s, cutoff + offset, pivots, tol) == INFEASIBLE:
        return np.inf
    return value(ws, s)


@part()
def relax(ws: Workspace, rt: Routing, cutoff: float, tol: float, run: Callable[..., int]) -> float:
    """Solve all node problems of the current search node; returns the bound (infinite if a routing is impossible)."""
    total = 0.0
    for t in range(rt.T):
        total += value(ws, rt.at[SLOT, t])
    for t in range(rt.T):
        if total >= cutoff:
            return total
        s = rt.at[SLOT, t]
        before = value(ws, s)
        after = solved(ws, s, before + cutoff - total, MANY, tol, run)
        if after == np.inf:
            return after
        total += after - before
    return total


@part()
def probe(
    ws: Workspace,
    rt: Routing,
    i: int,
    way: int,
    total: float,
    cutoff: float,
    flip_pivots: int,
    logged: bool,
    run: Callable[..., int],
    set_up: Callable[..., tuple[int, int, int]],
) -> float:
    """Bound after candidate ``i`` goes the way it is headed (way 0) or the other (way 1)."""
    bound = total
    for step in range(2):
        t, k, pivots = set_up(ws, rt, i, way == 1, step, flip_pivots)
        if t < 0:
            break
        s = rt.at[SPARE, k]
        base = value(ws, rt.at[SLOT, t])
        after = max(base, value(ws, s))
        if after < base + cutoff - bound:
            after = max(after, solved(ws, s, base + cutoff - bound, pivots, TOL, run))
        bound = bound + after - base
        if bound >= cutoff and not logged:
            break  # a log needs both node problems, if only to say that the second was not needed
    # Remember what share of the estimate came true.
    share = min(1.0, (bound - total) / max(rt.score[GUESS + way, i], 1e-300))
    rt.score[TRUE + way, i] += LEARN * (max(share, 1e-3) - rt.score[TRUE + way, i])
    return bound


@part()
def pick(
    ws: Workspace,
    rt: Routing,
    cand: I8,
    found: int,
    total: float,
    cutoff: float,
    options: I8,
    counters: I8,
    run: Callable[..., int],
    set_up: Callable[..., tuple[int, int, int]],
) -> tuple[int, float, float, float]:
    """Solve both sides of the candidates in turn until none has been better for a while.

    Returns the best candidate, the bounds on its two sides, and the best bound on the node itself that was seen:
    whatever a sample does, it pays the lesser of its two sides.  A candidate with a closed side ends the search.
    """
    patience, flip_pivots, logged = options[PATIENCE], options[FLIP_PIVOTS], options[LOGGED] != 0
    slack = cutoff - total
    tiny = FLOOR * slack
    best, best_score, best_same, best_flip, floor = -1, -1.0, 0.0, 0.0, total
    idle = 0
    for p in range(found):
        i = cand[p]
        same, flip, score, forced = total, total, -2.0, False
        for way in range(2):
            bound = probe(ws, rt, i, way, total, cutoff, flip_pivots, logged, run, set_up)
            counters[SOLVES] += 1
            if way == AS_HEADED:
                same = bound
                score = min(max(same - total, tiny), slack)
                if score * slack <= best_score:
                    score = -2.0  # whatever the other way brings, this is not the best
                    break
            else:
                flip = bound
                floor = max(floor, min(same, flip))
                score *= min(max(flip - total, tiny), slack)
                forced = same >= cutoff or flip >= cutoff
        idle += 1
        if forced or score > best_score:
            for k in range(3):  # the best candidate's three states are put aside
                s = rt.at[SPARE, k]
                rt.at[SPARE, k] = rt.at[SPARE, BEST + k]
                rt.at[SPARE, BEST + k] = s
            best, best_score, best_same, best_flip = i, score, same, flip
            idle = 0
        if forced or idle >= patience:
            break
    return best, best_same, best_flip, floor


@bare()
def go(ws: Workspace, rt: Routing, i: int, flip: bool) -> None:
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
        harden(ws, rt.at[SLOT, t], i, side, 0.0 if side > 0 else rt.eps)
        swap_in(rt, child, BEST + SAME)
    rt.at[PLACE, i] = child


@bare()
def emit(ws: Workspace, rt: Routing, i: int, flip: bool, codes: NDArray[np.uint8], floats: F8, row: int) -> int:
    """Write the child of the current node that is not followed, and restore the memory."""
    sample = i < ws.X.shape[0]
    t = rt.at[PLACE, i] if sample else feature_of(ws, i)[0]
    if sample and not flip:
        # `harden` works in place, so the node is copied before.
        copy_slot(ws, rt.at[SLOT, t], rt.at[SPARE, HAND])
        swap_in(rt, t, HAND)
    go(ws, rt, i, flip)
    used = save_here(ws, rt, codes, floats, row)
    if not sample:
        swap_in(rt, t, BEST + (FLIP if flip else SAME))
        return used
    child = rt.at[PLACE, i]
    swap_in(rt, child, BEST + (OTHER if flip else SAME))
    swap_in(rt, t, BEST + FLIP if flip else HAND)
    rt.at[PLACE, i] = t
    return used


@bare()
def own_bound(ws: Workspace, rt: Routing) -> float:
    """What the node problems at hand add up to."""
    total = 0.0
    for t in range(rt.T):
        total += value(ws, rt.at[SLOT, t])
    return total


@bare()
def note(
    ws: Workspace,
    rt: Routing,
    what: int,
    codes: NDArray[np.uint8],
    floats: F8,
    used: I8,
    bounds: F8,
    log: I8,
    row: int,
) -> None:
    """Write down the search node that the dive ended at."""
    used[row] = save_here(ws, rt, codes, floats, row)
    bounds[row] = own_bound(ws, rt)
    log[row, 0] = what
    log[row, 1] = -1


@bare()
def note_child(
    ws: Workspace,
    rt: Routing,
    i: int,
    flip: bool,
    what: int,
    codes: NDArray[np.uint8],
    floats: F8,
    used: I8,
    bounds: F8,
    log: I8,
    row: int,
) -> None:
    """Write down a child with the bound that its own node problems have, and restore the memory."""
    sample = i < ws.X.shape[0]
    t = rt.at[PLACE, i] if sample else feature_of(ws, i)[0]
    in_hand = False
    if sample and not flip:
        # A side closed by its probe ends the search for candidates, so that its node is still in the spare.
        in_hand = what != ASIDE and in_band(ws.f[rt.at[SLOT, t], H, i], rt.eps)
        if not in_hand:
            copy_slot(ws, rt.at[SLOT, t], rt.at[SPARE, HAND])
    if in_hand:
        child = headed(ws, rt, t, i)
        swap_in(rt, t, HAND)
        swap_in(rt, child, BEST + SAME)
        rt.at[PLACE, i] = child
    else:
        if sample and not flip:
            swap_in(rt, t, HAND)
        go(ws, rt, i, flip)
    used[row] = save_here(ws, rt, codes, floats, row)
    bounds[row] = own_bound(ws, rt)
    log[row, 0] = what
    log[row, 1] = i
    if not sample:
        swap_in(rt, t, BEST + (FLIP if flip else SAME))
        return
    child = rt.at[PLACE, i]
    swap_in(rt, child, BEST + (OTHER if flip else SAME))
    swap_in(rt, t, BEST + FLIP if flip else HAND)
    rt.at[PLACE, i] = t


@bare_kernel()
def route(ws: Workspace, rt: Routing, out: I8) -> None:
    """The last-level node that each sample reaches if it goes on where it is headed."""
    look(ws, rt)
    for i in range(ws.X.shape[0]):
        t = rt.at[PLACE, i]
        while 2 * t + 1 < rt.T:
            t = headed(ws, rt, t, i)
        out[i] = t


@part()
def dive(
    ws: Workspace,
    rt: Routing,
    floor: float,
    shared: F8,
    max_steps: int,
    options: I8,
    cand: I8,
    out_codes: NDArray[np.uint8],
    out_floats: F8,
    out_used: I8,
    out_bound: F8,
    counters: I8,
    log: I8,
    run: Callable[..., int],
    set_up: Callable[..., tuple[int, int, int]],
    choose: Callable[..., int],
) -> tuple[int, float]:
    """Dive from the search node at hand; returns how it ended and the bound of the node it ended at.

    ``shared`` is the cut-off and a flag that asks to stop, both read anew at every step; ``cand`` has room for as many
    candidates as may be tried.  Children put aside are in the ``out`` arrays, a PAUSED node is the last of them.
    A logged dive writes all search nodes that it closes there, too, ``log`` says what each row is, and no bound counts
    but that of a search node's own multipliers.
    """
    emitted = np.int64(0)
    settled = False
    logged = options[LOGGED] != 0
    last = out_bound.size - (3 if logged else 1)
    while True:
        cutoff = shared[0]
        # Gains add up on the sum of the node values; the floor, a bound by other means, only closes nodes.
        total = relax(ws, rt, cutoff, TIGHT if settled else TOL, run)
        floor = total if logged else max(floor, total)
        if settled or floor >= cutoff:
            if logged:
                what = HERE_SETTLED if settled else HERE_SHUT
                note(ws, rt, what, out_codes, out_floats, out_used, out_bound, log, emitted)
                counters[EMITTED] = emitted + 1
            return SETTLED if settled else EXHAUSTED, floor
        asked_to_stop = shared[1] != 0.0 or ws.work[SINGLE, STOP] != 0.0
        if counters[STEPS] >= max_steps or emitted >= last or asked_to_stop:
            note(ws, rt, HERE, out_codes, out_floats, out_used, out_bound, log, emitted)
            if not logged:
                out_bound[emitted] = floor
            counters[EMITTED] = emitted + 1
            return PAUSED, floor
        counters[STEPS] += 1
        found = choose(ws, rt, cand, options[FEATURES_FIRST] != 0)
        prices = 0.0
        for t in range(rt.T):
            prices += bonus(ws, rt.at[SLOT, t])
        if found == 0 or cutoff - total < options[PRICES] * prices:
            counters[EMITTED] = emitted
            for t in range(rt.T):
                refresh(ws, rt.at[SLOT, t])
            settled = True
            continue
        i, same, flip, seen = pick(ws, rt, cand, found, total, cutoff, options, counters, run, set_up)
        floor = max(floor, seen)
        flips = same > flip
        both = same >= cutoff and flip >= cutoff
        if logged:
            what = ASIDE if max(same, flip) < cutoff else SHUT
            note_child(ws, rt, i, not flips, what, out_codes, out_floats, out_used, out_bound, log, emitted)
            emitted += 1
            if both:
                note_child(ws, rt, i, flips, SHUT_TOO, out_codes, out_floats, out_used, out_bound, log, emitted)
                emitted += 1
            counters[EMITTED] = emitted
        if both:
            counters[EMITTED] = emitted
            return EXHAUSTED, floor
        if max(same, flip) >= cutoff:
            counters[FIXED] += 1
        elif not logged:
            out_used[emitted] = emit(ws, rt, i, not flips, out_codes, out_floats, emitted)
            out_bound[emitted] = max(floor, flip, same)
            emitted += 1
            counters[EMITTED] = emitted
        go(ws, rt, i, flips)
        floor = max(floor, min(same, flip))


@bare_kernel()
def plunge(
    ws: Workspace,
    rt: Routing,
    codes: NDArray[np.uint8],
    floats: F8,
    floor: float,
    shared: F8,
    max_steps: int,
    options: I8,
    cand: I8,
    out_codes: NDArray[np.uint8],
    out_floats: F8,
    out_used: I8,
    out_bound: F8,
    counters: I8,
    log: I8,
) -> tuple[int, float]:
    """`dive` from a record, where node problems know no prices."""
    load_here(ws, rt, codes, floats)
    return dive(
        ws, rt, floor, shared, max_steps, options, cand, out_codes, out_floats, out_used, out_bound, counters,
        log, pivot.run, set_up_sample, choose_samples,
    )  # fmt: skip


@bare_kernel()
def plunge_priced(
    ws: Workspace,
    rt: Routing,
    codes: NDArray[np.uint8],
    floats: F8,
    floor: float,
    shared: F8,
    max_steps: int,
    options: I8,
    cand: I8,
    out_codes: NDArray[np.uint8],
    out_floats: F8,
    out_used: I8,
    out_bound: F8,
    counters: I8,
    log: I8,
) -> tuple[int, float]:
    """The same where they do."""
    load_here(ws, rt, codes, floats)
    return dive(
        ws, rt, floor, shared, max_steps, options, cand, out_codes, out_floats, out_used, out_bound, counters,
        log, priced.run, set_up_any, choose_both,
    )  # fmt: skip


def kernel_for(ws: Workspace) -> Any:
    """The entry point that serves this memory; only that is compiled."""
    return plunge_priced if ws.priced else plunge
