"""Initialisation strategies: directions of SVMs, single features, differences of samples, perturbed hyperplanes."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.kernels.subtree_costs import best_split
from margotree.engines.local_search.node_samples import Node, Plane, Rows
from margotree.engines.local_search.support_search import largest_weights, rough_svm
from margotree.engines.local_search.training_data import Terms
from margotree.problem import topology
from margotree.problem.problem import FloatArray


class Strategy(IntEnum):
    """How the hyperplane of an upper node is initialised; at the last level, all but the first solve an SVM.

    Where an upper node has something to choose (target sides of classes), ``SVM`` compares the choices of the task, and
    ``BETWEEN`` and ``SUBSAMPLE`` use a random one.
    """

    KEEP = 0
    SVM = 1  # the SVM of its samples, as in Local SVM
    CART = 2  # the single feature with the purest split
    FEATURE = 3  # the same among a few features
    RANDOM = 4  # a feature and a threshold at random
    BETWEEN = 5  # the difference of two samples with different target sides
    SUBSAMPLE = 6  # the SVM of a random subset of the samples
    PERTURBED = 7  # the current one with random noise


#: The strategies of a new start.
FRESH = (Strategy.SVM, Strategy.CART, Strategy.FEATURE, Strategy.RANDOM, Strategy.BETWEEN, Strategy.SUBSAMPLE)
#: How often weights are multiplied by ten until two samples are farther apart than the band is wide.
_MAX_RESCALING = 12
#: The lengths tried, as multiples of the length that the SVM gives.
_LENGTHS = np.array([1.0, 2.0, 5.0, 10.0, 100.0, 1000.0])
#: The number of samples on which the SVMs of several choices are compared.
_COMPARED = 1_500


def draw(
    terms: Terms, t: int, rows: Rows, node: Node, plane: Plane, kind: Strategy, rng: np.random.Generator,
    flag: FloatArray,
) -> Plane:  # fmt: skip
    """A new hyperplane with no sample in its band; one without features if the strategy finds none.

    ``node`` are the samples ``rows`` with the current choice of node ``t``.
    """
    constant = (np.zeros_like(plane[0]), 1.0)
    if len(rows) < 2:
        return constant
    if terms.task.has_choices and kind in (Strategy.SVM, Strategy.SUBSAMPLE, Strategy.BETWEEN):
        chosen = _with_choice(terms, t, rows, node, kind, rng, flag)
        if chosen is None:
            return constant
        node = chosen
    if kind in (Strategy.SVM, Strategy.SUBSAMPLE):
        drawn = _by_svm(terms, t, node, kind, rng, flag)
    else:
        drawn = _at_random(terms, t, rows, node, plane, kind, rng)
    if drawn is None or node.right_of(node.heights(drawn), drawn) is None:
        return constant
    return drawn


def _with_choice(
    terms: Terms, t: int, rows: Rows, node: Node, kind: Strategy, rng: np.random.Generator, flag: FloatArray
) -> Node | None:
    """The node with the choice of the greedy tree or with a random one; None if there is no reason for a split."""
    if kind is Strategy.SVM:
        choice = greedy_choice(terms, t, rows, rng, flag)
    else:
        choice = terms.task.random_choice(node.Z, terms.y[rows], terms.weight[rows], rng)
    return None if choice is None else Node.of(terms, t, rows, choice, node.Z)


def greedy_choice(
    terms: Terms, t: int, rows: Rows, rng: np.random.Generator, flag: FloatArray
) -> NDArray[np.int64] | None:
    """The choice for an upper node whose SVM leaves the smallest impurity on its two sides; None without a choice.

    The smallest objective of the SVMs would be no criterion: it belongs to the split that separates the least.
    """
    some = rows if len(rows) <= _COMPARED else np.sort(rng.choice(rows, _COMPARED, replace=False))
    Z, y, weight = terms.samples(some), terms.y[some], terms.weight[some]
    n_leaves = 2 ** (terms.depth - topology.level(t) - 1)
    choices = terms.task.upper_choices(Z, y, weight, n_leaves, rng)
    if len(choices) < 2:
        return choices[0] if choices else None
    responses, best, found = terms.task.responses(y), np.inf, None
    for choice in choices:
        if flag[0] and found is not None:
            break
        node = Node.of(terms, t, some, choice, Z)
        plane = _by_svm(terms, t, node, Strategy.SVM, rng, flag)
        q = np.zeros(len(some)) if plane is None else (node.heights(plane) >= 0).astype(np.float64)
        impurity, _ = best_split(q, np.argsort(q), responses, weight)
        if impurity < best or found is None:
            best, found = impurity, choice
    return found


def _by_svm(
    terms: Terms, t: int, node: Node, kind: Strategy, rng: np.random.Generator, flag: FloatArray
) -> Plane | None:
    """The direction of an SVM of all samples, or of a few, with the best threshold."""
    sample = node
    if kind is Strategy.SUBSAMPLE:
        m = len(node.Z)
        sample = node.subset(np.sort(rng.choice(m, max(2, int(m * rng.uniform(0.05, 0.5))), replace=False)))
    plane, _ = rough_svm(terms, t, sample, (np.zeros(node.Z.shape[1]), 0.0), rng, flag)
    if not np.any(plane[0]):
        return None
    cut = node.best_cut(plane[0], _LENGTHS)
    return None if cut is None else cut[0]


def _at_random(
    terms: Terms, t: int, rows: Rows, node: Node, plane: Plane, kind: Strategy, rng: np.random.Generator
) -> Plane | None:
    """A single feature, a difference of two samples or a perturbed direction, with a random length."""
    m, p = node.Z.shape
    d, n_left, support_size = np.zeros(p), int(rng.integers(1, m)), terms.random_support_size(t, rng)
    if kind in (Strategy.CART, Strategy.FEATURE):
        some = rng.permutation(p)[: p if kind is Strategy.CART else max(1, int(p**0.5) // 2)]
        j, n_left = _best_feature(terms, t, rows, node, some)
        d[j] = 1.0
    elif kind is Strategy.RANDOM:
        d[rng.integers(p)] = 1.0
    elif kind is Strategy.PERTURBED and np.any(plane[0]):
        w = plane[0]
        size = np.sqrt(w @ w / p) * 10.0 ** rng.uniform(-1.5, 0.3)
        d = w + size * rng.standard_normal(p)
        support_size = max(support_size, int(np.count_nonzero(w))) if terms.penalised(t) else support_size
        n_left = int(np.count_nonzero(node.heights(plane) < 0))
    else:
        right, left = np.flatnonzero(node.plus), np.flatnonzero(node.minus)
        if not len(right) or not len(left):
            return None
        d = node.Z[rng.choice(right)] - node.Z[rng.choice(left)]
    if np.count_nonzero(d) > support_size:
        largest = largest_weights(node, d, support_size)
        kept = np.zeros(p)
        kept[largest] = d[largest]
        d = kept
    if kind in (Strategy.CART, Strategy.FEATURE, Strategy.RANDOM):
        node = _separated(terms, t, rows, node, node.Z @ d, n_left)
    return _cut(node, d, n_left, 10.0 ** rng.uniform(-3.0, 1.0))


def _best_feature(terms: Terms, t: int, rows: Rows, node: Node, features: np.ndarray) -> tuple[int, int]:
    """The feature with the purest split, and the number of samples on the left."""
    best, chosen, n_left = np.inf, int(features[0]), 1
    responses, weight = terms.task.responses(terms.y[rows]), terms.C[t] * terms.weight[rows]
    for j in features:
        q = np.ascontiguousarray(node.Z[:, j])
        impurity, split_at = best_split(q, np.argsort(q), responses, weight)
        if impurity < best:
            best, chosen, n_left = impurity, int(j), split_at
    return chosen, n_left


def _separated(terms: Terms, t: int, rows: Rows, node: Node, q: FloatArray, n_left: int) -> Node:
    """The node with the choice that fits best to a split of the projections ``q``; ``n_left`` samples are on the left.

    Either side may be the left one.
    """
    if not terms.task.has_choices:
        return node
    side = np.where(q <= np.partition(q, n_left - 1)[n_left - 1], -1.0, 1.0)
    nodes = []
    for h in (side, -side):
        choice = terms.task.best_choice(terms.y[rows], terms.weight[rows], h, 0.0, last=False)
        chosen = Node.of(terms, t, rows, choice, node.Z)
        nodes.append((chosen.hinges(h), chosen))
    return min(nodes, key=lambda found: found[0])[1]


def _cut(node: Node, d: FloatArray, n_left: int, length: float) -> Plane | None:
    """A hyperplane along ``d`` with about ``n_left`` samples on the left, and most on their target sides."""
    q = node.Z @ d
    spread = float(np.std(q))
    if not spread > 0:
        return None
    ranked, scale = np.sort(q), length / spread
    gaps = np.diff(ranked)
    for _ in range(_MAX_RESCALING):
        allowed = np.flatnonzero(scale * gaps >= node.eps * (1.0 + 1e-6))
        if len(allowed):
            k = allowed[np.argmin(np.abs(allowed + 1 - n_left))]
            b = -0.5 * (scale * (ranked[k] + ranked[k + 1]) + node.eps)
            agreement = (node.plus - node.minus) @ np.where(scale * q + b >= 0, 1.0, -1.0)
            return (scale * d, b) if agreement >= 0 else (-scale * d, -b - node.eps)
        scale *= 10.0
    return None
