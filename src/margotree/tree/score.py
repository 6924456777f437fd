"""The distances of samples from the labels of a tree, in margins, and ``decision_function``."""

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

#: The distance from the other of two labels if no leaf has it.
NO_OTHER_LABEL = 1.0


def score(tree: TreeLike, rows: Rows, code: NDArray[np.int64]) -> FloatArray:
    """Compute :meth:`~margotree.tree.Tree.decision_function` for two classes; ``code`` has the labels, 0 or 1."""
    size = label_distances(tree, rows, code)[np.arange(len(code)), 1 - code]
    size[np.isinf(size)] = NO_OTHER_LABEL
    return np.where(code == 1, 1.0, -1.0) * np.maximum(size, SMALLEST_SCORE)


def label_distances(
    tree: TreeLike, rows: Rows, code: NDArray[np.int64], h: dict[int, FloatArray] | None = None
) -> FloatArray:
    """Return the distance of each sample from each label, one column per class; 0 for the label of the sample.

    A path to a leaf costs the largest ``|h|`` among the splits that the sample has to cross; the distance is the
    smallest cost of a path to a leaf with the label, and infinite if there is none. ``h`` replaces the decision values
    at some nodes.
    """
    targets = _below(tree, leaf_targets(tree))
    crossing, right = [], []
    for t in range(tree.n_nodes):
        value, goes_right = tree.side(rows, t)
        if h is not None and t in h:
            value, goes_right = h[t], h[t] >= -tree.tie(t)
        cost = np.abs(value) if tree.splits.w[t].any() else np.full(len(rows), np.inf)  # w = 0 cannot be crossed
        cost[goes_right & (value < 0)] = 0.0  # a tie
        crossing.append(cost)
        right.append(goes_right)
    found = np.full((len(rows), len(tree.classes)), np.inf)
    for k in range(len(tree.classes)):
        found[:, k] = _distance_to(crossing, right, 0, targets[:, k])
    found[np.arange(len(rows)), code] = 0.0
    return found


def leaf_targets(tree: TreeLike) -> NDArray[np.bool_]:
    """Return an array whose entry (leaf, k) is True if the leaf counts as a leaf of label ``k`` for distances.

    These are the leaves with the label that training samples reach. If the label has none that a sample can come to by
    crossing splits, these are all its leaves.
    """
    reached = labels_below(tree)[tree.n_nodes :]
    every = labels_below(tree, reached_only=False)[tree.n_nodes :]
    open_leaves = _open_leaves(tree)[:, None]
    return np.where((reached & open_leaves).any(axis=0), reached, every)


def reachable_labels(tree: TreeLike) -> NDArray[np.bool_]:
    """Return whether the distance from each label is finite; it is for all samples or for none."""
    return np.any(leaf_targets(tree) & _open_leaves(tree)[:, None], axis=0)


def _open_leaves(tree: TreeLike) -> NDArray[np.bool_]:
    """Whether each leaf is on the side to which the nodes without weights above it send all samples."""
    is_open = np.ones(2 * tree.n_nodes + 1, dtype=bool)
    for t in range(tree.n_nodes):
        left, right = topology.left(t), topology.right(t)
        is_open[[left, right]] = is_open[t]
        if not tree.splits.w[t].any():
            is_open[left if tree.splits.b[t] >= -tree.tie(t) else right] = False
    return is_open[tree.n_nodes :]


def _below(tree: TreeLike, targets: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether there are targets at or below each node and leaf."""
    found = np.zeros((2 * tree.n_nodes + 1, targets.shape[1]), dtype=bool)
    found[tree.n_nodes :] = targets
    for t in reversed(range(tree.n_nodes)):
        found[t] = found[topology.left(t)] | found[topology.right(t)]
    return found


def _distance_to(
    crossing: list[FloatArray], right: list[NDArray[np.bool_]], v: int, is_target: NDArray[np.bool_]
) -> FloatArray:
    """Return the distance of samples at node ``v`` from the leaves below it that are ``is_target``."""
    n = len(crossing[0])
    if not is_target[v]:
        return np.full(n, np.inf)
    if v >= len(crossing):
        return np.zeros(n)
    to_right = _distance_to(crossing, right, topology.right(v), is_target)
    to_left = _distance_to(crossing, right, topology.left(v), is_target)
    np.maximum(to_right, np.where(right[v], 0.0, crossing[v]), out=to_right)
    np.maximum(to_left, np.where(right[v], crossing[v], 0.0), out=to_left)
    return np.minimum(to_right, to_left)


def class_scores(tree: TreeLike, rows: Rows, leaf: NDArray[np.int64]) -> FloatArray:
    """Compute the scores of a margin tree for several classes: one column per class, the largest is the label's."""
    found = np.empty((len(rows), len(tree.classes)))
    for t in topology.last(tree.levels):
        which = np.flatnonzero((leaf == topology.left(t)) | (leaf == topology.right(t)))
        h, right = tree.side(rows[which], t)
        size = np.maximum(np.abs(np.where(right & (h < 0), 0.0, h)), SMALLEST_SCORE)  # a tie lies on the hyperplane
        a, b = tree.leaf_class[[topology.left(t) - tree.n_nodes, topology.right(t) - tree.n_nodes]]
        found[which] = -1.0 - size[:, None]
        found[which, a], found[which, b] = np.where(right, -size, size), np.where(right, size, -size)
    return found
