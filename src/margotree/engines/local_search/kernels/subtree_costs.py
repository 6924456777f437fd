"""The loss of each sample in a subtree, and the best split of a single feature by the Gini impurity."""

from __future__ import annotations

import numpy as np

from margotree.engines.local_search.kernels.line_search import I8
from margotree.engines.local_search.kernels.svm import F8
from margotree.engines.node.kernels.vectors import dot, total
from margotree.engines.numba_backend import kernel


@kernel()
def subtree_costs(Z: F8, code: I8, weight: F8, plus: F8, minus: F8, W: F8, B: F8, tie: F8, top: int, cost: F8) -> None:
    """Write to ``cost`` the hinge losses of each sample on its path from node ``top`` to a leaf.

    ``plus`` and ``minus`` are the penalties of hinge losses on the right and on the left, per node and class, and
    ``code`` is the class of each sample. A sample within ``tie[t]`` of the hyperplane of node ``t`` goes right; bands
    are not considered.
    """
    last = B.size // 2
    for i in range(code.size):
        k = code[i]
        t, total = top, 0.0
        while True:
            h = dot(Z[i], W[t]) + B[t]
            total += plus[t, k] * max(0.0, 1.0 - h) + minus[t, k] * max(0.0, 1.0 + h)
            if t >= last:
                break
            t = 2 * t + (2 if h >= -tie[t] else 1)
        cost[i] = total * weight[i]


@kernel()
def gini(q: F8, order: I8, plus_cost: F8, minus_cost: F8) -> tuple[float, int]:
    """The smallest impurity of a split of the projections ``q``, and the number of samples on its left side."""
    plus, minus = total(plus_cost), total(minus_cost)
    left_plus, left_minus, best, n_left = 0.0, 0.0, np.inf, 0
    for k in range(q.size - 1):
        left_plus += plus_cost[order[k]]
        left_minus += minus_cost[order[k]]
        if q[order[k + 1]] > q[order[k]] and left_plus + left_minus > 0.0 and plus + minus > left_plus + left_minus:
            left, right = left_plus + left_minus, plus + minus - left_plus - left_minus
            impurity = left_plus * left_minus / left + (plus - left_plus) * (minus - left_minus) / right
            if impurity < best:
                best, n_left = impurity, k + 1
    return best, n_left
