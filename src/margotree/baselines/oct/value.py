"""The value function of OCT-1 and OCT-H: the objective of a given tree, and whether the tree is allowed.

The code is simple rather than fast, so that it can be checked by reading; the result of every engine is evaluated
by :func:`evaluate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from margotree.baselines.oct.merged_samples import IndexArray
from margotree.problem import Splits, tie, topology
from margotree.problem.blocks import decision_values
from margotree.problem.problem import FloatArray

#: Relative tolerance on ``|h| >= 1``, on the norm of a split and on the size of a leaf.
TOLERANCE = 1e-6


class OctTerms(Protocol):
    """The attributes on which the value of a tree depends; see :class:`~margotree.baselines.oct.problem.OctProblem`."""

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
    def baseline_error(self) -> float: ...

    @property
    def n_samples(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def n_nodes(self) -> int: ...

    def split_cost(self, w: FloatArray) -> float: ...

    def max_l1_norm(self, w: FloatArray) -> float: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class OctEvaluation:
    """Value and feasibility of a tree.

    ``error`` is the misclassified weight, ``splits`` the number of branch nodes that split, ``features`` the sum of the
    numbers of their features, ``leaf[i]`` the leaf of sample ``i`` and ``label[k]`` the class of the k-th leaf from the
    left.  The violations are 0 for an allowed tree: ``margin_deficit`` is the largest ``1 - |h|`` of a sample at a
    split that it reaches, ``norm_excess`` the largest relative excess over the allowed norm of a split,
    ``leaf_deficit`` the weight missing to ``min_leaf`` in the smallest leaf that holds samples, and ``oblique`` says
    whether a tree of OCT-1 splits by more than one feature.
    """

    objective: float
    error: float
    splits: int
    features: int
    leaf: IndexArray
    label: IndexArray
    margin_deficit: float
    norm_excess: float
    leaf_deficit: float
    oblique: bool

    @property
    def feasible(self) -> bool:
        return not self.violations

    @property
    def violations(self) -> list[str]:
        """Why the tree is not allowed; empty if it is."""
        reasons = []
        if self.margin_deficit:
            reasons.append(f"a training sample lies {self.margin_deficit:.3g} inside the margin of 1 beside a split")
        if self.norm_excess:
            reasons.append(
                f"a split is {100 * self.norm_excess:.3g} % steeper than the steps of the values or mu allow"
            )
        if self.leaf_deficit:
            reasons.append(f"a leaf holds {self.leaf_deficit:g} samples fewer than it must")
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
    node = np.zeros(problem.n_samples, dtype=np.int64)
    reached = np.zeros((2 * problem.n_nodes + 1, problem.n_classes))
    size = np.zeros(2 * problem.n_nodes + 1)
    margin_deficit = norm_excess = split_cost = 0.0
    for v in range(2 * problem.n_nodes + 1):
        rows = np.flatnonzero(node == v)
        size[v] = problem.weight[rows].sum()
        for k in range(problem.n_classes):
            reached[v, k] = problem.weight[rows[problem.y[rows] == k]].sum()
        if v >= problem.n_nodes:
            continue
        w, b = splits.w[v], float(splits.b[v])
        h = decision_values(problem.X, rows, w, b)
        right = h >= -tie(b, problem.eps)
        node[rows] = np.where(right, topology.right(v), topology.left(v))
        if np.any(w):
            split_cost += problem.split_cost(w)
            margin_deficit = max(margin_deficit, float(np.max(1.0 - np.abs(h), initial=0.0)))
            norm_excess = max(norm_excess, float(np.sum(np.abs(w))) / max(problem.max_l1_norm(w), 1e-300) - 1.0)
    label = _labels(problem, reached)
    error = float(np.sum(problem.weight[label[node - problem.n_nodes] != problem.y]))
    missing = float(np.max((problem.min_leaf - size[problem.n_nodes :])[size[problem.n_nodes :] > 0]))
    used = np.count_nonzero(splits.w, axis=1)
    oblique = problem.mu is None and bool(np.any(used > 1))
    return OctEvaluation(
        objective=error / problem.baseline_error + split_cost,
        error=error,
        splits=int(np.count_nonzero(used)),
        features=int(used.sum()),
        leaf=node,
        label=label,
        margin_deficit=margin_deficit if margin_deficit > TOLERANCE else 0.0,
        norm_excess=norm_excess if norm_excess > TOLERANCE and not oblique else 0.0,
        leaf_deficit=missing if missing > TOLERANCE * problem.min_leaf else 0.0,
        oblique=oblique,
    )


def _labels(problem: OctTerms, reached: FloatArray) -> IndexArray:
    """The heaviest class of every leaf, the first of equals; a leaf without samples takes that of its ancestor."""
    label = np.zeros(problem.n_nodes + 1, dtype=np.int64)
    for v in topology.leaves(problem.depth):
        t = v
        while not reached[t].any():
            t = topology.parent(t)
        label[v - problem.n_nodes] = int(np.argmax(reached[t]))
    return label
