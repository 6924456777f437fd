"""Equal samples merged into points, and the values of every feature replaced by their ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.problem.blocks import sort_rows
from margotree.problem.problem import FloatArray as FloatArray

IndexArray = NDArray[np.int64]

#: Values of a feature that differ by no more than this, relative to their size, are equal: no threshold fits between.
SAME = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class Points:
    """The distinct samples, independent of their labels: any tree sends equal samples to the same leaf.

    ``class_weight[u, k]`` is the weight of the samples of class ``k`` at point ``u``, ``weight[u]`` that of all
    classes, ``rank[u, j]`` the rank of the point's value of feature ``j`` and ``n_values[j]`` the number of distinct
    values of that feature.  ``point_of[i]`` is the point of sample ``i``.
    """

    X: FloatArray
    class_weight: FloatArray
    weight: FloatArray
    rank: IndexArray
    n_values: IndexArray
    point_of: IndexArray

    @property
    def irreducible_error(self) -> float:
        """The weight that every tree misclassifies: equal samples with different labels."""
        return float(np.sum(self.weight - self.class_weight.max(axis=1)))


class RankedSamples:
    """Ranks the columns of ``X`` one after the other, then merges equal samples into points.

    Sorting many columns of many samples takes long; :meth:`merge` can therefore stop between two columns and continue
    there at the next call.
    """

    def __init__(self, X: FloatArray, y: IndexArray, n_classes: int, weight: FloatArray) -> None:
        self.X, self.y, self.n_classes, self.weight = X, y, n_classes, weight
        self._rank = np.zeros((0, 0), dtype=np.int64)
        self._step: dict[int, float] = {}
        self._columns = 0
        self._points: Points | None = None

    def step(self, j: int) -> float:
        """The smallest step between two values of feature ``j`` (inf if it has one value only)."""
        if j not in self._step:
            self._step[j] = rank_values(self.X[:, j])[1]
        return self._step[j]

    def merge(self, stop: Callable[[], bool]) -> bool:
        """Rank the remaining columns and merge the samples; False if ``stop`` returned True before that was done."""
        if self._points is not None:
            return True
        if not self._rank.size:
            self._rank = np.zeros(self.X.shape, dtype=np.int64)
        for j in range(self._columns, self.X.shape[1]):
            if stop():
                return False
            self._rank[:, j], self._step[j] = rank_values(self.X[:, j])
            self._columns = j + 1
        self._points = _merge(self.X, self._rank, self.y, self.n_classes, self.weight)
        self._rank = self._rank[:0]  # the points hold theirs
        return True

    @property
    def points(self) -> Points:
        self.merge(lambda: False)
        assert self._points is not None
        return self._points


def _merge(X: FloatArray, rank: IndexArray, y: IndexArray, n_classes: int, weight: FloatArray) -> Points:
    """The points of ranked samples; ``y`` holds class numbers."""
    order, new = sort_rows(rank.T)
    point_of = np.empty_like(order)
    point_of[order] = np.cumsum(new) - 1
    first = order[new]
    if not np.array_equal(first, np.arange(len(X))):
        X, rank = X[first], rank[first]
    class_weight = np.zeros((len(first), n_classes))
    np.add.at(class_weight, (point_of, y), weight)
    return Points(
        X=X,
        class_weight=class_weight,
        weight=class_weight.sum(axis=1),
        rank=rank,
        n_values=rank.max(axis=0) + 1,
        point_of=point_of,
    )


def rank_values(column: FloatArray) -> tuple[IndexArray, float]:
    """The rank of every value among the distinct ones, and the smallest step between two of them (inf if none)."""
    values, position = np.unique(column, return_inverse=True)
    step = np.diff(values)
    distinct = step > SAME * (1.0 + np.abs(values[1:]))
    rank = np.concatenate([[0], np.cumsum(distinct)]).astype(np.int64)
    return rank[position.ravel()], float(np.min(step[distinct], initial=np.inf))
