"""A dive of the search: branch, follow the child with the lower bound, write a record of the other, until the search
node is closed, settled or interrupted.

A search node is a partial routing and, with feature penalties, decisions about features; where a task has choices, also
decisions about sides of classes and labels of leaves. Its bound is the sum of the node problems' dual values. It is
*settled* when every undecided sample would reach the last level without further cost, no feature is used in part, and
no choice is open at a node that samples of the class are known to reach: then the current hyperplanes are a tree whose
objective is the bound.
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
from margotree.engines.node.kernels.feature_penalties import node_bound, penalty_bound, unpenalised_features
from margotree.engines.node.kernels.ratio_test import INFEASIBLE
from margotree.engines.node.kernels.workspace import (
    ALPHA,
    CONSTANT,
    F8,
    I8,
    NUM,
    SCALARS,
    STOP,
    Workspace,
    index_constants,
)
from margotree.engines.numba_backend import inner

# How a dive ends. A dive without feature penalties is settled where they could change whether a node is closed.
EXHAUSTED, SETTLED, PAUSED = 0, 1, 2
# Entries of ``counters``: steps, rows written, sides closed by probes, sides probed.
STEPS, EMITTED, FIXED, SOLVES = 0, 1, 2, 3
# Entries of ``options``: candidates in a row without improvement, pivots of a flip, the threshold for feature penalties
# (see `Tactics.penalty_threshold`), whether features are decided first, whether rows are written for a proof.
PATIENCE, FLIP_PIVOTS, PENALTY_THRESHOLD, FEATURES_FIRST, WITH_PROOF = 0, 1, 2, 3, 4
# Sides of a candidate.
AS_HEADED, OTHERWISE = index_constants(2)
# Weight of the newest observation in a running mean.
LEARN = 0.25


def make_dive(run: Callable[..., int], set_up: Callable[..., tuple[int, int, int]], choose: Callable[..., int]) -> Any:
    """Make the dive that solves node problems with ``run``, after ``set_up``, for candidates ranked by ``choose``.

    There is one dive with feature penalties and one without, from the same source, so that a model without feature
    penalties does not compile what only they need.
    """

    @inner(allocates=False)
    def solve_slot(ws: Workspace, s: int, cutoff: float, pivots: int, tol: float) -> float:
        """The value of slot ``s`` after it is solved to ``tol``, or beyond the cutoff, or with at most ``pivots``
        pivots.

        It is infinite if the routing is impossible.
        """
        offset = -ws.g[s, NUM, CONSTANT]
        if ws.with_penalties:
            offset += ws.g[s, NUM, ALPHA] * unpenalised_features(ws, s)
        if run(ws, s, cutoff + offset, pivots, tol) == INFEASIBLE:
            return np.inf
        return node_bound(ws, s)

    @inner(allocates=False)
    def relax(ws: Workspace, rt: Routing, cutoff: float, tol: float) -> float:
        """Solve all node problems of the search node; return its bound (infinite if the routing is impossible)."""
        total = 0.0
        for t in range(rt.T):
            total += node_bound(ws, rt.at[SLOT, t])
        for t in range(rt.T):
            if total >= cutoff:
                return total
            s = rt.at[SLOT, t]
            before = node_bound(ws, s)
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
        """Solve one side of candidate ``i``: where it is headed (``way`` 0) or the other side (``way`` 1).

        Returns the bound, and whether both node problems of that side are set up: the first may suffice to close it.
        """
        bound, whole = total, False
        for step in range(2):
            t, k, pivots = set_up(ws, rt, i, way == 1, step, flip_pivots)
            if t < 0:
                break
            s = rt.at[SPARE, k]
            base = node_bound(ws, rt.at[SLOT, t])
            after = max(base, node_bound(ws, s))
            if after < base + cutoff - bound:
                after = max(after, solve_slot(ws, s, base + cutoff - bound, pivots, TOL))
            bound = bound + after - base
            whole = step == 1
            if bound >= cutoff:
                break
        # Update the mean of the true rise divided by its estimate.
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
        """Probe both sides of the candidates, one after the other, until several in a row give no improvement.

        Returns the best candidate, the bounds of its two sides, the best bound of the search node itself (for every
        candidate the smaller bound of its two sides holds), and for both sides whether all their node problems are set
        up: where one of them closes a side, which ends the probing, the other is not needed.
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
                        score = -2.0  # the other side cannot make this candidate the best
                        break
                else:
                    flip, whole_flip = bound, whole
                    floor = max(floor, min(same, flip))
                    score *= min(max(flip - total, tiny), slack)
                    forced = same >= cutoff or flip >= cutoff
            idle += 1
            if forced or score > best_score:
                for k in range(3):  # keep the best candidate's three slots
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
        """Dive from the current search node; return how the dive ended and the bound of its last search node.

        Parameters
        ----------
        floor
            A bound of the search node known by other means.
        shared
            The cutoff and a flag that stops the dive, both read at every step.
        options
            See `PATIENCE` and the names after it.
        cand
            Scratch; its size is the number of candidates that may be probed.
        out_codes, out_floats, out_used, out_bound, log
            Fields of :class:`Rows`: children that are not followed, and at the end a search node that is not finished.
        counters
            See `STEPS` and the names after it; filled in.

        Where a proof is written, the rows contain all closed search nodes as well, and only bounds of a search node's
        own multipliers count.
        """
        rows = Rows(out_codes, out_floats, out_used, out_bound, log)
        emitted = np.int64(0)
        settled = False
        with_proof = options[WITH_PROOF] != 0
        last = out_bound.size - (3 if with_proof else 1)
        while True:
            cutoff = shared[0]
            # Gains are added to the sum of the node values; the floor, a bound by other means, only closes nodes.
            total = relax(ws, rt, cutoff, TIGHT if settled else TOL)
            floor = total if with_proof else max(floor, total)
            if settled or floor >= cutoff:
                if with_proof:
                    what = LAST_SETTLED if settled else LAST_CLOSED
                    write_row(ws, rt, what, -1, rows, emitted)
                    counters[EMITTED] = emitted + 1
                return SETTLED if settled else EXHAUSTED, floor
            must_stop = shared[1] != 0.0 or ws.work[SCALARS, STOP] != 0.0
            if counters[STEPS] >= max_steps or emitted >= last or must_stop:
                write_row(ws, rt, LAST_OPEN, -1, rows, emitted)
                if not with_proof:
                    out_bound[emitted] = floor
                counters[EMITTED] = emitted + 1
                return PAUSED, floor
            counters[STEPS] += 1
            found = choose(ws, rt, cand, options[FEATURES_FIRST] != 0)
            missing = 0.0
            for t in range(rt.T):
                missing += penalty_bound(ws, rt.at[SLOT, t])
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
            if with_proof:
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
            elif not with_proof:
                write_child(ws, rt, i, not flips, OPEN_CHILD, rows, emitted, True)
                out_bound[emitted] = max(floor, flip, same)
                emitted += 1
                counters[EMITTED] = emitted
            follow_candidate(ws, rt, i, flips)
            floor = max(floor, min(same, flip))

    return dive
