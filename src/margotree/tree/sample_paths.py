"""Samples in a tree: which nodes they pass, how far from the hyperplanes, and which of them hold a margin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.tree.labels import positions
from margotree.tree.scaling import FloatArray
from margotree.tree.tree import Tree

#: A sample is called a support vector up to this far outside the margin.
_TOUCH = 1e-6

#: Models whose margin knows no class: a split is set midway between the samples of its two sides.
_SIDES_ALONE = frozenset({"oct_1", "oct_h"})


@dataclass(frozen=True, kw_only=True, eq=False)
class Reach:
    """Samples with their way through a tree: ``code`` are positions in its classes, ``passes[i, v]`` tells whether
    sample ``i`` passes node or leaf ``v``."""

    tree: Tree
    scaled: FloatArray
    code: NDArray[np.int64]
    passes: NDArray[np.bool_]

    @classmethod
    def of(cls, tree: Tree, X: ArrayLike, y: ArrayLike) -> Reach:
        """Checked samples; ``y`` holds labels of the tree's classes."""
        code, passes = positions(tree.classes, y), tree.decision_path(X)
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
        """Which of the samples that reach ``t`` hold its hyperplane: on the margin of their class or beyond it.

        Where the model's margin knows no class (OCT-1, OCT-H) it is those on the margin or inside.
        """
        h = self.h(t)
        if self.tree.sides is not None:
            return self._class_support(t, h)
        if self.tree.terms.get("model") in _SIDES_ALONE or len(self.tree.classes) != 2:
            return np.abs(h) <= 1 + _TOUCH
        sign = np.where(self.code[self.at(t)] == 1, 1.0, -1.0)
        return sign * h <= 1 + _TOUCH

    def _class_support(self, t: int, h: FloatArray) -> NDArray[np.bool_]:
        """The same for several classes: a third class at a last-level node lies beyond some margin anywhere."""
        assert self.tree.sides is not None
        code, found = self.code[self.at(t)], np.zeros(len(h), dtype=bool)
        if t < len(self.tree.sides):
            found |= self.tree.sides[t][code] * h <= 1 + _TOUCH
            return found
        a, b = self.tree.leaf_class[2 * (t - len(self.tree.sides)) :][:2]
        return ((code != a) & (h <= 1 + _TOUCH)) | ((code != b) & (-h <= 1 + _TOUCH))

    def counts(self) -> FloatArray:
        """How many samples of each class pass each node and leaf."""
        one_hot = np.eye(len(self.tree.classes))[self.code]
        return self.passes.T.astype(np.float64) @ one_hot
