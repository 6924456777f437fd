"""What a dual point proves about supports."""

from __future__ import annotations

import math

import numpy as np

from margotree.engines.node.best_subset.samples import I1
from margotree.engines.node.best_subset.task import MAY, MUST
from margotree.problem.problem import FloatArray

#: Share of the dual's terms by which bounds are lowered to stay below rounding errors.
_SAFETY = 1e-13


def subset_bound(total: float, values: FloatArray, kind: I1, budget: int, alpha: float) -> float:
    """Lower bound over all supports that ``kind`` allows, from one dual point that is worth ``total`` without features.

    A support takes from ``total`` the values of its features.  The ``budget - |must|`` most valuable others may be
    taken for nothing, further ones at the price ``alpha`` (infinite for a hard budget).
    """
    must = values[kind == MUST]
    may = np.sort(values[kind == MAY])[::-1]
    left = budget - len(must)
    free = max(left, 0)
    taken = [must, may[:free]]
    price = 0.0
    if math.isfinite(alpha):
        worth = may[free:][may[free:] > alpha]
        taken.append(worth)
        price = alpha * (max(-left, 0) + len(worth))
    elif left < 0:
        return math.inf
    lost = float(sum(np.sum(v) for v in taken))
    return total - lost + price - _SAFETY * (abs(total) + lost)
