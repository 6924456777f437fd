"""One dive of the search: branch, follow the more promising child, put the other aside, until nothing is left.

A search node is a partial routing and, if they have prices, what is decided about features.  Its bound is the sum of
the node problems' dual values.  It is *settled* when every waiting sample would travel to the bottom at no further
cost and no feature is used in part: then the hyperplanes at hand are a tree of exactly that value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.bnb.kernels.pool import Pool, at, node, swap_in
from margotree.engines.bnb.kernels.probe import (
    NOMINAL,
    bonus,
    flip_estimate,
    headed,
    in_band,
    must_first,
    path_cost,
    pivot_to,
    share,
    shortest_free,
    total_value,
    try_feature,
    try_member,
    try_side,
    undecided,
    value,
)
from margotree.engines.bnb.kernels.record import load, save
from margotree.engines.kernels.jit import inner, kernel
from margotree.engines.kernels.pivot import harden
from margotree.engines.kernels.riser import INFEASIBLE
from margotree.engines.kernels.state import ALPHA, F8, KINK, add_item, copy_state

# How a dive ends.  A pool that leaves prices out settles where prices could make the difference.
EXHAUSTED, SETTLED, PAUSED, TROUBLE = 0, 1, 2, 3
# Spares: candidate's (child it is headed for, its node flipped, the other child), the best candidate's, and one more.
# NumPy integers: plain ones would be compiled in, one version of every function a value.
SAME, FLIP, OTHER, BEST, HAND = (np.int64(k) for k in (0, 1, 2, 3, 6))
# Entries of the counters.
STEPS, EMITTED, FIXED, SOLVES = 0, 1, 2, 3
# A gain of nothing still ranks by the other side's gain.
FLOOR = 1e-6
# Pivots that are as good as no limit.
MANY = np.int64(100000)
# Weight of the newest observation in a running mean.
LEARN = 0.25


@inner()
def relax(pool: Pool, cutoff: float) -> float:
    """Solve all node problems of the current search node; returns the bound (infinite if a routing is impossible)."""
    total = total_value(pool)
    for t in range(pool.slot.size):
        if total >= cutoff:
            return total
        state = node(pool, t)
        before = value(state)
        if pivot_to(state, before + cutoff - total, MANY, pool.work) == INFEASIBLE:
            return np.inf
        total += value(state) - before
    return total


@inner()
def choose(pool: Pool, cand: NDArray[np.int64]) -> int:
    """Rank the candidates by estimated damage on both sides; fills ``cand`` and returns how many were found."""
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
        if same == 0.0:
            continue
        flip = flip_estimate(pool, t, i) + FLOOR * pool.cost[t, i]
        pool.guess[0, i] = same
        pool.guess[1, i] = flip
        pool.score[i] = same * pool.worth[0, i] * flip * pool.worth[1, i]
        found = rank(pool, i, cand, found)
    if pool.r.shape[1]:
        found = choose_features(pool, cand, found)
    return found


@inner()
def choose_features(pool: Pool, cand: NDArray[np.int64], found: int) -> int:
    """Rank the features that are used in part along with the samples in ``cand``."""
    m, n = pool.X.shape
    for t in range(pool.slot.size):
        state = node(pool, t)
        shortest = shortest_free(state)
        for j in range(n):
            if undecided(state, j, shortest):
                i = m + n * t + j
                z = share(state, j) if state.use[j] == KINK else 0.5 * state.u[j] * state.u[j] / state.price[ALPHA]
                pool.guess[0, i] = state.price[ALPHA] * max(min(z, 1.0 - z), FLOOR)
                pool.guess[1, i] = state.price[ALPHA] * max(z, 1.0 - z)
                pool.score[i] = pool.guess[0, i] * pool.worth[0, i] * pool.guess[1, i] * pool.worth[1, i]
                found = rank(pool, i, cand, found)
    return found


@inner()
def rank(pool: Pool, i: int, cand: NDArray[np.int64], found: int) -> int:
    """Put candidate ``i`` where its score belongs, best first, if there is room for it; returns how many there are."""
    p = min(found, cand.size)
    if p == cand.size and pool.score[cand[p - 1]] >= pool.score[i]:
        return found
    if p == cand.size:
        p -= 1
    else:
        found += 1
    while p > 0 and pool.score[cand[p - 1]] < pool.score[i]:
        cand[p] = cand[p - 1]
        p -= 1
    cand[p] = i
    return found


@inner()
def send(pool: Pool, i: int) -> None:
    """Place sample ``i`` where its node's hyperplane sends it; the child is not solved again here."""
    t = pool.place[i]
    child = headed(pool, t, i)
    side = 1.0 if child == 2 * t + 2 else -1.0
    harden(node(pool, t), i, side, 0.0 if side > 0 else pool.eps)
    add_item(node(pool, child), i, pool.y[i])
    pool.place[i] = child


