"""Samples with targets in a tree: the nodes that they pass, ``h`` at these nodes, and the support vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.tree.base import HyperplaneTree
from margotree.tree.labels import class_positions
from margotree.tree.scaling import FloatArray
from margotree.tree.tree import Tree

#: A support vector may lie outside the margin by this much.
_MARGIN_TOL = 1e-6

#: Models whose margin does not depend on the class: a split lies midway between the samples of its two sides.
_MARGIN_WITHOUT_CLASS = frozenset({"oct_1", "oct_h"})


@dataclass(frozen=True, kw_only=True, eq=False)
class SamplePaths:
    """Samples with their paths through a tree.

    ``code`` has the positions of their labels in the classes of the tree, or 0 in a tree of numbers; ``passes[i, v]``
    is True if sample ``i`` passes node or leaf ``v``.
    """

    tree: HyperplaneTree
    scaled: FloatArray
    code: NDArray[np.int64]
    passes: NDArray[np.bool_]

    @classmethod
    def of(cls, tree: HyperplaneTree, X: ArrayLike, y: ArrayLike) -> SamplePaths:
        """Check the samples and compute their paths; ``y`` contains class labels of the tree, or numeric targets."""
        passes = tree.decision_path(X)
        if isinstance(tree, Tree):
            code = class_positions(tree.classes, y)
        else:
            code = np.zeros(len(np.asarray(y, dtype=np.float64)), dtype=np.int64)
        if len(code) != len(passes):
            raise ValueError(f"X and y must be of one length, got {len(passes)} and {len(code)}")
        return cls(tree=tree, scaled=tree.scaled(X), code=code, passes=passes)

    def at(self, v: int) -> NDArray[np.int64]:
        """The samples that pass node or leaf ``v``."""
        return np.flatnonzero(self.passes[:, v])

    def h(self, t: int) -> FloatArray:
        """``h_t`` of the samples that reach node ``t``."""
        return self.tree.side(self.scaled[self.at(t)], t)[0]

    def support(self, t: int) -> NDArray[np.bool_]:
        """Whether each sample that reaches ``t`` is a support vector: on the margin of its class or on its wrong side.

        For models whose margin does not depend on the class (OCT-1, OCT-H, trees of numbers): on or inside the margins.
        """
        h = self.h(t)
        if not isinstance(self.tree, Tree):
            return np.abs(h) <= 1 + _MARGIN_TOL
        if self.tree.sides is not None:
            return self._class_support(self.tree, self.tree.sides, t, h)
        if self.tree.terms.get("model") in _MARGIN_WITHOUT_CLASS or len(self.tree.classes) != 2:
            return np.abs(h) <= 1 + _MARGIN_TOL
        sign = np.where(self.code[self.at(t)] == 1, 1.0, -1.0)
        return sign * h <= 1 + _MARGIN_TOL

    def _class_support(self, tree: Tree, sides: NDArray[np.int64], t: int, h: FloatArray) -> NDArray[np.bool_]:
        """The same for several classes; at a last-level node every sample of a third class violates a margin."""
        code, found = self.code[self.at(t)], np.zeros(len(h), dtype=bool)
        if t < len(sides):
            found |= sides[t][code] * h <= 1 + _MARGIN_TOL
            return found
        a, b = tree.leaf_class[2 * (t - len(sides)) :][:2]
        return ((code != a) & (h <= 1 + _MARGIN_TOL)) | ((code != b) & (-h <= 1 + _MARGIN_TOL))

    def counts(self) -> FloatArray:
        """The number of samples that pass each node and leaf, by class as in the counts of the tree."""
        one_hot = np.eye(self.tree.counts.shape[1])[self.code]
        return self.passes.T.astype(np.float64) @ one_hot
