"""The subsamples of successive halving: few samples at the first level, more at each level, all at the last."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.training_data import Terms

#: Up to this number of samples there is one level; the number of samples of the first level; the factor from level to
#: level.
_MAX_WHOLE, _FIRST_SIZE, _FACTOR = 6_000, 3_000, 4
#: The smallest number of samples of a class, if it has as many.
_MIN_PER_CLASS = 50


class SubsampleLevels:
    """The same problem on more and more samples, stratified by class; the last level has all of them."""

    def __init__(self, terms: Terms, seed: int) -> None:
        self.terms = terms
        n = terms.n_samples
        self.sizes = [n]
        if n > _MAX_WHOLE:
            sizes = [_FIRST_SIZE]
            while sizes[-1] * _FACTOR * 2 <= n:
                sizes.append(sizes[-1] * _FACTOR)
            self.sizes = [*sizes, n]
        rng = np.random.default_rng(seed)
        codes = np.unique(terms.code) if len(self.sizes) > 1 else np.zeros(0)
        self._labels = [np.flatnonzero(terms.code == code) for code in codes]
        for rows in self._labels:
            rng.shuffle(rows)
        self._levels: dict[int, Terms] = {len(self.sizes) - 1: terms}
        self._lock = threading.Lock()

    @property
    def top(self) -> int:
        """The last level."""
        return len(self.sizes) - 1

    def at(self, level: int) -> Terms:
        """The problem of a level; it is made once, by the first thread that needs it."""
        with self._lock:
            if level not in self._levels:
                self._levels[level] = self._part(self.sizes[level] / self.terms.n_samples)
            return self._levels[level]

    def release(self) -> None:
        """Free the memory of all levels but the last."""
        with self._lock:
            self._levels = {self.top: self.terms}

    def _part(self, share: float) -> Terms:
        """The first samples of each class in shuffled order, with weights scaled to the sum of all."""
        chosen: list[NDArray[np.int64]] = []
        factors = []
        for rows in self._labels:
            chosen_rows = rows[: max(min(_MIN_PER_CLASS, len(rows)), round(share * len(rows)))]
            weight = float(np.sum(self.terms.weight[chosen_rows]))
            chosen.append(chosen_rows)
            factors.append(
                np.full(len(chosen_rows), float(np.sum(self.terms.weight[rows])) / weight if weight > 0 else 1.0)
            )
        order = np.argsort(np.concatenate(chosen), kind="stable")
        return self.terms.part(np.concatenate(chosen)[order], np.concatenate(factors)[order])
