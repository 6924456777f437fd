"""One dive of the search: branch, follow the more promising child, put the other aside, until nothing is left.

A search node is a partial routing.  Its bound is the sum of the node problems' dual values.  It is *settled* when
every waiting sample would travel to the bottom at no further cost: then the hyperplanes at hand are a tree of exactly
that value.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from margotree.engines.bnb.kernels.pool import Pool, at, node, swap_in
from margotree.engines.bnb.kernels.probe import (
    NOMINAL,
    TOL,
    flip_estimate,
    headed,
    in_band,
    path_cost,
    total_value,
    try_member,
    try_side,
)
from margotree.engines.bnb.kernels.record import load, save
from margotree.engines.kernels.pivot import INFEASIBLE, harden, run
from margotree.engines.kernels.state import F8, VALUE, add_item, copy_state

# How a dive ends.
EXHAUSTED, SETTLED, PAUSED, TROUBLE = 0, 1, 2, 3
# Spares: candidate's (child it is headed for, its node flipped, the other child), the best candidate's, and one more.
SAME, FLIP, OTHER, BEST, HAND = 0, 1, 2, 3, 6
# Entries of the counters.
STEPS, EMITTED, FIXED, SOLVES = 0, 1, 2, 3
# A gain of nothing still ranks by the other side's gain.
FLOOR = 1e-6


@njit(cache=True, nogil=True)
def relax(pool: Pool, cutoff: float) -> float:
    """Solve all node problems of the current search node; returns the bound (infinite if a routing is impossible)."""
    total = total_value(pool)
    for t in range(pool.slot.size):
        if total >= cutoff:
            return total
        state = node(pool, t)
        before = state.num[VALUE]
        if run(state, before + cutoff - total, 100000, TOL, pool.work) == INFEASIBLE:
            return np.inf
        total += state.num[VALUE] - before
    return total


@njit(cache=True, nogil=True)
def choose(pool: Pool, cand: NDArray[np.int64]) -> int:
    """Rank the waiting samples by estimated damage on both sides; fills ``cand`` and returns how many were found."""
    last = pool.slot.size // 2
    found = 0
    for i in range(pool.y.size):
        t = pool.place[i]
        pool.score[i] = -1.0
        if t >= last:
            continue
        same = path_cost(pool, headed(pool, t, i), i)
        if in_band(pool.h[pool.slot[t], i], pool.eps):
            same += NOMINAL * pool.cost[t, i]
        if same <= TOL * pool.cost[t, i]:
            continue
        pool.score[i] = same * (FLOOR * pool.cost[t, i] + flip_estimate(pool, t, i))
        # Keep the list sorted, best first.
        p = min(found, cand.size)
        if p == cand.size and pool.score[cand[p - 1]] >= pool.score[i]:
            continue
        if p == cand.size:
            p -= 1
        else:
            found += 1
        while p > 0 and pool.score[cand[p - 1]] < pool.score[i]:
            cand[p] = cand[p - 1]
            p -= 1
        cand[p] = i
    return found


@njit(cache=True, nogil=True)
def send(pool: Pool, i: int) -> None:
    """Place sample ``i`` where its node's hyperplane sends it; the child is not solved again here."""
    t = pool.place[i]
    child = headed(pool, t, i)
    side = 1.0 if child == 2 * t + 2 else -1.0
    harden(node(pool, t), i, side, 0.0 if side > 0 else pool.eps)
    add_item(node(pool, child), i, pool.y[i])
    pool.place[i] = child


@njit(cache=True, nogil=True)
def probe(pool: Pool, i: int, total: float, cutoff: float, flip_pivots: int) -> tuple[float, float]:
    """Bounds after sending sample ``i`` where it is headed, and after sending it the other way."""
    t = pool.place[i]
    child = headed(pool, t, i)
    side = 1.0 if child == 2 * t + 2 else -1.0
    slack = cutoff - total
    base = node(pool, child).num[VALUE]
    same = total + try_member(pool, child, i, SAME, base + slack, 1000) - base
    if in_band(pool.h[pool.slot[t], i], pool.eps):
        base = node(pool, t).num[VALUE]
        same += try_side(pool, t, i, side, HAND, base + cutoff - same, flip_pivots) - base
    other = 4 * t + 3 - child
    base = node(pool, other).num[VALUE]
    gain = try_member(pool, other, i, OTHER, base + slack, 1000) - base
    base = node(pool, t).num[VALUE]
    flip = total + gain
    if flip < cutoff:
        flip += try_side(pool, t, i, -side, FLIP, base + cutoff - flip, flip_pivots) - base
    return same, flip


@njit(cache=True, nogil=True)
def keep_best(pool: Pool) -> None:
    """Put the tried candidate's three states aside as the best so far."""
    for k in range(3):
        s = pool.spare[k]
        pool.spare[k] = pool.spare[BEST + k]
        pool.spare[BEST + k] = s


