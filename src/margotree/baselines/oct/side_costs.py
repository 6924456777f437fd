"""What each sample at a node costs on the left and on the right of it, with the rest of the tree as it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margotree.baselines.oct.merged_samples import IndexArray
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.tree_cleanup import leaves_below
from margotree.problem import Splits, topology
from margotree.problem.problem import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Sides:
    """A split to be found for some points: ``left`` and ``right`` hold what each costs there (misclassified weight),
    ``feature`` what a feature of the split costs, ``band`` how wide the empty band around it must be."""

    X: FloatArray
    left: FloatArray
    right: FloatArray
    feature: float
    band: float

    def cost(self, w: FloatArray, b: float) -> float:
        """What a split costs in all."""
        goes_right = self.X @ w + b > 0
        return float(np.where(goes_right, self.right, self.left).sum()) + self.feature * np.count_nonzero(w)


def sides(problem: OctProblem, tree: Splits, t: int) -> Sides | None:
    """The costs at node ``t``; None where nothing depends on its split."""
    points, found = problem.points, problem.evaluate(tree)
    at = np.zeros(len(points.X), dtype=np.int64)
    at[points.of] = found.leaf
    rows = np.flatnonzero(np.isin(at, leaves_below(t, problem.depth)))
    if len(rows) < 2:
        return None
    if tree.w[t].any():
        labels = [_label(problem, tree, found.label, child, rows) for child in (topology.left(t), topology.right(t))]
    else:
        labels = _two_heaviest(points.loss[rows])
    loss, total = points.loss[rows], points.count[rows]
    left, right = (total - loss[np.arange(len(rows)), label] for label in labels)
    if np.array_equal(left, right):
        return None
    return Sides(
        X=points.X[rows],
        left=left,
        right=right,
        feature=problem.alpha * problem.baseline,
        band=0.0 if problem.mu is None else problem.mu,
    )


def _two_heaviest(loss: FloatArray) -> list[IndexArray]:
    """The labels of a node that does not split yet: its heaviest class on one side, the next on the other."""
    first, second = np.argsort(-loss.sum(axis=0), kind="stable")[:2]
    return [np.full(len(loss), first), np.full(len(loss), second)]


def _label(problem: OctProblem, tree: Splits, label: IndexArray, v: int, rows: IndexArray) -> IndexArray:
    """The class each of these points would get if it went to node or leaf ``v``."""
    at = np.full(len(rows), v)
    for t in range(v, problem.n_nodes):
        here = at == t
        h = problem.points.X[rows[here]] @ tree.w[t] + tree.b[t]
        at[here] = np.where(h > 0, topology.right(t), topology.left(t))
    return label[at - problem.n_nodes]
