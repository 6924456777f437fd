"""Hyperplanes to start from: greedy ones, single features, directions between samples, and shaken ones."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from margotree.engines.local_search.kernels.subtree_costs import gini
from margotree.engines.local_search.node_samples import Node, Plane
from margotree.engines.local_search.support_search import heaviest, rough_svm
from margotree.engines.local_search.training_data import Terms
from margotree.problem.problem import FloatArray


class Draw(IntEnum):
    """Ways to get the hyperplane of an upper node (at the last level, all but the first train it again)."""

    KEEP = 0
    SVM = 1  # by itself, as Local SVM does
    CART = 2  # the single feature that tells the labels apart best
    FEATURE = 3  # the same among a few features
    ANYWHERE = 4  # a feature and a threshold by chance
    BETWEEN = 5  # between two samples of different labels
    FEW = 6  # the SVM of a few of the samples
    SHAKEN = 7  # the present one, turned a little


#: The ways of a start from nothing.
FRESH = (Draw.SVM, Draw.CART, Draw.FEATURE, Draw.ANYWHERE, Draw.BETWEEN, Draw.FEW)
#: How often weights are made ten times longer before a direction counts as one that nothing can be cut along.
_LONGER = 12
_LENGTHS = np.array([1.0, 2.0, 5.0, 10.0, 100.0, 1000.0])


def draw(
    terms: Terms, t: int, node: Node, plane: Plane, kind: Draw, rng: np.random.Generator, flag: FloatArray
) -> Plane:
    """A new hyperplane with no sample in its band; one without features if nothing else comes out."""
    nowhere = (np.zeros_like(plane[0]), 1.0)
    if len(node.Z) < 2:
        return nowhere
    if kind in (Draw.SVM, Draw.FEW):
        drawn = _by_svm(terms, t, node, kind, rng, flag)
    else:
        drawn = _by_chance(terms, t, node, plane, kind, rng)
    if drawn is None or node.right_of(node.heights(drawn), drawn) is None:
        return nowhere
    return drawn


def _by_svm(terms: Terms, t: int, node: Node, kind: Draw, rng: np.random.Generator, flag: FloatArray) -> Plane | None:
    heard = node
    if kind is Draw.FEW:
        m = len(node.Z)
        heard = node.thinned(np.sort(rng.choice(m, max(2, int(m * rng.uniform(0.05, 0.5))), replace=False)))
    plane, _ = rough_svm(terms, t, heard, (np.zeros(node.Z.shape[1]), 0.0), rng, flag)
    if not np.any(plane[0]):
        return None
    cut = node.best_cut(plane[0], _LENGTHS)
    return None if cut is None else cut[0]


def _by_chance(terms: Terms, t: int, node: Node, plane: Plane, kind: Draw, rng: np.random.Generator) -> Plane | None:
    m, p = node.Z.shape
    d, at, most = np.zeros(p), int(rng.integers(1, m)), terms.some_places(t, rng)
    if kind in (Draw.CART, Draw.FEATURE):
        j, at = _best_feature(node, rng.permutation(p)[: p if kind is Draw.CART else max(1, int(p**0.5) // 2)])
        d[j] = 1.0
    elif kind is Draw.ANYWHERE:
        d[rng.integers(p)] = 1.0
    elif kind is Draw.SHAKEN and np.any(plane[0]):
        w = plane[0]
        size = np.sqrt(w @ w / p) * 10.0 ** rng.uniform(-1.5, 0.3)
        d = w + size * rng.standard_normal(p)
        most = max(most, int(np.count_nonzero(w))) if terms.soft(t) else most
        at = int(np.count_nonzero(node.heights(plane) < 0))
    else:
        right, left = np.flatnonzero(node.plus), np.flatnonzero(node.minus)
        if not len(right) or not len(left):
            return None
        d = node.Z[rng.choice(right)] - node.Z[rng.choice(left)]
    if np.count_nonzero(d) > most:
        heavy = heaviest(node, d, most)
        kept = np.zeros(p)
        kept[heavy] = d[heavy]
        d = kept
    return _cut(node, d, at, 10.0 ** rng.uniform(-3.0, 1.0))


def _best_feature(node: Node, features: np.ndarray) -> tuple[int, int]:
    """The feature with the purest split, and how many samples go left."""
    best, chosen, at = np.inf, int(features[0]), 1
    for j in features:
        q = np.ascontiguousarray(node.Z[:, j])
        impurity, place = gini(q, np.argsort(q), node.plus, node.minus)
        if impurity < best:
            best, chosen, at = impurity, int(j), place
    return chosen, at


def _cut(node: Node, d: FloatArray, at: int, length: float) -> Plane | None:
    """A hyperplane across ``d`` that sends about ``at`` samples left, the positive label mostly right."""
    q = node.Z @ d
    spread = float(np.std(q))
    if not spread > 0:
        return None
    ranked, s = np.sort(q), length / spread
    gaps = np.diff(ranked)
    for _ in range(_LONGER):
        wide = np.flatnonzero(s * gaps >= node.eps * (1.0 + 1e-6))
        if len(wide):
            k = wide[np.argmin(np.abs(wide + 1 - at))]
            b = -0.5 * (s * (ranked[k] + ranked[k + 1]) + node.eps)
            lean = (node.plus - node.minus) @ np.where(s * q + b >= 0, 1.0, -1.0)
            return (s * d, b) if lean >= 0 else (-s * d, -b - node.eps)
        s *= 10.0
    return None
