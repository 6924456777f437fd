"""What samples pay below a node, and how well single features tell the labels apart."""

from __future__ import annotations

import numpy as np

from margotree.engines.local_search.kernels.line_search import I8
from margotree.engines.local_search.kernels.svm import F8
from margotree.engines.node.kernels.vectors import dot, total
from margotree.engines.numba_backend import kernel


@kernel()
def pay_below(Z: F8, y: F8, weight: F8, C: F8, W: F8, B: F8, ties: F8, top: int, pays: F8) -> None:
    """What each sample would pay from node ``top`` on; bands on its way are looked at later."""
    last = B.size // 2
    for i in range(y.size):
        t, total = top, 0.0
        while True:
            h = dot(Z[i], W[t]) + B[t]
            total += C[t] * max(0.0, 1.0 - y[i] * h)
            if t >= last:
                break
            t = 2 * t + (2 if h >= -ties[t] else 1)
        pays[i] = total * weight[i]


@kernel()
def gini(q: F8, order: I8, cp: F8, cm: F8) -> tuple[float, int]:
    """Least impurity of a split of the projections, and how many samples then go left."""
    plus, minus = total(cp), total(cm)
    a, c, best, at = 0.0, 0.0, np.inf, 0
    for k in range(q.size - 1):
        a += cp[order[k]]
        c += cm[order[k]]
        if q[order[k + 1]] > q[order[k]] and a + c > 0.0 and plus + minus > a + c:
            left, right = a + c, plus + minus - a - c
            impurity = a * c / left + (plus - a) * (minus - c) / right
            if impurity < best:
                best, at = impurity, k + 1
    return best, at
