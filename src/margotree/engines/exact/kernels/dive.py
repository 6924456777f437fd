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

from margotree.engines.exact.kernels.child_nodes import (
    CLOSED_CHILD,
    CLOSED_SIBLING,
    LAST_CLOSED,
    LAST_OPEN,
    LAST_SETTLED,
    OPEN_CHILD,
    Rows,
    follow_candidate,
    write_child,
    write_row,
)
from margotree.engines.exact.kernels.probing import BEST, NO_LIMIT
from margotree.engines.exact.kernels.routing import ACCURACY, ESTIMATE, SLOT, SPARE, TIGHT, TOL, Routing
from margotree.engines.exact.kernels.side_costs import FLOOR
from margotree.engines.node.kernels.active_set import refresh
from margotree.engines.node.kernels.feature_penalties import bonus, places, value
from margotree.engines.node.kernels.ratio_test import INFEASIBLE
from margotree.engines.node.kernels.workspace import ALPHA, F8, I8, NUM, SCALARS, STOP, Workspace, numbers
from margotree.engines.numba_backend import inner

# How a dive ends.  Memory that leaves prices out settles where prices could make the difference.
EXHAUSTED, SETTLED, PAUSED = 0, 1, 2
# Entries of the counters.
STEPS, EMITTED, FIXED, SOLVES = 0, 1, 2, 3
# Entries of the options: candidates in a row that bring nothing, pivots of a flip, when prices come into node problems
# (see `Tactics.prices`), whether features are decided first, whether search nodes that are closed are written down too.
PATIENCE, FLIP_PIVOTS, PENALTY_THRESHOLD, FEATURES_FIRST, LOGGED = 0, 1, 2, 3, 4
# Ways to go.
AS_HEADED, OTHERWISE = numbers(2)
# Weight of the newest observation in a running mean.
LEARN = 0.25


