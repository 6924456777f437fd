"""Trees that need no training, and the objective of a tree for a search."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from margotree.problem import Problem, Splits, evaluate, topology
from margotree.problem.tasks import one_sided


def trivial_tree(problem: Problem) -> Splits:
    """The best tree without splits: it sends all samples to one side, and there all have one label."""
    w = np.zeros((problem.n_nodes, problem.n_features))
    offsets = [constant_offsets(problem.depth, problem.eps, right) for right in (True, False)]
    if problem.task.losses_follow_side:
        items = one_sided(problem.task.items(problem.y, last=True), problem.weight)
        for b in offsets:
            b[problem.n_upper :] = constant_split(items.label, items.cost, items.corner)[0]
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
    points = y * corner
    order = np.argsort(points, kind="stable")
    passed = np.flatnonzero(np.cumsum(cost[order]) > float(np.sum(cost[y > 0])))
    b = float(points[order[passed[0] if len(passed) else -1]])
    return b, float(cost @ np.maximum(0.0, corner - y * b))
