"""The objective of one node for a given direction: the best factor of a hyperplane, and the best constant split."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from margotree.problem import Problem
from margotree.problem.routing import TIE
from margotree.problem.tasks.base import NO_CHOICE
from margotree.tree.scaling import FloatArray

IndexArray = NDArray[np.int64]

#: The number of steps of the search for the factor of a rule, and the range of its logarithm around that of the first
#: guess.
_STEPS, _RANGE = 32, 7.0

#: The offset of a last-level node that sends all samples to its left leaf, if a larger absolute value is worse.
_CLEARLY_LEFT = 1e-3

_SMALLEST = 1e-300


class NodeObjective:
    """The objectives of single nodes of a training problem, whose samples are given by their positions."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def loss(self, t: int, rows: IndexArray, h: FloatArray) -> float:
        """The loss of the samples at a node if their values are ``h``, without ``C``."""
        problem = self.problem
        choice = NO_CHOICE if problem.choices is None else problem.choices.at(t)
        items = problem.task.items(problem.y[rows], last=t >= problem.n_upper, choice=choice)
        return float(problem.weight[rows] @ items.loss(h))

    def best_offset(self, t: int, rows: IndexArray, side: int) -> float:
        """The best offset of a node without weights that sends all samples to ``side`` (0 or 1)."""
        least = self.problem.eps if t < self.problem.n_upper else _CLEARLY_LEFT
        values = [0.0, 1.0] if side == 1 else [-least, -max(1.0, least)]
        return min(values, key=lambda b: self.loss(t, rows, np.full(len(rows), b)))

    def best_factor(
        self, t: int, rows: IndexArray, w: FloatArray, b: float, away: FloatArray, right: NDArray[np.bool_],
        guess: float,
    ) -> tuple[float, float] | None:  # fmt: skip
        """The factor of a hyperplane with the smallest objective of the node, and that objective.

        ``away`` are the values of the samples, not negative for those on the ``right``; ``guess`` is the norm of the
        weights near which the search begins. The result is None if no factor is feasible.
        """
        norm, beyond = float(np.linalg.norm(w)), 4 * TIE * (1.0 + abs(b))
        if t < self.problem.n_upper:
            beyond += self.problem.eps
        # Samples on the left lie beyond the band and the rounding allowed on h.
        low = (1.0 + 1e-6) * beyond / float(-np.max(away, where=~right, initial=-np.inf))
        high = np.inf if self.problem.max_weight is None else self.problem.max_weight / float(np.abs(w).max())
        if not (0 < norm < np.inf and low <= high):
            return None
        start = guess / norm
        C = float(self.problem.C[t])

        def objective(logarithm: float) -> float:
            factor = math.exp(logarithm)
            return 0.5 * (factor * norm) ** 2 + C * self.loss(t, rows, factor * away)

        lowest = max(math.log(max(low, _SMALLEST)), math.log(start) - _RANGE)
        highest = min(math.log(high) if math.isfinite(high) else math.inf, max(lowest, math.log(start) + _RANGE))
        if lowest > highest:
            return None
        factor = float(np.clip(math.exp(_smallest(objective, lowest, highest)), low, high))
        return factor, objective(math.log(factor))


def _smallest(value: Callable[[float], float], low: float, high: float) -> float:
    """The point of an interval with the smallest value of a function that first falls and then rises."""
    ratio = (math.sqrt(5.0) - 1) / 2
    p, q = high - ratio * (high - low), low + ratio * (high - low)
    at_p, at_q = value(p), value(q)
    for _ in range(_STEPS):
        if at_p <= at_q:
            high, q, at_q = q, p, at_p
            p = high - ratio * (high - low)
            at_p = value(p)
        else:
            low, p, at_p = p, q, at_q
            q = low + ratio * (high - low)
            at_q = value(q)
    return min((low, high, p, q), key=value)
