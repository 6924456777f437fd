"""The split between two given groups of points that stays farthest from both."""

from __future__ import annotations

import numpy as np

from margotree.baselines.oct.lp import no_time_for, solve_lp
from margotree.baselines.oct.merged_samples import SAME, IndexArray
from margotree.baselines.oct.problem import OctProblem
from margotree.engines import RunControl
from margotree.problem.problem import FloatArray

#: Weights below this share of the largest one are a solver's way to say 0.
_ZERO = 1e-9


def separate(
    problem: OctProblem, left: IndexArray, right: IndexArray, features: IndexArray, control: RunControl
) -> tuple[FloatArray, float] | None:
    """``(w, b)`` with ``h >= 1`` on the points ``right`` and ``h <= -1`` on ``left``, as flat as these features allow.

    Flat means the smallest ``|w|_1``, that is the widest margin measured by the feature in which it is widest.  None
    if there is no such split, none that is flat enough for the problem, or none that was found in time.
    """
    several = None if problem.mu is None or len(features) < 2 else _hyperplane(problem, left, right, features, control)
    if several is not None and np.abs(several[0]).sum() <= problem.steepest(several[0]):
        return several
    single = [_threshold(problem, left, right, int(j)) for j in features]
    found = [split for split in single if split is not None]
    return min(found, key=lambda split: float(np.abs(split[0]).sum()), default=None)


def _threshold(problem: OctProblem, left: IndexArray, right: IndexArray, j: int) -> tuple[FloatArray, float] | None:
    """The middle between the two groups along feature ``j``, if they do not overlap there."""
    x = problem.points.X[:, j]
    for sign, low, high in ((1.0, x[left].max(), x[right].min()), (-1.0, x[right].max(), x[left].min())):
        if high - low > SAME * (1.0 + abs(high)):
            w = np.zeros(problem.n_features)
            w[j] = sign * 2.0 / (high - low)
            return w, float(-w[j] * (low + 0.5 * (high - low)))
    return None


def _hyperplane(
    problem: OctProblem, left: IndexArray, right: IndexArray, features: IndexArray, control: RunControl
) -> tuple[FloatArray, float] | None:
    """The separating hyperplane of least ``|w|_1``, by linear programming."""
    if no_time_for((len(left) + len(right)) * (2 * len(features) + 1), control):
        return None
    sign = np.repeat([-1.0, 1.0], [len(left), len(right)])
    X = problem.points.X[np.ix_(np.concatenate([left, right]), features)]
    n = len(features)
    rows = -sign[:, None] * np.hstack([X, -X, np.ones((len(X), 1))])
    cost = np.append(np.ones(2 * n), 0.0)
    found = solve_lp(cost, rows, -np.ones(len(X)), [(0, None)] * (2 * n) + [(None, None)], control)
    if found.x is None or found.status != 0:
        return None
    short = found.x[:n] - found.x[n : 2 * n]
    short[np.abs(short) <= _ZERO * np.abs(short).max(initial=0.0)] = 0.0
    h = X @ short
    # The solver is exact to about 1e-7 only; the middle and the scale follow from the points themselves.
    low, high = h[sign < 0].max(), h[sign > 0].min()
    if not high > low:
        return None
    w = np.zeros(problem.n_features)
    w[features] = short * (2.0 / (high - low))
    return w, float(-(low + high) / (high - low))
