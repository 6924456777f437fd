"""The mixed-integer models of OCT-1 and OCT-H, and the ways there and back.

Variables (nodes ``t``, leaves ``q``, points ``u``, features ``j``, classes ``k``): ``z`` (u, q) puts points into
leaves, ``l`` (q) says that a leaf holds points, ``c`` (k, q) is its class, ``loss`` (q) what it gets wrong, ``d`` (t)
that a node splits, ``a`` (t, j) and ``b`` (t) how: right where ``a.x >= b``.

Splits by one feature count it in steps: ``x`` is the rank of the value, scaled to [0, 1], so the smallest step of a
feature is also its usual one and no solver tolerance can reach over it.  Splits by several take the values as they are.
The rows that say how nodes split are in :mod:`margotree.baselines.oct.split_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.baselines.oct.merged_samples import IndexArray
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.split_rows import one_feature, ranks, several_features
from margotree.baselines.oct.tree_cleanup import leaves_below, realise, settle
from margotree.engines import RunControl
from margotree.engines.mip.model import Draft, MipModel
from margotree.problem import Splits, topology
from margotree.problem.problem import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class OctModel:
    """A problem in MILP form; reads points of the model as trees and writes trees as points."""

    problem: OctProblem
    mip: MipModel
    #: The ranks that splits by one feature go by, and the least distance they keep from them on the left, by feature.
    values: FloatArray
    step: FloatArray

    def leaf(self, x: FloatArray) -> IndexArray:
        """The leaf of every point, by the binaries."""
        return self.problem.n_nodes + np.argmax(self.mip.part(x, "z"), axis=1).astype(np.int64)

    def single(self, x: FloatArray) -> NDArray[np.bool_]:
        """The feature of every split by one feature, as a mask."""
        return self.mip.part(x, "u") > 0.5

    def support(self, x: FloatArray) -> NDArray[np.bool_]:
        """The features every node may use, by the binaries."""
        return self.single(x) if self.problem.mu is None else self.single(x) | (self.mip.part(x, "s") > 0.5)

    def splits(self, x: FloatArray) -> Splits | None:
        """OCT-H's hyperplanes as the solver left them, in the middle of their band; they may route points near it
        another way than ``z``.  None for OCT-1, which has no other values than ranks."""
        if self.problem.mu is None:
            return None
        offset, single = self.mip.part(x, "b"), self.single(x)
        w = np.where(self.support(x), self.mip.part(x, "a"), 0.0)
        b = 0.5 * self.problem.mu - offset
        for t in np.flatnonzero(single.any(axis=1)):
            w[t], b[t] = self._threshold(int(np.argmax(single[t])), float(offset[t]))
        return Splits(w=w, b=b)

    def _threshold(self, j: int, rank: float) -> tuple[FloatArray, float]:
        """The split of feature ``j`` at a rank, in the units of the feature."""
        right = self.values[:, j] >= rank - 0.5 * self.step[j]
        w, x = np.zeros(self.problem.n_features), self.problem.points.X[:, j]
        if right.all() or not right.any():
            return w, 1.0 if right.all() else -1.0
        w[j] = 1.0
        return w, -0.5 * float(x[right].min() + x[~right].max())

    def trees(self, x: FloatArray, control: RunControl) -> Iterator[Splits]:
        """The allowed tree behind a point: samples where it says or, if that cannot be, where its splits do."""
        tree = realise(self.problem, self.leaf(x), self.support(x), control)
        rough = self.splits(x) if tree is None else None
        if rough is not None:
            tree = settle(self.problem, rough, control)
        if tree is not None:
            yield tree

    def point(self, splits: Splits) -> FloatArray:
        """Return the point of the model for a feasible tree, as
        :func:`~margotree.baselines.oct.tree_cleanup.settle` leaves it."""
        problem, blocks = self.problem, self.mip.blocks
        found = problem.evaluate(splits)
        where = np.zeros(len(problem.points.X), dtype=np.int64)
        where[problem.points.of] = found.leaf - problem.n_nodes
        x = np.zeros(self.mip.n_variables)
        z = where[:, None] == np.arange(problem.n_nodes + 1)
        full, label = z.any(axis=0), np.arange(problem.n_classes)[:, None] == found.label
        x[blocks["z"]], x[blocks["l"]], x[blocks["c"]] = z, full, label & full
        inside = z.T @ problem.points.loss
        x[blocks["loss"]] = inside.sum(axis=1) - inside.max(axis=1)
        used = splits.w != 0
        x[blocks["d"]] = used.any(axis=1)
        x[blocks["u"]] = used & (used.sum(axis=1) == 1)[:, None]
        self._write_thresholds(x, splits, where)
        if problem.mu is not None:
            self._write_hyperplanes(x, splits)
        return x

    def _write_thresholds(self, x: FloatArray, splits: Splits, where: IndexArray) -> None:
        """``b`` at the first value on the right of every split by one feature."""
        problem, blocks = self.problem, self.mip.blocks
        for t, j in np.argwhere(self.single(x)):
            right = np.isin(where, np.array(leaves_below(topology.right(int(t)), problem.depth)) - problem.n_nodes)
            x[blocks["b"][t]] = self.values[right, j].min()

    def _write_hyperplanes(self, x: FloatArray, splits: Splits) -> None:
        """``|a|_1 = 1``, and ``b`` where ``h = 1``, of every split by several features."""
        blocks = self.mip.blocks
        for t in np.flatnonzero(np.count_nonzero(splits.w, axis=1) > 1):
            size = np.abs(splits.w[t]).sum()
            x[blocks["a"][t]] = splits.w[t] / size
            x[blocks["size"][t]] = np.abs(splits.w[t]) / size
            x[blocks["s"][t]] = splits.w[t] != 0
            x[blocks["b"][t]] = (1.0 - splits.b[t]) / size
        x[blocks["single"]] = self.single(x).any(axis=1)


def formulate(problem: OctProblem, *, size: float = 1.0) -> OctModel:
    """The model of a problem; ``size`` is the value of a known tree."""
    draft = Draft()
    _leaf_variables(draft, problem)
    _leaf_rows(draft, problem)
    values, step = ranks(problem)
    if problem.mu is None:
        one_feature(draft, problem)
    else:
        several_features(draft, problem, problem.mu)
    return OctModel(problem=problem, mip=draft.finish(size=size), values=values, step=step)


def _leaf_variables(draft: Draft, problem: OctProblem) -> None:
    n_leaves = problem.n_nodes + 1
    draft.block("z", (len(problem.points.X), n_leaves), lower=0.0, upper=1.0, integer=True)
    draft.block("l", n_leaves, lower=0.0, upper=1.0, integer=True)
    draft.block("c", (problem.n_classes, n_leaves), lower=0.0, upper=1.0, integer=True)
    draft.block("loss", n_leaves, lower=0.0, linear=1.0 / problem.baseline)
    price = problem.alpha if problem.mu is None else 0.0
    draft.block("d", problem.n_nodes, lower=0.0, upper=1.0, integer=True, linear=price)


def _leaf_rows(draft: Draft, problem: OctProblem) -> None:
    """Every point in one leaf, leaves large enough, their class and what they get wrong; no split below a leaf."""
    points, blocks = problem.points, draft.blocks
    z, leaf, c, loss, d = (blocks[name] for name in ("z", "l", "c", "loss", "d"))
    draft.rows([(z, 1.0)], lower=1.0, upper=1.0)
    draft.rows([(z.reshape(-1, 1), 1.0), (np.tile(leaf, len(z))[:, None], -1.0)], upper=0.0)
    draft.rows([(z.T, points.count), (leaf[:, None], -problem.enough)], lower=0.0)
    draft.rows([(c.T, 1.0), (leaf[:, None], -1.0)], lower=0.0, upper=0.0)
    for k in range(problem.n_classes):
        # The most that a leaf of another class than k can hold of them: everything else.
        others = points.count - points.loss[:, k]
        draft.rows([(loss[:, None], 1.0), (z.T, -others), (c[k][:, None], -others.sum())], lower=-others.sum())
    for t in range(problem.n_nodes):
        if t:
            draft.rows([(d[[t, topology.parent(t)]], [1.0, -1.0])], upper=0.0)
        # A node that does not split sends everybody right; the source's strict inequality says the same.
        for q in leaves_below(topology.left(t), problem.depth):
            draft.rows([([leaf[q - problem.n_nodes], d[t]], [1.0, -1.0])], upper=0.0)
