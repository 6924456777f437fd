"""Splits to start from: which classes to part, and a hyperplane that does."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from margotree.engines.local_search import initial_splits as plain
from margotree.engines.local_search.node_samples import Node, Plane, Rows
from margotree.engines.local_search.training_data import Terms
from margotree.engines.multiclass.bipartitions import best_feature, by_means, candidates, gini_left, turned
from margotree.problem.blocks import FloatArray, IndexArray

#: Samples that bipartitions are compared on.
_HEARD = 1_500


class Strategy(IntEnum):
    """Ways to get an upper split (at the last level, all but the first train the node again)."""

    KEEP = 0
    GREEDY = 1  # the bipartition whose SVM leaves the purest sides, as Local SVM takes it
    CART = 2  # the single feature that tells the classes apart best
    FEATURE = 3  # the same among a few features
    MEANS = 4  # class means parted along a random direction
    BETWEEN = 5  # class means parted along the difference of two
    PERTURBED = 6  # the present one, turned a little


#: The ways of a start from nothing.
FRESH = (Strategy.GREEDY, Strategy.CART, Strategy.FEATURE, Strategy.MEANS, Strategy.BETWEEN)


def draw(
    terms: Terms, t: int, rows: Rows, now: tuple[Plane, IndexArray], kind: Strategy, rng: np.random.Generator,
    flag: FloatArray,
) -> Plane:  # fmt: skip
    """A new hyperplane with no sample in its band; one without features if nothing else comes out."""
    plane, sides = now
    nowhere = (np.zeros_like(plane[0]), 1.0)
    if len(rows) < 2:
        return nowhere
    if kind is Strategy.PERTURBED:
        return plain.draw(terms, t, Node.of(terms, t, rows, sides), plane, plain.Strategy.PERTURBED, rng, flag)
    if kind in (Strategy.CART, Strategy.FEATURE):
        return _by_feature(terms, t, rows, kind, rng) or nowhere
    if kind is Strategy.GREEDY:
        return greedy(terms, t, rows, rng, flag) or nowhere
    chosen = by_means(terms, rows, rng, between=kind is Strategy.BETWEEN)
    return nowhere if chosen is None else _svm(terms, t, rows, chosen, rng, flag)


def _svm(terms: Terms, t: int, rows: Rows, sides: IndexArray, rng: np.random.Generator, flag: FloatArray) -> Plane:
    node, zero = Node.of(terms, t, rows, sides), (np.zeros(terms.X.shape[1]), 1.0)
    return plain.draw(terms, t, node, zero, plain.Strategy.SVM, rng, flag)


def greedy(terms: Terms, t: int, rows: Rows, rng: np.random.Generator, flag: FloatArray) -> Plane | None:
    """The SVM of the bipartition that leaves the least Gini impurity on its two sides.

    The least value would be no guide: it belongs to a split that parts next to nothing.
    """
    heard = rows if len(rows) <= _HEARD else np.sort(rng.choice(rows, _HEARD, replace=False))
    total = terms.mass(heard)
    best, chosen = np.inf, None
    for sides in candidates(terms, t, heard, rng):
        if flag[0] and chosen is not None:
            break
        w, b = _svm(terms, t, heard, sides, rng, flag)
        left = terms.mass(heard[terms.X[heard] @ w + b < 0])
        impurity = float(gini_left(left, total))
        if impurity < best:
            best, chosen = impurity, sides
    return None if chosen is None else _svm(terms, t, rows, chosen, rng, flag)


def _by_feature(terms: Terms, t: int, rows: Rows, kind: Strategy, rng: np.random.Generator) -> Plane | None:
    p = terms.X.shape[1]
    some = rng.permutation(p)[: p if kind is Strategy.CART else max(1, int(p**0.5))]
    found = best_feature(terms, rows, some, rng)
    if found is None:
        return None
    j, share, sides = found
    d, at = np.zeros(p), round(share * len(rows))
    d[j] = 1.0
    if sides[0] > 0:
        d, at = -d, len(rows) - at
    node = Node.of(terms, t, rows, turned(sides))
    return plain._cut(node, d, min(max(at, 1), len(rows) - 1), 10.0 ** rng.uniform(-2.0, 1.0))
