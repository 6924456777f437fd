"""The choice of a sample to branch on where nodes use few features: the one with the largest estimated gain on both
sides, including the samples whose sides follow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.listed_supports import Samples
from margotree.engines.exact.kernels.propagation import FREE, LEFT, MOST_NUMBERS, RIGHT, Words, propagate
from margotree.engines.node.kernels.vectors import argsort_descending, fill
from margotree.engines.numba_backend import inner, kernel, struct

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
I1 = NDArray[np.int8]

#: Tolerance of violations: the accuracy of margins.
TOL = 1e-5
#: The cost, as a share of C, where it is not known.
NOMINAL = 1e-2
#: The smallest gain, so that a candidate without a gain on one side is ranked by the other.
FLOOR = 1e-6


@struct
class Hyperplanes(NamedTuple):
    """The current hyperplanes: support and coefficients of every tree node, and the number of samples that reach it."""

    cols: I8  # (tree nodes, widest)
    size: I8  # features of each node
    theta: F8
    n_arrived: I8
    decided: I1  # 1 where the node has one support, so that sides can be implied


@kernel(allocates=False)
def decision_values(samples: Samples, hyperplanes: Hyperplanes, h: F8) -> None:
    """Compute ``h[t, i]``, the value of the hyperplane of tree node ``t`` at sample ``i``."""
    for t in range(hyperplanes.size.size):
        d = hyperplanes.size[t]
        for i in range(samples.y.size):
            h[t, i] = hyperplanes.theta[t, d]
        for r in range(d):
            row = samples.X[hyperplanes.cols[t, r]]
            for i in range(samples.y.size):
                h[t, i] += hyperplanes.theta[t, r] * row[i]


@inner(allocates=False)
def in_band(h: float, eps: float) -> bool:
    """Whether the value ``h`` of a hyperplane lies in the band."""
    return h < -TOL * eps and h > -eps + TOL * eps


@inner(allocates=False)
def path_cost(samples: Samples, hyperplanes: Hyperplanes, h: F8, t: int, i: int, eps: float) -> float:
    """The loss of sample ``i`` at ``t`` and on its path below, with the current hyperplanes."""
    total = 0.0
    T = hyperplanes.size.size
    while t < T:
        if hyperplanes.n_arrived[t] == 0:
            return total + NOMINAL * samples.cost[t, i]
        hinge = 1.0 - samples.y[i] * h[t, i]
        if hinge > TOL:
            total += samples.cost[t, i] * hinge
        if 2 * t + 1 < T and in_band(h[t, i], eps):
            total += NOMINAL * samples.cost[t, i]
        t = 2 * t + 2 if h[t, i] >= -TOL * eps else 2 * t + 1
    return total


@inner(allocates=False)
def sides_at(place: I8, t: int, side: I1) -> None:
    """Write the side of each sample at node ``t``; -1 for samples that are not known to reach it."""
    for i in range(place.size):
        p = place[i]
        side[i] = FREE if p == t else -1
        while p > t:
            q = (p - 1) // 2
            if q == t:
                side[i] = LEFT if p == 2 * t + 1 else RIGHT
                break
            p = q


@inner(allocates=False)
def count_numbers(samples: Samples, hyperplanes: Hyperplanes, t: int) -> int:
    """The number of features of tree node ``t``'s support that are not words."""
    n = 0
    for r in range(hyperplanes.size[t]):
        n += samples.word[hyperplanes.cols[t, r]] == 0
    return n


@inner()
def numbers_and_words(samples: Samples, hyperplanes: Hyperplanes, t: int) -> tuple[F8, Words]:
    """The features of tree node ``t``'s support that are not words, one per row, and its words."""
    d, m = hyperplanes.size[t], samples.y.size
    Z, n = np.empty((count_numbers(samples, hyperplanes, t), m)), 0
    code, levels, k = np.empty((d, m), np.int64), np.empty(d, np.int64), 0
    for r in range(d):
        j = hyperplanes.cols[t, r]
        if samples.word[j] == 0:
            for i in range(m):
                Z[n, i] = samples.X[j, i]
            n += 1
        elif samples.levels[j] > 1:
            for i in range(m):
                code[k, i] = samples.code[j, i]
            levels[k] = samples.levels[j]
            k += 1
    return Z, Words(code[:k], levels[:k])


@inner(allocates=False)
def implies_sides(samples: Samples, hyperplanes: Hyperplanes, t: int) -> bool:
    """Whether placed samples can imply the sides of others at tree node ``t``."""
    return bool(hyperplanes.decided[t] == 1 and count_numbers(samples, hyperplanes, t) <= MOST_NUMBERS)


