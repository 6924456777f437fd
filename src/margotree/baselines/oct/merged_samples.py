"""The samples as the models see them: equal ones merged, every feature as a ladder of levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.problem.blocks import sort_rows
from margotree.problem.problem import FloatArray as FloatArray

IndexArray = NDArray[np.int64]

#: Values of a feature that differ by no more than this, relative to their size, are one: no threshold fits between.
SAME = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class Points:
    """The different samples: any tree sends equal samples the same way, whatever their labels.

    ``loss[u, k]`` is the weight of class ``k`` at point ``u``, ``count[u]`` that of all classes,
    ``level[u, j]`` the rank of its value of feature ``j`` and ``n_levels[j]`` how many values that feature has.
    ``of[i]`` is the point of sample ``i``.
    """

    X: FloatArray
    loss: FloatArray
    count: FloatArray
    level: IndexArray
    n_levels: IndexArray
    of: IndexArray

    @property
    def irreducible(self) -> float:
        """Weight that every tree gets wrong: equal samples with different labels."""
        return float(np.sum(self.count - self.loss.max(axis=1)))


class Ladders:
    """The samples on their way to points, one column after the other.

    Sorting many columns of many samples takes its time: :meth:`read` does as much as ``stop`` allows and goes on from
    there the next time.
    """

    def __init__(self, X: FloatArray, y: IndexArray, n_classes: int, weight: FloatArray) -> None:
        self.X, self.y, self.n_classes, self.weight = X, y, n_classes, weight
        self._level = np.zeros((0, 0), dtype=np.int64)
        self._step: dict[int, float] = {}
        self._columns = 0
        self._points: Points | None = None

    def step(self, j: int) -> float:
        """The smallest step between two values of feature ``j`` (inf if it has one value only)."""
        if j not in self._step:
            self._step[j] = ladder(self.X[:, j])[1]
        return self._step[j]

    def read(self, stop: Callable[[], bool]) -> bool:
        """Sort the columns that are not sorted yet; False if there was no time for all of them."""
        if self._points is not None:
            return True
        if not self._level.size:
            self._level = np.zeros(self.X.shape, dtype=np.int64)
        for j in range(self._columns, self.X.shape[1]):
            if stop():
                return False
            self._level[:, j], self._step[j] = ladder(self.X[:, j])
            self._columns = j + 1
        self._points = _merge(self.X, self._level, self.y, self.n_classes, self.weight)
        self._level = self._level[:0]  # the points have theirs
        return True

    @property
    def points(self) -> Points:
        self.read(lambda: False)
        assert self._points is not None
        return self._points


def _merge(X: FloatArray, level: IndexArray, y: IndexArray, n_classes: int, weight: FloatArray) -> Points:
    """The points of samples whose levels are known; ``y`` holds class numbers."""
    order, new = sort_rows(level.T)
    of = np.empty_like(order)
    of[order] = np.cumsum(new) - 1
    first = order[new]
    if not np.array_equal(first, np.arange(len(X))):
        X, level = X[first], level[first]
    loss = np.zeros((len(first), n_classes))
    np.add.at(loss, (of, y), weight)
    return Points(X=X, loss=loss, count=loss.sum(axis=1), level=level, n_levels=level.max(axis=0) + 1, of=of)


def ladder(column: FloatArray) -> tuple[IndexArray, float]:
    """The rank of every value among the different ones, and the smallest step between two of them (inf if none)."""
    values, rank = np.unique(column, return_inverse=True)
    step = np.diff(values)
    real = step > SAME * (1.0 + np.abs(values[1:]))
    level = np.concatenate([[0], np.cumsum(real)]).astype(np.int64)
    return level[rank.ravel()], float(np.min(step[real], initial=np.inf))