@inner()
def feature_of(pool: Pool, i: int) -> tuple[int, int]:
    """Tree node and feature of a candidate that is not a sample."""
    k = i - pool.y.size
    n = pool.X.shape[1]
    return k // n, k % n


@inner()
def probe_same(pool: Pool, i: int, total: float, cutoff: float, flip_pivots: int) -> float:
    """Bound after sending sample ``i`` where it is headed; of a feature, after deciding it the way it is headed."""
    if i >= pool.y.size:
        t, j = feature_of(pool, i)
        base = value(node(pool, t))
        must = must_first(node(pool, t), j)
        return total + try_feature(pool, t, j, must, SAME, base + cutoff - total, MANY) - base
    t = pool.place[i]
    child = headed(pool, t, i)
    base = value(node(pool, child))
    same = total + try_member(pool, child, i, SAME, base + cutoff - total, MANY) - base
    if same < cutoff and in_band(pool.h[pool.slot[t], i], pool.eps):
        side = 1.0 if child == 2 * t + 2 else -1.0
        base = value(node(pool, t))
        same += try_side(pool, t, i, side, HAND, base + cutoff - same, flip_pivots) - base
    return same


@inner()
def probe_flip(pool: Pool, i: int, total: float, cutoff: float, flip_pivots: int) -> float:
    """Bound after sending sample ``i``, or deciding a feature, the other way."""
    if i >= pool.y.size:
        t, j = feature_of(pool, i)
        base = value(node(pool, t))
        must = not must_first(node(pool, t), j)
        return total + try_feature(pool, t, j, must, FLIP, base + cutoff - total, MANY) - base
    t = pool.place[i]
    child = headed(pool, t, i)
    side = -1.0 if child == 2 * t + 2 else 1.0
    other = 4 * t + 3 - child
    base = value(node(pool, other))
    flip = total + try_member(pool, other, i, OTHER, base + cutoff - total, MANY) - base
    if flip < cutoff:
        base = value(node(pool, t))
        flip += try_side(pool, t, i, side, FLIP, base + cutoff - flip, flip_pivots) - base
    return flip


@inner()
def learn(pool: Pool, way: int, i: int, gain: float) -> None:
    """Remember what share of an estimate came true."""
    share = min(1.0, gain / max(pool.guess[way, i], 1e-300))
    pool.worth[way, i] += LEARN * (max(share, 1e-3) - pool.worth[way, i])


@inner()
def pick(
    pool: Pool,
    cand: NDArray[np.int64],
    found: int,
    total: float,
    cutoff: float,
    options: NDArray[np.int64],
    counters: NDArray[np.int64],
) -> tuple[int, float, float, float]:
    """Solve both sides of the candidates in turn until none has been better for a while.

    Returns the best candidate, the bounds on its two sides, and the best bound on the node itself that was seen:
    whatever a sample does, it pays the lesser of its two sides.  A candidate with a closed side ends the search.
    """
    patience, flip_pivots = options[1], options[2]
    slack = cutoff - total
    tiny = FLOOR * slack
    best, best_score, best_same, best_flip, floor = -1, -1.0, 0.0, 0.0, total
    idle = 0
    for p in range(found):
        i = cand[p]
        same = probe_same(pool, i, total, cutoff, flip_pivots)
        learn(pool, 0, i, same - total)
        counters[SOLVES] += 1
        gain = min(max(same - total, tiny), slack)
        if gain * slack <= best_score:
            idle += 1
            if idle >= patience:
                break
            continue
        flip = probe_flip(pool, i, total, cutoff, flip_pivots)
        learn(pool, 1, i, flip - total)
        counters[SOLVES] += 1
        floor = max(floor, min(same, flip))
        score = gain * min(max(flip - total, tiny), slack)
        forced = same >= cutoff or flip >= cutoff
        idle += 1
        if forced or score > best_score:
            keep_best(pool)
            best, best_score, best_same, best_flip = i, score, same, flip
            idle = 0
        if forced or idle >= patience:
            break
    return best, best_same, best_flip, floor