def make_dive(run: Callable[..., int], set_up: Callable[..., tuple[int, int, int]], choose: Callable[..., int]) -> Any:
    """The dive that solves node problems with ``run``, after ``set_up``, for candidates that ``choose`` ranks.

    There is one with and one without prices, made of the same source, so that a model without prices compiles nothing
    of what prices need.
    """

    @inner(allocates=False)
    def solve_slot(ws: Workspace, s: int, cutoff: float, pivots: int, tol: float) -> float:
        """The tree node's part of the bound once it is solved to ``tol``, past the cut-off or out of pivots.

        An impossible routing is worth infinity.
        """
        offset = ws.g[s, NUM, ALPHA] * places(ws, s) if ws.priced else 0.0
        if run(ws, s, cutoff + offset, pivots, tol) == INFEASIBLE:
            return np.inf
        return value(ws, s)

    @inner(allocates=False)
    def relax(ws: Workspace, rt: Routing, cutoff: float, tol: float) -> float:
        """Solve all node problems of the search node; returns the bound (infinite if a routing is impossible)."""
        total = 0.0
        for t in range(rt.T):
            total += value(ws, rt.at[SLOT, t])
        for t in range(rt.T):
            if total >= cutoff:
                return total
            s = rt.at[SLOT, t]
            before = value(ws, s)
            after = solve_slot(ws, s, before + cutoff - total, NO_LIMIT, tol)
            if after == np.inf:
                return after
            total += after - before
        return total

    @inner(allocates=False)
    def probe(
        ws: Workspace,
        rt: Routing,
        i: int,
        way: int,
        total: float,
        cutoff: float,
        flip_pivots: int,
    ) -> tuple[float, bool]:
        """Bound after candidate ``i`` goes the way it is headed (way 0) or the other (way 1), and whether both node
        problems of that are set up: the first may do."""
        bound, whole = total, False
        for step in range(2):
            t, k, pivots = set_up(ws, rt, i, way == 1, step, flip_pivots)
            if t < 0:
                break
            s = rt.at[SPARE, k]
            base = value(ws, rt.at[SLOT, t])
            after = max(base, value(ws, s))
            if after < base + cutoff - bound:
                after = max(after, solve_slot(ws, s, base + cutoff - bound, pivots, TOL))
            bound = bound + after - base
            whole = step == 1
            if bound >= cutoff:
                break
        # Remember what share of the estimate came true.
        share = min(1.0, (bound - total) / max(rt.score[ESTIMATE + way, i], 1e-300))
        rt.score[ACCURACY + way, i] += LEARN * (max(share, 1e-3) - rt.score[ACCURACY + way, i])
        return bound, whole

    @inner(allocates=False)
    def pick_candidate(
        ws: Workspace,
        rt: Routing,
        cand: I8,
        found: int,
        total: float,
        cutoff: float,
        options: I8,
        counters: I8,
    ) -> tuple[int, float, float, float, bool, bool]:
        """Solve both sides of the candidates in turn until none has been better for a while.

        Returns the best candidate, the bounds on its two sides, the best bound on the node itself that was seen (a
        sample pays the lesser of its two sides, whatever it does), and whether all node problems of its two sides are
        set up: where one has closed a side, which ends the search, the other need not be.
        """
        patience, flip_pivots = options[PATIENCE], options[FLIP_PIVOTS]
        slack = cutoff - total
        tiny = FLOOR * slack
        best, best_score, best_same, best_flip, floor = -1, -1.0, 0.0, 0.0, total
        idle = 0
        whole_same = whole_flip = True
        for p in range(found):
            i = cand[p]
            same, flip, score, forced = total, total, -2.0, False
            for way in range(2):
                bound, whole = probe(ws, rt, i, way, total, cutoff, flip_pivots)
                counters[SOLVES] += 1
                if way == AS_HEADED:
                    same, whole_same = bound, whole
                    score = min(max(same - total, tiny), slack)
                    if score * slack <= best_score:
                        score = -2.0  # whatever the other way brings, this is not the best
                        break
                else:
                    flip, whole_flip = bound, whole
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
        return best, best_same, best_flip, floor, whole_same, whole_flip

    @inner(allocates=False)
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
    ) -> tuple[int, float]:
        """Dive from the search node at hand; returns how it ended and the bound of the node it ended at.

        ``shared`` is the cut-off and a flag that asks to stop, both read anew at every step; ``cand`` has room for as
        many candidates as may be tried.  Children put aside are in the ``out`` arrays, a PAUSED node is the last of
        them.  A logged dive writes all search nodes that it closes there, too, ``log`` says what each row is, and no
        bound counts but that of a search node's own multipliers.
        """
        rows = Rows(out_codes, out_floats, out_used, out_bound, log)
        emitted = np.int64(0)
        settled = False
        logged = options[LOGGED] != 0
        last = out_bound.size - (3 if logged else 1)
        while True:
            cutoff = shared[0]
            # Gains add up on the sum of the node values; the floor, a bound by other means, only closes nodes.
            total = relax(ws, rt, cutoff, TIGHT if settled else TOL)
            floor = total if logged else max(floor, total)
            if settled or floor >= cutoff:
                if logged:
                    what = LAST_SETTLED if settled else LAST_CLOSED
                    write_row(ws, rt, what, -1, rows, emitted)
                    counters[EMITTED] = emitted + 1
                return SETTLED if settled else EXHAUSTED, floor
            asked_to_stop = shared[1] != 0.0 or ws.work[SCALARS, STOP] != 0.0
            if counters[STEPS] >= max_steps or emitted >= last or asked_to_stop:
                write_row(ws, rt, LAST_OPEN, -1, rows, emitted)
                if not logged:
                    out_bound[emitted] = floor
                counters[EMITTED] = emitted + 1
                return PAUSED, floor
            counters[STEPS] += 1
            found = choose(ws, rt, cand, options[FEATURES_FIRST] != 0)
            missing = 0.0
            for t in range(rt.T):
                missing += bonus(ws, rt.at[SLOT, t])
            if found == 0 or cutoff - total < options[PENALTY_THRESHOLD] * missing:
                counters[EMITTED] = emitted
                for t in range(rt.T):
                    refresh(ws, rt.at[SLOT, t])
                settled = True
                continue
            i, same, flip, seen, whole_same, whole_flip = pick_candidate(
                ws, rt, cand, found, total, cutoff, options, counters
            )
            floor = max(floor, seen)
            flips = same > flip
            both = same >= cutoff and flip >= cutoff
            whole, whole_too = (whole_same, whole_flip) if flips else (whole_flip, whole_same)
            if logged:
                what = OPEN_CHILD if max(same, flip) < cutoff else CLOSED_CHILD
                write_child(ws, rt, i, not flips, what, rows, emitted, whole)
                emitted += 1
                if both:
                    write_child(ws, rt, i, flips, CLOSED_SIBLING, rows, emitted, whole_too)
                    emitted += 1
                counters[EMITTED] = emitted
            if both:
                counters[EMITTED] = emitted
                return EXHAUSTED, floor
            if max(same, flip) >= cutoff:
                counters[FIXED] += 1
            elif not logged:
                write_child(ws, rt, i, not flips, OPEN_CHILD, rows, emitted, True)
                out_bound[emitted] = max(floor, flip, same)
                emitted += 1
                counters[EMITTED] = emitted
            follow_candidate(ws, rt, i, flips)
            floor = max(floor, min(same, flip))

    return dive