@njit(cache=True, nogil=True)
def go_same(pool: Pool, i: int) -> None:
    """Send ``i`` where it is headed, with the child's state from the best candidate's spare."""
    t = pool.place[i]
    child = headed(pool, t, i)
    side = 1.0 if child == 2 * t + 2 else -1.0
    harden(node(pool, t), i, side, 0.0 if side > 0 else pool.eps)
    swap_in(pool, child, BEST + SAME)
    pool.place[i] = child


@njit(cache=True, nogil=True)
def go_flip(pool: Pool, i: int) -> None:
    """Send ``i`` the other way, with both states from the best candidate's spares."""
    t = pool.place[i]
    child = 4 * t + 3 - headed(pool, t, i)
    swap_in(pool, t, BEST + FLIP)
    swap_in(pool, child, BEST + OTHER)
    pool.place[i] = child


@njit(cache=True, nogil=True)
def emit(pool: Pool, i: int, same: bool, codes: NDArray[np.uint8], floats: F8) -> int:
    """Write the child of the current node that is not followed, and restore the pool."""
    t = pool.place[i]
    child = headed(pool, t, i)
    if same:
        # `harden` works in place, so the node is copied before.
        hand = at(pool, pool.spare[HAND], t)
        copy_state(node(pool, t), hand)
        swap_in(pool, t, HAND)
        go_same(pool, i)
        used = save(pool, codes, floats)
        swap_in(pool, child, BEST + SAME)
        swap_in(pool, t, HAND)
    else:
        other = 4 * t + 3 - child
        go_flip(pool, i)
        used = save(pool, codes, floats)
        swap_in(pool, other, BEST + OTHER)
        swap_in(pool, t, BEST + FLIP)
    pool.place[i] = t
    return used


@njit(cache=True, nogil=True)
def route(pool: Pool, out: NDArray[np.int64]) -> None:
    """The last-level node that each sample reaches if it goes on where it is headed."""
    T = pool.slot.size
    for i in range(pool.y.size):
        t = pool.place[i]
        while 2 * t + 1 < T:
            t = headed(pool, t, i)
        out[i] = t


@njit(cache=True, nogil=True)
def plunge(
    pool: Pool,
    codes: NDArray[np.uint8],
    floats: F8,
    floor: float,
    shared: F8,
    max_steps: int,
    options: NDArray[np.int64],
    out_codes: NDArray[np.uint8],
    out_floats: F8,
    out_used: NDArray[np.int64],
    out_bound: F8,
    counters: NDArray[np.int64],
) -> tuple[int, float]:
    """Dive from a record.  ``shared`` is the cut-off and a flag that asks to stop,
    both read anew at every step.  Returns how it ended and the bound
    of the node it ended at; children put aside are in the ``out`` arrays, a PAUSED node is the last of them."""
    n_cand, flip_pivots = options[0], options[1]
    cand = np.empty(n_cand, np.int64)
    load(pool, codes, floats)
    total = max(floor, relax(pool, shared[0]))
    emitted = 0
    while True:
        cutoff = shared[0]
        if total >= cutoff:
            return EXHAUSTED, total
        if counters[STEPS] >= max_steps or emitted >= out_bound.size - 1 or shared[1] != 0.0:
            out_used[emitted] = save(pool, out_codes[emitted], out_floats[emitted])
            out_bound[emitted] = total
            counters[EMITTED] = emitted + 1
            return PAUSED, total
        counters[STEPS] += 1
        found = choose(pool, cand)
        if found == 0:
            counters[EMITTED] = emitted
            return SETTLED, total
        best, best_score, best_same, best_flip = -1, -1.0, 0.0, 0.0
        forced = False
        for p in range(found):
            i = cand[p]
            same, flip = probe(pool, i, total, cutoff, flip_pivots)
            counters[SOLVES] += 1
            forced = same >= cutoff or flip >= cutoff
            score = max(same - total, FLOOR * cutoff) * max(flip - total, FLOOR * cutoff)
            if forced or score > best_score:
                keep_best(pool)
                best, best_score, best_same, best_flip = i, score, same, flip
            if forced:
                break
        i = best
        in_the_band = in_band(pool.h[pool.slot[pool.place[i]], i], pool.eps)
        if forced:
            counters[FIXED] += 1
            if best_same >= cutoff and best_flip >= cutoff:
                counters[EMITTED] = emitted
                return EXHAUSTED, min(best_same, best_flip)
            if best_same >= cutoff:
                go_flip(pool, i)
                total = max(total, best_flip)
            else:
                go_same(pool, i)
                total = max(total, best_same)
        else:
            follow_same = best_same <= best_flip
            out_used[emitted] = emit(pool, i, not follow_same, out_codes[emitted], out_floats[emitted])
            out_bound[emitted] = max(total, best_flip if follow_same else best_same)
            emitted += 1
            counters[EMITTED] = emitted
            if follow_same:
                go_same(pool, i)
                total = max(total, best_same)
            else:
                go_flip(pool, i)
                total = max(total, best_flip)
        # The followed child may have unfinished pivots.
        total = max(total, relax(pool, cutoff))
        if in_the_band and total < cutoff:
            total = max(total, relax(pool, cutoff))
