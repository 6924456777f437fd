"""The single source of truth for OCT-1 and OCT-H: what a given tree is worth, and whether it is allowed.

Written in the slowest and plainest way on purpose; every answer is passed through :func:`evaluate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from margotree.baselines.oct.merged_samples import IndexArray
from margotree.problem import Splits, tie, topology
from margotree.problem.blocks import heights
from margotree.problem.problem import FloatArray

#: Rounding allowed on ``|h| >= 1``, on the steepness and on the size of a leaf, relative to each.
TOLERANCE = 1e-6


class OctTerms(Protocol):
    """What the value of a tree depends on; see :class:`~margotree.baselines.oct.problem.OctProblem`, which has it."""

    @property
    def X(self) -> FloatArray: ...

    @property
    def y(self) -> IndexArray: ...

    @property
    def n_classes(self) -> int: ...

    @property
    def weight(self) -> FloatArray: ...

    @property
    def depth(self) -> int: ...

    @property
    def min_leaf(self) -> float: ...

    @property
    def mu(self) -> float | None: ...

    @property
    def eps(self) -> float: ...

    @property
    def baseline(self) -> float: ...

    @property
    def n_samples(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def n_nodes(self) -> int: ...

    def price(self, w: FloatArray) -> float: ...

    def steepest(self, w: FloatArray) -> float: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class OctEvaluation:
    """What :func:`evaluate` found.

    ``error`` is the misclassified weight, ``splits`` the number of branch nodes that split, ``features`` their features
    summed up, ``leaf[i]`` the leaf of sample ``i`` and ``label[k]`` the class of the k-th leaf from the left.
    ``close`` is how much nearer than 1 some sample lies to a split it reaches, ``steep`` the largest excess over the
    allowed steepness as a share of it, ``short`` what the smallest leaf that holds samples lacks, ``oblique`` whether
    OCT-1 splits by more than one feature; all are 0 for an allowed tree.
    """

    objective: float
    error: float
    splits: int
    features: int
    leaf: IndexArray
    label: IndexArray
    close: float
    steep: float
    short: float
    oblique: bool

    @property
    def feasible(self) -> bool:
        return not self.violations

    @property
    def violations(self) -> list[str]:
        """Why the tree is not allowed; empty if it is."""
        reasons = []
        if self.close:
            reasons.append(f"a training sample lies {self.close:.3g} inside the margin of 1 beside a split")
        if self.steep:
            reasons.append(f"a split is {100 * self.steep:.3g} % steeper than the samples' spacing or mu allows")
        if self.short:
            reasons.append(f"a leaf lacks {self.short:g} of the samples it must hold")
        if self.oblique:
            reasons.append("a split uses more than one feature")
        return reasons


def evaluate(problem: OctTerms, splits: Splits) -> OctEvaluation:
    """Value and feasibility of a tree, recomputed from its hyperplanes alone."""
    if splits.w.shape != (problem.n_nodes, problem.n_features):
        raise ValueError(
            f"a tree of depth {problem.depth} on {problem.n_features} features needs weights of shape "
            f"{(problem.n_nodes, problem.n_features)}, got {splits.w.shape}"
        )
    at = np.zeros(problem.n_samples, dtype=np.int64)
    reached = np.zeros((2 * problem.n_nodes + 1, problem.n_classes))
    size = np.zeros(2 * problem.n_nodes + 1)
    close = steep = price = 0.0
    for v in range(2 * problem.n_nodes + 1):
        here = np.flatnonzero(at == v)
        size[v] = problem.weight[here].sum()
        for k in range(problem.n_classes):
            reached[v, k] = problem.weight[here[problem.y[here] == k]].sum()
        if v >= problem.n_nodes:
            continue
        w, b = splits.w[v], float(splits.b[v])
        h = heights(problem.X, here, w, b)
        right = h >= -tie(b, problem.eps)
        at[here] = np.where(right, topology.right(v), topology.left(v))
        if np.any(w):
            price += problem.price(w)
            close = max(close, float(np.max(1.0 - np.abs(h), initial=0.0)))
            steep = max(steep, float(np.sum(np.abs(w))) / max(problem.steepest(w), 1e-300) - 1.0)
    label = _labels(problem, reached)
    error = float(np.sum(problem.weight[label[at - problem.n_nodes] != problem.y]))
    lacks = float(np.max((problem.min_leaf - size[problem.n_nodes :])[size[problem.n_nodes :] > 0]))
    used = np.count_nonzero(splits.w, axis=1)
    oblique = problem.mu is None and bool(np.any(used > 1))
    return OctEvaluation(
        objective=error / problem.baseline + price,
        error=error,
        splits=int(np.count_nonzero(used)),
        features=int(used.sum()),
        leaf=at,
        label=label,
        close=close if close > TOLERANCE else 0.0,
        steep=steep if steep > TOLERANCE and not oblique else 0.0,
        short=lacks if lacks > TOLERANCE * problem.min_leaf else 0.0,
        oblique=oblique,
    )


def _labels(problem: OctTerms, reached: FloatArray) -> IndexArray:
    """The heaviest class of every leaf, the first of equals; a leaf without samples takes it from above."""
    label = np.zeros(problem.n_nodes + 1, dtype=np.int64)
    for v in topology.leaves(problem.depth):
        t = v
        while not reached[t].any():
            t = topology.parent(t)
        label[v - problem.n_nodes] = int(np.argmax(reached[t]))
    return label
