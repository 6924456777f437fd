"""The tree as it is shown: without nodes that never split and, simplified, without those no training sample needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.problem import topology
from margotree.tree.protocol import TreeLike

#: Weights that a solver leaves where it means 0, relative to the offset.
_NOISE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Outline:
    """What there is to show, numbered as in the tree: ``children[t]`` are the (left, right) of a node that splits.

    ``label[v]`` is the class (its position) of everything that is shown as a leaf; where the outline is simplified that
    may be a node of the tree.  ``root`` is such a leaf where no node splits at all.  ``left_out`` are the nodes that do
    split the space, but no training samples into different labels, and were left out for it.
    """

    root: int
    children: Mapping[int, tuple[int, int]]
    label: Mapping[int, int]
    left_out: tuple[int, ...] = ()

    @property
    def nodes(self) -> list[int]:
        """The nodes that split, level by level."""
        return sorted(self.children)

    @property
    def leaves(self) -> list[int]:
        """What is shown as a leaf, left to right."""
        return self.below(self.root)

    def below(self, v: int) -> list[int]:
        """The leaves below ``v``, left to right; ``v`` itself if it is one."""
        if v not in self.children:
            return [v]
        return [leaf for child in self.children[v] for leaf in self.below(child)]

    def levels(self, v: int) -> int:
        """How many splits lie on the longest way down from ``v``."""
        return 0 if v not in self.children else 1 + max(self.levels(child) for child in self.children[v])


def outline(tree: TreeLike, *, simplify: bool = False) -> Outline:
    """The nodes of ``tree`` that split, and the leaves behind them.

    With ``simplify`` a split is left out that the training samples do not need: one whose two sides predict the same
    for all of them becomes a leaf, one that sends none of them one way gives place to what lies the other way.  New
    samples may still meet it in :meth:`~margotree.tree.Tree.predict`.  A tree that knows no training samples
    stays as it is.
    """
    known = simplify and bool(tree.counts[0].any())
    shown = _Shown(tree, labels_below(tree) if known else None)
    children: dict[int, tuple[int, int]] = {}
    root = shown.at(0)
    waiting = [root]
    while waiting:
        v = waiting.pop()
        if shown.splits(v):
            children[v] = (shown.at(topology.left(v)), shown.at(topology.right(v)))
            waiting += children[v]
    ends = [root, *(child for pair in children.values() for child in pair)]
    label = {v: shown.label(v) for v in ends if v not in children}
    full = outline(tree).children if known else {}
    return Outline(root=root, children=children, label=label, left_out=tuple(sorted(set(full) - set(children))))


def labels_below(tree: TreeLike, *, reached_only: bool = True) -> NDArray[np.bool_]:
    """Entry (v, k) tells whether some training sample that passes ``v`` is predicted class ``k``.

    Where the tree knows no training samples, or if not ``reached_only``, every leaf counts as reached by some.
    """
    found = np.zeros((len(tree.counts), len(tree.classes)), dtype=bool)
    everywhere = not reached_only or not tree.counts[0].any()
    reached = tree.counts[tree.n_nodes :].any(axis=1) | everywhere
    found[tree.n_nodes + np.flatnonzero(reached), tree.leaf_class[reached]] = True
    for t in reversed(range(tree.n_nodes)):
        found[t] = found[topology.left(t)] | found[topology.right(t)]
    return found


@dataclass(frozen=True, eq=False)
class _Shown:
    """What stands for each node: ``found`` are the labels below it that training samples get, None to show all."""

    tree: TreeLike
    found: NDArray[np.bool_] | None

    def at(self, v: int) -> int:
        """The first node or leaf at or below ``v`` that is shown."""
        while self._passed_over(v):
            v = self._only_way(v)
        return v

    def splits(self, v: int) -> bool:
        return v < self.tree.n_nodes and not self._one_label(v)

    def label(self, v: int) -> int:
        if self.found is not None and self._one_label(v):
            return int(np.argmax(self.found[v]))
        return int(self.tree.leaf_class[v - self.tree.n_nodes])

    def _one_label(self, v: int) -> bool:
        return self.found is not None and np.count_nonzero(self.found[v]) == 1

    def _passed_over(self, v: int) -> bool:
        if v >= self.tree.n_nodes:
            return False
        if never_splits(self.tree, v):
            return True
        if self.found is None or self._one_label(v):
            return False
        return not all(self.found[c].any() for c in _children(v))

    def _only_way(self, v: int) -> int:
        if self.found is None or not self.found[v].any():
            return topology.right(v) if self.tree.splits.b[v] >= 0 else topology.left(v)
        return next(c for c in _children(v) if self.found[c].any())


def _children(t: int) -> tuple[int, int]:
    return topology.left(t), topology.right(t)


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
