"""The misclassified weight of each point at a node if it goes left and if it goes right, the other splits fixed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margotree.baselines.oct.merged_samples import IndexArray
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.tree_cleanup import leaves_below
from margotree.problem import Splits, topology
from margotree.problem.problem import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class SideCosts:
    """The data of the problem to find a split for the points ``X`` of a node.

    ``left`` and ``right`` hold the misclassified weight of each point on that side, ``feature_cost`` is the penalty of
    a feature of the split, ``band`` the smallest width of the empty band around it.
    """

    X: FloatArray
    left: FloatArray
    right: FloatArray
    feature_cost: float
    band: float

    def cost(self, w: FloatArray, b: float) -> float:
        """The total cost of a split."""
        goes_right = self.X @ w + b > 0
        return float(np.where(goes_right, self.right, self.left).sum()) + self.feature_cost * np.count_nonzero(w)


def side_costs(problem: OctProblem, tree: Splits, t: int) -> SideCosts | None:
    """The costs at node ``t``; None if its split does not change the objective."""
    points, found = problem.points, problem.evaluate(tree)
    node = np.zeros(len(points.X), dtype=np.int64)
    node[points.point_of] = found.leaf
    rows = np.flatnonzero(np.isin(node, leaves_below(t, problem.depth)))
    if len(rows) < 2:
        return None
    if tree.w[t].any():
        children = (topology.left(t), topology.right(t))
        labels = [_labels_below(problem, tree, found.label, child, rows) for child in children]
    else:
        labels = _two_heaviest(points.class_weight[rows])
    class_weight, total = points.class_weight[rows], points.weight[rows]
    left, right = (total - class_weight[np.arange(len(rows)), label] for label in labels)
    if np.array_equal(left, right):
        return None
    return SideCosts(
        X=points.X[rows],
        left=left,
        right=right,
        feature_cost=problem.alpha * problem.baseline_error,
        band=0.0 if problem.mu is None else problem.mu,
    )


def _two_heaviest(class_weight: FloatArray) -> list[IndexArray]:
    """The labels at a node that does not split yet: the heaviest class on the left, the second on the right."""
    first, second = np.argsort(-class_weight.sum(axis=0), kind="stable")[:2]
    return [np.full(len(class_weight), first), np.full(len(class_weight), second)]


def _labels_below(problem: OctProblem, tree: Splits, label: IndexArray, v: int, rows: IndexArray) -> IndexArray:
    """The class that each of these points gets below node or leaf ``v``."""
    node = np.full(len(rows), v)
    for t in range(v, problem.n_nodes):
        at_t = node == t
        h = problem.points.X[rows[at_t]] @ tree.w[t] + tree.b[t]
        node[at_t] = np.where(h > 0, topology.right(t), topology.left(t))
    return label[node - problem.n_nodes]
