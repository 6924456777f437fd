"""The race of settings: which of them can still be the best one after some folds, and which one is chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from margotree.model_selection.scores import FloatArray, ScoreTable

#: A setting is abandoned when its mean score is this many standard errors of the difference below the best.
MAX_STANDARD_ERRORS_BELOW = 2.0
#: The same after preliminary fits, whose subsamples are harder for large trees.
_MAX_STANDARD_ERRORS_BELOW_PRELIMINARY = 3.0
#: Settings whose mean score is at most this many standard errors of the difference below the best count as equal, but
#: at most this much below it: on few rows the standard error is large.
MAX_STANDARD_ERRORS_EQUAL, MAX_SCORE_BELOW = 1.0, 0.02
#: The race ends when the remaining folds are expected to find a better setting by less than this.
MIN_EXPECTED_GAIN = 0.001
#: The expected share of settings that remain on later folds.
_EXPECTED_SURVIVORS = 0.35


class Race:
    """The rules of a race, in which later folds are for settings that can be the best one.

    Parameters
    ----------
    simplicity : sequence
        A sort key of each setting; of settings with equal scores and equally large trees the smallest is chosen.
    max_below : float, default 0.02
        Settings whose mean score is below the best by more than this never count as equal to it.
    """

    def __init__(self, simplicity: Sequence[tuple[float, ...]], *, max_below: float = MAX_SCORE_BELOW) -> None:
        self.simplicity, self.max_below = list(simplicity), max_below

    def surviving(self, scores: ScoreTable, *, preliminary: bool = False) -> list[int]:
        """The positions of the settings that are not abandoned."""
        n_errors = _MAX_STANDARD_ERRORS_BELOW_PRELIMINARY if preliminary else MAX_STANDARD_ERRORS_BELOW
        return _within(scores, n_errors, unknown=True)

    def is_decided(self, scores: ScoreTable, n_folds: int) -> bool:
        """Whether ``n_folds`` further folds would hardly change the choice.

        This holds if one setting remains, or if the expected gain of switching to the best setting after these folds is
        small for each other one (the difference of two means is taken as normal, with its present standard error).
        """
        running = self.surviving(scores)
        if len(running) < 2 or not scores.n_folds.any():
            return len(running) < 2
        means, done = scores.means(), int(scores.n_folds.max())
        best = max(running, key=lambda k: means[k])
        gains = (_expected_gain(*scores.difference(k, best), n_folds / (done + n_folds)) for k in running if k != best)
        return max(gains) < MIN_EXPECTED_GAIN

    def expected_fits(self, n_settings: int, n_folds: int) -> int:
        """The expected number of fits on ``n_folds`` further folds if ``n_settings`` settings remain now."""
        return math.ceil(_EXPECTED_SURVIVORS * n_settings * n_folds)

    def choose(self, scores: ScoreTable, numbers: FloatArray) -> int | None:
        """The setting with the fewest numbers to read among those with the most folds that equal the best one.

        Parameters
        ----------
        scores : ScoreTable
            The scores.
        numbers : array
            The numbers to read of each setting; NaN if they are unknown.

        Returns
        -------
        int or None
            The position of the setting; None if there are no scores.
        """
        equal = _within(scores, MAX_STANDARD_ERRORS_EQUAL, unknown=False, largest=self.max_below)
        return min(equal, key=lambda k: (np.nan_to_num(numbers[k]), self.simplicity[k], k), default=None)


def _expected_gain(below: float, error: float, share: float) -> float:
    """The expected positive part of a difference after a ``share`` of its variance is known."""
    if not math.isfinite(error):
        return math.inf
    deviation = error * math.sqrt(share)
    if deviation == 0.0:
        return max(0.0, below)
    z = below / deviation
    density, probability = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi), 0.5 * math.erfc(-z / math.sqrt(2.0))
    return deviation * density + below * probability


def _within(scores: ScoreTable, n_errors: float, *, unknown: bool, largest: float = math.inf) -> list[int]:
    """The settings with the most folds that are at most ``n_errors`` standard errors below the best of them.

    They are also at most ``largest`` below it. Where the standard error is not known, these are all settings if
    ``unknown`` is set, and the best ones otherwise.
    """
    running, means = np.flatnonzero(scores.n_folds == scores.n_folds.max()), scores.means()
    if not scores.n_folds.any():
        return [int(k) for k in running] if unknown else []
    best = int(running[np.argmax(means[running])])
    found = []
    for k in running:
        below, error = scores.difference(int(k), best)
        margin = n_errors * error if math.isfinite(error) else math.inf if unknown else 0.0
        if below >= -min(margin, largest) - 1e-9:
            found.append(int(k))
    return found