@inner()
def keep_best(pool: Pool) -> None:
    """Put the tried candidate's three states aside as the best so far."""
    for k in range(3):
        s = pool.spare[k]
        pool.spare[k] = pool.spare[BEST + k]
        pool.spare[BEST + k] = s


@inner()
def go_same(pool: Pool, i: int) -> None:
    """Send ``i`` where it is headed, with the child's state from the best candidate's spare."""
    if i >= pool.y.size:
        swap_in(pool, feature_of(pool, i)[0], BEST + SAME)
        return
    t = pool.place[i]
    child = headed(pool, t, i)
    side = 1.0 if child == 2 * t + 2 else -1.0
    harden(node(pool, t), i, side, 0.0 if side > 0 else pool.eps)
    swap_in(pool, child, BEST + SAME)
    pool.place[i] = child


@inner()
def go_flip(pool: Pool, i: int) -> None:
    """Send ``i`` the other way, with both states from the best candidate's spares."""
    if i >= pool.y.size:
        swap_in(pool, feature_of(pool, i)[0], BEST + FLIP)
        return
    t = pool.place[i]
    child = 4 * t + 3 - headed(pool, t, i)
    swap_in(pool, t, BEST + FLIP)
    swap_in(pool, child, BEST + OTHER)
    pool.place[i] = child


@inner()
def emit(pool: Pool, i: int, same: bool, codes: NDArray[np.uint8], floats: F8) -> int:
    """Write the child of the current node that is not followed, and restore the pool."""
    if i >= pool.y.size:
        t = feature_of(pool, i)[0]
        k = BEST + (SAME if same else FLIP)
        swap_in(pool, t, k)
        used = save(pool, codes, floats)
        swap_in(pool, t, k)
        return used
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


@inner()
def total_bonus(pool: Pool) -> float:
    """What prices add to the bound where they are left out of the node problems."""
    total = 0.0
    for t in range(pool.slot.size):
        total += bonus(node(pool, t))
    return total


@kernel()
def route(pool: Pool, out: NDArray[np.int64]) -> None:
    """The last-level node that each sample reaches if it goes on where it is headed."""
    T = pool.slot.size
    for i in range(pool.y.size):
        t = pool.place[i]
        while 2 * t + 1 < T:
            t = headed(pool, t, i)
        out[i] = t


@kernel()
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
    cand = np.empty(options[0], np.int64)
    load(pool, codes, floats)
    emitted = 0
    while True:
        cutoff = shared[0]
        # Gains add up on the sum of the node values; the floor, a bound by other means, only closes nodes.
        total = relax(pool, cutoff)
        floor = max(floor, total)
        if floor >= cutoff:
            return EXHAUSTED, floor
        asked_to_stop = shared[1] != 0.0 or pool.work[1, 1] != 0.0
        if counters[STEPS] >= max_steps or emitted >= out_bound.size - 1 or asked_to_stop:
            out_used[emitted] = save(pool, out_codes[emitted], out_floats[emitted])
            out_bound[emitted] = floor
            counters[EMITTED] = emitted + 1
            return PAUSED, floor
        counters[STEPS] += 1
        found = choose(pool, cand)
        if found == 0 or cutoff - total < options[3] * total_bonus(pool):
            counters[EMITTED] = emitted
            return SETTLED, max(floor, total)
        i, same, flip, seen = pick(pool, cand, found, total, cutoff, options, counters)
        floor = max(floor, seen)
        if same >= cutoff and flip >= cutoff:
            counters[EMITTED] = emitted
            return EXHAUSTED, floor
        follow_same = same <= flip
        if max(same, flip) >= cutoff:
            counters[FIXED] += 1
        else:
            out_used[emitted] = emit(pool, i, not follow_same, out_codes[emitted], out_floats[emitted])
            out_bound[emitted] = max(floor, flip, same)
            emitted += 1
            counters[EMITTED] = emitted
        if follow_same:
            go_same(pool, i)
        else:
            go_flip(pool, i)
        floor = max(floor, min(same, flip))
