"""What features contribute: to the predictions for single samples, and to the tree as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.problem import topology
from margotree.tree.scaling import FloatArray

#: The point with which samples are compared, in scaled units: the middle of the training range of every feature.
MIDDLE = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Attributions:
    """Contributions of features to predictions: ``base + values.sum(axis=1)`` is the prediction.

    Attributes
    ----------
    base : array (classes,), or array () for numbers
        The class shares of the training samples; for numbers the mean over the training samples of the formula of their
        leaf, at the middle of the range of every feature.
    values : array (samples, features, classes) or (samples, features)
        The contributions: to each class probability, or to the predicted number.
    """

    base: FloatArray
    values: FloatArray


def path_contributions(
    w: FloatArray, passes: NDArray[np.bool_], node_values: FloatArray, scaled: FloatArray
) -> FloatArray:
    """Return contributions of features to the change of ``node_values`` along the paths of samples.

    The change from a node to the child of a sample is shared among the features of the split, in proportion to
    :func:`weighted_distances`.

    Parameters
    ----------
    w : array (nodes, features)
        The weights of the splits.
    passes : array (samples, nodes and leaves)
        Whether a sample passes a node or leaf.
    node_values : array (nodes and leaves, outputs)
        The values of nodes and leaves.
    scaled : array (samples, features)
        The samples in scaled units.

    Returns
    -------
    array (samples, features, outputs)
    """
    found = np.zeros((*scaled.shape, node_values.shape[1]))
    for t in np.flatnonzero(w.any(axis=1)).tolist():
        for child in (topology.left(t), topology.right(t)):
            here = np.flatnonzero(passes[:, t] & passes[:, child])
            change = node_values[child] - node_values[t]
            found[here] += shares_of(weighted_distances(w[t], scaled[here]))[:, :, None] * change
    return found


def weighted_distances(w: FloatArray, scaled: FloatArray) -> FloatArray:
    """Return ``|w_j|`` times the distance of each sample from the middle of the range of feature ``j``.

    ``w`` has the weights of a split, or a row of weights for each sample.
    """
    distances = np.abs(w) * np.abs(scaled - MIDDLE)
    in_the_middle = ~distances.any(axis=1, keepdims=True)
    return np.where(in_the_middle, np.abs(w), distances)


def shares_of(amounts: FloatArray) -> FloatArray:
    """Return the rows divided by their sums; rows of zeros stay zeros."""
    total = amounts.sum(axis=1, keepdims=True)
    return np.divide(amounts, total, out=np.zeros_like(amounts), where=total > 0)


def node_means(leaf_values: FloatArray, weight: FloatArray) -> FloatArray:
    """Return values of nodes and leaves: means of ``leaf_values`` by the weight of the training samples.

    A node or leaf without training samples has the value of the node above it.

    Parameters
    ----------
    leaf_values : array (leaves, outputs)
    weight : array (nodes and leaves,)
    """
    n_nodes = len(leaf_values) - 1
    sums = np.zeros((len(weight), leaf_values.shape[1]))
    sums[n_nodes:] = leaf_values * weight[n_nodes:, None]
    for t in reversed(range(n_nodes)):
        sums[t] = sums[topology.left(t)] + sums[topology.right(t)]
    found = np.empty_like(sums)
    for v in range(len(sums)):
        if weight[v] > 0:
            found[v] = sums[v] / weight[v]
        else:
            found[v] = found[topology.parent(v)] if v else leaf_values.mean(axis=0)
    return found


def gini_gains(counts: FloatArray, nodes: Iterable[int]) -> dict[int, float]:
    """Return by how much each split reduces the Gini impurity, times the weight of its samples, as CART counts it."""
    total = counts.sum(axis=1)
    squares = np.divide((counts**2).sum(axis=1), total, out=np.zeros_like(total), where=total > 0)
    return {t: float(squares[topology.left(t)] + squares[topology.right(t)] - squares[t]) for t in nodes}


def variance_gains(values: FloatArray, weight: FloatArray, nodes: Iterable[int]) -> dict[int, float]:
    """Return by how much each split reduces the variance of ``values``, times the weight of its samples."""
    gains = {}
    for t in nodes:
        left, right = weight[topology.left(t)], weight[topology.right(t)]
        difference = values[topology.left(t)] - values[topology.right(t)]
        gains[t] = float(difference**2 * left * right / (left + right)) if left + right > 0 else 0.0
    return gains


def importances(w: FloatArray, gains: dict[int, float]) -> FloatArray:
    """Return the sum of the gains of splits, each shared among its features in proportion to ``|w_j|``."""
    found = np.zeros(w.shape[1])
    for t, gain in gains.items():
        found += max(0.0, gain) * shares_of(np.abs(w[t : t + 1]))[0]
    return found
