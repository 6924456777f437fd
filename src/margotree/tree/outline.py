"""The tree as it is shown: nodes that never split are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from margotree.problem import topology
from margotree.tree.kind import TreeLike

#: Weights that a solver leaves where it means 0, relative to the offset.
_NOISE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Outline:
    """What there is to show, numbered as in the tree: ``children[t]`` are the (left, right) of a node that splits.

    ``root`` is a leaf where no node splits at all.
    """

    root: int
    children: Mapping[int, tuple[int, int]]

    @property
    def nodes(self) -> list[int]:
        """The nodes that split, level by level."""
        return sorted(self.children)

    @property
    def leaves(self) -> list[int]:
        """The leaves that can be reached, left to right."""
        return self.below(self.root)

    def below(self, v: int) -> list[int]:
        """The leaves below ``v``, left to right; ``v`` itself if it is one."""
        if v not in self.children:
            return [v]
        return [leaf for child in self.children[v] for leaf in self.below(child)]

    def levels(self, v: int) -> int:
        """How many splits lie on the longest way down from ``v``."""
        return 0 if v not in self.children else 1 + max(self.levels(child) for child in self.children[v])


def outline(tree: TreeLike) -> Outline:
    """The nodes of ``tree`` that split, and the leaves behind them."""
    children: dict[int, tuple[int, int]] = {}
    root = first_real(tree, 0)
    waiting = [root]
    while waiting:
        v = waiting.pop()
        if v < tree.n_nodes:
            children[v] = (first_real(tree, topology.left(v)), first_real(tree, topology.right(v)))
            waiting += children[v]
    return Outline(root=root, children=children)


def first_real(tree: TreeLike, v: int) -> int:
    """The first node or leaf at or below ``v`` at which something is decided."""
    while v < tree.n_nodes and never_splits(tree, v):
        v = topology.right(v) if tree.splits.b[v] >= 0 else topology.left(v)
    return v


def never_splits(tree: TreeLike, t: int) -> bool:
    """No weight at all, or only rounding noise that parted no training samples."""
    if not tree.splits.w[t].any():
        return True
    noise = np.abs(tree.splits.w[t]).max() <= _NOISE * (1 + abs(tree.splits.b[t]))
    return bool(noise and not (tree.counts[topology.left(t)].any() and tree.counts[topology.right(t)].any()))
