"""The data of an MM-SVM-OCT problem, immutable and checked, and its value function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.problem import Problem, Splits, evaluate, topology
from margotree.problem.blocks import decision_values
from margotree.problem.problem import FloatArray, positive_number

IndexArray = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class MmSvmProblem:
    """A max-margin classification tree in the sense of Blanco, Japon and Puerto, two classes.

    Minimise over the splits of a tree of the given depth, with the routing of :class:`~margotree.problem.Problem`,

        max_t 1/2 |w_t|^2  +  sum_t sum_{i reaches t} weight_i * loss_ti  +  c3 * (number of t with w_t != 0)

    so that the smallest of the margins ``2 / |w_t|`` is as large as possible.  The loss of a sample is
    ``c1 max(0, 1 - y_i h_t(x_i))`` at every branch node that it reaches, split or not; with ``c2`` it may be relabelled
    there, for ``c2`` plus the loss of the other label.

    ``margin`` holds the samples, the depth and the routing band; its ``C`` is ``c1`` at every node.
    Build one with :meth:`MmSvmProblem.make`.
    """

    margin: Problem
    c1: float
    c2: float | None
    c3: float

    @classmethod
    def make(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        depth: int,
        c1: float = 1.0,
        c2: float | None = None,
        c3: float = 0.0,
        weight: ArrayLike | None = None,
        eps: float = 1e-3,
    ) -> MmSvmProblem:
        """A checked problem; ``y`` holds -1 and +1."""
        c1 = positive_number("c1", c1)
        return cls(
            margin=Problem.make(X, y, depth=depth, C=c1, weight=weight, eps=eps),
            c1=c1,
            c2=None if c2 is None else positive_number("c2", c2),
            c3=_nonnegative_number("c3", c3),
        )

    @property
    def model(self) -> str:
        return "mm_svm_oct"

    @property
    def depth(self) -> int:
        return self.margin.depth

    @property
    def eps(self) -> float:
        return self.margin.eps

    @property
    def n_nodes(self) -> int:
        return self.margin.n_nodes

    @property
    def n_samples(self) -> int:
        return self.margin.n_samples

    @property
    def n_features(self) -> int:
        return self.margin.n_features

    def evaluate(self, splits: Splits) -> MmSvmEvaluation:
        """Value and feasibility of a tree, recomputed from its hyperplanes alone."""
        routed = evaluate(self.margin, splits)
        loss, relabelled = 0.0, np.zeros((self.n_nodes, self.n_samples), dtype=bool)
        for t in range(self.n_nodes):
            below = topology.last_below(t, self.depth)
            rows = np.flatnonzero((routed.node >= below.start) & (routed.node < below.stop))
            h = decision_values(self.margin.X, rows, splits.w[t], splits.b[t])
            sample_loss = self.c1 * np.maximum(0.0, 1.0 - self.margin.y[rows] * h)
            if self.c2 is not None:
                flipped = self.c2 + self.c1 * np.maximum(0.0, 1.0 + self.margin.y[rows] * h)
                relabelled[t, rows] = flipped < sample_loss
                sample_loss = np.minimum(sample_loss, flipped)
            loss += float(self.margin.weight[rows] @ sample_loss)
        delta = float(np.max(0.5 * np.sum(splits.w**2, axis=1)))
        n_splits = int(np.count_nonzero(splits.w.any(axis=1)))
        return MmSvmEvaluation(
            objective=delta + loss + self.c3 * n_splits,
            delta=delta,
            loss=loss,
            splits=n_splits,
            node=routed.node,
            relabelled=relabelled,
            violations=routed.violations,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class MmSvmEvaluation:
    """Value and feasibility of a tree.

    ``delta`` is the largest ``1/2 |w|^2``, ``loss`` the sum of the losses, ``splits`` the number of nodes that split,
    ``node[i]`` the last-level node of sample ``i`` and ``relabelled[t, i]`` whether it has the loss of the other class
    at node ``t``.
    """

    objective: float
    delta: float
    loss: float
    splits: int
    node: IndexArray
    relabelled: NDArray[np.bool_]
    violations: list[str]

    @property
    def feasible(self) -> bool:
        return not self.violations


def restate(terms: Mapping[str, Any], depth: int, X: FloatArray, code: IndexArray, weight: FloatArray) -> MmSvmProblem:
    """The problem on which a saved tree was trained, from the terms in its file and the same samples."""
    class_weight = np.asarray(terms["class_weight"], dtype=np.float64)
    return MmSvmProblem.make(
        X,
        np.where(code == 1, 1.0, -1.0),
        depth=depth,
        c1=terms["c1"],
        c2=terms["c2"],
        c3=terms["c3"],
        weight=weight * class_weight[code],
        eps=terms["eps"],
    )


def _nonnegative_number(name: str, value: Any) -> float:
    return 0.0 if isinstance(value, (int, float)) and value == 0 else positive_number(name, value)
