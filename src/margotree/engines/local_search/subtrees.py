"""Starts that train a single subtree of a good tree.

The subtrees of a split are independent once the samples are routed. Each can be searched for separately, among fewer
samples and fewer hyperplanes than those of the whole tree.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from margotree.engines.local_search.initial_splits import FRESH, Strategy
from margotree.engines.local_search.node_samples import Rows
from margotree.engines.local_search.starts import (
    Start,
    perturbed,
    reannealed_start,
    soft_start,
    unchanged_start,
)
from margotree.engines.local_search.training_data import Terms, TrainedTree
from margotree.problem import topology
from margotree.problem.problem import FloatArray
from margotree.problem.routing import goes_right

#: The share of subtrees that are re-annealed, and the share that start from new soft trees; the others are perturbed.
_REANNEALED_SHARE, _NEW_SHARE = 0.5, 0.25


def subtree_start(
    tree: TrainedTree, depth: int, rng: np.random.Generator, fresh: tuple[Strategy, ...] = FRESH
) -> Start:
    """The tree, with a start for one of its subtrees, chosen at random."""
    top = int(rng.integers(1, len(topology.upper(depth))))
    nodes, uniform = topology.subtree(top, depth), rng.random()
    part, levels = replace(tree, W=tree.W[nodes], B=tree.B[nodes]), depth - topology.level(top)
    if uniform < _REANNEALED_SHARE:
        subtree = reannealed_start(part)
    elif uniform < _REANNEALED_SHARE + _NEW_SHARE:
        subtree = soft_start(levels, tree.W.shape[1])
    else:
        subtree = perturbed(part, levels, rng, fresh)
    return replace(unchanged_start(tree), top=top, subtree=subtree)


def rows_at(terms: Terms, W: FloatArray, B: FloatArray, t: int) -> Rows:
    """The samples that reach node ``t`` of a tree whose bands are empty."""
    rows = np.arange(terms.n_samples)
    for s, side in topology.path_to(t):
        right = goes_right(terms.samples(rows) @ W[s] + B[s], float(B[s]), terms.eps)
        rows = rows[right if side > 0 else ~right]
    return rows
