"""Where samples are many, trees are raced: on few samples, the promising ones on more and more, the best on all."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.training_data import Terms

#: Up to so many samples a race is not worth it; the first rung's samples; the factor from rung to rung.
_ALL, _FIRST, _FACTOR = 6_000, 3_000, 4
#: Of a label, so many samples at least stay in.
_LEAST = 50


class Ladder:
    """The same problem on more and more samples, all labels in their shares; the last rung has them all."""

    def __init__(self, terms: Terms, seed: int) -> None:
        self.terms = terms
        n = terms.n_samples
        self.sizes = [n]
        if n > _ALL:
            rungs = [_FIRST]
            while rungs[-1] * _FACTOR * 2 <= n:
                rungs.append(rungs[-1] * _FACTOR)
            self.sizes = [*rungs, n]
        rng = np.random.default_rng(seed)
        self._labels = [np.flatnonzero(terms.y == label) for label in np.unique(terms.y)] if len(self.sizes) > 1 else []
        for rows in self._labels:
            rng.shuffle(rows)
        self._rungs: dict[int, Terms] = {len(self.sizes) - 1: terms}
        self._making = threading.Lock()

    @property
    def top(self) -> int:
        return len(self.sizes) - 1

    def rung(self, level: int) -> Terms:
        with self._making:  # once, by whoever comes first
            if level not in self._rungs:
                self._rungs[level] = self._part(self.sizes[level] / self.terms.n_samples)
            return self._rungs[level]

    def _part(self, share: float) -> Terms:
        """The first samples of each label in the shuffled order, weighted to stand for all of them."""
        chosen: list[NDArray[np.int64]] = []
        factors = []
        for rows in self._labels:
            some = rows[: max(min(_LEAST, len(rows)), round(share * len(rows)))]
            mass = float(np.sum(self.terms.weight[some]))
            chosen.append(some)
            factors.append(np.full(len(some), float(np.sum(self.terms.weight[rows])) / mass if mass > 0 else 1.0))
        order = np.argsort(np.concatenate(chosen), kind="stable")
        return self.terms.part(np.concatenate(chosen)[order], np.concatenate(factors)[order])
