"""The race of settings: which of them can still be the best one after some folds, and which one is chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from margotree.model_selection.scores import FloatArray, ScoreTable

#: A setting is abandoned when its mean score is this many standard errors of the difference below the best.
MAX_STANDARD_ERRORS_BELOW = 2.0
#: The same after preliminary fits, whose subsamples are harder for large trees.
_MAX_STANDARD_ERRORS_BELOW_PRELIMINARY = 3.0
#: Settings whose mean score is at most this many standard errors of the difference below the best count as equal, but
#: at most this much below it: on few rows the standard error is large.
MAX_STANDARD_ERRORS_EQUAL, MAX_SCORE_BELOW = 1.0, 0.02
#: A setting is abandoned when the remaining folds are expected to raise the score through it by less than this.
MIN_EXPECTED_GAIN = 0.001
#: Half of the settings may remain after every fold, but always this number.
_MIN_SETTINGS_KEPT = 4


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

    def surviving(
        self, scores: ScoreTable, numbers: FloatArray, n_folds: int, *, preliminary: bool = False
    ) -> list[int]:
        """The positions of the settings to fit on the next of ``n_folds`` further folds; the race ends if it is one.

        A setting is abandoned

        - if its mean score is two standard errors below the best, or three after preliminary fits;
        - if the other rules hold after complete folds: if the expected gain of switching to it after ``n_folds``
          further folds is small (the difference of two means is taken as normal, with its present standard error);
          if it has the same scores on all rows as one that :meth:`choose` prefers; if there are better ones in
          half the number of all settings after the first fold, in a quarter of it after the second, and so on (four).

        Without standard errors none is abandoned, and the present choice only with all others.

        Parameters
        ----------
        scores : ScoreTable
            The scores.
        numbers : array
            The numbers to read of each setting; NaN if they are unknown.
        n_folds : int
            The number of further folds.
        preliminary : bool, default False
            Whether the scores are those of preliminary fits.
        """
        n_errors = _MAX_STANDARD_ERRORS_BELOW_PRELIMINARY if preliminary else MAX_STANDARD_ERRORS_BELOW
        running = _within(scores, n_errors, unknown=True)
        if preliminary or len(running) < 2 or not scores.n_folds.any():
            return running
        means, done = scores.means(), int(scores.n_folds.max())
        best = max(running, key=lambda k: means[k])
        if not math.isfinite(scores.difference(best, best)[1]):
            return running
        share = n_folds / (done + n_folds)
        gains = {k: _expected_gain(*scores.difference(k, best), share) for k in running if k != best}
        promising = [best, *(k for k, gain in gains.items() if gain >= MIN_EXPECTED_GAIN)]
        promising.sort(key=lambda k: self._order(k, numbers))
        different = list({scores.rows_key(k): k for k in reversed(promising)}.values())
        if len(different) < 2:
            return different
        different.sort(key=lambda k: (-means[k], self._order(k, numbers)))
        chosen = self.choose(scores, numbers)
        return sorted({*different[: self.most_kept(done)], *(() if chosen is None else (chosen,))})

    def most_kept(self, n_folds: int) -> int:
        """The largest number of settings that remain after ``n_folds`` folds."""
        return max(_MIN_SETTINGS_KEPT, math.ceil(len(self.simplicity) / 2**n_folds))

    def _order(self, k: int, numbers: FloatArray) -> tuple[Any, ...]:
        """A sort key: of settings with equal scores the smallest is chosen."""
        return float(np.nan_to_num(numbers[k])), self.simplicity[k], k

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
        return min(equal, key=lambda k: self._order(k, numbers), default=None)


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
