"""``decision_function``: the distance of a sample from the other label, in margins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.problem import topology
from margotree.tree.decision_values import Rows
from margotree.tree.outline import labels_below
from margotree.tree.protocol import TreeLike
from margotree.tree.scaling import FloatArray

#: The absolute score of a sample on the deciding hyperplane. It is not 0, so that its sign gives the label.
SMALLEST_SCORE = float(np.finfo(np.float64).tiny)


def score(tree: TreeLike, rows: Rows, code: NDArray[np.int64]) -> FloatArray:
    """Compute :meth:`~margotree.tree.Tree.decision_function` for two classes; ``code`` has the labels, 0 or 1."""
    size = np.full(len(rows), np.inf)
    # First with the leaves that training samples reach; if these have only one label, with all leaves.
    for found in (labels_below(tree), labels_below(tree, reached_only=False)):
        for k in (0, 1):
            which = np.flatnonzero((code != k) & np.isinf(size))
            if len(which) and found[0, k]:
                size[which] = _distance_to(tree, rows[which], 0, found[:, k])
    size[np.isinf(size)] = 1.0  # no other label can be reached
    return np.where(code == 1, 1.0, -1.0) * np.maximum(size, SMALLEST_SCORE)


def _distance_to(tree: TreeLike, rows: Rows, v: int, is_target: NDArray[np.bool_]) -> FloatArray:
    """Return the distance of each sample at node ``v`` from the leaves below it that are ``is_target``.

    A path to such a leaf costs the largest ``|h|`` among the splits that the sample has to cross; the distance is the
    smallest cost of a path.
    """
    if not is_target[v]:
        return np.full(len(rows), np.inf)
    if v >= tree.n_nodes:
        return np.zeros(len(rows))
    h, right = tree.side(rows, v)
    crossing = np.abs(h) if tree.splits.w[v].any() else np.full(len(h), np.inf)  # w = 0 cannot be crossed
    crossing[right & (h < 0)] = 0.0  # a tie
    to_right = np.maximum(np.where(right, 0.0, crossing), _distance_to(tree, rows, topology.right(v), is_target))
    to_left = np.maximum(np.where(right, crossing, 0.0), _distance_to(tree, rows, topology.left(v), is_target))
    return np.minimum(to_right, to_left)


def class_scores(tree: TreeLike, rows: Rows, leaf: NDArray[np.int64]) -> FloatArray:
    """Compute the scores of a margin tree for several classes: one column per class, the largest is the label's."""
    found = np.empty((len(rows), len(tree.classes)))
    for t in topology.last(tree.depth):
        which = np.flatnonzero((leaf == topology.left(t)) | (leaf == topology.right(t)))
        h, right = tree.side(rows[which], t)
        size = np.maximum(np.abs(np.where(right & (h < 0), 0.0, h)), SMALLEST_SCORE)  # a tie lies on the hyperplane
        a, b = tree.leaf_class[[topology.left(t) - tree.n_nodes, topology.right(t) - tree.n_nodes]]
        found[which] = -1.0 - size[:, None]
        found[which, a], found[which, b] = np.where(right, -size, size), np.where(right, size, -size)
    return found
