"""Groups of features that are used together; a support is a set of groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.kernels.workspace import threshold
from margotree.problem.problem import FloatArray

#: Smallest share of a feature in the threshold of its group, so that small components of the dual vector can grow.
_SMALLEST_SHARE = 0.05


class FeatureGroups:
    """The groups of the features of one problem, numbered 0, 1, ...

    Parameters
    ----------
    of_feature : array of shape (n_features,), optional
        The group of every feature; by default every feature is a group.
    """

    def __init__(self, n_features: int, of_feature: NDArray[np.int64] | None = None) -> None:
        self.single = of_feature is None
        self.of_feature = np.arange(n_features) if of_feature is None else of_feature
        self.n_features = n_features
        self.n_groups = int(np.max(self.of_feature, initial=-1)) + 1

    def sums(self, values: FloatArray) -> FloatArray:
        """The sum of the values of its features for every group."""
        if self.single:
            return values
        sums: FloatArray = np.bincount(self.of_feature, weights=values, minlength=self.n_groups).astype(np.float64)
        return sums

    def norms(self, w: FloatArray) -> FloatArray:
        """The Euclidean norm of the part of ``w`` that belongs to every group."""
        norms: FloatArray = np.abs(w) if self.single else np.sqrt(self.sums(w * w))
        return norms

    def used(self, w: FloatArray) -> NDArray[np.int64]:
        """The groups with a weight, in ascending order."""
        return np.flatnonzero(w) if self.single else np.unique(self.of_feature[w != 0])

    def count(self, w: FloatArray) -> int:
        """The number of groups with a weight."""
        return int(np.count_nonzero(w)) if self.single else len(self.used(w))

    def columns(self, support: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """The features of these groups, in ascending order."""
        if self.single:
            return np.sort(np.array(support, dtype=np.int64))
        return np.flatnonzero(np.isin(self.of_feature, support))

    def thresholds(self, lam: float, u: FloatArray | None) -> FloatArray:
        """The ``|u_j|`` from which on features are used if the penalty ``lam`` of a group is divided among them.

        Every division gives a relaxation of the penalty of whole groups: a sum of parts above 0 is at least the part
        of the sum above 0.  One in proportion to ``u_j^2`` loses nothing at ``u``; without ``u`` all shares are equal.
        """
        r = np.array([threshold(lam, j) for j in range(self.n_features)])
        if self.single:
            return r
        shares = np.ones(self.n_features)
        if u is not None:
            norms = self.norms(u)[self.of_feature]
            shares = np.where(norms > 0.0, np.maximum(np.abs(u), _SMALLEST_SHARE * norms), 1.0)
        divided: FloatArray = r * shares / self.norms(shares)[self.of_feature]
        return divided
