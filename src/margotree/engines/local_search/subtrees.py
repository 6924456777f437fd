"""Subtrees of a good tree trained by themselves: what one of them gains is not lost by another.

The subtrees of a split are independent of each other once it is known who goes where, so each can be searched for by
itself, among fewer samples and fewer hyperplanes than the whole tree's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from margotree.engines.local_search.node_samples import Rows
from margotree.engines.local_search.starts import Start, kept, soft, soft_again
from margotree.engines.local_search.training_data import Found, Terms
from margotree.problem import topology
from margotree.problem.problem import FloatArray
from margotree.problem.routing import tie

#: Shares of the subtrees that are made soft again, and that are soft trees from nothing; the others are disturbed.
_AGAIN, _NEW = 0.5, 0.25


def subtree_start(tree: Found, depth: int, disturbed: Callable[..., Start], rng: np.random.Generator) -> Start:
    """The tree, and where one of its subtrees, by chance, starts from."""
    top = int(rng.integers(1, len(topology.upper(depth))))
    nodes, chance = topology.subtree(top, depth), rng.random()
    part, levels = replace(tree, W=tree.W[nodes], B=tree.B[nodes]), depth - topology.level(top)
    if chance < _AGAIN:
        below = soft_again(part)
    elif chance < _AGAIN + _NEW:
        below = soft(levels, tree.W.shape[1])
    else:
        below = disturbed(part, levels, rng)
    return replace(kept(tree), top=top, below=below)


def rows_at(terms: Terms, W: FloatArray, B: FloatArray, t: int) -> Rows:
    """The samples that reach a node of a tree that keeps its bands empty."""
    rows = np.arange(terms.n_samples)
    for s, side in topology.path_to(t):
        right = terms.samples(rows) @ W[s] + B[s] >= -tie(float(B[s]), terms.eps)
        rows = rows[right if side > 0 else ~right]
    return rows
