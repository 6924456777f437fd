"""The race of settings: which of them can still be the best one after some folds, and which one is chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from margotree.model_selection.scores import FloatArray, ScoreTable

#: A setting is abandoned when its mean score is this many standard errors of the difference below the best.
MAX_STANDARD_ERRORS_BELOW = 2.0
#: Settings whose mean score is at most this many standard errors of the difference below the best count as equal.
MAX_STANDARD_ERRORS_EQUAL = 1.0
#: The expected share of settings that remain on later folds.
_EXPECTED_SURVIVORS = 0.35


class Race:
    """The rules of a race, in which later folds are for settings that can be the best one.

    Parameters
    ----------
    simplicity : sequence
        A sort key of each setting; of settings with equal scores and equally large trees the smallest is chosen.
    """

    def __init__(self, simplicity: Sequence[tuple[float, ...]]) -> None:
        self.simplicity = list(simplicity)

    def surviving(self, scores: ScoreTable) -> list[int]:
        """The positions of the settings that are not abandoned."""
        return _within(scores, MAX_STANDARD_ERRORS_BELOW, unknown=True)

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
        equal = _within(scores, MAX_STANDARD_ERRORS_EQUAL, unknown=False)
        return min(equal, key=lambda k: (np.nan_to_num(numbers[k]), self.simplicity[k], k), default=None)


def _within(scores: ScoreTable, n_errors: float, *, unknown: bool) -> list[int]:
    """The settings with the most folds that are at most ``n_errors`` standard errors below the best of them.

    Where the standard error is not known, these are all settings if ``unknown`` is set, and the best ones otherwise.
    """
    running, means = np.flatnonzero(scores.n_folds == scores.n_folds.max()), scores.means()
    if not scores.n_folds.any():
        return [int(k) for k in running] if unknown else []
    best = int(running[np.argmax(means[running])])
    found = []
    for k in running:
        below, error = scores.difference(int(k), best)
        margin = n_errors * error if math.isfinite(error) else math.inf if unknown else 0.0
        if below >= -margin - 1e-9:
            found.append(int(k))
    return found
