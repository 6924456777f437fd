"""The scores of settings on folds, and the standard errors of their means and differences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def rows_right(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> FloatArray:
    """Return 1.0 for each row whose label is predicted and 0.0 for the others; the mean is the accuracy.

    A scorer that returns scores of rows gets ``sample_weight`` as all scorers do, and does not use it.
    """
    return (estimator.predict(X) == np.asarray(y)).astype(np.float64)


class RowsExplained:
    """A scorer whose mean over rows is R2: 1 - squared error / variance for each row.

    ``variance`` is that of all targets, so that scores of folds are for the same variance.
    """

    def __init__(self, y: FloatArray, weight: FloatArray) -> None:
        mean = np.average(y, weights=weight)
        variance = float(np.average((y - mean) ** 2, weights=weight))
        self.variance = variance or 1.0

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> FloatArray:
        error = estimator.predict(X) - np.asarray(y, dtype=np.float64)
        return 1.0 - error * error / self.variance


class ScoreTable:
    """The scores of settings on folds.

    Where the scorer gives a score of every test row, standard errors are those of means over test rows, and two
    settings are compared on the same rows.  Otherwise a score in [0, 1] counts as a share of the test rows, and other
    scores have no standard error (it is infinite).

    Parameters
    ----------
    mean : array (settings, folds)
        The scores; NaN where there is none.
    row_scores : mapping
        The scores of the test rows by setting and fold; empty if the scorer does not give them.
    weights : sequence of arrays
        The weights of the test rows of each fold.
    """

    def __init__(
        self, mean: FloatArray, row_scores: Mapping[tuple[int, int], FloatArray], weights: Sequence[FloatArray]
    ) -> None:
        self.mean, self.row_scores, self.weights = mean, row_scores, weights

    @property
    def n_folds(self) -> NDArray[np.int64]:
        """The number of folds on which each setting has a score."""
        return np.isfinite(self.mean).sum(axis=1)

    def means(self) -> FloatArray:
        """The mean score of each setting over its folds; NaN without scores."""
        with np.errstate(invalid="ignore"):
            return np.nansum(self.mean, axis=1) / self.n_folds

    def standard_error(self, k: int) -> float:
        """The standard error of the mean score of setting ``k``."""
        folds = self._folds(k)
        if not folds:
            return math.nan
        if (k, folds[0]) in self.row_scores:
            return self._error_of_rows(folds, [self.row_scores[k, f] - self.mean[k, f] for f in folds])
        known = self.mean[np.isfinite(self.mean)]
        if known.min() < 0 or known.max() > 1:
            return math.inf
        share = min(max(float(self.mean[k, folds].mean()), 0.05), 0.95)
        return math.sqrt(share * (1.0 - share) / max(1, sum(len(self.weights[f]) for f in folds)))

    def difference(self, a: int, b: int) -> tuple[float, float]:
        """The mean score of setting ``a`` minus that of ``b`` on their common folds, and its standard error.

        NaN and infinity without a common fold.
        """
        folds = [f for f in self._folds(a) if f in self._folds(b)]
        if not folds:
            return math.nan, math.inf
        difference = float(np.mean(self.mean[a, folds] - self.mean[b, folds]))
        if (a, folds[0]) not in self.row_scores:
            return difference, self.standard_error(b)
        rows = [self.row_scores[a, f] - self.row_scores[b, f] for f in folds]
        # One more row that changes sides: no difference on few rows is not a proof that there is none.
        weight = np.concatenate([self.weights[f] for f in folds])
        error = self._error_of_rows(folds, [r - difference for r in rows])
        return difference, math.hypot(error, float(weight.mean() / weight.sum()))

    def rows_key(self, k: int) -> Hashable:
        """The same value for settings with the same score on every test row; unique where these are not known."""
        rows = [(f, self.row_scores[k, f].tobytes()) for f in self._folds(k) if (k, f) in self.row_scores]
        return tuple(rows) or k

    def _folds(self, k: int) -> list[int]:
        return [int(f) for f in np.flatnonzero(np.isfinite(self.mean[k]))]

    def _error_of_rows(self, folds: Sequence[int], deviations: list[FloatArray]) -> float:
        """The standard error of a weighted mean over the test rows, from their deviations from it."""
        weight = np.concatenate([self.weights[f] for f in folds])
        return float(np.linalg.norm(weight * np.concatenate(deviations)) / weight.sum())
