"""The best univariate trees of depth 1 and 2 on a set of points, in compiled code.

Costs are in units of weight: the misclassified weight, plus ``split_cost`` for every split.  ``best(S, d)`` is the
smallest cost of a tree of depth ``d`` on the points ``S`` whose leaves are large enough, ``relaxed(S, d)`` the same
without the limit on leaves.  Consider the splits of ``S`` along one feature, in the order of their thresholds: from one
threshold to the next, points move from the right part ``R`` to the left part ``L``.  Without the limit a tree on fewer
points never costs more, and an additional point adds at most its weight, so

    relaxed(L + moved) >= relaxed(L)     and     relaxed(R - moved) >= relaxed(R) - weight(moved).

Hence the bounds found at one threshold, less the weight moved since, are valid at the following thresholds, and most
thresholds need no further computation.  With the limit on leaves, ``best`` may jump from one threshold to the next;
therefore the bounds are on ``relaxed``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.numba_backend import inner, kernel

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]


@inner
def sort_by_rank(rows: IndexArray, rank: IndexArray, j: int, order: IndexArray, position: IndexArray) -> None:
    """Write the rows, sorted by their rank in feature ``j``, into ``order`` (counting sort).

    ``position`` is a workspace with one entry more than there are ranks.
    """
    position[:] = 0
    for u in rows:
        position[rank[u, j] + 1] += 1
    for v in range(1, len(position)):
        position[v] += position[v - 1]
    for u in rows:
        order[position[rank[u, j]]] = u
        position[rank[u, j]] += 1


@kernel
def best_stump(
    rows: IndexArray,
    rank: IndexArray,
    class_weight: FloatArray,
    point_weight: FloatArray,
    min_leaf: float,
    split_cost: float,
    work: FloatArray,
    split: IndexArray,
    stop: NDArray[np.uint8],
) -> tuple[float, float]:
    """Return ``best(rows, 1)`` and ``relaxed(rows, 1)``, and write the split: its feature (-1: a leaf) and rank.

    ``work`` is a workspace of ranks by classes + 1.  Once ``stop`` is set, the split is the best so far and the bound
    is not valid.
    """
    classes = class_weight.shape[1]
    total, left = np.zeros(classes), np.zeros(classes)
    size = weight = heaviest = 0.0
    for u in rows:
        size += point_weight[u]
        for k in range(classes):
            total[k] += class_weight[u, k]
            weight += class_weight[u, k]
    for k in range(classes):
        heaviest = max(heaviest, total[k])
    best = relaxed = weight - heaviest
    split[0] = -1
    if best <= split_cost:
        return best, relaxed
    for j in range(rank.shape[1]):
        if stop[0]:
            return best, 0.0
        low = high = rank[rows[0], j]
        for u in rows:
            low, high = min(low, rank[u, j]), max(high, rank[u, j])
        work[low : high + 1] = 0.0
        for u in rows:
            v = rank[u, j]
            for k in range(classes):
                work[v, k] += class_weight[u, k]
            work[v, classes] += point_weight[u]
        left[:] = 0.0
        left_size = 0.0
        for v in range(low, high):
            heaviest_left = heaviest_right = 0.0
            for k in range(classes):
                left[k] += work[v, k]
                heaviest_left = max(heaviest_left, left[k])
                heaviest_right = max(heaviest_right, total[k] - left[k])
            left_size += work[v, classes]
            cost = split_cost + weight - heaviest_left - heaviest_right
            relaxed = min(relaxed, cost)
            if cost < best and left_size >= min_leaf and size - left_size >= min_leaf:
                best, split[0], split[1] = cost, j, v
    return best, relaxed


@kernel
def best_depth_two(
    rows: IndexArray,
    rank: IndexArray,
    class_weight: FloatArray,
    point_weight: FloatArray,
    min_leaf: float,
    split_cost: float,
    cutoff: float,
    slack: float,
    work: FloatArray,
    splits: IndexArray,
    progress: FloatArray,
    stop: NDArray[np.uint8],
) -> tuple[float, float]:
    """Return the smaller of ``cutoff`` and ``best(rows, 2)``, and a lower bound on ``relaxed(rows, 2)``.

    A tree below the cutoff (by more than ``slack``) is written into the three rows of ``splits``: root, left and right.
    ``progress`` holds the best cost and the number of subsets visited.  Once ``stop`` is set, the bound is not valid.
    """
    m, classes = len(rows), class_weight.shape[1]
    best, bound = best_stump(rows, rank, class_weight, point_weight, min_leaf, split_cost, work, splits[0], stop)
    splits[1, 0] = splits[2, 0] = -1
    if best > cutoff:
        splits[0, 0], best = -1, cutoff
    if bound <= split_cost or stop[0]:
        return best, bound
    size = 0.0
    for u in rows:
        size += point_weight[u]
    children = np.full((2, 2), -1)
    order = np.empty(m, np.int64)
    position = np.zeros(work.shape[0] + 1, np.int64)
    for j in range(rank.shape[1]):
        sort_by_rank(rows, rank, j, order, position)
        left_bound = right_bound = moved_weight = left_size = 0.0
        for i in range(1, m):
            u = order[i - 1]
            left_size += point_weight[u]
            for k in range(classes):
                moved_weight += class_weight[u, k]
            if rank[u, j] == rank[order[i], j]:
                continue
            known_bound = split_cost + left_bound + max(0.0, right_bound - moved_weight)
            if known_bound >= best - slack or left_size < min_leaf or size - left_size < min_leaf:
                bound = min(bound, known_bound)
                continue
            progress[1] += 1
            left, left_bound = best_stump(
                order[:i], rank, class_weight, point_weight, min_leaf, split_cost, work, children[0], stop
            )
            right, right_bound = best_stump(
                order[i:], rank, class_weight, point_weight, min_leaf, split_cost, work, children[1], stop
            )
            moved_weight = 0.0
            bound = min(bound, split_cost + left_bound + right_bound)
            if split_cost + left + right < best - slack:
                best = split_cost + left + right
                splits[0, 0], splits[0, 1] = j, rank[u, j]
                splits[1:] = children
                progress[0] = min(progress[0], best)
            if stop[0]:
                return best, 0.0
    return best, bound
