"""Cross-validation as a race: every setting on the first fold, then only those that can still win."""

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
from margotree.estimators.cv_settings import Setting, walks
from margotree.tree import Tree

#: A setting is given up when its mean score is this many standard errors behind the best.
BEHIND = 2.0
#: Of settings whose mean scores are this many standard errors from the best or less, the simplest is taken.
AS_GOOD = 0.5
#: Least seconds that a fit is given.
_LEAST = 0.05
#: Share of the settings expected to be still in the race on later folds.
_EXPECTED = 0.35

#: ``fit_and_score(setting, fold, seconds, start)``: the tree and its score, which is None if the time limit cut the fit
#: off before all splits of a tree were trained; None in place of both if Ctrl-C ended it.
FitAndScore = Callable[[Setting, int, float, Tree | None], tuple[Tree, float | None] | None]


class Race:
    """The fits of one choice.

    ``scores[k, f]`` is setting ``k``'s on fold ``f``, NaN where it has none; ``cut_off[k, f]`` tells that there is none
    because the time limit cut the fit off.
    """

    def __init__(
        self,
        candidates: Sequence[Setting],
        rows: Sequence[int],
        fit_and_score: FitAndScore,
        *,
        seconds: float,
        lanes: int,
        verbose: int,
    ) -> None:
        self.candidates, self.rows, self.fit_and_score = list(candidates), list(rows), fit_and_score
        self.ends = time.monotonic() + seconds
        self.lanes, self.verbose = lanes, verbose
        self.scores: NDArray[np.float64] = np.full((len(self.candidates), len(self.rows)), np.nan)
        self.cut_off: NDArray[np.bool_] = np.zeros(self.scores.shape, dtype=bool)
        self.place = {id(setting): k for k, setting in enumerate(self.candidates)}
        self.interrupted = False
        self.cut: int | None = None  # the fold that time or Ctrl-C ended
        self._lock = threading.Lock()
        self._left = 0
        self._stride = 1  # how many neighbouring settings share the time of one fit

    def run(self) -> int | None:
        """Fit and score until the folds or the time are over; the position of the winner, None if all were cut off.

        The first Ctrl-C ends it: what is complete decides.  KeyboardInterrupt if nothing is.
        """
        with loop_of_fits() as over:
            for fold in range(len(self.rows)):
                alive = self.alive()
                if not np.all(np.isnan(self.scores)):
                    self._stride = 1
                later = _EXPECTED * len(alive) * (len(self.rows) - fold - 1)
                self._left = len(alive) + math.ceil(later)
                self._fold(fold, [self.candidates[k] for k in alive], over)
                unfitted = np.isnan(self.scores[alive, fold]) & ~self.cut_off[alive, fold]
                self.cut = fold if unfitted.any() else None
                self._tell(fold)
                if over.is_set() or time.monotonic() >= self.ends:
                    break
            self.interrupted = over.is_set()
        if np.all(np.isnan(self.scores)):
            if self.interrupted:
                raise KeyboardInterrupt("interrupted before any setting was scored")
            if self.cut_off.any():
                return None
            raise ValueError("the time limit left no time for any fit: give it more")
        return self.winner()

    def alive(self) -> list[int]:
        """The settings that can still win."""
        seen = ~np.isnan(self.scores)
        if not seen.any():
            return list(range(len(self.candidates)))
        most = seen.sum(axis=1).max()
        running = np.flatnonzero(seen.sum(axis=1) == most)
        means = np.nanmean(self.scores[running], axis=1)
        least = means.max() - BEHIND * self._standard_error(means, most)
        return [int(k) for k, mean in zip(running, means, strict=True) if mean >= least]

    def _standard_error(self, means: NDArray[np.float64], folds: int) -> float:
        """That of a share counted on the rows seen; unknown, and so without end, for scores that are no shares."""
        if np.nanmin(self.scores) < 0 or np.nanmax(self.scores) > 1:
            return math.inf
        best, rows = min(max(float(means.max()), 0.05), 0.95), sum(self.rows[:folds])
        return math.sqrt(best * (1.0 - best) / max(1, rows))

    def winner(self) -> int:
        """Of the settings with the most folds and a mean as good as the best, the simplest."""
        scores = self._comparable()
        seen = (~np.isnan(scores)).sum(axis=1)
        running = np.flatnonzero(seen == seen.max())
        means = np.nanmean(scores[running], axis=1)
        error = self._standard_error(means, int(seen.max()))
        least = means.max() - (AS_GOOD * error if math.isfinite(error) else 0.0) - 1e-9
        as_good = [int(k) for k, mean in zip(running, means, strict=True) if mean >= least]
        return min(as_good, key=lambda k: (self.candidates[k].simplicity, k))

    def _comparable(self) -> NDArray[np.float64]:
        """The scores without a fold that was cut short: only settings that came first would have one there."""
        scores = self.scores.copy()
        if self.cut is not None and not np.all(np.isnan(scores[:, : self.cut])):
            scores[:, self.cut :] = np.nan
        return scores

    def _fold(self, fold: int, alive: list[Setting], over: threading.Event) -> None:
        """Fit and score the settings, each row of neighbours in order.

        Once a fit was cut off, only one of twice as many neighbouring settings is fitted, in twice the time.
        """

        def walk(row: list[Setting]) -> None:
            tree: Tree | None = None
            at = 0
            while at < len(row):
                together = min(self._stride, len(row) - at)
                setting = row[at + together // 2]
                at += together
                seconds = self._share(together)
                if over.is_set() or seconds <= 0:
                    return
                found = self.fit_and_score(setting, fold, seconds, tree)
                if found is None:
                    return
                new, score = found
                if score is None:
                    self.cut_off[self.place[id(setting)], fold] = True
                    self._stride = max(self._stride, 2 * together)
                    continue
                tree = new
                self.scores[self.place[id(setting)], fold] = score
                self._tell_one(setting, fold, score)

        with ThreadPoolExecutor(self.lanes) as pool:
            for job in [pool.submit(copy_context().run, walk, row) for row in walks(alive)]:
                job.result()

    def _share(self, together: int) -> float:
        """What a fit may take of the time left in place of as many settings; 0 if there is none."""
        with self._lock:
            left, self._left = self._left, self._left - together
        remaining = self.ends - time.monotonic()
        share = min(1.0, together * self.lanes / max(1, left))
        return 0.0 if remaining <= 0 else max(_LEAST, remaining * share)

    def _tell(self, fold: int) -> None:
        if self.verbose and not np.all(np.isnan(self.scores)):
            best = self.winner()
            done = int((~np.isnan(self.scores[:, fold])).sum())
            said = f"fold {fold + 1} of {len(self.rows)}: {done} settings, {len(self.alive())} can still win"
            _say(f"{said}, best {np.nanmean(self.scores[best]):.4g} at {self.candidates[best]}")

    def _tell_one(self, setting: Setting, fold: int, score: float) -> None:
        if self.verbose > 1:
            _say(f"fold {fold + 1}, {setting}: {score:.4g}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
