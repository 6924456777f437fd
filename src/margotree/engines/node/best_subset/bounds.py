"""Lower bounds on supports from one dual point."""

from __future__ import annotations

import math

import numpy as np

from margotree.engines.node.best_subset.samples import I1
from margotree.engines.node.best_subset.task import MAY, MUST
from margotree.problem.problem import FloatArray

#: Share of the terms of the dual value that is subtracted to cover rounding errors.
_SAFETY = 1e-13


def subset_bound(total: float, values: FloatArray, kind: I1, budget: int, alpha: float) -> float:
    """Lower bound on the values of all supports that ``kind`` allows.

    Parameters
    ----------
    total : float
        Dual value of the point without features.
    values : array
        What each feature subtracts from ``total`` when it is used.
    kind : array
        MUST, MAY or NEVER per feature.
    budget, alpha
        ``budget - |must|`` other features have no penalty, further ones ``alpha`` each (infinite for a hard budget).
    """
    must = values[kind == MUST]
    may = np.sort(values[kind == MAY])[::-1]
    left = budget - len(must)
    free = max(left, 0)
    taken = [must, may[:free]]
    penalty = 0.0
    if math.isfinite(alpha):
        worth = may[free:][may[free:] > alpha]
        taken.append(worth)
        penalty = alpha * (max(-left, 0) + len(worth))
    elif left < 0:
        return math.inf
    lost = float(sum(np.sum(v) for v in taken))
    return total - lost + penalty - _SAFETY * (abs(total) + lost)
