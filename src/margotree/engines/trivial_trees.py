"""Trees that need no training, and the objective of a tree for a search."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from margotree.problem import Problem, Splits, evaluate, topology
from margotree.problem.tasks import Items


def trivial_tree(problem: Problem) -> Splits:
    """The best tree without splits: it sends all samples to one side, and there all have one label."""
    w = np.zeros((problem.n_nodes, problem.n_features))
    offsets = [constant_offsets(problem.depth, problem.eps, right) for right in (True, False)]
    if problem.task.losses_follow_side:
        items = problem.task.items(problem.y, last=True)
        items = items._replace(p=items.p * problem.weight, m=items.m * problem.weight)
        for b in offsets:
            b[problem.n_upper :] = best_constant(items)[0]
    trees = [Splits(w=w, b=b) for b in offsets]
    return min(trees, key=lambda tree: evaluate(problem, tree).objective)


def constant_offsets(depth: int, eps: float, right: bool) -> NDArray[np.float64]:
    """Offsets that send all samples right, or all left and outside the bands."""
    b = np.full(topology.n_nodes(depth), one_side(0.0, right))
    b[: len(topology.upper(depth))] = one_side(eps, right)
    return b


def one_side(eps: float, right: bool) -> float:
    """The offset that puts all samples on the right, or on the left and outside the band, without margin violations."""
    return 1.0 if right else -max(1.0, eps)


def allowed_value(problem: Problem, tree: Splits) -> float:
    """The objective of a tree, infinite if it is not allowed."""
    found = evaluate(problem, tree)
    return found.objective if found.feasible else math.inf


def constant_split(
    y: NDArray[np.float64], cost: NDArray[np.float64], corner: NDArray[np.float64]
) -> tuple[float, float]:
    """The best offset of a hyperplane without weights, and its value: a weighted quantile of the corners."""
    if not len(y):
        return 1.0, 0.0
    b = _quantile(y * corner, cost, float(np.sum(cost[y > 0])))
    return b, float(cost @ np.maximum(0.0, corner - y * b))


def _quantile(points: NDArray[np.float64], cost: NDArray[np.float64], below: float) -> float:
    """The smallest point whose ``cost`` and that of all smaller points together exceed ``below``, else the largest."""
    order = np.argsort(points, kind="stable")
    k = int(np.searchsorted(np.cumsum(cost[order]), below, side="right"))
    return float(points[order[min(k, len(order) - 1)]])


def best_constant(items: Items) -> tuple[float, float]:
    """The best offset of a hyperplane without weights for losses that include their penalties, and its value."""
    below, above = items.p > 0, items.m > 0
    corners = np.concatenate([items.r[below], items.l[above]])
    if not len(corners):
        return 1.0, 0.0
    if not items.squared:
        b = _quantile(corners, np.concatenate([items.p[below], items.m[above]]), float(np.sum(items.p[below])))
        return b, float(np.sum(items.loss(np.broadcast_to(b, len(items.p)))))
    # The derivative increases, and between two corners it is linear.
    points = np.unique(corners)
    low, high = 0, len(points) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _slope(items, points[middle]) < 0.0 else (low, middle)
    left, right = _slope(items, points[low]), _slope(items, points[high])
    share = 0.0 if left >= 0.0 else 1.0 if right <= 0.0 else left / (left - right)
    b = float(points[low] + share * (points[high] - points[low]))
    return b, float(np.sum(items.loss(np.full(len(items.p), b))))


def _slope(items: Items, b: float) -> float:
    """The derivative of the losses with respect to the offset."""
    return float(np.sum(items.slope(np.full(len(items.p), b))))
