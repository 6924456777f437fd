"""Choice of the feature to branch on: the one whose two children are expected to raise the bound most."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from margotree.problem.problem import FloatArray

#: Number of candidates, and number of solved children per side from which on a pseudo-cost is trusted.
_CANDIDATES, _TRUSTED = 4, 2

Gains = Callable[[int], tuple[float, float]]


class PseudoCosts:
    """Average increase of the bound per unit of share when a feature was required or excluded."""

    def __init__(self, n_groups: int) -> None:
        self._sum = np.zeros((2, n_groups))
        self._count = np.zeros((2, n_groups))

    def learn(self, j: int, used: bool, share: float, gain: float) -> None:
        """Record that the bound rose by ``gain`` when feature ``j`` was required (``used``) or excluded."""
        distance = 1.0 - share if used else share
        if distance > 1e-6:
            self._sum[int(used), j] += gain / distance
            self._count[int(used), j] += 1

    def choose(self, may: NDArray[np.int64], share: FloatArray, gains: Gains) -> int:
        """Choose among ``may``; ``gains(j)`` solves both children of a candidate without trusted pseudo-costs."""
        distance = np.minimum(share[may], 1.0 - share[may])
        if np.max(distance) <= 1e-9:
            return int(may[np.argmax(share[may])])
        split = may[distance > 1e-9]
        expected = self._expected(split, share[split])
        ranked = np.argsort(-expected, kind="stable")[:_CANDIDATES]
        trusted = np.min(self._count[:, split[ranked]], axis=0) >= _TRUSTED
        if np.all(trusted):
            return int(split[ranked[0]])
        best, best_score = -1, -1.0
        for k, known in zip(ranked, trusted, strict=True):
            j = int(split[k])
            score = float(expected[k]) if known else float(_score(*gains(j)))
            if score > best_score:
                best, best_score = j, score
        return best

    def _expected(self, split: NDArray[np.int64], share: FloatArray) -> FloatArray:
        """Scores of candidates from their pseudo-costs, or the mean ones."""
        known = np.sum(self._count, axis=1)
        mean = np.where(known > 0, np.sum(self._sum, axis=1) / np.maximum(known, 1), 1.0)
        tried = self._count[:, split]
        rate = np.where(tried > 0, self._sum[:, split] / np.maximum(tried, 1), mean[:, None])
        up, down = rate[1] * (1.0 - share), rate[0] * share
        return _score(up, down)


def _score(up: FloatArray | float, down: FloatArray | float) -> FloatArray:
    """The product of both gains, each at least a tiny number, so that a zero does not hide the other gain."""
    up, down = np.maximum(up, 1e-12), np.maximum(down, 1e-12)
    score: FloatArray = np.asarray(up * down)
    return score
