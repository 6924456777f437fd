"""Pruning of a trained tree: fewer numbers to read, as long as they do not save enough errors.

Nodes are visited from the bottom to the top, again and again, as in tree alternating optimization (Carreira-Perpiñán
and Tavallali, 2018).  At each node, with the other splits fixed, the split is replaced by the one with the smallest sum
of

- the weight of the training samples that are predicted wrong, and
- a penalty for every number to read.

Candidates are: no split; the present direction, or a part of its features with the trained weights or with weights of
weighted least squares, with the best threshold; and the best split of a single feature.  Only the samples whose
prediction differs between the two sides of a node matter.  Each change lowers the sum, so that the visits end.

The hyperplanes are then moved and scaled so that no training sample lies in the band and the objective of each node is
small.  The bound of the certificate is about all trees, so that it holds for the pruned tree, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.problem import Problem, Splits, topology
from margotree.problem.routing import goes_right
from margotree.tree.base import SELECTED, numbers_of_split
from margotree.tree.node_objective import NodeObjective
from margotree.tree.outline import never_splits
from margotree.tree.protocol import TreeLike
from margotree.tree.scaling import FloatArray
from margotree.tree.verification import MARGIN_MODELS

IndexArray = NDArray[np.int64]

#: Penalties between which a choice is made, and which are steps on the way to a larger one.
PENALTIES = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015)

#: The largest number of samples with which single features are compared, and the number of features that are then tried
#: with all samples.
_MOST_COMPARED, _MOST_TRIED = 4000, 3

#: The largest number of visits to all nodes, and the smallest improvement that counts.
_MOST_VISITS, _LEAST_GAIN = 10, 1e-9

#: The smallest difference of two values between which a threshold may lie, relative to their size.
_CLEAR = 1e-9

#: The distance of a threshold from the nearest sample, as a share of the gap between two samples.
_SHARE_OF_GAP = 0.1

#: The penalty of squared weights in the least squares, relative to the weight of the samples.
_RIDGE = 1e-4


def prune_tree(
    tree: TreeLike, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, penalty: float
) -> Pruned:
    """Prune a tree in steps; see :meth:`margotree.tree.Tree.pruned`."""
    if not 0 <= penalty <= 1:
        raise ValueError(f"penalty must be a share of the training samples from 0 to 1, got {penalty!r}")
    pruning = Pruning(tree, X, y, sample_weight)
    for smaller in PENALTIES:
        if smaller < penalty:
            pruning.step(smaller)
    pruning.step(penalty)
    return pruning.result()


@dataclass(frozen=True, kw_only=True, eq=False)
class Pruned:
    """The result of pruning.

    Attributes
    ----------
    splits : Splits
        The hyperplanes, in scaled units.
    objective : float
        The objective of the pruned tree.
    relabelled : float
        The share of the training samples, by weight, whose label is another than that of the trained tree.
    """

    splits: Splits
    objective: float
    relabelled: float


@dataclass(frozen=True, kw_only=True, eq=False)
class _Candidate:
    """A split and its value: the weight of wrong predictions below the node, and the penalties."""

    value: float
    w: FloatArray
    b: float


class Pruning:
    """Prunes a tree in steps of growing penalties, each from the tree of the step before it.

    Parameters
    ----------
    tree : Tree
        The tree.
    X, y, sample_weight
        Its training samples.
    must_stop : callable, optional
        Whether the time is used up; the visits end then.
    """

    def __init__(
        self,
        tree: TreeLike,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        must_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        if tree.terms.get("model") not in MARGIN_MODELS:
            raise ValueError(
                f"only trees of margin models (margot, hfs, sfs) are pruned, got {tree.terms.get('model')!r}"
            )
        problem = tree.restated(X, y, sample_weight)
        assert isinstance(problem, Problem)
        self.tree, self.problem, self.must_stop = tree, problem, must_stop
        self.X, self.weight = problem.X, problem.weight
        self.code = problem.task.codes(problem.y)
        self.total = float(self.weight.sum())
        #: The weights without those of classes.
        given = np.ones(len(np.asarray(y))) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.given_weight = given[given > 0]
        self.w, self.b = tree.splits.w.copy(), tree.splits.b.copy()
        for t in range(tree.n_nodes):
            if never_splits(tree, t):
                self.w[t] = 0.0
        self.compared = np.arange(0, len(self.X), -(-len(self.X) // _MOST_COMPARED))
        #: The compared samples in the order of each feature, one row per feature.
        self.order = self.compared[np.argsort(self.X[self.compared], axis=0, kind="stable")].T
        self.label = self._labels_below(0, np.arange(len(self.X)))
        self.changed = False

    def step(self, penalty: float) -> None:
        """Prune with this penalty, a share of the weight of all samples for each number to read."""
        for _ in range(_MOST_VISITS):
            if not self._visit_all(penalty * self.total):
                break

    def result(self) -> Pruned:
        """The tree after the steps so far."""
        splits, label = self.tree.splits, self.label
        if self.changed:
            splits, label = self._hyperplanes()
        found = self.problem.evaluate(splits)
        if not found.feasible:  # for example, if no factor keeps the largest allowed weight
            splits, label = self.tree.splits, self.label
            found = self.problem.evaluate(splits)
        relabelled = float(self.given_weight[label != self.label].sum() / self.given_weight.sum())
        return Pruned(splits=splits, objective=found.objective, relabelled=relabelled)

    def _visit_all(self, penalty: float) -> bool:
        """Visit all nodes, the last ones first; whether a split changed."""
        rows = list(self._rows_by_node())
        changed = False
        for t in reversed(range(self.tree.n_nodes)):
            if self.must_stop():
                return False
            changed |= self._visit(t, rows[t], penalty)
        self.changed |= changed
        return changed

    def _rows_by_node(self) -> Iterator[IndexArray]:
        at = np.zeros(len(self.X), dtype=np.int64)
        for t in range(self.tree.n_nodes):
            rows = np.flatnonzero(at == t)
            at[rows] = np.where(self._right(t, rows), topology.right(t), topology.left(t))
            yield rows

    # -- one node -----------------------------------------------------------------------------------------------

    def _visit(self, t: int, rows: IndexArray, penalty: float) -> bool:
        """Replace the split of a node if another one is better; whether it was replaced."""
        if not len(rows):
            return False  # the hyperplanes of the result have no such splits
        wrong = [self._wrong_below(child, rows) for child in (topology.left(t), topology.right(t))]
        numbers = [self._numbers(child)[0] for child in (topology.left(t), topology.right(t))]
        on_left, gain = float(wrong[0].sum()), wrong[1] - wrong[0]
        right = self._right(t, rows)
        present = on_left + float(gain[right].sum()) + penalty * self._numbers(t)[0]
        no_weights = np.zeros(self.X.shape[1])
        candidates = [
            _Candidate(value=float(wrong[side].sum()) + penalty * numbers[side], w=no_weights, b=(-1.0, 1.0)[side])
            for side in (0, 1)
        ]
        matters = np.flatnonzero(gain)
        for w, (least, threshold) in self._directions(t, rows[matters], gain[matters]):
            value = on_left + least + penalty * (_size(w) + sum(numbers))
            candidates.append(_Candidate(value=value, w=w, b=-threshold))
        best = min(candidates, key=lambda one: one.value)
        if best.value >= present - _LEAST_GAIN * self.total:
            return False
        self.w[t], self.b[t] = best.w, best.b
        return True

    def _wrong_below(self, v: int, rows: IndexArray) -> FloatArray:
        """The weight of each sample that is predicted wrong if it goes to ``v``."""
        return self.weight[rows] * (self._labels_below(v, rows) != self.code[rows])

    def _labels_below(self, v: int, rows: IndexArray) -> IndexArray:
        """The label of each sample, as a position in the classes, if it goes to ``v``."""
        if v >= self.tree.n_nodes:
            return np.full(len(rows), self.tree.leaf_class[v - self.tree.n_nodes], dtype=np.int64)
        right, found = self._right(v, rows), np.empty(len(rows), dtype=np.int64)
        found[right] = self._labels_below(topology.right(v), rows[right])
        found[~right] = self._labels_below(topology.left(v), rows[~right])
        return found

    def _right(self, t: int, rows: IndexArray) -> NDArray[np.bool_]:
        b = float(self.b[t])
        if not self.w[t].any():
            return np.full(len(rows), b >= 0)
        used = np.flatnonzero(self.w[t])
        return goes_right(self.X[np.ix_(rows, used)] @ self.w[t, used] + b, b, self.problem.eps)

    def _numbers(self, v: int) -> tuple[int, frozenset[int]]:
        """The numbers to read at and below ``v``, and the labels of its leaves."""
        if v >= self.tree.n_nodes:
            return 0, frozenset([int(self.tree.leaf_class[v - self.tree.n_nodes])])
        if not self.w[v].any():
            return self._numbers(topology.right(v) if self.b[v] >= 0 else topology.left(v))
        (left, some), (right, others) = (self._numbers(child) for child in (topology.left(v), topology.right(v)))
        labels = some | others
        return (0 if len(labels) == 1 else left + right + _size(self.w[v])), labels

    # -- candidates ---------------------------------------------------------------------------------------------

    def _directions(
        self, t: int, rows: IndexArray, gain: FloatArray
    ) -> Iterator[tuple[FloatArray, tuple[float, float]]]:
        """Weights, each with the smallest sum of ``gain`` on the right and the threshold that has it."""
        if not len(rows):
            return
        for j in self._features(rows, gain):
            values = self.X[rows, j]
            for sign in (1.0, -1.0):
                if found := _best_threshold(sign * values, gain):
                    yield self._weights([j], [sign]), found
        used = np.flatnonzero(np.abs(self.w[t]) >= SELECTED)
        for part in _parts(used):
            values = self.X[np.ix_(rows, part)]
            for weights in self._weights_of_part(t, part, values, gain):
                if found := _best_threshold(values @ weights, gain):
                    yield self._weights(part, weights), found

    def _weights(self, features: Iterable[int], weights: Iterable[float]) -> FloatArray:
        w = np.zeros(self.X.shape[1])
        w[list(features)] = list(weights)
        return w

    def _weights_of_part(self, t: int, part: IndexArray, values: FloatArray, gain: FloatArray) -> Iterator[FloatArray]:
        """The present weights of some features, and those of weighted least squares for the better side."""
        yield self.w[t, part]
        if len(part) < 2:
            return
        weight = np.abs(gain)
        columns = np.column_stack([values, np.ones(len(values))])
        square = columns.T @ (columns * weight[:, None])
        ridge = _RIDGE * float(weight.sum()) * np.eye(len(square))
        found: FloatArray = np.linalg.solve(square + ridge, columns.T @ -gain)[:-1]
        if (largest := np.abs(found).max()) > 0 and np.all(np.abs(found) >= SELECTED * largest):
            yield found / largest

    def _features(self, rows: IndexArray, gain: FloatArray) -> list[int]:
        """The features whose best threshold is best; among many samples the best ones of every k-th sample."""
        of_all = np.zeros(len(self.X))
        of_all[rows] = gain
        here = of_all[self.order] != 0
        m = int(here[0].sum())
        if m < 2:
            return []
        order = self.order[here].reshape(len(self.order), m)
        values = self.X[order, np.arange(len(order))[:, None]]
        between = np.diff(values, axis=1) > _CLEAR
        on_right = np.cumsum(of_all[order[:, ::-1]], axis=1)[:, -2::-1]
        total = float(of_all[order[0]].sum())
        least = np.where(between, np.minimum(on_right, total - on_right), np.inf).min(axis=1)
        best = np.argsort(least, kind="stable")[: 1 if len(self.compared) == len(self.X) else _MOST_TRIED]
        return [int(j) for j in best if np.isfinite(least[j])]

    # -- the result ---------------------------------------------------------------------------------------------

    def _hyperplanes(self) -> tuple[Splits, IndexArray]:
        """The splits with thresholds at a distance from all samples and the best factors, and the labels."""
        nodes, at = NodeObjective(self.problem), np.zeros(len(self.X), dtype=np.int64)
        w, b = np.zeros_like(self.w), self.b.copy()
        for t in range(self.tree.n_nodes):
            rows = np.flatnonzero(at == t)
            right = self._right(t, rows)
            at[rows] = np.where(right, topology.right(t), topology.left(t))
            if right.all() or not right.any():
                b[t] = nodes.best_offset(t, rows, int(right.all() if len(rows) else self.b[t] >= 0))
                continue
            values = self.X[rows] @ self.w[t]
            low, high = float(values[~right].max()), float(values[right].min())
            slack = _SHARE_OF_GAP * (high - low)
            offset = -float(np.clip(-self.b[t], low + slack, high - slack))
            guess = float(np.linalg.norm(self.tree.splits.w[t])) or 1.0
            found = nodes.best_factor(t, rows, self.w[t], offset, values + offset, right, guess)
            factor = 1.0 if found is None else found[0]
            w[t], b[t] = factor * self.w[t], factor * offset
        return Splits(w=w, b=b), self.tree.leaf_class[at - self.tree.n_nodes]


def _size(w: FloatArray) -> int:
    """The numbers to read of a split."""
    return numbers_of_split(int(np.count_nonzero(np.abs(w) >= SELECTED)) or int(np.count_nonzero(w)))


def _parts(features: IndexArray) -> list[IndexArray]:
    """All features of a split, all but one of them, and single ones."""
    parts = [features] if len(features) else []
    if len(features) > 1:
        parts += [np.delete(features, k) for k in range(len(features))]
    if len(features) > 2:
        parts += [features[[k]] for k in range(len(features))]
    return parts


def _best_threshold(values: FloatArray, gain: FloatArray) -> tuple[float, float] | None:
    """The smallest sum of ``gain`` over the samples from a threshold on, and the threshold in the widest such gap."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    between = np.flatnonzero(np.diff(ordered) > _CLEAR * (1.0 + np.abs(ordered[[0, -1]]).max()))
    if not len(between):
        return None
    on_right = np.cumsum(gain[order[::-1]])[::-1][1:][between]
    least = float(on_right.min())
    good = between[on_right <= least + _LEAST_GAIN * float(np.abs(gain).sum())]
    k = good[np.argmax(ordered[good + 1] - ordered[good])]
    return least, float(ordered[k] + (ordered[k + 1] - ordered[k]) / 2)
