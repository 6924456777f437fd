"""Prediction intervals from residuals of samples that did not train the tree (split conformal prediction, by leaf)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from margotree.problem import topology
from margotree.tree.scaling import FloatArray

#: The largest number of residuals that are kept for a leaf; of more, as many are drawn at random.
MOST_RESIDUALS = 1000


def residuals_by_leaf(residuals: FloatArray, leaf: NDArray[np.int64], n_leaves: int) -> tuple[FloatArray, ...]:
    """Return the absolute residuals of the samples of each leaf, in ascending order."""
    rng, found = np.random.default_rng(0), []
    for k in range(n_leaves):
        here = np.abs(residuals[leaf == k])
        if len(here) > MOST_RESIDUALS:
            here = rng.choice(here, MOST_RESIDUALS, replace=False)
        found.append(np.sort(here))
    return tuple(found)


def half_widths(residuals: Sequence[FloatArray], coverage: float) -> FloatArray:
    """Return half the width of the interval of each leaf.

    With ``n`` residuals it is the smallest residual that is at least as large as the share ``coverage`` of the
    residuals and of a new one: number ``ceil((n + 1) * coverage)`` in ascending order. A leaf with too few residuals
    for this uses those of all leaves below the nearest node above it that has enough; if there is none, the width is
    infinite.
    """
    if not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage must be a share between 0 and 1, got {coverage!r}")
    n_nodes = len(residuals) - 1
    widths = np.full(len(residuals), math.inf)
    for k in range(len(residuals)):
        v = n_nodes + k
        while True:
            below = np.sort(np.concatenate([residuals[leaf - n_nodes] for leaf in _leaves_below(v, n_nodes)]))
            rank = math.ceil((len(below) + 1) * coverage - 1e-12)
            if rank <= len(below):
                widths[k] = below[rank - 1]
                break
            if v == 0:
                break
            v = topology.parent(v)
    return widths


def _leaves_below(v: int, n_nodes: int) -> list[int]:
    """The leaves below a node; the leaf itself for a leaf."""
    if v >= n_nodes:
        return [v]
    return [*_leaves_below(topology.left(v), n_nodes), *_leaves_below(topology.right(v), n_nodes)]
