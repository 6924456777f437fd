"""The split with the widest margin between two given groups of points."""

from __future__ import annotations

import numpy as np

from margotree.baselines.oct.lp import lp_too_large, solve_lp
from margotree.baselines.oct.merged_samples import SAME, IndexArray
from margotree.baselines.oct.problem import OctProblem
from margotree.engines import RunControl
from margotree.problem.problem import FloatArray

#: Weights below this share of the largest one are rounding of the solver, and set to 0.
_ZERO = 1e-9


def separate(
    problem: OctProblem, left: IndexArray, right: IndexArray, features: IndexArray, control: RunControl
) -> tuple[FloatArray, float] | None:
    """The ``(w, b)`` of smallest ``|w|_1`` with ``h >= 1`` on the points ``right``, ``h <= -1`` on ``left``.

    Only the given features may have weights.  A small ``|w|_1`` means a wide margin in the maximum norm.  None if no
    such split exists, if its norm is larger than the problem allows, or if none was found within the time limit.
    """
    several = None if problem.mu is None or len(features) < 2 else _hyperplane(problem, left, right, features, control)
    if several is not None and np.abs(several[0]).sum() <= problem.max_l1_norm(several[0]):
        return several
    single = [_threshold(problem, left, right, int(j)) for j in features]
    found = [split for split in single if split is not None]
    return min(found, key=lambda split: float(np.abs(split[0]).sum()), default=None)


def _threshold(problem: OctProblem, left: IndexArray, right: IndexArray, j: int) -> tuple[FloatArray, float] | None:
    """The split in the middle between the two groups along feature ``j``; None if they overlap there."""
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
    """The separating hyperplane of smallest ``|w|_1``, by linear programming."""
    if lp_too_large((len(left) + len(right)) * (2 * len(features) + 1), control):
        return None
    sign = np.repeat([-1.0, 1.0], [len(left), len(right)])
    X = problem.points.X[np.ix_(np.concatenate([left, right]), features)]
    n = len(features)
    rows = -sign[:, None] * np.hstack([X, -X, np.ones((len(X), 1))])
    cost = np.append(np.ones(2 * n), 0.0)
    found = solve_lp(cost, rows, -np.ones(len(X)), [(0, None)] * (2 * n) + [(None, None)], control)
    if found.x is None or found.status != 0:
        return None
    direction = found.x[:n] - found.x[n : 2 * n]
    direction[np.abs(direction) <= _ZERO * np.abs(direction).max(initial=0.0)] = 0.0
    h = X @ direction
    # The solver is exact to about 1e-7 only; offset and scale are computed from the points.
    low, high = h[sign < 0].max(), h[sign > 0].min()
    if not high > low:
        return None
    w = np.zeros(problem.n_features)
    w[features] = direction * (2.0 / (high - low))
    return w, float(-(low + high) / (high - low))
