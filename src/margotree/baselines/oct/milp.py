"""The mixed-integer models of OCT-1 and OCT-H, and the ways there and back.

Variables (nodes ``t``, leaves ``q``, points ``u``, features ``j``, classes ``k``): ``z`` (u, q) puts points into
leaves, ``l`` (q) says that a leaf holds points, ``c`` (k, q) is its class, ``loss`` (q) what it gets wrong, ``d`` (t)
that a node splits, ``a`` (t, j) and ``b`` (t) how: right where ``a.x >= b``.

OCT-1 counts features in steps: ``x`` is the rank of the value, scaled to [0, 1], so the smallest step of a feature is
also its usual one and no solver tolerance can reach over it.  OCT-H takes the values as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.baselines.oct.points import IndexArray
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.shape import realise, settle
from margotree.engines.mip.model import Draft, MipModel
from margotree.problem import Splits, topology
from margotree.problem.problem import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class OctModel:
    """A problem in MILP form; reads points of the model as trees and writes trees as points."""

    problem: OctProblem
    mip: MipModel
    #: The values the model splits by, and the least distance it keeps from them on the left, by feature.
    values: FloatArray
    step: FloatArray

    def leaf(self, x: FloatArray) -> IndexArray:
        """The leaf of every point, by the binaries."""
        return self.problem.n_nodes + np.argmax(self.mip.part(x, "z"), axis=1).astype(np.int64)

    def support(self, x: FloatArray) -> NDArray[np.bool_]:
        """The features every node may use, by the binaries."""
        return self.mip.part(x, "s" if self.problem.mu is not None else "a") > 0.5

    def splits(self, x: FloatArray) -> Splits | None:
        """OCT-H's hyperplanes as the solver left them, in the middle of their band; they may route points near it
        another way than ``z``.  None for OCT-1, whose thresholds are ranks."""
        if self.problem.mu is None:
            return None
        a = np.where(self.support(x), self.mip.part(x, "a"), 0.0)
        return Splits(w=a, b=0.5 * self.mip.part(x, "m") - self.mip.part(x, "b"))

    def trees(self, x: FloatArray) -> Iterator[Splits]:
        """The allowed tree behind a point: samples where it says or, if that cannot be, where its splits do."""
        tree = realise(self.problem, self.leaf(x), self.support(x))
        rough = self.splits(x) if tree is None else None
        if rough is not None:
            tree = settle(self.problem, rough)
        if tree is not None:
            yield tree

    def point(self, splits: Splits) -> FloatArray:
        """The point of the model that an allowed tree (as :func:`~margotree.baselines.oct.shape.settle` leaves it)
        stands for."""
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
        if problem.mu is None:
            self._write_thresholds(x, splits, where)
        else:
            self._write_hyperplanes(x, splits)
        return x

    def _write_thresholds(self, x: FloatArray, splits: Splits, where: IndexArray) -> None:
        """``b`` at the first value on the right of every split."""
        problem, blocks = self.problem, self.mip.blocks
        x[blocks["a"]] = splits.w != 0
        for t in np.flatnonzero(splits.w.any(axis=1)):
            j = int(np.argmax(splits.w[t] != 0))
            right = np.isin(where, np.array(leaves_below(topology.right(int(t)), problem.depth)) - problem.n_nodes)
            x[blocks["b"][t]] = self.values[right, j].min()

    def _write_hyperplanes(self, x: FloatArray, splits: Splits) -> None:
        """``|a|_1 = 1``, and ``b`` where ``h = 1``."""
        problem, blocks = self.problem, self.mip.blocks
        size = np.abs(splits.w).sum(axis=1)
        split = size > 0
        scale = np.where(split, 1.0 / np.where(split, size, 1.0), 0.0)
        used = splits.w != 0
        x[blocks["a"]] = scale[:, None] * splits.w
        x[blocks["size"]] = np.abs(x[blocks["a"]])
        x[blocks["b"]] = scale * (1.0 - splits.b)
        x[blocks["s"]] = used
        single = used.sum(axis=1) == 1
        x[blocks["single"]] = single
        steps = np.where(used, self.step, 0.0).max(axis=1)
        x[blocks["m"]] = np.where(single, steps, np.where(split, problem.mu or 0.0, 0.0))


def formulate(problem: OctProblem, *, size: float = 1.0) -> OctModel:
    """The model of a problem; ``size`` is the value of a known tree."""
    draft = Draft()
    _leaf_variables(draft, problem)
    _leaf_rows(draft, problem)
    values, step = _univariate(draft, problem) if problem.mu is None else _multivariate(draft, problem)
    return OctModel(problem=problem, mip=draft.finish(size=size), values=values, step=step)


def leaves_below(v: int, depth: int) -> range:
    """The leaves under a node (itself if it is one)."""
    down = depth - topology.level(v)
    return range((v + 1) * 2**down - 1, (v + 2) * 2**down - 1)


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


def _sides(draft: Draft, problem: OctProblem, t: int) -> tuple[IndexArray, IndexArray]:
    """The binaries of every point that say whether it ends on the left or on the right of a node."""
    z, first = draft.blocks["z"], problem.n_nodes
    left, right = (leaves_below(child, problem.depth) for child in (topology.left(t), topology.right(t)))
    return z[:, left.start - first : left.stop - first], z[:, right.start - first : right.stop - first]


def _univariate(draft: Draft, problem: OctProblem) -> tuple[FloatArray, FloatArray]:
    """OCT-1: one feature a split, ``a.x >= b`` on the right and ``a.(x + step) <= b`` on the left."""
    points, T, n = problem.points, problem.n_nodes, problem.n_features
    steps = np.maximum(points.n_levels - 1, 1)
    values, step = points.level / steps, 1.0 / steps
    # A feature with one value cannot split.
    a = draft.block("a", (T, n), lower=0.0, upper=(points.n_levels > 1).astype(float), integer=True)
    b, d = draft.block("b", T, lower=0.0, upper=1.0), draft.blocks["d"]
    draft.rows([(a, 1.0), (d[:, None], -1.0)], lower=0.0, upper=0.0)
    draft.rows([(b[:, None], 1.0), (d[:, None], -1.0)], upper=0.0)
    far = 1.0 + float(step.max())
    for t in range(T):
        left, right = _sides(draft, problem, t)
        draft.rows([(a[t], values), (b[[t]], -1.0), (right, -1.0)], lower=-1.0)
        draft.rows([(a[t], values + step), (b[[t]], -1.0), (left, far)], upper=far)
    return values, step


def _multivariate(draft: Draft, problem: OctProblem) -> tuple[FloatArray, FloatArray]:
    """OCT-H: ``a.x >= b`` on the right and ``a.x + m <= b`` on the left with ``|a|_1 <= 1``.

    The band ``m`` is mu, but for a split by a single feature no more than that feature's smallest step.
    """
    assert problem.mu is not None
    T, n, mu, X = problem.n_nodes, problem.n_features, problem.mu, problem.points.X
    reach = max(1.0, float(np.abs(X).max()))
    step = np.minimum(mu, problem.gap)
    d = draft.blocks["d"]
    a = draft.block("a", (T, n), lower=-1.0, upper=1.0)
    size = draft.block("size", (T, n), lower=0.0, upper=1.0)
    s = draft.block("s", (T, n), lower=0.0, upper=1.0, integer=True, linear=problem.alpha)
    b = draft.block("b", T, lower=-reach, upper=reach)
    m = draft.block("m", T, lower=0.0, upper=mu)
    single = draft.block("single", T, lower=0.0, upper=1.0, integer=True)
    splits, flat = np.repeat(d, n)[:, None], (a.reshape(-1, 1), size.reshape(-1, 1), s.reshape(-1, 1))
    draft.rows([(size, 1.0), (d[:, None], -1.0)], upper=0.0)
    for sign in (1.0, -1.0):
        draft.rows([(flat[1], 1.0), (flat[0], sign)], lower=0.0)
        draft.rows([(flat[2], 1.0), (flat[0], sign)], lower=0.0)
        draft.rows([(d[:, None], reach), (b[:, None], sign)], lower=0.0)
    draft.rows([(flat[2], 1.0), (splits, -1.0)], upper=0.0)
    draft.rows([(s, 1.0), (d[:, None], -1.0)], lower=0.0)
    draft.rows([(s, 1.0), (single[:, None], n - 1.0)], upper=float(n))
    draft.rows([(m[:, None], 1.0), (d[:, None], -mu), (single[:, None], mu)], lower=0.0)
    draft.rows([(np.repeat(m, n)[:, None], 1.0), (flat[2], -np.tile(step, T)[:, None])], lower=0.0)
    for t in range(T):
        left, right = _sides(draft, problem, t)
        draft.rows([(a[t], X), (b[[t]], -1.0), (right, -2.0 * reach)], lower=-2.0 * reach)
        draft.rows([(a[t], X), (b[[t]], -1.0), (m[[t]], 1.0), (left, 2.0 * reach + mu)], upper=2.0 * reach + mu)
    return X, step
