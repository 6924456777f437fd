"""The samples as the models see them: equal ones merged, every feature as a ladder of levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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


def merge(X: FloatArray, y: IndexArray, n_classes: int, weight: FloatArray) -> Points:
    """The points of these samples; ``y`` holds class numbers."""
    level = np.column_stack([ladder(column)[0] for column in X.T])
    _, first, of = np.unique(level, axis=0, return_index=True, return_inverse=True)
    of = of.ravel()
    loss = np.zeros((len(first), n_classes))
    np.add.at(loss, (of, y), weight)
    level = level[first]
    return Points(X=X[first], loss=loss, count=loss.sum(axis=1), level=level, n_levels=level.max(axis=0) + 1, of=of)


def ladder(column: FloatArray) -> tuple[IndexArray, float]:
    """The rank of every value among the different ones, and the smallest step between two of them (inf if none)."""
    values, rank = np.unique(column, return_inverse=True)
    step = np.diff(values)
    real = step > SAME * (1.0 + np.abs(values[1:]))
    level = np.concatenate([[0], np.cumsum(real)]).astype(np.int64)
    return level[rank.ravel()], float(np.min(step[real], initial=np.inf))
