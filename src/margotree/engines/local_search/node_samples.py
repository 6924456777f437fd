"""The reduced problem of one node: its samples, the penalties of their hinge losses, and their subtree costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.kernels.reduced_problem import ReducedProblem, best_threshold, objective
from margotree.engines.local_search.kernels.subtree_costs import subtree_costs
from margotree.engines.local_search.training_data import Terms
from margotree.engines.node.best_subset.groups import FeatureGroups
from margotree.engines.trivial_trees import best_constant
from margotree.problem import Choices
from margotree.problem.blocks import standard_deviation
from margotree.problem.problem import FloatArray
from margotree.problem.routing import goes_right, in_band, tie
from margotree.problem.tasks import NO_CHOICE, Items

#: Indices of samples.
Rows = NDArray[np.int64]
#: A hyperplane ``h(x) = w.x + b``: the weights ``w`` and the offset ``b``.
Plane = tuple[FloatArray, float]
#: The number of samples whose subtree costs are computed at a time.
_MOST_GATHERED = 100_000


@dataclass(kw_only=True, eq=False)
class Node:
    """The samples of one node, with their costs.

    The hyperplane ``(w, b)`` of the node has the objective ``1/2 |w|^2``, plus the hinge losses
    ``plus * max(0, 1 - h) + minus * max(0, 1 + h)`` of the samples, where ``h = Z @ w + b``, plus ``right_cost`` of the
    samples that go right and ``left_cost`` of the others.

    Attributes
    ----------
    Z : array of shape (m, p)
        The samples.
    plus : array of length m
        The penalty of ``max(0, 1 - h)`` of each sample; with two classes, 0 for the label -1.
    minus : array of length m
        The penalty of ``max(0, 1 + h)`` of each sample; with two classes, 0 for the label +1.
    left_cost, right_cost : arrays of length m
        The subtree cost of each sample if it goes left, and if it goes right.
    eps : float
        The width of the band.
    by_side : bool
        Whether the penalties ``plus`` are only for samples that go right, and ``minus`` only for those that go left.
    corners : pair of arrays, or None
        At the last level the values below and above which samples have losses; None for 1 and -1.
    squared : bool
        Whether the losses are squared.
    unit : float
        The scale of the values of good hyperplanes.
    groups : FeatureGroups
        The groups of features that budgets and penalties count.
    """

    Z: FloatArray
    plus: FloatArray
    minus: FloatArray
    left_cost: FloatArray
    right_cost: FloatArray
    eps: float
    groups: FeatureGroups
    by_side: bool = False
    corners: tuple[FloatArray, FloatArray] | None = None
    squared: bool = False
    unit: float = 1.0
    _spread: list[FloatArray] = field(default_factory=list)

    @classmethod
    def of(
        cls, terms: Terms, t: int, rows: Rows, choice: NDArray[np.int64] = NO_CHOICE, Z: FloatArray | None = None
    ) -> Node:
        """The node ``t`` with the samples ``rows`` of a training problem; the subtree costs are 0.

        ``choice`` are the target sides of the classes or the two labels, for tasks that have these; ``Z`` are the
        features of the samples, if they have been gathered before.
        """
        penalty, none = terms.C[t] * terms.weight[rows], np.zeros(len(rows))
        y, last, by_side = terms.y[rows], t >= terms.n_upper, terms.task.losses_follow_side
        right = left = np.broadcast_to(np.int64(1), len(rows))
        if by_side and not last:
            left = -right
        items = terms.task.items(y, last=last, side=right, choice=choice)
        others = items if last or not by_side else terms.task.items(y, last=last, side=left, choice=choice)
        plus, minus, squared = items.p * penalty, others.m * penalty, items.squared
        corners = (items.r, items.l) if by_side and last else None
        del items, others, penalty, y  # before the features are gathered: of a million samples they take 50 MB
        return cls(
            Z=terms.samples(rows) if Z is None else Z,
            plus=plus,
            minus=minus,
            left_cost=none,
            right_cost=none,
            eps=terms.eps,
            by_side=by_side and not last,
            corners=corners,
            squared=squared,
            unit=terms.unit if by_side and last else 1.0,
            groups=terms.groups,
        )

    def compute_subtree_costs(
        self, terms: Terms, t: int, rows: Rows, W: FloatArray, B: FloatArray, choices: Choices
    ) -> None:
        """Set ``left_cost`` and ``right_cost``, the cost of every sample in the two subtrees of node ``t``.

        The subtrees are fixed: ``W``, ``B`` and ``choices`` are the weights, offsets and choices of the whole tree.
        """
        ties = np.array([tie(b, terms.eps) for b in B])
        r, l = terms.corners  # noqa: E741
        tree = (*terms.hinge_penalties(choices), W, B, ties, terms.task.losses_follow_side, terms.task.squares_losses)
        self.left_cost, self.right_cost = np.empty(len(rows)), np.empty(len(rows))
        for start in range(0, len(rows), _MOST_GATHERED):
            part = slice(start, start + _MOST_GATHERED)
            some = rows[part]
            data = (self.Z[part], terms.code[some], terms.weight[some], r[some], l[some], *tree)
            subtree_costs(*data, 2 * t + 1, self.left_cost[part])
            subtree_costs(*data, 2 * t + 2, self.right_cost[part])

    def with_penalties(self, other: Node) -> Node:
        """The node with the penalties of another one of the same samples, and its own subtree costs."""
        return replace(self, plus=other.plus, minus=other.minus)

    def subset(self, chosen: Rows) -> Node:
        """The node with the ``chosen`` samples only."""
        return Node(
            Z=self.Z[chosen],
            plus=self.plus[chosen],
            minus=self.minus[chosen],
            left_cost=self.left_cost[chosen],
            right_cost=self.right_cost[chosen],
            eps=self.eps,
            by_side=self.by_side,
            corners=None if self.corners is None else (self.corners[0][chosen], self.corners[1][chosen]),
            squared=self.squared,
            unit=self.unit,
            groups=self.groups,
        )

    def hinges(self, h: FloatArray) -> float:
        """The sum of the hinge losses, times their penalties, of samples with the values ``h``."""
        if self.by_side:  # no sample lies in the band
            right = h >= -0.5 * self.eps
            return float(np.where(right, self.plus, self.minus) @ np.maximum(0.0, 1.0 - np.where(right, h, -h)))
        if self.corners is None:
            return float(self.plus @ np.maximum(0.0, 1.0 - h) + self.minus @ np.maximum(0.0, 1.0 + h))
        return float(np.sum(self.items.loss(h)))

    def right_of(self, h: FloatArray, plane: Plane) -> NDArray[np.bool_] | None:
        """A mask of the samples, with values ``h``, that go right of ``plane``; None if a sample is in the band."""
        return None if np.any(in_band(h, plane[1], self.eps)) else goes_right(h, plane[1], self.eps)

    def evaluate(self, plane: Plane) -> tuple[FloatArray, float]:
        """The values ``h`` of the samples, and the objective of the hyperplane without feature penalties.

        The objective is infinite if a sample is in the band.
        """
        h = np.empty(len(self.plus))
        return h, objective(self.reduced, plane[0], plane[1], self.eps, h)

    @property
    def reduced(self) -> ReducedProblem:
        """The same arrays as a struct for kernels."""
        return ReducedProblem(
            self.Z, self.plus, self.minus, self.left_cost, self.right_cost, self.by_side, self.groups.of_feature
        )

    @property
    def items(self) -> Items:
        """The losses of all samples, times their penalties."""
        return Items(self.plus, self.minus, *self.all_corners, squared=self.squared)

    @property
    def all_corners(self) -> tuple[FloatArray, FloatArray]:
        """The corners of the losses of all samples."""
        m = len(self.plus)
        return (np.ones(m), np.full(m, -1.0)) if self.corners is None else self.corners

    @property
    def spread(self) -> FloatArray:
        """The standard deviation of each feature; copies made by ``dataclasses.replace`` do not compute it again."""
        if not self._spread:
            self._spread.append(standard_deviation(self.Z))
        return self._spread[0]

    def heights(self, plane: Plane) -> FloatArray:
        """The values ``h = Z @ w + b`` of the samples."""
        h: FloatArray = self.Z @ plane[0] + plane[1]
        return h

    def best_cut(self, d: FloatArray, lengths: FloatArray, best: float = math.inf) -> tuple[Plane, float] | None:
        """The best hyperplane with a normal in the direction ``d``, and its objective without feature penalties.

        The weights are ``s * d`` with ``s`` from ``lengths``; for each of them the best offset is found. None if the
        objective is not below ``best``.
        """
        s, b, value = best_threshold(self.reduced, d, lengths, self.eps, best)
        return ((s * d, b), value) if s > 0 else None

    def best_constant(self) -> tuple[float, float]:
        """The best offset of a hyperplane without features, for a node of the last level, and its objective."""
        if self.corners is not None:
            return best_constant(self.items)
        plus, minus = float(np.sum(self.plus)), float(np.sum(self.minus))
        return 1.0 if plus >= minus else -1.0, 2.0 * min(plus, minus)

    def best_without_features(self) -> tuple[Plane, float]:
        """The best hyperplane without features, which sends all samples to one side, and its objective.

        As a function of the offset ``b``, the objective is linear between -1 and 1 on either side of the band, hence
        the best offset is 1 or 0 (all samples go right), or ``-eps`` or -1 (all samples go left).
        """
        if self.by_side:
            right_sum, left_sum = float(np.sum(self.right_cost)), float(np.sum(self.left_cost))
            b, value = (1.0, right_sum) if right_sum <= left_sum else (-max(1.0, self.eps), left_sum)
            return (np.zeros(self.Z.shape[1]), b), value
        plus_sum, minus_sum, left_sum, right_sum = (
            float(np.sum(a)) for a in (self.plus, self.minus, self.left_cost, self.right_cost)
        )
        candidates = [
            (b, plus_sum * (1.0 - b) + minus_sum * (1.0 + b) + (right_sum if b >= 0 else left_sum)) for b in (1.0, 0.0)
        ]
        lefts = (-self.eps, -1.0) if self.eps < 1.0 else (-self.eps,)
        candidates += [(b, plus_sum * (1.0 - b) + minus_sum * max(0.0, 1.0 + b) + left_sum) for b in lefts]
        b, value = min(candidates, key=lambda candidate: candidate[1])
        return (np.zeros(self.Z.shape[1]), b), value
