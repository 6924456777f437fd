"""Splits for given costs of the left and the right side: sparse SVMs and coordinate descent.

Splits are scaled to ``|w|_1 = 1``, and their thresholds lie in the middle of a gap between the points.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from margotree.baselines.oct.lp import lp_too_large, solve_lp
from margotree.baselines.oct.side_costs import SideCosts
from margotree.engines import RunControl
from margotree.problem.blocks import decision_values
from margotree.problem.problem import FloatArray

#: Penalties of ``|w|_1`` in the SVMs, relative to the sum of the weights of the hinge losses.
PENALTIES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)

#: The largest number of rounds of coordinate descent.
_ROUNDS = 6

#: Coefficients below this share of the largest one count as 0; so do feature values below the second number.
_ZERO, _ZERO_VALUE = 1e-7, 1e-12


def candidates(
    side_costs: SideCosts, w: FloatArray, penalties: tuple[float, ...], control: RunControl
) -> Iterator[tuple[FloatArray, float]]:
    """The current split and an SVM for each penalty, all improved by coordinate descent."""
    if w.any():
        yield coordinate_descent(side_costs, w / np.abs(w).sum(), control)
    for penalty in penalties:
        if control.must_stop() is not None:
            return
        direction = sparse_svm(side_costs, penalty, control)
        if direction is not None:
            yield coordinate_descent(side_costs, direction, control)


def sparse_svm(side_costs: SideCosts, penalty: float, control: RunControl) -> FloatArray | None:
    """The direction that minimises ``penalty |w|_1 + weighted hinge losses`` with the target sides as labels.

    The target side of a point is the one with the smaller cost, its weight the difference of the costs.  None if the
    costs of all points are equal on both sides, or if the time left is too short.
    """
    from scipy.sparse import csr_matrix, hstack, identity

    preference = side_costs.left - side_costs.right
    rows = np.flatnonzero(preference)
    if not len(rows) or lp_too_large(len(rows) * (2 * side_costs.X.shape[1] + 2), control):
        return None
    sign, weight = np.sign(preference[rows]), np.abs(preference[rows])
    X, n = side_costs.X[rows], side_costs.X.shape[1]
    signed = csr_matrix(sign[:, None] * np.hstack([X, -X, np.ones((len(rows), 1))]))
    cost = np.concatenate([np.full(2 * n, penalty * weight.sum()), [0.0], weight])
    bounds = [(0, None)] * (2 * n) + [(None, None)] + [(0, None)] * len(rows)
    found = solve_lp(cost, -hstack([signed, identity(len(rows))]), -np.ones(len(rows)), bounds, control)
    if found.x is None:
        return None  # no solution within the limits: the search continues without this direction
    w = found.x[:n] - found.x[n : 2 * n]
    w[np.abs(w) <= _ZERO * np.abs(w).max()] = 0.0
    return w / np.abs(w).sum() if w.any() else None


def coordinate_descent(side_costs: SideCosts, w: FloatArray, control: RunControl) -> tuple[FloatArray, float]:
    """Improve a split by coordinate descent: one coefficient after the other, together with the offset.

    Ends when a round brings no improvement, after a fixed number of rounds, or when ``control`` says so.
    """
    cost, b = _best_offset(side_costs, w)
    for _ in range(_ROUNDS):
        before = cost
        for j in range(len(w)):
            if control.must_stop() is not None:
                return w, b
            for value in _trial_values(side_costs, w, b, j):
                trial = w.copy()
                trial[j] = value
                if trial.any():
                    trial /= np.abs(trial).sum()
                    trial_cost, offset = _best_offset(side_costs, trial)
                    if trial_cost < cost:
                        w, b, cost = trial, offset, trial_cost
        if cost >= before:
            break
    return w, b


def _trial_values(side_costs: SideCosts, w: FloatArray, b: float, j: int) -> list[float]:
    """0, and the value of coefficient ``j`` with the smallest side costs, the others and ``b`` fixed."""
    x = side_costs.X[:, j]
    movable = np.flatnonzero(np.abs(x) > _ZERO_VALUE)
    if not len(movable):
        return [0.0]
    # A point changes sides at its kink: it goes right above the kink if x > 0, below it otherwise.
    kink = w[j] - decision_values(side_costs.X, movable, w, b) / x[movable]
    order = np.argsort(kink)
    gain = (side_costs.right - side_costs.left)[movable] * np.sign(x[movable])
    total = np.concatenate([[0.0], np.cumsum(gain[order])])
    ends = np.concatenate([[kink[order[0]] - 1.0], kink[order], [kink[order[-1]] + 1.0]])
    k = int(np.argmin(total))
    return [0.0, float(0.5 * (ends[k] + ends[k + 1]))]


def _best_offset(side_costs: SideCosts, w: FloatArray) -> tuple[float, float]:
    """The smallest cost along ``w`` and its offset, in the middle of a gap as wide as the band (inf if none is)."""
    h = side_costs.X @ w
    order = np.argsort(h)
    gap = np.diff(h[order])
    wide = np.flatnonzero(gap >= side_costs.band)
    if not len(wide):
        return np.inf, 0.0
    cost = side_costs.right.sum() + np.cumsum((side_costs.left - side_costs.right)[order])
    k = wide[np.argmin(cost[wide])]
    return float(cost[k]) + side_costs.feature_cost * np.count_nonzero(w), float(-(h[order[k]] + 0.5 * gap[k]))
