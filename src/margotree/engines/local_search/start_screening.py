"""Start screening, where samples are many compared with the weights of a tree: several starts are tried on few samples.

A start leads to nearly the same tree on few samples, in little time; the tree with the best objective on all samples
continues.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from margotree.engines.local_search.starts import Start
from margotree.engines.local_search.training_data import Terms

#: The number of tries; samples of each per weight of the tree, and at least; all samples must be at least this multiple
#: of that.
_TRIES, _SAMPLES_PER_WEIGHT, _MIN_SAMPLES, _MIN_RATIO = 6, 15, 400, 4


def is_screened(terms: Terms, start: Start) -> bool:
    """Whether a start is new and random, and samples are many."""
    is_random = start.n_soft > 0 or len(np.unique(start.strategies)) > 1
    return is_random and not np.any(start.W) and terms.n_nodes > 1 and terms.n_samples >= _MIN_RATIO * _size(terms)


def subsamples(terms: Terms, rng: np.random.Generator) -> Iterator[Terms]:
    """The problem on the samples of each try."""
    return (terms.subsample(_size(terms), rng) for _ in range(_TRIES))


def _size(terms: Terms) -> int:
    """The number of samples of a try."""
    return max(_MIN_SAMPLES, _SAMPLES_PER_WEIGHT * terms.n_nodes * (terms.X.shape[1] + 1))
