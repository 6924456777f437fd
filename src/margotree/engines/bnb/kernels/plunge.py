"""One dive of the search: branch, follow the more promising child, put the other aside, until nothing is left.

A search node is a partial routing and, if they have prices, what is decided about features.  Its bound is the sum of
the node problems' dual values.  It is *settled* when every waiting sample would travel to the bottom at no further
cost and no feature is used in part: then the hyperplanes at hand are a tree of exactly that value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.bnb.kernels.decisions import damage, decided_gain, feature_of, shortest_free, undecided
from margotree.engines.bnb.kernels.estimate import FLOOR, estimate
from margotree.engines.bnb.kernels.pool import Pool, at, node, swap_in
from margotree.engines.bnb.kernels.probe import (
    TIGHT,
    TOL,
    bonus,
    headed,
    in_band,
    pivot_to,
    total_value,
    try_member,
    try_side,
    value,
)
from margotree.engines.bnb.kernels.record import load, save
from margotree.engines.kernels.jit import bare, bare_kernel
from margotree.engines.kernels.margins import catch_up
from margotree.engines.kernels.pivot import harden, refresh
from margotree.engines.kernels.riser import INFEASIBLE
from margotree.engines.kernels.state import F8, copy_state

# How a dive ends.  A pool that leaves prices out settles where prices could make the difference.
EXHAUSTED, SETTLED, PAUSED, TROUBLE = 0, 1, 2, 3
# Spares: candidate's (child it is headed for, its node flipped, the other child), the best candidate's, and one more.
# NumPy integers: plain ones would be compiled in, one version of every function a value.
SAME, FLIP, OTHER, BEST, HAND = (np.int64(k) for k in (0, 1, 2, 3, 6))
# Entries of the counters.
STEPS, EMITTED, FIXED, SOLVES = 0, 1, 2, 3
# Pivots that are as good as no limit.
MANY = np.int64(100000)
# Weight of the newest observation in a running mean.
LEARN = 0.25


@bare()
def relax(pool: Pool, cutoff: float, tol: float) -> float:
    """Solve all node problems of the current search node; returns the bound (infinite if a routing is impossible)."""
    total = total_value(pool)
    for t in range(pool.slot.size):
        if total >= cutoff:
            return total
        state = node(pool, t)
        before = value(state)
        if pivot_to(state, before + cutoff - total, MANY, tol, pool.work) == INFEASIBLE:
            return np.inf
        total += value(state) - before
    return total


@bare()
def tightened(pool: Pool, total: float, cutoff: float) -> float:
    """The bound with all node problems solved to more digits."""
    for t in range(pool.slot.size):
        refresh(node(pool, t), pool.work)
    return max(total, relax(pool, cutoff, TIGHT))


@bare()
def choose(pool: Pool, cand: NDArray[np.int64], features_first: bool) -> int:
    """Rank the candidates by estimated damage on both sides; fills ``cand`` and returns how many were found.

    Features and samples have their turn together, or upper nodes' features, samples, and the last level's features.
    """
    T, last = pool.slot.size, pool.slot.size // 2
    priced = pool.r.shape[1] > 0
    if not features_first:
        found = choose_samples(pool, cand)
        return choose_features(pool, cand, found, 0, T) if priced else found
    found = choose_features(pool, cand, 0, 0, last)
    if found == 0:
        found = choose_samples(pool, cand)
    return found if found else choose_features(pool, cand, 0, last, T)


@bare()
def choose_samples(pool: Pool, cand: NDArray[np.int64]) -> int:
    """Rank the waiting samples that would pay below their nodes."""
    look(pool)
    estimate(pool)
    found = 0
    for i in range(pool.y.size):
        if pool.score[i] >= 0.0:
            found = rank(pool.score, i, cand, found)
    return found


@bare()
def choose_features(pool: Pool, cand: NDArray[np.int64], found: int, begin: int, end: int) -> int:
    """Rank the features that these nodes use in part along with the ``found`` candidates there are."""
    m, n = pool.X.shape
    for t in range(begin, end):
        state = node(pool, t)
        use, u, w, r = state.use, state.u, state.w, state.r
        shortest = shortest_free(state)
        for j in range(n):
            if undecided(use[j], u[j], w[j], r[j], shortest):
                i = m + n * t + j
                pool.guess[0, i], pool.guess[1, i] = damage(state, j)
                pool.score[i] = pool.guess[0, i] * pool.worth[0, i] * pool.guess[1, i] * pool.worth[1, i]
                found = rank(pool.score, i, cand, found)
    return found


@bare()
def rank(score: F8, i: int, cand: NDArray[np.int64], found: int) -> int:
    """Put candidate ``i`` where its score belongs, best first, if there is room for it; returns how many there are."""
    p = min(found, cand.size)
    if p == cand.size and score[cand[p - 1]] >= score[i]:
        return found
    if p == cand.size:
        p -= 1
    else:
        found += 1
    while p > 0 and score[cand[p - 1]] < score[i]:
        cand[p] = cand[p - 1]
        p -= 1
    cand[p] = i
    return found


@bare()
def joined(pool: Pool, t: int, i: int, k: int, bound: float, cutoff: float) -> float:
    """The bound with sample ``i`` a member of tree node ``t``, which is left in the k-th spare."""
    base = value(node(pool, t))
    return bound + try_member(pool, t, i, k, base + cutoff - bound, MANY) - base


@bare()
def turned(pool: Pool, t: int, i: int, side: float, k: int, bound: float, cutoff: float, pivots: int) -> float:
    """The bound with sample ``i`` sent to one side of tree node ``t``, which is left in the k-th spare."""
    base = value(node(pool, t))
    return bound + try_side(pool, t, i, side, k, base + cutoff - bound, pivots) - base


@bare()
def probe_same(pool: Pool, i: int, total: float, cutoff: float, flip_pivots: int) -> float:
    """Bound after sending sample ``i`` where it is headed; of a feature, after deciding it the way it is headed."""
    if i >= pool.y.size:
        return total + decided_gain(pool, i, True, SAME, cutoff - total, MANY)
    t = pool.place[i]
    child = headed(pool, t, i)
    same = joined(pool, child, i, SAME, total, cutoff)
    if same < cutoff and in_band(pool.h[pool.slot[t], i], pool.eps):
        same = turned(pool, t, i, 1.0 if child == 2 * t + 2 else -1.0, HAND, same, cutoff, flip_pivots)
    return same


@bare()
def probe_flip(pool: Pool, i: int, total: float, cutoff: float, flip_pivots: int) -> float:
    """Bound after sending sample ``i``, or deciding a feature, the other way.

    The cheaper part first, it may do: where features have prices that is the node itself, else the child.
    """
    if i >= pool.y.size:
        return total + decided_gain(pool, i, False, FLIP, cutoff - total, MANY)
    t = pool.place[i]
    child = headed(pool, t, i)
    side = -1.0 if child == 2 * t + 2 else 1.0
    other = 4 * t + 3 - child
    if pool.r.shape[1] > 0:
        flip = turned(pool, t, i, side, FLIP, total, cutoff, flip_pivots)
        return joined(pool, other, i, OTHER, flip, cutoff) if flip < cutoff else flip
    flip = joined(pool, other, i, OTHER, total, cutoff)
    return turned(pool, t, i, side, FLIP, flip, cutoff, flip_pivots) if flip < cutoff else flip


@bare()
def learn(pool: Pool, way: int, i: int, gain: float) -> None:
    """Remember what share of an estimate came true."""
    share = min(1.0, gain / max(pool.guess[way, i], 1e-300))
    pool.worth[way, i] += LEARN * (max(share, 1e-3) - pool.worth[way, i])


@bare()
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
    patience, flip_pivots = options[0], options[1]
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


@bare()
def keep_best(pool: Pool) -> None:
    """Put the tried candidate's three states aside as the best so far."""
    for k in range(3):
        s = pool.spare[k]
        pool.spare[k] = pool.spare[BEST + k]
        pool.spare[BEST + k] = s


