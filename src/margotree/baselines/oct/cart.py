"""CART under OCT's own limits: the greedy tree that the exact models start from."""

from __future__ import annotations

import numpy as np

from margotree.baselines.oct.merged_samples import IndexArray
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.tree_cleanup import build, lay_out
from margotree.engines import Answer, Engine, RunControl
from margotree.problem import Splits
from margotree.problem.problem import FloatArray
from margotree.solution import Stopped

#: Gains of impurity below this are rounding.
_GAIN = 1e-12


class Cart(Engine[OctProblem]):
    """Gini splits from the top down, as deep and with leaves as small as the problem allows, then pruned by its value.

    Pruning weighs every split against the problem's own objective, so the complexity parameter is the problem's too.
    """

    name = "cart"
    models = frozenset({"oct_1", "oct_h"})
    proves = False

    def search(self, problem: OctProblem, control: RunControl, start: Splits | None) -> Answer:
        return Answer(splits=cart(problem, control), stopped=Stopped.HEURISTIC)


def cart(problem: OctProblem, control: RunControl | None = None) -> Splits:
    """The pruned CART tree of a problem; when time is up, nodes take the best split seen so far, or none."""
    clock = control or RunControl()
    if not problem.read(clock):
        return lay_out(problem, None)
    support = np.zeros((problem.n_nodes, problem.n_features), dtype=bool)

    def side(t: int, rows: IndexArray) -> np.ndarray | None:
        split = best_gini(problem, rows, clock)
        if split is None:
            return None
        support[t, split[0]] = True
        return problem.points.level[rows, split[0]] > split[1]

    tree = build(problem, side, support)
    assert tree is not None, "univariate splits between levels are always allowed"
    return tree


def best_gini(problem: OctProblem, rows: IndexArray, control: RunControl) -> tuple[int, int] | None:
    """Feature and level of the split that leaves the least impurity; None if no split is allowed or helps.

    Features that there is no time for are left out.
    """
    points = problem.points
    best, least = None, _impurity(points.loss[rows].sum(axis=0)[None, :])[0] - _GAIN
    for j in range(problem.n_features):
        if control.over:
            break
        n = int(points.n_levels[j])
        loss, count = np.zeros((n, problem.n_classes)), np.zeros(n)
        np.add.at(loss, points.level[rows, j], points.loss[rows])
        np.add.at(count, points.level[rows, j], points.count[rows])
        left, size = np.cumsum(loss, axis=0)[:-1], np.cumsum(count)[:-1]
        allowed = (size >= problem.enough) & (count.sum() - size >= problem.enough)
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
