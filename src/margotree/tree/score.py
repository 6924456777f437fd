"""A score that ranks: how far a sample is from the other label, in margins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.problem import topology
from margotree.tree.decision_values import Rows
from margotree.tree.outline import labels_below
from margotree.tree.protocol import TreeLike
from margotree.tree.scaling import FloatArray

#: The size of the score of a sample on a hyperplane that decides: its sign is its label either way one reads a 0.
ON_THE_PLANE = float(np.finfo(np.float64).tiny)


def score(tree: TreeLike, rows: Rows, code: NDArray[np.int64]) -> FloatArray:
    """See :meth:`~margotree.tree.Tree.decision_function`; ``code`` are the labels of the samples, 0 or 1."""
    size = np.full(len(rows), np.inf)
    # First by what training samples were seen to get; where they all got one label, by all leaves there are.
    for found in (labels_below(tree), labels_below(tree, reached_only=False)):
        for k in (0, 1):
            which = np.flatnonzero((code != k) & np.isinf(size))
            if len(which) and found[0, k]:
                size[which] = _way_to(tree, rows[which], 0, found[:, k])
    size[np.isinf(size)] = 1.0  # nothing splits: there is no other label, and nothing to rank by
    return np.where(code == 1, 1.0, -1.0) * np.maximum(size, ON_THE_PLANE)


def _way_to(tree: TreeLike, rows: Rows, v: int, there: NDArray[np.bool_]) -> FloatArray:
    """The largest |h| on the easiest way from ``v`` to a leaf that is ``there``, counting only splits to be crossed."""
    if not there[v]:
        return np.full(len(rows), np.inf)
    if v >= tree.n_nodes:
        return np.zeros(len(rows))
    h, right = tree.side(rows, v)
    across = np.abs(h) if tree.splits.w[v].any() else np.full(len(h), np.inf)  # w = 0 cannot be crossed
    across[right & (h < 0)] = 0.0  # a tie
    to_right = np.maximum(np.where(right, 0.0, across), _way_to(tree, rows, topology.right(v), there))
    to_left = np.maximum(np.where(right, across, 0.0), _way_to(tree, rows, topology.left(v), there))
    return np.minimum(to_right, to_left)


def class_scores(tree: TreeLike, rows: Rows, leaf: NDArray[np.int64]) -> FloatArray:
    """A column for each class of a margin tree of several classes; the largest is the label's."""
    found = np.empty((len(rows), len(tree.classes)))
    for t in topology.last(tree.depth):
        which = np.flatnonzero((leaf == topology.left(t)) | (leaf == topology.right(t)))
        h, right = tree.side(rows[which], t)
        size = np.maximum(np.abs(np.where(right & (h < 0), 0.0, h)), ON_THE_PLANE)  # a tie lies on the hyperplane
        a, b = tree.leaf_class[[topology.left(t) - tree.n_nodes, topology.right(t) - tree.n_nodes]]
        found[which] = -1.0 - size[:, None]
        found[which, a], found[which, b] = np.where(right, -size, size), np.where(right, size, -size)
    return found