@bare()
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


@bare()
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


@bare()
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


@bare()
def total_bonus(pool: Pool) -> float:
    """What prices add to the bound where they are left out of the node problems."""
    total = 0.0
    for t in range(pool.slot.size):
        total += bonus(node(pool, t))
    return total


@bare()
def look(pool: Pool) -> None:
    """Bring all samples' margins at all nodes up to date."""
    for t in range(pool.slot.size):
        catch_up(node(pool, t))


@bare_kernel()
def route(pool: Pool, out: NDArray[np.int64]) -> None:
    """The last-level node that each sample reaches if it goes on where it is headed."""
    look(pool)
    T = pool.slot.size
    for i in range(pool.y.size):
        t = pool.place[i]
        while 2 * t + 1 < T:
            t = headed(pool, t, i)
        out[i] = t


@bare_kernel()
def plunge(
    pool: Pool,
    codes: NDArray[np.uint8],
    floats: F8,
    floor: float,
    shared: F8,
    max_steps: int,
    options: NDArray[np.int64],
    cand: NDArray[np.int64],
    out_codes: NDArray[np.uint8],
    out_floats: F8,
    out_used: NDArray[np.int64],
    out_bound: F8,
    counters: NDArray[np.int64],
) -> tuple[int, float]:
    """Dive from a record; returns how it ended and the bound of the node it ended at.

    ``shared`` is the cut-off and a flag that asks to stop, both read anew at every step; ``cand`` has room for as many
    candidates as may be tried.  Children put aside are in the ``out`` arrays, a PAUSED node is the last of them.
    """
    load(pool, codes, floats)
    emitted = 0
    while True:
        cutoff = shared[0]
        # Gains add up on the sum of the node values; the floor, a bound by other means, only closes nodes.
        total = relax(pool, cutoff, TOL)
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
        found = choose(pool, cand, options[3] != 0)
        if found == 0 or cutoff - total < options[2] * total_bonus(pool):
            counters[EMITTED] = emitted
            return SETTLED, max(floor, tightened(pool, total, cutoff))
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
