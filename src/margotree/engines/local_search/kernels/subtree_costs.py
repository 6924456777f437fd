"""The loss of each sample in a subtree, and the split of a direction with the smallest impurity."""

from __future__ import annotations

import numpy as np

from margotree.engines.local_search.kernels.line_search import I8
from margotree.engines.local_search.kernels.svm import F8
from margotree.engines.node.kernels.vectors import dot
from margotree.engines.numba_backend import kernel


@kernel()
def subtree_costs(
    Z: F8,
    code: I8,
    weight: F8,
    plus_corner: F8,
    minus_corner: F8,
    plus: F8,
    minus: F8,
    W: F8,
    B: F8,
    tie: F8,
    by_side: bool,
    squared: bool,
    top: int,
    cost: F8,
) -> None:
    """Write to ``cost`` the losses of each sample on its path from node ``top`` to a leaf.

    ``plus`` and ``minus`` are the penalties of values below and above a corner, per node and class, and ``code`` is the
    class of each sample. The corners are 1 and -1 at upper nodes, ``plus_corner`` and ``minus_corner`` at the last
    level. If ``by_side`` is set, ``plus`` is at upper nodes only for samples that go right, ``minus`` only for those
    that go left. If ``squared`` is set, the losses at the last level are squared. A sample within ``tie[t]`` of the
    hyperplane of node ``t`` goes right; bands are not considered.
    """
    last = B.size // 2
    for i in range(code.size):
        k = code[i]
        t, total = top, 0.0
        while True:
            h = dot(Z[i], W[t]) + B[t]
            if t >= last:
                below, above = max(0.0, plus_corner[i] - h), max(0.0, h - minus_corner[i])
                if squared:
                    below, above = below * below, above * above
                total += plus[t, k] * below + minus[t, k] * above
                break
            right = h >= -tie[t]
            if by_side:
                total += plus[t, k] * max(0.0, 1.0 - h) if right else minus[t, k] * max(0.0, 1.0 + h)
            else:
                total += plus[t, k] * max(0.0, 1.0 - h) + minus[t, k] * max(0.0, 1.0 + h)
            t = 2 * t + (2 if right else 1)
        cost[i] = total * weight[i]


@kernel()
def best_split(q: F8, order: I8, responses: F8, weight: F8) -> tuple[float, int]:
    """The smallest impurity of a split of the projections ``q``, and the number of samples on its left side.

    The impurity is the weighted sum of the squared deviations of the ``responses`` (one row per sample) from their
    means on both sides; ``order`` sorts the projections.
    """
    m, k = responses.shape
    left, total = np.zeros(k), np.zeros(k)
    total_weight, total_squares = 0.0, 0.0
    for i in range(m):
        total_weight += weight[i]
        for c in range(k):
            total[c] += weight[i] * responses[i, c]
            total_squares += weight[i] * responses[i, c] * responses[i, c]
    left_weight, left_squares, best, n_left = 0.0, 0.0, np.inf, 0
    for j in range(m - 1):
        i = order[j]
        left_weight += weight[i]
        for c in range(k):
            left[c] += weight[i] * responses[i, c]
            left_squares += weight[i] * responses[i, c] * responses[i, c]
        right_weight = total_weight - left_weight
        if q[order[j + 1]] > q[i] and left_weight > 0.0 and right_weight > 0.0:
            of_left, of_right = left_squares * left_weight, (total_squares - left_squares) * right_weight
            for c in range(k):
                of_left -= left[c] * left[c]
                of_right -= (total[c] - left[c]) * (total[c] - left[c])
            impurity = of_left / left_weight + of_right / right_weight
            if impurity < best:
                best, n_left = impurity, j + 1
    return best, n_left
