"""The samples of one node, what they pay there, and what they would pay below it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.kernels.reduced_problem import Reduced, cut, measure
from margotree.engines.local_search.kernels.subtree_costs import pay_below
from margotree.engines.local_search.training_data import Terms
from margotree.problem import tie
from margotree.problem.problem import FloatArray

Rows = NDArray[np.int64]
Plane = tuple[FloatArray, float]


@dataclass(kw_only=True, eq=False)
class Node:
    """One node's samples: rows, prices of lacking a margin on the right and left, costs below on the left and right."""

    Z: FloatArray
    plus: FloatArray
    minus: FloatArray
    low: FloatArray
    high: FloatArray
    eps: float
    _spread: list[FloatArray] = field(default_factory=list)

    @classmethod
    def of(cls, terms: Terms, t: int, rows: Rows) -> Node:
        cost, right = terms.C[t] * terms.weight[rows], terms.y[rows] > 0
        none = np.zeros(len(rows))
        return cls(
            Z=terms.samples(rows),
            plus=np.where(right, cost, 0.0),
            minus=np.where(right, 0.0, cost),
            low=none,
            high=none,
            eps=terms.eps,
        )

    def look_below(self, terms: Terms, t: int, rows: Rows, W: FloatArray, B: FloatArray) -> None:
        """Fill in what every sample would pay on either side, with the subtrees as they are."""
        ties = np.minimum(1e-9 * (1.0 + np.abs(B) + np.sum(np.abs(W), axis=1)), terms.eps / 4)
        y, weight = terms.y[rows], terms.weight[rows]
        self.low, self.high = np.empty(len(rows)), np.empty(len(rows))
        pay_below(self.Z, y, weight, terms.C, W, B, ties, 2 * t + 1, self.low)
        pay_below(self.Z, y, weight, terms.C, W, B, ties, 2 * t + 2, self.high)

    def thinned(self, chosen: Rows) -> Node:
        return Node(
            Z=self.Z[chosen],
            plus=self.plus[chosen],
            minus=self.minus[chosen],
            low=self.low[chosen],
            high=self.high[chosen],
            eps=self.eps,
        )

    def hinges(self, h: FloatArray) -> float:
        return float(self.plus @ np.maximum(0.0, 1.0 - h) + self.minus @ np.maximum(0.0, 1.0 + h))

    def right_of(self, h: FloatArray, plane: Plane) -> NDArray[np.bool_] | None:
        """Who goes right; None if somebody lies in the band."""
        slack = tie(plane[1], self.eps)
        right: NDArray[np.bool_] = h >= -slack
        return None if np.any(~right & (h > slack - self.eps)) else right

    def measure(self, plane: Plane) -> tuple[FloatArray, float]:
        """Heights, and everything but prices of features; infinite if a sample lies in the band."""
        h = np.empty(len(self.plus))
        return h, measure(self.reduced, plane[0], plane[1], self.eps, h)

    @property
    def reduced(self) -> Reduced:
        return Reduced(self.Z, self.plus, self.minus, self.low, self.high)

    @property
    def spread(self) -> FloatArray:
        """How far samples lie apart in each feature; computed once, also for nodes with other prices."""
        if not self._spread:
            self._spread.append(np.std(self.Z, axis=0))
        return self._spread[0]

    def heights(self, plane: Plane) -> FloatArray:
        h: FloatArray = self.Z @ plane[0] + plane[1]
        return h

    def best_cut(self, d: FloatArray, lengths: FloatArray, best: float = math.inf) -> tuple[Plane, float] | None:
        """The best threshold along a direction at any of the lengths, if it beats ``best``."""
        s, b, value = cut(self.reduced, d, lengths, self.eps, best)
        return ((s * d, b), value) if s > 0 else None

    def no_split(self) -> tuple[Plane, float]:
        """The best offset of a node that sends all samples one way."""
        plus, minus, left, right = (float(np.sum(a)) for a in (self.plus, self.minus, self.low, self.high))
        ways = [(b, plus * (1.0 - b) + minus * (1.0 + b) + (right if b >= 0 else left)) for b in (1.0, 0.0)]
        lefts = (-self.eps, -1.0) if self.eps < 1.0 else (-self.eps,)
        ways += [(b, plus * (1.0 - b) + minus * max(0.0, 1.0 + b) + left) for b in lefts]
        b, value = min(ways, key=lambda way: way[1])
        return (np.zeros(self.Z.shape[1]), b), value
