"""A training problem as the local search uses it: arrays, subsets of the samples, and trees with their objective."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.best_subset.groups import FeatureGroups
from margotree.problem import Choices, Problem, Splits, Task
from margotree.problem.blocks import standard_deviation
from margotree.problem.problem import FloatArray

#: The number of samples that are standardised at a time.
_CHUNK = 4096
#: The last smoothing width of the SVMs: during the search, and for the final tree.
LAST_WIDTH, PRECISE_WIDTH = 1e-3, 1e-6

#: With feature penalties: the share of new splits that may use all features, and the share that use just the budget.
_ALL_FEATURES, _BUDGET_ONLY = 0.3, 0.35


@dataclass(frozen=True, kw_only=True, eq=False)
class Terms:
    """The samples and penalties of a training problem.

    ``X``, ``y``, ``weight`` are the samples, targets and sample weights. ``C``, ``budget`` and ``alpha`` have one entry
    per node: a budget of all features means that there is none, an infinite ``alpha`` that the budget is hard. ``eps``
    is the width of the band, ``groups`` are the groups of features that budgets and penalties count, and
    ``last_width`` is the last smoothing width of the SVMs.
    """

    X: FloatArray
    y: NDArray[Any]
    weight: FloatArray
    C: FloatArray
    budget: NDArray[np.int64]
    alpha: FloatArray
    eps: float
    task: Task
    groups: FeatureGroups
    last_width: float = LAST_WIDTH

    @classmethod
    def of(cls, problem: Problem) -> Terms:
        """The terms of a problem."""
        nodes = problem.n_nodes
        return cls(
            X=problem.X,
            y=problem.y,
            weight=problem.weight,
            C=np.array(problem.C),
            budget=np.full(nodes, problem.n_groups) if problem.budget is None else np.array(problem.budget),
            alpha=np.full(nodes, np.inf) if problem.alpha is None else np.array(problem.alpha),
            eps=problem.eps,
            task=problem.task,
            groups=FeatureGroups(problem.n_features, problem.groups),
        )

    @property
    def n_samples(self) -> int:
        """The number of samples."""
        return len(self.y)

    @property
    def n_nodes(self) -> int:
        """The number of branch nodes."""
        return len(self.C)

    @property
    def depth(self) -> int:
        """The depth of the tree."""
        return self.n_nodes.bit_length()

    def part(self, rows: NDArray[np.int64], factor: FloatArray) -> Terms:
        """The same problem on the samples ``rows``, with their weights multiplied by ``factor`` (one entry per row)."""
        return replace(self, X=self.X[rows], y=self.y[rows], weight=self.weight[rows] * factor)

    def subsample(self, count: int, rng: np.random.Generator) -> Terms:
        """The same problem on ``count`` samples drawn at random, with weights scaled to the sum of all."""
        n = self.n_samples
        return self.part(np.sort(rng.choice(n, count, replace=False)), np.full(count, n / count))

    def subtree(self, nodes: list[int], rows: NDArray[np.int64]) -> Terms:
        """The problem of the subtree with these ``nodes``, on the samples ``rows`` that reach it."""
        part = self.part(rows, np.ones(len(rows)))
        return replace(part, C=self.C[nodes], budget=self.budget[nodes], alpha=self.alpha[nodes])

    def samples(self, rows: NDArray[np.int64]) -> FloatArray:
        """The features of the samples ``rows``; not copied if ``rows`` are all samples in their order."""
        return self._all_samples if len(rows) == self.n_samples else self.X[rows]

    @cached_property
    def _all_samples(self) -> FloatArray:
        """All samples as a writeable array, the type that kernels are compiled for; nothing writes to it."""
        X = self.X
        if X.flags.writeable:
            return X
        if X.base is not None:
            return X.copy()
        X.setflags(write=True)
        view = X.view()
        X.setflags(write=False)  # the view stays writeable
        return view

    @cached_property
    def spread(self) -> FloatArray:
        """The standard deviation of each feature."""
        return standard_deviation(self.X)

    @cached_property
    def mean(self) -> FloatArray:
        """The mean of each feature."""
        found: FloatArray = np.mean(self.X, axis=0)
        return found

    @cached_property
    def inverse_spread(self) -> FloatArray:
        """The reciprocal of each feature's standard deviation; 0 for a constant feature.

        Standard deviations below 0.001 times the largest are replaced by that value.
        """
        most = float(np.max(self.spread))
        return np.where(self.spread > 0.0, 1.0 / np.maximum(self.spread, max(1e-3 * most, 1e-300)), 0.0)

    @cached_property
    def standardised(self) -> NDArray[np.float32]:
        """The standardised samples, ``(X - mean) * inverse_spread``, in single precision."""
        found = np.empty(self.X.shape, np.float32)
        for start in range(0, len(found), _CHUNK):
            here = slice(start, start + _CHUNK)
            found[here] = (self.X[here] - self.mean) * self.inverse_spread
        return found

    @cached_property
    def code(self) -> NDArray[np.int64]:
        """The class of each sample as a number from 0 on."""
        return self.task.codes(self.y)

    @cached_property
    def corners(self) -> tuple[FloatArray, FloatArray]:
        """The two corners of the losses of each sample at the last level."""
        items = self.task.items(self.y, last=True, choice=self.initial_choices().at(self.n_upper))
        return np.ascontiguousarray(items.r), np.ascontiguousarray(items.l)  # arrays for kernels

    @cached_property
    def centre(self) -> float:
        """A central value of last-level hyperplanes: the median of the centres between the corners."""
        r, l = self.corners  # noqa: E741
        return 0.5 * float(np.median(r + l))

    @cached_property
    def unit(self) -> float:
        """The scale of last-level hyperplanes: 1 for hinge losses, about the spread of numeric targets."""
        found = float(np.mean(np.abs(self.corners[0] - self.centre)))
        return found if found > 0.0 else 1.0

    @property
    def n_upper(self) -> int:
        """The number of nodes above the last level."""
        return self.n_nodes // 2

    def mass(self, rows: NDArray[np.int64]) -> FloatArray:
        """The total weight of each class among some samples."""
        return self.task.mass(self.y[rows], self.weight[rows])

    def initial_choices(self) -> Choices:
        """Choices of a tree, in arrays that can be written to."""
        return self.task.initial_choices(self.n_upper, self.n_nodes - self.n_upper)

    def hinge_penalties(self, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """The penalties of hinge losses on the right and on the left, per node and class, times ``C``."""
        p, m = self.task.class_penalties(choices)
        return p * self.C[:, None], m * self.C[:, None]

    def fine(self) -> Terms:
        """The same problem with a smaller last smoothing width, with which SVMs are more accurate."""
        return replace(self, last_width=PRECISE_WIDTH)

    def feature_penalty(self, t: int, w: FloatArray) -> float:
        """The feature penalty of the weights ``w`` at node ``t``."""
        return self.penalty_of(t, self.groups.count(w))

    def penalty_of(self, t: int, count: int) -> float:
        """The penalty of ``count`` groups of features at node ``t``."""
        over = count - int(self.budget[t])
        return float(self.alpha[t]) * over if over > 0 else 0.0

    def limited(self, t: int) -> bool:
        """Whether the node has a budget, hard or with feature penalties."""
        return bool(self.budget[t] < self.groups.n_groups)

    def penalised(self, t: int) -> bool:
        """Whether features beyond the budget of the node are allowed, at a penalty."""
        return bool(np.isfinite(self.alpha[t]))

    def random_support_size(self, t: int, rng: np.random.Generator) -> int:
        """The number of groups of features of a new split: the budget or, with feature penalties, a random choice of
        all groups, the budget, and the budget times a random power of two."""
        p, budget = self.groups.n_groups, int(self.budget[t])
        if budget >= p or not self.penalised(t):
            return min(p, budget)
        uniform = rng.random()
        if uniform < _ALL_FEATURES:
            return p
        doublings = 0 if uniform < _ALL_FEATURES + _BUDGET_ONLY else int(rng.integers(p.bit_length()))
        return min(p, budget << doublings)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainedTree:
    """A tree and its objective on the samples that it was trained on."""

    W: FloatArray
    B: FloatArray
    value: float

    @property
    def splits(self) -> Splits:
        """The tree as :class:`~margotree.problem.Splits`."""
        return Splits(w=self.W, b=self.B)
