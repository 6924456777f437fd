"""The samples of one node, the penalties of their hinge losses, and their subtree costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.kernels.reduced_problem import Reduced, cut, measure
from margotree.engines.local_search.kernels.subtree_costs import subtree_costs
from margotree.engines.local_search.training_data import Terms
from margotree.problem.problem import FloatArray
from margotree.problem.routing import goes_right, in_band, tie

Rows = NDArray[np.int64]
Plane = tuple[FloatArray, float]


@dataclass(kw_only=True, eq=False)
class Node:
    """The samples of one node.

    ``Z`` are the samples (rows). ``plus`` and ``minus`` are the penalties of their hinge losses on the right and on the
    left. Their subtree costs on either side are ``left_cost`` and ``right_cost``. ``eps`` is the width of the band.
    """

    Z: FloatArray
    plus: FloatArray
    minus: FloatArray
    left_cost: FloatArray
    right_cost: FloatArray
    eps: float
    _spread: list[FloatArray] = field(default_factory=list)

    @classmethod
    def of(cls, terms: Terms, t: int, rows: Rows) -> Node:
        """The samples ``rows`` at node ``t``, with subtree costs of 0."""
        penalty, is_right = terms.C[t] * terms.weight[rows], terms.y[rows] > 0
        none = np.zeros(len(rows))
        return cls(
            Z=terms.samples(rows),
            plus=np.where(is_right, penalty, 0.0),
            minus=np.where(is_right, 0.0, penalty),
            left_cost=none,
            right_cost=none,
            eps=terms.eps,
        )

    def compute_subtree_costs(self, terms: Terms, t: int, rows: Rows, W: FloatArray, B: FloatArray) -> None:
        """Compute the cost of every sample in the left and in the right subtree of node ``t``, which are fixed."""
        ties = np.array([tie(b, terms.eps) for b in B])
        y, weight = terms.y[rows], terms.weight[rows]
        self.left_cost, self.right_cost = np.empty(len(rows)), np.empty(len(rows))
        subtree_costs(self.Z, y, weight, terms.C, W, B, ties, 2 * t + 1, self.left_cost)
        subtree_costs(self.Z, y, weight, terms.C, W, B, ties, 2 * t + 2, self.right_cost)

    def subset(self, chosen: Rows) -> Node:
        """The node with the ``chosen`` samples only."""
        return Node(
            Z=self.Z[chosen],
            plus=self.plus[chosen],
            minus=self.minus[chosen],
            left_cost=self.left_cost[chosen],
            right_cost=self.right_cost[chosen],
            eps=self.eps,
        )

    def hinges(self, h: FloatArray) -> float:
        """The sum of the hinge losses at the values ``h``."""
        return float(self.plus @ np.maximum(0.0, 1.0 - h) + self.minus @ np.maximum(0.0, 1.0 + h))

    def right_of(self, h: FloatArray, plane: Plane) -> NDArray[np.bool_] | None:
        """Which samples go right; None if a sample lies in the band."""
        return None if np.any(in_band(h, plane[1], self.eps)) else goes_right(h, plane[1], self.eps)

    def measure(self, plane: Plane) -> tuple[FloatArray, float]:
        """The values of the samples, and the objective without feature penalties; infinite if a sample lies in the
        band."""
        h = np.empty(len(self.plus))
        return h, measure(self.reduced, plane[0], plane[1], self.eps, h)

    @property
    def reduced(self) -> Reduced:
        """The node as an argument of kernels."""
        return Reduced(self.Z, self.plus, self.minus, self.left_cost, self.right_cost)

    @property
    def spread(self) -> FloatArray:
        """The standard deviation of each feature; computed once and shared with copies that have other penalties."""
        if not self._spread:
            self._spread.append(np.std(self.Z, axis=0))
        return self._spread[0]

    def heights(self, plane: Plane) -> FloatArray:
        """The values ``h`` of the samples."""
        h: FloatArray = self.Z @ plane[0] + plane[1]
        return h

    def best_cut(self, d: FloatArray, lengths: FloatArray, best: float = math.inf) -> tuple[Plane, float] | None:
        """The best threshold along the direction ``d`` at any of the lengths, and its value; None if it is not below
        ``best``."""
        s, b, value = cut(self.reduced, d, lengths, self.eps, best)
        return ((s * d, b), value) if s > 0 else None

    def no_split(self) -> tuple[Plane, float]:
        """The best offset without features, which sends all samples one way, and its value."""
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
