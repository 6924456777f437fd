"""A training problem as the alternating search takes it: plain terms, and parts of the samples to race on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from margotree.problem import Problem, Splits
from margotree.problem.problem import FloatArray

#: So many samples are brought to single precision at a time.
_AT_A_TIME = 4096
#: Last width of the SVMs' rounding: on the way, and in the end.
NARROW, FINE = 1e-3, 1e-6

#: Shares of splits that are given all features and just their budget, where more features have a price.
_ALL, _BUDGET = 0.3, 0.35


@dataclass(frozen=True, kw_only=True, eq=False)
class Terms:
    """The samples and prices of a problem; a budget of all features is none, an infinite price makes it hard."""

    X: FloatArray
    y: FloatArray
    weight: FloatArray
    C: FloatArray
    budget: NDArray[np.int64]
    alpha: FloatArray
    eps: float
    narrow: float = NARROW

    @classmethod
    def of(cls, problem: Problem) -> Terms:
        nodes, p = problem.n_nodes, problem.n_features
        return cls(
            X=problem.X,
            y=problem.y,
            weight=problem.weight,
            C=np.array(problem.C),
            budget=np.full(nodes, p) if problem.budget is None else np.array(problem.budget),
            alpha=np.full(nodes, np.inf) if problem.alpha is None else np.array(problem.alpha),
            eps=problem.eps,
        )

    @property
    def n_samples(self) -> int:
        return len(self.y)

    @property
    def n_nodes(self) -> int:
        return len(self.C)

    @property
    def depth(self) -> int:
        return self.n_nodes.bit_length()

    def part(self, rows: NDArray[np.int64], factor: FloatArray) -> Terms:
        """The same problem on some samples, each of them standing for several."""
        return replace(self, X=self.X[rows], y=self.y[rows], weight=self.weight[rows] * factor)

    def some(self, count: int, rng: np.random.Generator) -> Terms:
        """The same problem on so many samples drawn by chance."""
        n = self.n_samples
        return self.part(np.sort(rng.choice(n, count, replace=False)), np.full(count, n / count))

    def below(self, nodes: list[int], rows: NDArray[np.int64]) -> Terms:
        """The problem of a subtree, given its nodes, and of the samples that reach it."""
        part = self.part(rows, np.ones(len(rows)))
        return replace(part, C=self.C[nodes], budget=self.budget[nodes], alpha=self.alpha[nodes])

    def samples(self, rows: NDArray[np.int64]) -> FloatArray:
        """The features of some samples in their order; of all of them no new copy."""
        return self._all_samples if len(rows) == self.n_samples else self.X[rows]

    @cached_property
    def _all_samples(self) -> FloatArray:
        """All samples, as a type that kernels are compiled for: one that may be written to, though nobody does."""
        X = self.X
        if X.flags.writeable:
            return X
        if X.base is not None:
            return X.copy()
        X.setflags(write=True)
        view = X.view()
        X.setflags(write=False)  # which the view does not hear of
        return view

    @cached_property
    def spread(self) -> FloatArray:
        """How far samples lie apart in each feature."""
        found: FloatArray = np.std(self.X, axis=0)
        return found

    @cached_property
    def mean(self) -> FloatArray:
        found: FloatArray = np.mean(self.X, axis=0)
        return found

    @cached_property
    def unit(self) -> FloatArray:
        """One by the spread of each feature: never far more than that of others, and 0 for a constant."""
        most = float(np.max(self.spread))
        return np.where(self.spread > 0.0, 1.0 / np.maximum(self.spread, max(1e-3 * most, 1e-300)), 0.0)

    @cached_property
    def standard(self) -> NDArray[np.float32]:
        """The samples around their mean in those units, in single precision."""
        found = np.empty(self.X.shape, np.float32)
        for start in range(0, len(found), _AT_A_TIME):
            here = slice(start, start + _AT_A_TIME)
            found[here] = (self.X[here] - self.mean) * self.unit
        return found

    @cached_property
    def code(self) -> NDArray[np.int64]:
        """The class of each sample: 1 for the label that belongs on the right."""
        return (self.y > 0).astype(np.int64)

    def fine(self) -> Terms:
        """The same problem with SVMs to many digits."""
        return replace(self, narrow=FINE)

    def price(self, t: int, w: FloatArray) -> float:
        """What the features of a split cost beyond its budget."""
        return self.price_of(t, int(np.count_nonzero(w)))

    def price_of(self, t: int, count: int) -> float:
        over = count - int(self.budget[t])
        return float(self.alpha[t]) * over if over > 0 else 0.0

    def limited(self, t: int) -> bool:
        """Whether the node has a budget or prices."""
        return bool(self.budget[t] < self.X.shape[1])

    def soft(self, t: int) -> bool:
        return bool(np.isfinite(self.alpha[t]))

    def some_places(self, t: int, rng: np.random.Generator) -> int:
        """How many features to give a split: its budget, or, where more have a price, any number of them."""
        p, budget = self.X.shape[1], int(self.budget[t])
        if budget >= p or not self.soft(t):
            return min(p, budget)
        chance = rng.random()
        if chance < _ALL:
            return p
        times = 0 if chance < _ALL + _BUDGET else int(rng.integers(p.bit_length()))
        return min(p, budget << times)


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """A tree and what it costs on the samples it was trained on."""

    W: FloatArray
    B: FloatArray
    value: float

    @property
    def splits(self) -> Splits:
        return Splits(w=self.W, b=self.B)
