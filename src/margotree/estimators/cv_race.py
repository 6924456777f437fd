"""Cross-validation in which poor settings are abandoned: later folds are fitted only for settings that can be best."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
from numpy.typing import NDArray

from margotree.engines.run_control import loop_of_fits
from margotree.estimators.cv_settings import Setting, neighbour_rows
from margotree.tree import Tree

#: A setting is abandoned when its mean score is this many standard errors below the best.
MAX_STANDARD_ERRORS_BELOW = 2.0
#: Settings whose mean score is at most this many standard errors below the best count as equal.
MAX_STANDARD_ERRORS_EQUAL = 0.5
#: The smallest time of a fit in seconds.
_MIN_SECONDS = 0.05
#: The expected share of settings that remain on later folds.
_EXPECTED_SURVIVORS = 0.35

#: ``fit_and_score(setting, fold, seconds, start)`` returns the tree and its score, which is None if the time limit cut
#: off the fit before all splits of a tree were trained; it returns None if Ctrl-C ended the fit.
FitAndScore = Callable[[Setting, int, float, Tree | None], tuple[Tree, float | None] | None]


class Race:
    """The fits of all settings on all folds.

    ``scores[k, f]`` is the score of setting ``k`` on fold ``f``, NaN if there is none; ``cut_off[k, f]`` is true if
    there is none because the time limit cut off the fit.

    Parameters
    ----------
    candidates : sequence of Setting
        The settings.
    rows : sequence of int
        The number of test rows of each fold.
    fit_and_score : callable
        See :data:`FitAndScore`.
    seconds : float
        The time limit of all fits together.
    n_workers : int
        The number of simultaneous fits.
    verbose : int
        1: a line per fold; 2: also a line per fit.
    """

    def __init__(
        self,
        candidates: Sequence[Setting],
        rows: Sequence[int],
        fit_and_score: FitAndScore,
        *,
        seconds: float,
        n_workers: int,
        verbose: int,
    ) -> None:
        self.candidates, self.rows, self.fit_and_score = list(candidates), list(rows), fit_and_score
        self.deadline = time.monotonic() + seconds
        self.n_workers, self.verbose = n_workers, verbose
        self.scores: NDArray[np.float64] = np.full((len(self.candidates), len(self.rows)), np.nan)
        self.cut_off: NDArray[np.bool_] = np.zeros(self.scores.shape, dtype=bool)
        self.index = {id(setting): k for k, setting in enumerate(self.candidates)}
        self.interrupted = False
        self.unfinished_fold: int | None = None  # the fold that the time limit or Ctrl-C ended
        self._lock = threading.Lock()
        self._left = 0
        self._stride = 1  # the number of neighbouring settings that share one fit

    def run(self) -> int | None:
        """Fit and score fold by fold until the time limit; return the index of the best setting.

        Returns None if all fits were cut off.  After Ctrl-C the complete fits decide; without a complete fit
        KeyboardInterrupt is raised.
        """
        with loop_of_fits() as stop:
            for fold in range(len(self.rows)):
                surviving = self.surviving()
                if not np.all(np.isnan(self.scores)):
                    self._stride = 1
                later = _EXPECTED_SURVIVORS * len(surviving) * (len(self.rows) - fold - 1)
                self._left = len(surviving) + math.ceil(later)
                self._fold(fold, [self.candidates[k] for k in surviving], stop)
                unfitted = np.isnan(self.scores[surviving, fold]) & ~self.cut_off[surviving, fold]
                self.unfinished_fold = fold if unfitted.any() else None
                self._report_fold(fold)
                if stop.is_set() or time.monotonic() >= self.deadline:
                    break
            self.interrupted = stop.is_set()
        if np.all(np.isnan(self.scores)):
            if self.interrupted:
                raise KeyboardInterrupt("interrupted before any setting was scored")
            if self.cut_off.any():
                return None
            raise ValueError("the time limit left no time for any fit; increase time_limit")
        return self.best()

    def surviving(self) -> list[int]:
        """The indices of the settings that are not abandoned."""
        seen = ~np.isnan(self.scores)
        if not seen.any():
            return list(range(len(self.candidates)))
        most = seen.sum(axis=1).max()
        running = np.flatnonzero(seen.sum(axis=1) == most)
        means = np.nanmean(self.scores[running], axis=1)
        threshold = means.max() - MAX_STANDARD_ERRORS_BELOW * self._standard_error(means, most)
        return [int(k) for k, mean in zip(running, means, strict=True) if mean >= threshold]

    def _standard_error(self, means: NDArray[np.float64], folds: int) -> float:
        """The standard error of the best mean score as a share of the test rows; infinite if scores exceed [0, 1]."""
        if np.nanmin(self.scores) < 0 or np.nanmax(self.scores) > 1:
            return math.inf
        best, rows = min(max(float(means.max()), 0.05), 0.95), sum(self.rows[:folds])
        return math.sqrt(best * (1.0 - best) / max(1, rows))

    def best(self) -> int:
        """The index of the simplest setting among those with the most folds whose mean score equals the best."""
        scores = self._comparable()
        seen = (~np.isnan(scores)).sum(axis=1)
        running = np.flatnonzero(seen == seen.max())
        means = np.nanmean(scores[running], axis=1)
        error = self._standard_error(means, int(seen.max()))
        threshold = means.max() - (MAX_STANDARD_ERRORS_EQUAL * error if math.isfinite(error) else 0.0) - 1e-9
        equal = [int(k) for k, mean in zip(running, means, strict=True) if mean >= threshold]
        return min(equal, key=lambda k: (self.candidates[k].simplicity, k))

    def _comparable(self) -> NDArray[np.float64]:
        """The scores without an unfinished fold, on which only the first settings have scores."""
        scores = self.scores.copy()
        if self.unfinished_fold is not None and not np.all(np.isnan(scores[:, : self.unfinished_fold])):
            scores[:, self.unfinished_fold :] = np.nan
        return scores

    def _fold(self, fold: int, surviving: list[Setting], stop: threading.Event) -> None:
        """Fit and score the settings on a fold, each row of neighbouring settings in order.

        After a fit was cut off, only one of twice as many neighbouring settings is fitted, with twice the time.
        """

        def fit_row(row: list[Setting]) -> None:
            tree: Tree | None = None
            position = 0
            while position < len(row):
                n_neighbours = min(self._stride, len(row) - position)
                setting = row[position + n_neighbours // 2]
                position += n_neighbours
                seconds = self._share(n_neighbours)
                if stop.is_set() or seconds <= 0:
                    return
                fitted = self.fit_and_score(setting, fold, seconds, tree)
                if fitted is None:
                    return
                new, score = fitted
                if score is None:
                    self.cut_off[self.index[id(setting)], fold] = True
                    self._stride = max(self._stride, 2 * n_neighbours)
                    continue
                tree = new
                self.scores[self.index[id(setting)], fold] = score
                self._report_fit(setting, fold, score)

        with ThreadPoolExecutor(self.n_workers) as pool:
            for job in [pool.submit(copy_context().run, fit_row, row) for row in neighbour_rows(surviving)]:
                job.result()

    def _share(self, n_neighbours: int) -> float:
        """The seconds of a fit that represents ``n_neighbours`` settings; 0 if no time remains."""
        with self._lock:
            left, self._left = self._left, self._left - n_neighbours
        remaining = self.deadline - time.monotonic()
        share = min(1.0, n_neighbours * self.n_workers / max(1, left))
        return 0.0 if remaining <= 0 else max(_MIN_SECONDS, remaining * share)

    def _report_fold(self, fold: int) -> None:
        if self.verbose and not np.all(np.isnan(self.scores)):
            best = self.best()
            done = int((~np.isnan(self.scores[:, fold])).sum())
            line = f"fold {fold + 1} of {len(self.rows)}: {done} settings, {len(self.surviving())} remain"
            _print(f"{line}, best {np.nanmean(self.scores[best]):.4g} at {self.candidates[best]}")

    def _report_fit(self, setting: Setting, fold: int, score: float) -> None:
        if self.verbose > 1:
            _print(f"fold {fold + 1}, {setting}: {score:.4g}")


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
