"""The mixed-integer linear models of OCT-1 and OCT-H, and the conversion between trees and points of the models.

Variables (nodes ``t``, leaves ``q``, points ``u``, features ``j``, classes ``k``): ``z`` (u, q) says that a point is in
a leaf, ``l`` (q) that a leaf holds points, ``c`` (k, q) that it predicts the class, ``loss`` (q) is its misclassified
weight, ``d`` (t) says that a node splits, ``a`` (t, j) and ``b`` (t) are its hyperplane: right where ``a.x >= b``.

In splits by one feature, ``x`` is the rank of the value, scaled to [0, 1]: all steps of a feature are equal, and no
step is within the tolerances of the solvers.  Splits by several features use the values themselves.  The rows for the
splits are in :mod:`margotree.baselines.oct.split_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.baselines.oct.merged_samples import IndexArray
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.split_rows import one_feature_rows, ranks, several_features_rows
from margotree.baselines.oct.tree_cleanup import clean_tree, leaves_below, tree_from_leaves
from margotree.engines import RunControl
from margotree.engines.mip.model import Draft, MipModel
from margotree.problem import Splits, topology
from margotree.problem.problem import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class OctModel:
    """A problem in MILP form; converts points of the model to trees and trees to points."""

    problem: OctProblem
    mip: MipModel
    #: The scaled ranks of the values, and their step by feature: the smallest distance to a threshold on the left.
    values: FloatArray
    step: FloatArray

    def leaf(self, x: FloatArray) -> IndexArray:
        """The leaf of every point, from the binaries."""
        return self.problem.n_nodes + np.argmax(self.mip.part(x, "z"), axis=1).astype(np.int64)

    def single(self, x: FloatArray) -> NDArray[np.bool_]:
        """The feature of every split by one feature, as a mask."""
        return self.mip.part(x, "u") > 0.5

    def support(self, x: FloatArray) -> NDArray[np.bool_]:
        """The features that every node may use, from the binaries."""
        return self.single(x) if self.problem.mu is None else self.single(x) | (self.mip.part(x, "s") > 0.5)

    def splits(self, x: FloatArray) -> Splits | None:
        """The solver's hyperplanes of OCT-H, in the middle of their band; None for OCT-1, whose model has ranks only.

        Within the solver's tolerances, they may route points near the band in another way than ``z``.
        """
        if self.problem.mu is None:
            return None
        offset, single = self.mip.part(x, "b"), self.single(x)
        w = np.where(self.support(x), self.mip.part(x, "a"), 0.0)
        b = 0.5 * self.problem.mu - offset
        for t in np.flatnonzero(single.any(axis=1)):
            w[t], b[t] = self._threshold(int(np.argmax(single[t])), float(offset[t]))
        return Splits(w=w, b=b)

    def _threshold(self, j: int, rank: float) -> tuple[FloatArray, float]:
        """Weights and offset of the split of feature ``j`` at the scaled rank ``rank``, in the units of the feature."""
        right = self.values[:, j] >= rank - 0.5 * self.step[j]
        w, x = np.zeros(self.problem.n_features), self.problem.points.X[:, j]
        if right.all() or not right.any():
            return w, 1.0 if right.all() else -1.0
        w[j] = 1.0
        return w, -0.5 * float(x[right].min() + x[~right].max())

    def trees(self, x: FloatArray, control: RunControl) -> Iterator[Splits]:
        """The allowed tree of a point of the model: with the routing of its binaries or, if no such tree is allowed,
        with that of its hyperplanes."""
        tree = tree_from_leaves(self.problem, self.leaf(x), self.support(x), control)
        as_routed = self.splits(x) if tree is None else None
        if as_routed is not None:
            tree = clean_tree(self.problem, as_routed, control)
        if tree is not None:
            yield tree

    def point(self, splits: Splits) -> FloatArray:
        """The point of the model for an allowed tree in the form that
        :func:`~margotree.baselines.oct.tree_cleanup.clean_tree` returns."""
        problem, blocks = self.problem, self.mip.blocks
        found = problem.evaluate(splits)
        leaf_of = np.zeros(len(problem.points.X), dtype=np.int64)
        leaf_of[problem.points.point_of] = found.leaf - problem.n_nodes
        x = np.zeros(self.mip.n_variables)
        z = leaf_of[:, None] == np.arange(problem.n_nodes + 1)
        occupied, label = z.any(axis=0), np.arange(problem.n_classes)[:, None] == found.label
        x[blocks["z"]], x[blocks["l"]], x[blocks["c"]] = z, occupied, label & occupied
        leaf_class_weight = z.T @ problem.points.class_weight
        x[blocks["loss"]] = leaf_class_weight.sum(axis=1) - leaf_class_weight.max(axis=1)
        used = splits.w != 0
        x[blocks["d"]] = used.any(axis=1)
        x[blocks["u"]] = used & (used.sum(axis=1) == 1)[:, None]
        self._write_thresholds(x, splits, leaf_of)
        if problem.mu is not None:
            self._write_hyperplanes(x, splits)
        return x

    def _write_thresholds(self, x: FloatArray, splits: Splits, leaf_of: IndexArray) -> None:
        """Set ``b`` of every split by one feature to the smallest value on its right."""
        problem, blocks = self.problem, self.mip.blocks
        for t, j in np.argwhere(self.single(x)):
            right = np.isin(leaf_of, np.array(leaves_below(topology.right(int(t)), problem.depth)) - problem.n_nodes)
            x[blocks["b"][t]] = self.values[right, j].min()

    def _write_hyperplanes(self, x: FloatArray, splits: Splits) -> None:
        """Set ``a`` with ``|a|_1 = 1``, and ``b`` where ``h = 1``, of every split by several features."""
        blocks = self.mip.blocks
        for t in np.flatnonzero(np.count_nonzero(splits.w, axis=1) > 1):
            size = np.abs(splits.w[t]).sum()
            x[blocks["a"][t]] = splits.w[t] / size
            x[blocks["size"][t]] = np.abs(splits.w[t]) / size
            x[blocks["s"][t]] = splits.w[t] != 0
            x[blocks["b"][t]] = (1.0 - splits.b[t]) / size
        x[blocks["single"]] = self.single(x).any(axis=1)


def formulate(problem: OctProblem, *, size: float = 1.0) -> OctModel:
    """The MILP model of a problem; ``size`` is the objective of a known tree, by which the objective is scaled."""
    draft = Draft()
    _leaf_variables(draft, problem)
    _leaf_rows(draft, problem)
    values, step = ranks(problem)
    if problem.mu is None:
        one_feature_rows(draft, problem)
    else:
        several_features_rows(draft, problem, problem.mu)
    return OctModel(problem=problem, mip=draft.finish(size=size), values=values, step=step)


def _leaf_variables(draft: Draft, problem: OctProblem) -> None:
    """Add the variables ``z``, ``l``, ``c``, ``loss`` and ``d`` with their bounds and their costs in the objective."""
    n_leaves = problem.n_nodes + 1
    draft.block("z", (len(problem.points.X), n_leaves), lower=0.0, upper=1.0, integer=True)
    draft.block("l", n_leaves, lower=0.0, upper=1.0, integer=True)
    draft.block("c", (problem.n_classes, n_leaves), lower=0.0, upper=1.0, integer=True)
    draft.block("loss", n_leaves, lower=0.0, linear=1.0 / problem.baseline_error)
    split_cost = problem.alpha if problem.mu is None else 0.0
    draft.block("d", problem.n_nodes, lower=0.0, upper=1.0, integer=True, linear=split_cost)


def _leaf_rows(draft: Draft, problem: OctProblem) -> None:
    """Add the constraints about leaves, and about nodes without a split, to the model.

    Every point is in one leaf.  A leaf that holds points has at least the smallest allowed weight, predicts one class,
    and its loss is at least the weight of its points of other classes.  There is no split below a node without one.
    """
    points, blocks = problem.points, draft.blocks
    z, leaf, c, loss, d = (blocks[name] for name in ("z", "l", "c", "loss", "d"))
    # Every point is in one leaf; a leaf with a point has l = 1.
    draft.rows([(z, 1.0)], lower=1.0, upper=1.0)
    draft.rows([(z.reshape(-1, 1), 1.0), (np.tile(leaf, len(z))[:, None], -1.0)], upper=0.0)
    # The smallest weight of a leaf with l = 1; such a leaf predicts one class, the others none.
    draft.rows([(z.T, points.weight), (leaf[:, None], -problem.min_leaf_tolerant)], lower=0.0)
    draft.rows([(c.T, 1.0), (leaf[:, None], -1.0)], lower=0.0, upper=0.0)
    for k in range(problem.n_classes):
        # The loss of a leaf that predicts class k: the weight of other classes in it.  Big M: their weight in total.
        others = points.weight - points.class_weight[:, k]
        draft.rows([(loss[:, None], 1.0), (z.T, -others), (c[k][:, None], -others.sum())], lower=-others.sum())
    for t in range(problem.n_nodes):
        if t:
            draft.rows([(d[[t, topology.parent(t)]], [1.0, -1.0])], upper=0.0)
        # A node that does not split sends all samples right, as the strict inequality of Bertsimas and Dunn does.
        for q in leaves_below(topology.left(t), problem.depth):
            draft.rows([([leaf[q - problem.n_nodes], d[t]], [1.0, -1.0])], upper=0.0)
