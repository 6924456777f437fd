"""Random changes of a split, from which the local search of OCT-H descends again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from margotree.baselines.oct.retrain import sparse_svm
from margotree.baselines.oct.side_costs import SideCosts
from margotree.engines import RunControl
from margotree.problem.problem import FloatArray

#: The probability that a point on its costlier side is left out of a new SVM: its hinge loss would be too large.
_DROP_PROBABILITY = 0.7

#: The range of ``log10`` of the SVM's penalty.
_LOG_PENALTY = (-3.3, -0.7)

#: Standard deviations of the changes of coefficients: relative, and for the changed feature in shares of ``|w|_1``.
_RELATIVE_STEP, _NEW_COEFFICIENT = 0.2, 0.3


def perturb(
    side_costs: SideCosts, w: FloatArray, b: float, rng: np.random.Generator, control: RunControl
) -> FloatArray | None:
    """A direction with ``|w|_1 = 1`` near the given split, or that of an SVM with random weights of the points."""
    if w.any() and rng.random() < 0.5:
        return _swap_feature(w / np.abs(w).sum(), rng)
    weight = rng.exponential(size=len(side_costs.X))
    weight[_on_costlier_side(side_costs, w, b) & (rng.random(len(weight)) < _DROP_PROBABILITY)] = 0.0
    weighted = replace(side_costs, left=weight * side_costs.left, right=weight * side_costs.right)
    return sparse_svm(weighted, 10 ** rng.uniform(*_LOG_PENALTY), control)


def _on_costlier_side(side_costs: SideCosts, w: FloatArray, b: float) -> NDArray[np.bool_]:
    """Which points cost less on the other side of the split; none if ``w`` is 0."""
    h = side_costs.X @ w + b
    return np.where(h > 0, side_costs.right > side_costs.left, side_costs.left > side_costs.right) & bool(w.any())


def _swap_feature(w: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Set one coefficient to 0, change another at random, and the rest slightly."""
    w, used = w.copy(), np.flatnonzero(w)
    if len(used) > 1:
        w[rng.choice(used)] = 0.0
    w *= 1.0 + _RELATIVE_STEP * rng.normal(size=len(w))
    w[rng.integers(len(w))] += _NEW_COEFFICIENT * rng.normal()
    return w / np.abs(w).sum()
