"""Standard scale and merged samples, so that engines do not depend on the units of the data.

With all features divided by ``s`` and ``C``, ``alpha`` multiplied by ``s^2``, the weights ``s w`` give the same ``h``
for every sample and ``s^2`` times the objective.  ``s`` is a power of two, so nothing is rounded in either direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.kernels.safe_bounds import EXTRA_OPERATIONS, ROUNDOFF
from margotree.problem import Problem, Splits, TrainingProblem
from margotree.problem.blocks import sort_rows

P = TypeVar("P", bound=TrainingProblem)

#: Data with at most this number of entries are of moderate size: a pass over them or a sort takes negligible time.
MODERATE = 2_000_000
#: Exponents of scaled coefficients stay within this, so that nothing overflows or loses digits.
_MAX_EXPONENT = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class Scaled:
    """A problem in standard units, and the conversion of trees to and from them."""

    problem: TrainingProblem
    scale: float = 1.0

    @property
    def unit(self) -> float:
        """One unit of the scaled objective in units of the original one."""
        return 1.0 / (self.scale * self.scale)

    def into(self, splits: Splits) -> Splits:
        """A tree in standard units."""
        return Splits(w=splits.w * self.scale, b=splits.b)

    def back(self, splits: Splits) -> Splits:
        """A tree in the original units."""
        return Splits(w=splits.w / self.scale, b=splits.b)


def standard_scale(problem: P) -> tuple[P, Scaled]:
    """The problem scaled such that the range of its widest feature is between 1 and 2.

    The problems of baselines are unchanged.
    """
    if not isinstance(problem, Problem):
        return problem, Scaled(problem=problem)
    scale = _power_of_two(problem)
    if scale == 1.0:
        return problem, Scaled(problem=problem)
    square = scale * scale
    X = problem.X / scale
    C = problem.C * square
    for array in (X, C):
        array.setflags(write=False)
    scaled = replace(
        problem,
        X=X,
        C=C,
        alpha=None if problem.alpha is None else problem.alpha * square,
        max_weight=None if problem.max_weight is None else problem.max_weight * scale,
    )
    return cast(P, scaled), Scaled(problem=scaled, scale=scale)


def _power_of_two(problem: Problem) -> float:
    """The scale."""
    # Halved first: the range of numbers near the largest ones would be infinite.
    width = float(np.max(0.5 * np.max(problem.X, axis=0) - 0.5 * np.min(problem.X, axis=0)))
    if width == 0.0:
        return 1.0
    exponent = math.frexp(width)[1]
    coefficients = problem.C if problem.alpha is None else np.append(problem.C, problem.alpha[problem.alpha > 0])
    costs = np.log2(coefficients)
    low, high = (-_MAX_EXPONENT - float(np.min(costs))) / 2, (_MAX_EXPONENT - float(np.max(costs))) / 2
    return math.ldexp(1.0, int(min(max(exponent, math.ceil(low)), max(math.floor(high), math.ceil(low)))))


def merge_duplicates(problem: Problem, most: float = math.inf) -> tuple[Problem, NDArray[np.int64]]:
    """The problem with equal samples of equal label merged into one with the sum of their weights.

    Also returns the merged sample of every sample.  Data with more than ``most`` entries are left as they are.
    """
    if problem.X.size > most:
        return problem, np.arange(problem.n_samples)
    order, new = sort_rows(chain(problem.X.T, np.atleast_2d(problem.y.T)))
    if new.all():
        return problem, np.arange(problem.n_samples)
    group = np.empty_like(order)
    group[order] = np.cumsum(new) - 1
    first = np.full(int(new.sum()), problem.n_samples)
    np.minimum.at(first, group, np.arange(problem.n_samples))
    kept = np.sort(first)  # in the order in which they first appear
    stands_for = np.searchsorted(kept, first)[group]
    X, y = problem.X[kept], problem.y[kept]
    weight = np.bincount(stands_for, weights=problem.weight).astype(np.float64)
    for array in (X, y, weight):
        array.setflags(write=False)
    return replace(problem, X=X, y=y, weight=weight), stands_for


def merging_error(stands_for: NDArray[np.int64]) -> float:
    """The largest relative rounding error of a bound due to merging: sums of equal samples' weights and over nodes."""
    return ROUNDOFF * (EXTRA_OPERATIONS + int(np.max(np.bincount(stands_for))))


def without_budget(problem: Problem) -> Problem:
    """The same problem without feature penalties and budgets: its optimum is no larger."""
    return replace(problem, budget=None, alpha=None)
