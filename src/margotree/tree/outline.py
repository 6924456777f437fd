"""The nodes and leaves that texts and plots show.

Nodes that never split are left out. A simplified outline also leaves out splits that do not change the label of any
training sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.problem import topology
from margotree.tree.protocol import SplitTree

#: Weights up to this size, relative to the offset, may be rounding errors of 0.
_NOISE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Outline:
    """The nodes and leaves to show, numbered as in the tree.

    Attributes
    ----------
    root : int
        The first node that is shown; a leaf if no node splits.
    children : mapping
        The (left, right) of each node that splits.
    label : mapping
        The number of the outcome of each leaf: the position of its class, or in trees of numbers the number of its
        formula. A leaf of a simplified outline may be a node of the tree.
    left_out : tuple of int
        Nodes that split the space, but are left out because they do not change the label of any training sample.
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
        """The leaves, left to right."""
        return self.below(self.root)

    def below(self, v: int) -> list[int]:
        """The leaves below ``v``, left to right; ``v`` itself if it is one."""
        if v not in self.children:
            return [v]
        return [leaf for child in self.children[v] for leaf in self.below(child)]

    def levels(self, v: int) -> int:
        """The number of splits on the longest path down from ``v``."""
        return 0 if v not in self.children else 1 + max(self.levels(child) for child in self.children[v])


def outline(tree: SplitTree, *, simplify: bool = False) -> Outline:
    """Return the nodes of ``tree`` that split, and the leaves.

    With ``simplify``, splits that do not change the label of any training sample are left out. A node at which all
    training samples get the same label becomes a leaf; a node that sends all training samples to one child is replaced
    by that child. :meth:`~margotree.tree.Tree.predict` uses these splits for new samples. A tree without counts of
    training samples is not simplified.
    """
    simplify = simplify and bool(tree.counts[0].any())
    shown = _ShownNodes(tree, labels_below(tree) if simplify else None)
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
    full = outline(tree).children if simplify else {}
    return Outline(root=root, children=children, label=label, left_out=tuple(sorted(set(full) - set(children))))


def labels_below(tree: SplitTree, *, reached_only: bool = True) -> NDArray[np.bool_]:
    """Return an array whose entry (v, k) is True if a training sample that passes ``v`` has the outcome ``k``.

    Outcomes are classes, or in trees of numbers the formulas of the leaves.

    Without counts of training samples, or if not ``reached_only``, all leaves below ``v`` count.
    """
    found = np.zeros((len(tree.counts), tree.n_outcomes), dtype=bool)
    everywhere = not reached_only or not tree.counts[0].any()
    reached = tree.counts[tree.n_nodes :].any(axis=1) | everywhere
    found[tree.n_nodes + np.flatnonzero(reached), tree.leaf_outcome[reached]] = True
    for t in reversed(range(tree.n_nodes)):
        found[t] = found[topology.left(t)] | found[topology.right(t)]
    return found


@dataclass(frozen=True, eq=False)
class _ShownNodes:
    """The node or leaf that is shown in place of each node.

    ``found`` is the result of :func:`labels_below`; None if the outline is not simplified.
    """

    tree: SplitTree
    found: NDArray[np.bool_] | None

    def at(self, v: int) -> int:
        """The first node or leaf at or below ``v`` that is shown."""
        while self._is_skipped(v):
            v = self._only_child(v)
        return v

    def splits(self, v: int) -> bool:
        return v < self.tree.n_nodes and not self._one_label(v)

    def label(self, v: int) -> int:
        if self.found is not None and self._one_label(v):
            return int(np.argmax(self.found[v]))
        return int(self.tree.leaf_outcome[v - self.tree.n_nodes])

    def _one_label(self, v: int) -> bool:
        return self.found is not None and np.count_nonzero(self.found[v]) == 1

    def _is_skipped(self, v: int) -> bool:
        if v >= self.tree.n_nodes:
            return False
        if never_splits(self.tree, v):
            return True
        if self.found is None or self._one_label(v):
            return False
        return not all(self.found[c].any() for c in _children(v))

    def _only_child(self, v: int) -> int:
        if self.found is None or not self.found[v].any():
            return topology.right(v) if self.tree.splits.b[v] >= 0 else topology.left(v)
        return next(c for c in _children(v) if self.found[c].any())


def _children(t: int) -> tuple[int, int]:
    return topology.left(t), topology.right(t)


def first_splitting(tree: SplitTree, v: int) -> int:
    """Return the first leaf, or node that splits, at or below ``v``."""
    while v < tree.n_nodes and never_splits(tree, v):
        v = topology.right(v) if tree.splits.b[v] >= 0 else topology.left(v)
    return v


def never_splits(tree: SplitTree, t: int) -> bool:
    """Whether node ``t`` has no weights, or only rounding errors as weights and no training samples on one side."""
    if not tree.splits.w[t].any():
        return True
    noise = np.abs(tree.splits.w[t]).max() <= _NOISE * (1 + abs(tree.splits.b[t]))
    return bool(noise and not (tree.counts[topology.left(t)].any() and tree.counts[topology.right(t)].any()))
