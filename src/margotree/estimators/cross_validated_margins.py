"""Margins of training samples at splits that were trained without them.

The margins of training samples are larger than those of new samples. For each of five folds, every split is trained
again on the other folds, on the samples that reach it in the tree and with the features of the tree; at upper splits
these samples stay on their sides. The samples of the fold then take their own way through the splits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.svm import NodeSolution, solve_node
from margotree.engines.polish import RoutedRows, routed_rows
from margotree.problem import Problem, topology
from margotree.tree import Tree
from margotree.tree.decision_values import Rows
from margotree.tree.scaling import FloatArray
from margotree.tree.score import label_distances

IndexArray = NDArray[np.int64]

N_FOLDS = 5
#: The largest work of the cross-validation: the sum over splits of (samples squared times features), from the smallest
#: split on. It takes less than about half a second. Splits beyond it are not trained again.
MAX_WORK = 2e8
#: From this number of samples per feature on, the margins of the fit differ little from those of new samples.
_MANY = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Folds:
    """The samples that each fold leaves out, as entries: a row of the problem, its fold, and the number of samples.

    A row that stands for two samples or more, as merged duplicates do, has an entry in every fold.
    """

    row: IndexArray
    fold: IndexArray
    count: FloatArray
    #: The share of each row of the problem that each fold leaves out, one column per fold.
    left_out: FloatArray

    @classmethod
    def of(cls, code: IndexArray, node: IndexArray, count: FloatArray) -> Folds:
        """Deal the samples of each class and last-level node to the folds in turn."""
        left_out = np.zeros((len(code), N_FOLDS))
        order = np.lexsort((node, code))
        left_out[order, np.arange(len(code)) % N_FOLDS] = 1.0
        left_out[count >= 2.0] = 1.0 / N_FOLDS
        row, fold = np.nonzero(left_out)
        return cls(row=row, fold=fold, count=count[row] * left_out[row, fold], left_out=left_out)


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossValidatedMargins:
    """The decision values of the entries of :class:`Folds` at the splits that were trained again.

    ``like_new`` says whether all margins are like those of new samples: every split was trained again, or has many
    samples per feature.
    """

    folds: Folds
    values: dict[int, FloatArray]
    like_new: bool

    def distances(self, tree: Tree, X: FloatArray, which: IndexArray) -> tuple[FloatArray, IndexArray]:
        """Return the distances of some entries from the labels, and the positions of their labels."""
        points = Rows.of_scaled(X[self.folds.row[which]])
        values = {t: found[which] for t, found in self.values.items()}
        at = np.zeros(len(which), dtype=np.int64)
        for t in range(tree.n_nodes):
            here = np.flatnonzero(at == t)
            right = values[t][here] >= -tree.tie(t) if t in values else tree.side(points[here], t)[1]
            at[here] = np.where(right, topology.right(t), topology.left(t))
        code = tree.leaf_class[at - tree.n_nodes]
        return label_distances(tree, points, code, values), code


def cross_validated_margins(tree: Tree, problem: Problem, count: FloatArray) -> CrossValidatedMargins:
    """Train the splits of a tree again without each fold.

    Splits without weights, and splits for which :data:`MAX_WORK` does not suffice, are left out.

    Parameters
    ----------
    count : array
        The number of samples that each row of the problem stands for.
    """
    X, reached = np.asarray(problem.X), problem.evaluate(tree.splits)
    folds = Folds.of(problem.task.codes(problem.y), reached.node, count)
    values: dict[int, FloatArray] = {}
    like_new, work = True, 0.0
    rows = [routed_rows(problem, t, reached.node, reached.choices.at(t)) for t in range(tree.n_nodes)]
    for t in sorted(range(tree.n_nodes), key=lambda t: len(rows[t].rows)):
        used, n = np.flatnonzero(tree.splits.w[t]), len(rows[t].rows)
        work += float(n) ** 2 * len(used)
        if not len(used) or n < 2:
            continue
        if work > MAX_WORK:
            like_new &= n >= _MANY * len(used)
            continue
        values[t] = tree.side(X, t)[0][folds.row]
        for k in range(N_FOLDS):
            split = _trained_without(problem, rows[t], used, folds.left_out[:, k])
            if split.feasible:
                entries = np.flatnonzero(folds.fold == k)
                values[t][entries] = X[np.ix_(folds.row[entries], used)] @ split.w + split.b
    return CrossValidatedMargins(folds=folds, values=values, like_new=like_new)


def _trained_without(problem: Problem, here: RoutedRows, used: IndexArray, left_out: FloatArray) -> NodeSolution:
    """Return the split of some samples on the features ``used``, if shares of them are left out."""
    kept = 1.0 - left_out[here.rows]
    which = np.flatnonzero(kept)
    return solve_node(
        np.ascontiguousarray(np.asarray(problem.X)[np.ix_(here.rows[which], used)]),
        here.label[which],
        (here.cost * kept)[which],
        corner=here.corner[which],
        side=None if here.side is None else here.side[which],
        eps=problem.eps,
        max_weight=problem.max_weight,
    )
