"""CART with the depth and leaf size of an OCT problem: the greedy first tree of the exact methods."""

from __future__ import annotations

import numpy as np

from margotree.baselines.oct.merged_samples import IndexArray
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.tree_cleanup import build_tree, numbered_splits
from margotree.engines import Answer, Engine, RunControl
from margotree.problem import Splits
from margotree.problem.problem import FloatArray
from margotree.solution import Stopped

#: Gains of impurity below this are rounding.
_GAIN = 1e-12


class Cart(Engine[OctProblem]):
    """Gini splits from the root down, within the depth and leaf size of the problem, then pruned by its objective.

    A split is pruned if it does not reduce the objective; the complexity parameter is the problem's ``alpha``.
    """

    name = "cart"
    models = frozenset({"oct_1", "oct_h"})
    proves = False

    def search(self, problem: OctProblem, control: RunControl, start: Splits | None) -> Answer:
        return Answer(splits=cart(problem, control), stopped=Stopped.HEURISTIC)


def cart(problem: OctProblem, control: RunControl | None = None) -> Splits:
    """The pruned CART tree of a problem; at a time limit, nodes take the best split found so far, or none."""
    clock = control or RunControl()
    if not problem.merge_samples(clock):
        return numbered_splits(problem, None)
    support = np.zeros((problem.n_nodes, problem.n_features), dtype=bool)

    def side(t: int, rows: IndexArray) -> np.ndarray | None:
        split = best_gini(problem, rows, clock)
        if split is None:
            return None
        support[t, split[0]] = True
        return problem.points.rank[rows, split[0]] > split[1]

    tree = build_tree(problem, side, support)
    assert tree is not None, "univariate splits between levels are always allowed"
    return tree


def best_gini(problem: OctProblem, rows: IndexArray, control: RunControl) -> tuple[int, int] | None:
    """Feature and rank of the allowed split with the smallest impurity; None if no split reduces it.

    At a time limit the remaining features are left out.
    """
    points = problem.points
    best, least = None, _impurity(points.class_weight[rows].sum(axis=0)[None, :])[0] - _GAIN
    for j in range(problem.n_features):
        if control.over:
            break
        n = int(points.n_values[j])
        loss, count = np.zeros((n, problem.n_classes)), np.zeros(n)
        np.add.at(loss, points.rank[rows, j], points.class_weight[rows])
        np.add.at(count, points.rank[rows, j], points.weight[rows])
        left, size = np.cumsum(loss, axis=0)[:-1], np.cumsum(count)[:-1]
        allowed = (size >= problem.min_leaf_tolerant) & (count.sum() - size >= problem.min_leaf_tolerant)
        allowed &= (size > 0) & (size < count.sum())
        impurity = np.where(allowed, _impurity(left) + _impurity(loss.sum(axis=0) - left), np.inf)
        if n > 1 and impurity.min() < least:
            least, best = float(impurity.min()), (j, int(np.argmin(impurity)))
    return best


def _impurity(loss: FloatArray) -> FloatArray:
    """Gini impurity of every row, times its weight."""
    total = loss.sum(axis=1)
    squares = np.divide(np.sum(loss**2, axis=1), total, out=np.zeros_like(total), where=total > 0)
    return total - squares