@kernel()
def settle_sides(samples: Samples, hyperplanes: Hyperplanes, place: I8, min_distance: float) -> bool:
    """Place all samples whose side follows from others; False if the sides at a node cannot be separated."""
    T = hyperplanes.size.size
    side = np.empty(place.size, np.int8)
    for t in range(T // 2):
        if not implies_sides(samples, hyperplanes, t):
            continue
        sides_at(place, t, side)
        Z, words = numbers_and_words(samples, hyperplanes, t)
        if not propagate(Z, words, side, min_distance):
            return False
        for i in range(place.size):
            if place[i] == t and side[i] != FREE:
                place[i] = 2 * t + side[i]
    return True


@inner(allocates=False)
def estimated_gain(
    samples: Samples, hyperplanes: Hyperplanes, h: F8, t: int, i: int, before: I1, after: I1, eps: float
) -> float:
    """The estimated rise of the bound when the samples newly placed in ``after`` take these sides."""
    total = 0.0
    for j in range(before.size):
        if before[j] != FREE or after[j] == FREE:
            continue
        right = after[j] == RIGHT
        if right != (samples.y[j] > 0):
            hinge = max(0.0, 1.0 - samples.y[j] * h[t, j])
            total += samples.cost[t, j] * max(0.0, 1.0 - hinge)
        total += path_cost(samples, hyperplanes, h, 2 * t + 2 if right else 2 * t + 1, j, eps)
    if (after[i] == RIGHT) != (h[t, i] >= -TOL * eps):
        norm = 1.0
        for r in range(hyperplanes.size[t]):
            x = samples.X[hyperplanes.cols[t, r], i]
            norm += x * x
        total += 0.5 * h[t, i] * h[t, i] / norm
    return total


@kernel()
def lookahead(
    samples: Samples,
    hyperplanes: Hyperplanes,
    h: F8,
    place: I8,
    eps: float,
    slack: float,
    min_distance: float,
    candidates: int,
) -> int:
    """The undecided sample with the largest product of estimated gains; -1 if no sample has a cost left.

    Parameters
    ----------
    slack
        The distance of the bound from the cutoff; larger gains count as this.
    min_distance
        Samples closer than this cannot be on different sides.
    candidates
        The number of samples tried by their own score, and of further samples at the same tree node.
    """
    score = single_scores(samples, hyperplanes, h, place, eps)
    m = place.size
    waiting = 0
    for i in range(m):
        waiting += score[i] >= 0.0
    if waiting == 0:
        return -1
    order = argsort_descending(score)
    tried = np.zeros(m, np.int8)
    sides = np.empty((2, m), np.int8)
    top = place[order[0]]
    best, most = -1, -1.0
    for c in range(2 * candidates):
        # First the best by their own score, then others at the same node, evenly spread: they may imply more sides.
        i = order[min(c, m - 1)] if c < candidates else order[(c - candidates) * m // candidates]
        if tried[i] == 1 or (place[i] != top if c >= candidates else c >= waiting):
            continue
        tried[i] = 1
        gain = pair_score(samples, hyperplanes, h, place, i, eps, slack, min_distance, sides)
        if gain > most:
            best, most = i, gain
    return best


@inner()
def single_scores(samples: Samples, hyperplanes: Hyperplanes, h: F8, place: I8, eps: float) -> F8:
    """The score of each undecided sample by itself; -1 for samples that reach the last level without further cost."""
    T = hyperplanes.size.size
    score = np.empty(place.size)
    fill(score, -1.0)
    for i in range(place.size):
        t = place[i]
        if t >= T // 2:
            continue
        right = h[t, i] >= -TOL * eps
        same = path_cost(samples, hyperplanes, h, 2 * t + 2 if right else 2 * t + 1, i, eps)
        if in_band(h[t, i], eps):
            same += NOMINAL * samples.cost[t, i]
        if same == 0.0:
            continue
        other = path_cost(samples, hyperplanes, h, 2 * t + 1 if right else 2 * t + 2, i, eps)
        if right != (samples.y[i] < 0):
            other += samples.cost[t, i]
        score[i] = same * (other + h[t, i] * h[t, i] + FLOOR * samples.cost[t, i])
    return score


@kernel()
def sides_after(
    samples: Samples, hyperplanes: Hyperplanes, place: I8, i: int, min_distance: float, sides: I1
) -> tuple[bool, bool]:
    """Write the sides at the node of sample ``i`` after it is sent left (row 0) or right (row 1), with all that
    follows; return for both whether it is possible."""
    t = place[i]
    sides_at(place, t, sides[0])
    for j in range(place.size):
        sides[1, j] = sides[0, j]
    sides[0, i] = LEFT
    sides[1, i] = RIGHT
    if not implies_sides(samples, hyperplanes, t):
        return True, True
    Z, words = numbers_and_words(samples, hyperplanes, t)
    left = propagate(Z, words, sides[0], min_distance)
    right = propagate(Z, words, sides[1], min_distance)
    return left, right


@inner()
def pair_score(
    samples: Samples,
    hyperplanes: Hyperplanes,
    h: F8,
    place: I8,
    i: int,
    eps: float,
    slack: float,
    min_distance: float,
    sides: I1,
) -> float:
    """The product of the estimated gains on both sides of sample ``i``, with all that follows from them."""
    t = place[i]
    left, right = sides_after(samples, hyperplanes, place, i, min_distance, sides)
    before = np.empty(place.size, np.int8)
    sides_at(place, t, before)
    tiny = FLOOR * slack
    gain_left = estimated_gain(samples, hyperplanes, h, t, i, before, sides[0], eps) if left else slack
    gain_right = estimated_gain(samples, hyperplanes, h, t, i, before, sides[1], eps) if right else slack
    return min(max(gain_left, tiny), slack) * min(max(gain_right, tiny), slack)
