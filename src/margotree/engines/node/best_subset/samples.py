"""The samples of one node problem, equal ones merged, on all features or on a few."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.problem.blocks import sort_rows
from margotree.problem.problem import FloatArray

I1 = NDArray[np.int8]


class Samples(NamedTuple):
    """Samples with a positive cost or a side; ``side`` is +1 or -1 where one is prescribed, else 0.

    A sample with losses on both sides is two of them.
    """

    X: FloatArray
    y: FloatArray
    cost: FloatArray
    corner: FloatArray
    side: I1

    def combined(self, X: FloatArray, first: NDArray[np.int64], which: NDArray[np.int64]) -> Samples:
        """One sample per group with the sum of its costs.

        ``first`` holds one member of every group, ``which`` the group of every sample.
        """
        cost: FloatArray = np.bincount(which, weights=self.cost).astype(np.float64)
        return Samples(np.ascontiguousarray(X[first]), self.y[first], cost, self.corner[first], self.side[first])


def merge_equal(X: FloatArray, y: FloatArray, cost: FloatArray, corner: FloatArray, side: I1) -> Samples:
    """The samples with a positive cost or a side, equal ones merged."""
    counts = (cost > 0) | (side != 0)
    samples = Samples(X[counts], y[counts], cost[counts], corner[counts], side[counts])
    if not len(samples.y):
        return samples
    order, new = sort_rows([*samples.X.T, samples.y, samples.corner, samples.side])
    which = np.empty_like(order)
    which[order] = np.cumsum(new) - 1
    return samples.combined(samples.X, order[new], which)


class Grouping:
    """Finds samples that are equal on a few features; fast where features take few values."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        _, kind = np.unique(np.column_stack([samples.y, samples.corner, samples.side]), axis=0, return_inverse=True)
        self._base = kind.ravel().astype(np.int64)
        self._kinds = int(self._base.max()) + 1 if len(self._base) else 1
        self._codes, self._sizes = [], []
        for column in samples.X.T:
            values, code = np.unique(column, return_inverse=True)
            self._codes.append(code.ravel().astype(np.int64))
            self._sizes.append(len(values))

    def restricted(self, support: NDArray[np.int64]) -> Samples:
        """The samples on the features of ``support``, equal ones merged if that at least halves their number."""
        X = self.samples.X[:, support]
        cells = float(self._kinds) * float(np.prod([float(self._sizes[j]) for j in support]))
        if 2 * cells > len(X):
            return self.samples._replace(X=X)
        key = self._base
        for j in support:
            key = key * self._sizes[j] + self._codes[j]
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        return self.samples.combined(X, first, which.ravel())
