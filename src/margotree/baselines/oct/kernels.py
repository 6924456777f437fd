"""The best univariate trees of depth 1 and 2 on a set of points, in compiled code.

Costs are in units of weight: the misclassified weight, plus ``price`` for every split.  ``best(S, d)`` is the least
cost of a tree of depth ``d`` on the points ``S`` whose leaves are large enough, ``free(S, d)`` the same without the
limit on leaves.  For a split of ``S`` along one feature, let the threshold move right: points change from the right
part ``R`` to the left part ``L``.  Without the limit a tree on fewer points never costs more, and one point more costs
at most its weight, so

    free(L + moved) >= free(L)     and     free(R - moved) >= free(R) - weight(moved).

Hence the bounds found at one threshold hold, less what has moved since, at the next ones, and most of them need no
work.  The limit makes ``best`` jump from one threshold to the next, which is why the bounds are on ``free``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.numba_backend import inner, kernel

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]


@inner
def sort(rows: IndexArray, level: IndexArray, j: int, order: IndexArray, place: IndexArray) -> None:
    """The rows by their level of feature ``j``, into ``order``; ``place`` has room for one more than the levels."""
    place[:] = 0
    for u in rows:
        place[level[u, j] + 1] += 1
    for v in range(1, len(place)):
        place[v] += place[v - 1]
    for u in rows:
        order[place[level[u, j]]] = u
        place[level[u, j]] += 1


@kernel
def stump(
    rows: IndexArray,
    level: IndexArray,
    loss: FloatArray,
    count: FloatArray,
    min_leaf: float,
    price: float,
    work: FloatArray,
    split: IndexArray,
    stop: NDArray[np.uint8],
) -> tuple[float, float]:
    """``best(rows, 1)`` and ``free(rows, 1)``; the split goes into ``split``: feature (-1: a leaf) and level.

    Once ``stop`` is set the split is the best so far and the bound means nothing.
    """
    classes = loss.shape[1]
    total, left = np.zeros(classes), np.zeros(classes)
    size = weight = heaviest = 0.0
    for u in rows:
        size += count[u]
        for k in range(classes):
            total[k] += loss[u, k]
            weight += loss[u, k]
    for k in range(classes):
        heaviest = max(heaviest, total[k])
    best = free = weight - heaviest
    split[0] = -1
    if best <= price:
        return best, free
    for j in range(level.shape[1]):
        if stop[0]:
            return best, 0.0
        low = high = level[rows[0], j]
        for u in rows:
            low, high = min(low, level[u, j]), max(high, level[u, j])
        work[low : high + 1] = 0.0
        for u in rows:
            v = level[u, j]
            for k in range(classes):
                work[v, k] += loss[u, k]
            work[v, classes] += count[u]
        left[:] = 0.0
        on_left = 0.0
        for v in range(low, high):
            heaviest_left = heaviest_right = 0.0
            for k in range(classes):
                left[k] += work[v, k]
                heaviest_left = max(heaviest_left, left[k])
                heaviest_right = max(heaviest_right, total[k] - left[k])
            on_left += work[v, classes]
            cost = price + weight - heaviest_left - heaviest_right
            free = min(free, cost)
            if cost < best and on_left >= min_leaf and size - on_left >= min_leaf:
                best, split[0], split[1] = cost, j, v
    return best, free


@kernel
def pair(
    rows: IndexArray,
    level: IndexArray,
    loss: FloatArray,
    count: FloatArray,
    min_leaf: float,
    price: float,
    ceiling: float,
    slack: float,
    work: FloatArray,
    splits: IndexArray,
    live: FloatArray,
    stop: NDArray[np.uint8],
) -> tuple[float, float]:
    """The smaller of ``ceiling`` and ``best(rows, 2)``, and a lower bound on ``free(rows, 2)``.

    A tree below the ceiling (by more than ``slack``) goes into the three rows of ``splits``: root, left and right.
    ``live`` holds the best cost and counts the subsets looked at.  Once ``stop`` is set the bound means nothing.
    """
    m, classes = len(rows), loss.shape[1]
    best, bound = stump(rows, level, loss, count, min_leaf, price, work, splits[0], stop)
    splits[1, 0] = splits[2, 0] = -1
    if best > ceiling:
        splits[0, 0], best = -1, ceiling
    if bound <= price or stop[0]:
        return best, bound
    size = 0.0
    for u in rows:
        size += count[u]
    below = np.full((2, 2), -1)
    order = np.empty(m, np.int64)
    place = np.zeros(work.shape[0] + 1, np.int64)
    for j in range(level.shape[1]):
        sort(rows, level, j, order, place)
        left_bound = right_bound = moved = on_left = 0.0
        for i in range(1, m):
            u = order[i - 1]
            on_left += count[u]
            for k in range(classes):
                moved += loss[u, k]
            if level[u, j] == level[order[i], j]:
                continue
            known = price + left_bound + max(0.0, right_bound - moved)
            if known >= best - slack or on_left < min_leaf or size - on_left < min_leaf:
                bound = min(bound, known)
                continue
            live[1] += 1
            left, left_bound = stump(order[:i], level, loss, count, min_leaf, price, work, below[0], stop)
            right, right_bound = stump(order[i:], level, loss, count, min_leaf, price, work, below[1], stop)
            moved = 0.0
            bound = min(bound, price + left_bound + right_bound)
            if price + left + right < best - slack:
                best = price + left + right
                splits[0, 0], splits[0, 1] = j, level[u, j]
                splits[1:] = below
                live[0] = min(live[0], best)
            if stop[0]:
                return best, 0.0
    return best, bound
