"""Good splits for given costs of either side: sparse SVMs, and one coefficient at a time to its best value.

Splits are scaled to ``|w|_1 = 1`` and lie in the middle of a gap between the points.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from margotree.baselines.oct.lp import no_time_for, solve_lp
from margotree.baselines.oct.side_costs import Sides
from margotree.engines import RunControl
from margotree.problem.blocks import heights
from margotree.problem.problem import FloatArray

#: Prices of ``|w|_1`` in the SVMs, relative to the weight that wants to be on one side.
PRICES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)

#: Rounds of moving coefficients at most.
_ROUNDS = 6

#: Weights below this share of the largest one are a solver's way to say 0; values below this do not move a point.
_ZERO, _STILL = 1e-7, 1e-12


def candidates(
    sides: Sides, w: FloatArray, prices: tuple[float, ...], control: RunControl
) -> Iterator[tuple[FloatArray, float]]:
    """Splits worth a try: the present one and an SVM for each price, all with their coefficients moved."""
    if w.any():
        yield moved(sides, w / np.abs(w).sum(), control)
    for price in prices:
        if control.must_stop() is not None:
            return
        direction = sparse_svm(sides, price, control)
        if direction is not None:
            yield moved(sides, direction, control)


def sparse_svm(sides: Sides, price: float, control: RunControl) -> FloatArray | None:
    """The direction of ``min price |w|_1 + weighted hinge losses``, each point labelled with the side it prefers.

    None where no point prefers one, or where time is too short.
    """
    from scipy.sparse import csr_matrix, hstack, identity

    pull = sides.left - sides.right
    rows = np.flatnonzero(pull)
    if not len(rows) or no_time_for(len(rows) * (2 * sides.X.shape[1] + 2), control):
        return None
    sign, weight = np.sign(pull[rows]), np.abs(pull[rows])
    X, n = sides.X[rows], sides.X.shape[1]
    signed = csr_matrix(sign[:, None] * np.hstack([X, -X, np.ones((len(rows), 1))]))
    cost = np.concatenate([np.full(2 * n, price * weight.sum()), [0.0], weight])
    bounds = [(0, None)] * (2 * n) + [(None, None)] + [(0, None)] * len(rows)
    found = solve_lp(cost, -hstack([signed, identity(len(rows))]), -np.ones(len(rows)), bounds, control)
    if found.x is None:
        return None  # the solver gave up, which is not worth more than one direction less
    w = found.x[:n] - found.x[n : 2 * n]
    w[np.abs(w) <= _ZERO * np.abs(w).max()] = 0.0
    return w / np.abs(w).sum() if w.any() else None


def moved(sides: Sides, w: FloatArray, control: RunControl) -> tuple[FloatArray, float]:
    """The split with one coefficient after the other, each time with the offset, at its best value while that helps."""
    cost, b = _offset(sides, w)
    for _ in range(_ROUNDS):
        before = cost
        for j in range(len(w)):
            if control.must_stop() is not None:
                return w, b
            for value in _values(sides, w, b, j):
                trial = w.copy()
                trial[j] = value
                if trial.any():
                    trial /= np.abs(trial).sum()
                    worth, offset = _offset(sides, trial)
                    if worth < cost:
                        w, b, cost = trial, offset, worth
        if cost >= before:
            break
    return w, b


def _values(sides: Sides, w: FloatArray, b: float, j: int) -> list[float]:
    """0, and the value of coefficient ``j`` at which the points fall best, all else as it is."""
    x = sides.X[:, j]
    moving = np.flatnonzero(np.abs(x) > _STILL)
    if not len(moving):
        return [0.0]
    # A point changes sides at its kink: on the right above it if x > 0, below it otherwise.
    kink = w[j] - heights(sides.X, moving, w, b) / x[moving]
    order = np.argsort(kink)
    gain = (sides.right - sides.left)[moving] * np.sign(x[moving])
    total = np.concatenate([[0.0], np.cumsum(gain[order])])
    ends = np.concatenate([[kink[order[0]] - 1.0], kink[order], [kink[order[-1]] + 1.0]])
    k = int(np.argmin(total))
    return [0.0, float(0.5 * (ends[k] + ends[k + 1]))]


def _offset(sides: Sides, w: FloatArray) -> tuple[float, float]:
    """The best cost along ``w`` and its offset, in the middle of a gap as wide as the band (inf if there is none)."""
    h = sides.X @ w
    order = np.argsort(h)
    gap = np.diff(h[order])
    wide = np.flatnonzero(gap >= sides.band)
    if not len(wide):
        return np.inf, 0.0
    cost = sides.right.sum() + np.cumsum((sides.left - sides.right)[order])
    k = wide[np.argmin(cost[wide])]
    return float(cost[k]) + sides.feature * np.count_nonzero(w), float(-(h[order[k]] + 0.5 * gap[k]))
