"""Where samples are many beside the weights of a tree: starts from nothing are tried out on a few of them.

Which tree a start comes to is then much the same on a few samples, where it takes little time; of several tries the one
that is best for all samples goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from margotree.engines.local_search.starts import Start
from margotree.engines.local_search.training_data import Terms

#: Tries; samples of each per weight of the tree, and at least; if all samples are at least so many times that.
_TRIES, _PER_WEIGHT, _LEAST, _TIMES = 6, 15, 400, 4


def is_tried(terms: Terms, start: Start) -> bool:
    """Whether a start is from nothing, by chance, and samples are many."""
    by_chance = start.soft > 0 or len(np.unique(start.kinds)) > 1
    return by_chance and not np.any(start.W) and terms.n_nodes > 1 and terms.n_samples >= _TIMES * _size(terms)


def parts(terms: Terms, rng: np.random.Generator) -> Iterator[Terms]:
    """The samples of each try."""
    return (terms.some(_size(terms), rng) for _ in range(_TRIES))


def _size(terms: Terms) -> int:
    return max(_LEAST, _PER_WEIGHT * terms.n_nodes * (terms.X.shape[1] + 1))
