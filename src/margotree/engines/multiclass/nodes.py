"""The best hyperplane of one node when its labels and the sides of some samples are settled, with a valid bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.best_subset import best_subset
from margotree.engines.node.svm import NodeSolution, solve_node
from margotree.engines.run_control import RunControl
from margotree.problem import Problem
from margotree.problem.problem import FloatArray

IndexArray = NDArray[np.int64]

#: Nodes of so many numbers are solved to the end, and medium ones while so many seconds are left; others get what is
#: left of the time, but so many seconds at least.
_QUICK, _MEDIUM, _PLENTY, _LEAST = 5_000, 100_000, 2.0, 0.2
#: Node problems remembered, in numbers.
_REMEMBERED = 10_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeSolver:
    """Solves the nodes of one problem; budgets and prices are part of the node problem, so its bound holds for them.

    What was solved is remembered: boxes side by side ask for the same nodes again and again.
    """

    problem: Problem
    control: RunControl | None = None
    _known: dict[bytes, NodeSolution] = field(default_factory=dict)

    def upper(
        self, t: int, rows: IndexArray, sides: IndexArray, placed: IndexArray, *, cutoff: float = math.inf,
        inner: float = 0.0,
    ) -> NodeSolution:  # fmt: skip
        """An upper node; a class whose side is 0 pays nothing, ``placed`` is -1, 0 (anywhere) or +1 for every row."""
        p = self.problem
        wants = sides[p.y[rows]]
        cost = np.where(wants != 0, p.C[t] * p.weight[rows], 0.0)
        heard = (wants != 0) & (p.weight[rows] > 0) | (placed != 0)
        y = np.where(wants != 0, wants, np.where(placed != 0, placed, 1)).astype(np.float64)
        return self._solve(t, rows[heard], y[heard], cost[heard], placed[heard].astype(np.int8), cutoff, inner)

    def last(self, t: int, rows: IndexArray, a: int, b: int, *, cutoff: float = math.inf) -> NodeSolution:
        """A last-level node with labels ``a`` and ``b``; a sample of a third class is two rows."""
        p = self.problem
        rows = rows[p.weight[rows] > 0]
        right, left = rows[p.y[rows] != a], rows[p.y[rows] != b]
        y = np.concatenate([np.ones(len(right)), -np.ones(len(left))])
        both = np.concatenate([right, left])
        return self._solve(t, both, y, p.C[t] * p.weight[both], None, cutoff, 0.0)

    def _solve(
        self, t: int, rows: IndexArray, y: FloatArray, cost: FloatArray, side: NDArray[np.int8] | None, cutoff: float,
        inner: float,
    ) -> NodeSolution:  # fmt: skip
        key = self._key(t, rows, y, cost, side, inner)
        known = self._known.get(key)
        # What was cut short by an earlier cutoff says nothing below it.
        if known is not None and (known.feasible or known.bound >= cutoff):
            return known
        found = self._solve_anew(t, rows, y, cost, side, cutoff, inner)
        if len(self._known) * (self.problem.n_features + 20) > _REMEMBERED:
            self._known.clear()
        self._known[key] = found
        return found

    def _key(
        self, t: int, rows: IndexArray, y: FloatArray, cost: FloatArray, side: NDArray[np.int8] | None, inner: float
    ) -> bytes:
        p, parts = self.problem, blake2b(digest_size=16)
        features = -1 if p.budget is None else int(p.budget[t])
        price = -1.0 if p.alpha is None else float(p.alpha[t])
        parts.update(np.array([features, price, inner, len(rows), 0.0 if side is None else 1.0]).tobytes())
        for part in (rows, y, cost) if side is None else (rows, y, cost, side):
            parts.update(part.tobytes())
        return parts.digest()

    def _solve_anew(
        self, t: int, rows: IndexArray, y: FloatArray, cost: FloatArray, side: NDArray[np.int8] | None, cutoff: float,
        inner: float,
    ) -> NodeSolution:  # fmt: skip
        p, X = self.problem, self.problem.X[rows]
        if p.budget is None or p.budget[t] >= p.n_features:
            limit = self._seconds(X.size)
            plain = solve_node(X, y, cost, side=side, eps=p.eps, inner=inner, cutoff=cutoff, time_limit=limit)
            if plain.feasible or plain.bound >= cutoff or cutoff == math.inf:
                return plain
            # It was cut short by a bound that the hyperplane of that moment does not witness.
            return solve_node(X, y, cost, side=side, eps=p.eps, inner=inner, time_limit=limit)
        found = best_subset(
            X, y, cost, budget=int(p.budget[t]), alpha=None if p.alpha is None else float(p.alpha[t]), side=side,
            eps=p.eps, inner=inner, cutoff=cutoff,
            stop=lambda: self.control is not None and bool(self.control.must_stop()),
        )  # fmt: skip
        return NodeSolution(w=found.w, b=found.b, value=found.value, bound=found.bound, feasible=found.feasible)

    def _seconds(self, size: int) -> float:
        """What a node may take: small ones never take long, and a clock for each costs more than they do."""
        if self.control is None or size <= _QUICK or (size <= _MEDIUM and self.control.remaining > _PLENTY):
            return math.inf
        return max(_LEAST, self.control.remaining)
