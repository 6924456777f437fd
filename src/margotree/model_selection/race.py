"""The race of settings: which of them can still be the best one after some folds, and which one is chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: A setting is abandoned when its mean score is this many standard errors below the best.
MAX_STANDARD_ERRORS_BELOW = 2.0
#: Settings whose mean score is at most this many standard errors below the best count as equal.
MAX_STANDARD_ERRORS_EQUAL = 0.5
#: The expected share of settings that remain on later folds.
_EXPECTED_SURVIVORS = 0.35

Scores = NDArray[np.float64]


class Race:
    """The rules of a race, in which later folds are for settings that can be the best one.

    Scores are arrays (settings, folds), NaN where there is none.

    Parameters
    ----------
    rows : sequence of int
        The number of test rows of each fold.
    simplicity : sequence
        A sort key of each setting; of settings with equal scores the smallest is chosen.
    """

    def __init__(self, rows: Sequence[int], simplicity: Sequence[tuple[float, ...]]) -> None:
        self.rows, self.simplicity = list(rows), list(simplicity)

    def surviving(self, scores: Scores) -> list[int]:
        """The positions of the settings that are not abandoned."""
        running, means, error = _running(scores, self.rows)
        threshold = means.max(initial=-math.inf) - MAX_STANDARD_ERRORS_BELOW * error
        return [int(k) for k, mean in zip(running, means, strict=True) if not mean < threshold]

    def expected_fits(self, n_settings: int, n_folds: int) -> int:
        """The expected number of fits on ``n_folds`` further folds if ``n_settings`` settings remain now."""
        return math.ceil(_EXPECTED_SURVIVORS * n_settings * n_folds)

    def best(self, scores: Scores) -> int | None:
        """The simplest of the settings with the most folds whose mean equals the best one; None without scores."""
        if np.isnan(scores).all():
            return None
        running, means, error = _running(scores, self.rows)
        threshold = means.max() - (MAX_STANDARD_ERRORS_EQUAL * error if math.isfinite(error) else 0.0) - 1e-9
        equal = [int(k) for k, mean in zip(running, means, strict=True) if mean >= threshold]
        return min(equal, key=lambda k: (self.simplicity[k], k))


def _running(scores: Scores, rows: Sequence[int]) -> tuple[NDArray[np.int64], Scores, float]:
    """The settings with the most folds, their mean scores, and the standard error of the best one.

    The standard error is that of a share of the test rows; infinite if scores are not in [0, 1], or if there are none.
    """
    seen = (~np.isnan(scores)).sum(axis=1)
    running = np.flatnonzero(seen == seen.max())
    if not seen.any():
        return running, np.full(len(running), -math.inf), math.inf
    means = np.nanmean(scores[running], axis=1)
    if np.nanmin(scores) < 0 or np.nanmax(scores) > 1:
        return running, means, math.inf
    best = min(max(float(means.max()), 0.05), 0.95)
    return running, means, math.sqrt(best * (1.0 - best) / max(1, sum(rows[: int(seen.max())])))
