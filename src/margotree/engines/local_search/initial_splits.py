"""Initialisation strategies: directions of SVMs, single features, differences of samples, perturbed hyperplanes."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.kernels.subtree_costs import best_split
from margotree.engines.local_search.node_samples import Node, Plane, Rows
from margotree.engines.local_search.support_search import ROUGH, largest_weights, plain_svm, rough_svm, svm_on
from margotree.engines.local_search.training_data import Terms
from margotree.problem import Task, topology
from margotree.problem.problem import FloatArray


class Strategy(IntEnum):
    """How the hyperplane of an upper node is initialised; at the last level, all but the first solve an SVM.

    Where an upper node has something to choose (target sides of classes), ``SVM`` compares the choices of the task, and
    ``BETWEEN`` and ``SUBSAMPLE`` use a random one. Where the target is a number, the target side of a sample is that of
    its residual in a linear model, or in a constant one; ``SVM`` uses the better one of this and of ``CART``.
    """

    KEEP = 0
    SVM = 1  # the SVM of its samples, as in Local SVM
    CART = 2  # the single feature with the purest split
    FEATURE = 3  # the same among a few features
    RANDOM = 4  # a feature and a threshold at random
    BETWEEN = 5  # the difference of two samples with different target sides
    SUBSAMPLE = 6  # the SVM of a random subset of the samples
    PERTURBED = 7  # the current one with random noise
    TWO_MODELS = 8  # where the larger or the smaller one of two linear models of the targets changes


#: The strategies of a new start.
FRESH = (Strategy.SVM, Strategy.CART, Strategy.FEATURE, Strategy.RANDOM, Strategy.BETWEEN, Strategy.SUBSAMPLE)
#: The same where the target is a number.
FRESH_OF_NUMBERS = (*FRESH, Strategy.TWO_MODELS)
#: How often weights are multiplied by ten until two samples are farther apart than the band is wide.
_MAX_RESCALING = 12
#: The lengths tried, as multiples of the length that the SVM gives.
_LENGTHS = np.array([1.0, 2.0, 5.0, 10.0, 100.0, 1000.0])
#: The lengths tried where the losses of models on both sides are known: standard deviations of the values.
_MODEL_LENGTHS = 10.0 ** np.arange(-2.0, 2.5, 0.5)
#: The largest number of times that two models are trained in turn.
_MAX_MODEL_ROUNDS = 6
#: The number of samples on which the SVMs of several choices are compared.
_COMPARED = 1_500
#: The number of samples from which splits of numeric targets are drawn at most.
_MAX_DRAWN_FROM = 50_000


def fresh_strategies(task: Task) -> tuple[Strategy, ...]:
    """The strategies of a new start for a task."""
    return FRESH_OF_NUMBERS if task.losses_follow_side else FRESH


def draw(
    terms: Terms, t: int, rows: Rows, node: Node, plane: Plane, kind: Strategy, rng: np.random.Generator,
    flag: FloatArray,
) -> Plane:  # fmt: skip
    """A new hyperplane with no sample in its band; one without features if the strategy finds none.

    ``node`` are the samples ``rows`` with the current choice of node ``t``. Where losses follow the sides that samples
    take, which takes several models, very many samples are replaced by a random part of them.
    """
    constant = (np.zeros_like(plane[0]), 1.0)
    if len(rows) < 2:
        return constant
    if node.by_side and len(rows) > _MAX_DRAWN_FROM:
        some, factor = np.sort(rng.choice(rows, _MAX_DRAWN_FROM, replace=False)), len(rows) / _MAX_DRAWN_FROM
        part, of_part = terms.part(some, np.full(len(some), factor)), np.arange(len(some))
        return _out_of_band(node, draw(part, t, of_part, Node.of(part, t, of_part), plane, kind, rng, flag))
    if terms.task.has_choices and kind in (Strategy.SVM, Strategy.SUBSAMPLE, Strategy.BETWEEN):
        chosen = _with_choice(terms, t, rows, node, kind, rng, flag)
        if chosen is None:
            return constant
        node = chosen
    if node.by_side:
        if kind is Strategy.SVM:
            return _greedy_split(terms, t, rows, node, plane, rng, flag)
        if kind is Strategy.TWO_MODELS:
            drawn = _between_models(terms, t, rows, node, rng, flag)
            return constant if drawn is None or node.right_of(node.heights(drawn), drawn) is None else drawn
        if kind in (Strategy.SUBSAMPLE, Strategy.BETWEEN):
            node = _by_residuals(terms, t, rows, node, rng.random() < 0.5, flag)
    if kind in (Strategy.SVM, Strategy.SUBSAMPLE):
        drawn = _by_svm(terms, t, node, kind, rng, flag)
    else:
        drawn = _at_random(terms, t, rows, node, plane, kind, rng)
    if drawn is None or node.right_of(node.heights(drawn), drawn) is None:
        return constant
    return drawn


def _out_of_band(node: Node, plane: Plane) -> Plane:
    """The hyperplane moved as little as possible so that no sample lies in its band; one without features if it
    cannot be."""
    h = node.heights(plane)
    if node.right_of(h, plane) is not None:
        return plane
    h.sort()
    middle = 0.5 * (h[:-1] + h[1:] + node.eps)
    allowed = np.flatnonzero(np.diff(h) >= node.eps * (1.0 + 1e-6))
    if not len(allowed):
        return np.zeros_like(plane[0]), 1.0
    moved = plane[0], plane[1] - float(middle[allowed[np.argmin(np.abs(middle[allowed]))]])
    return moved if node.right_of(node.heights(moved), moved) is not None else (np.zeros_like(plane[0]), 1.0)


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


def _models(terms: Terms, rows: Rows, node: Node) -> Node:
    """The samples of an upper node as those of a last-level node, for a linear model of their targets."""
    return Node.of(terms, terms.n_nodes - 1, rows, Z=node.Z)


def _by_residuals(terms: Terms, t: int, rows: Rows, node: Node, linear: bool, flag: FloatArray) -> Node:
    """The node with target sides: right for positive residuals in a model of the targets, left for negative ones."""
    model = _models(terms, rows, node)
    if linear:
        (w, b), _ = plain_svm(model, (np.zeros(node.Z.shape[1]), 0.0), ROUGH, flag)
    else:
        w, b = np.zeros(node.Z.shape[1]), model.best_constant()[0]
    h, (below, above) = node.heights((w, b)), model.all_corners
    penalty = terms.C[t] * terms.weight[rows]
    return replace(node, plus=np.where(h < below, penalty, 0.0), minus=np.where(h > above, penalty, 0.0), by_side=False)


def _greedy_split(
    terms: Terms, t: int, rows: Rows, node: Node, plane: Plane, rng: np.random.Generator, flag: FloatArray
) -> Plane:
    """The best one of the SVM of the residuals, of the best split of a single feature, and of no split.

    A split is judged by its own objective and those of one model of the targets on either side, whose losses also
    choose its threshold.
    """
    _, best = _model(terms, rows, node, flag)
    chosen: Plane = (np.zeros_like(plane[0]), 1.0)
    by_residuals = _by_residuals(terms, t, rows, node, True, flag)
    drawn = [
        _by_svm(terms, t, by_residuals, Strategy.SVM, rng, flag),
        _at_random(terms, t, rows, node, plane, Strategy.CART, rng),
    ]
    for candidate in drawn:
        right = None if candidate is None else node.right_of(node.heights(candidate), candidate)
        if candidate is None or right is None or np.all(right) or not np.any(right):
            continue
        planes, value = [], 0.0
        for some in (np.flatnonzero(right), np.flatnonzero(~right)):
            model, _ = _model(terms, rows[some], node.subset(some), flag)
            planes.append(model)
            value += 0.5 * float(model[0] @ model[0])
        length = float(np.std(node.Z @ candidate[0]))
        if length > 0.0 and not flag[0]:
            cut = _with_models(terms, rows, node, planes).best_cut(candidate[0] / length, _MODEL_LENGTHS, best - value)
            if cut is not None:
                best, chosen = value + cut[1], cut[0]
    return chosen


def _model(terms: Terms, rows: Rows, node: Node, flag: FloatArray) -> tuple[Plane, float]:
    """The model of the targets of some samples, linear or, where leaves are, constant; and its objective."""
    last, none = terms.n_nodes - 1, (np.zeros(node.Z.shape[1]), 0.0)
    model = _models(terms, rows, node)
    if terms.budget[last] == 0:
        return svm_on(model, np.arange(0), none, ROUGH, flag)
    return plain_svm(model, none, ROUGH, flag)


def _with_models(terms: Terms, rows: Rows, node: Node, planes: list[Plane]) -> Node:
    """The node whose subtree costs are the losses of two models: of the first one on the right, of the second left."""
    model, losses = _models(terms, rows, node), []
    for plane in planes:
        losses.append(model.items.loss(node.heights(plane)))
    return replace(node, right_cost=losses[0], left_cost=losses[1])


def _between_models(
    terms: Terms, t: int, rows: Rows, node: Node, rng: np.random.Generator, flag: FloatArray
) -> Plane | None:
    """Hinge regression: the targets as the larger (or the smaller) one of two linear models, trained in turn.

    The hyperplane is where the two models are equal.
    """
    m, p = node.Z.shape
    some = np.arange(m) if m <= _COMPARED else np.sort(rng.choice(m, _COMPARED, replace=False))
    d = np.zeros(p)
    if rng.random() < 0.5:
        d[rng.integers(p)] = 1.0
    else:
        d = rng.standard_normal((1, p))[0] * np.where(node.spread > 0.0, 1.0 / np.maximum(node.spread, 1e-300), 0.0)
    sample = node.subset(some)
    q = sample.Z @ d
    right, sign, planes = q >= np.quantile(q, rng.uniform(0.2, 0.8)), 0.0, list[Plane]()
    for _ in range(_MAX_MODEL_ROUNDS):
        if min(np.count_nonzero(right), np.count_nonzero(~right)) < 2 or flag[0]:
            break
        planes = []
        for side in (right, ~right):
            here = np.flatnonzero(side)
            planes.append(_model(terms, rows[some[here]], sample.subset(here), flag)[0])
        difference = sample.heights(planes[0]) - sample.heights(planes[1])
        # On the right the first model is the larger one, or the smaller one.
        sign = sign or (1.0 if (difference >= 0.0) @ right >= 0.5 * np.count_nonzero(right) else -1.0)
        after = sign * difference >= 0.0
        if np.array_equal(after, right):
            break
        right = after
    if not planes:
        return None
    direction = sign * (planes[0][0] - planes[1][0])
    if node.groups.count(direction) > (size := terms.random_support_size(t, rng)):
        largest = largest_weights(node, direction, size)
        kept = np.zeros(p)
        kept[largest] = direction[largest]
        direction = kept
    length = float(np.std(node.Z @ direction))
    if not length > 0.0:
        return None
    cut = _with_models(terms, rows, node, planes).best_cut(direction / length, _MODEL_LENGTHS)
    return None if cut is None else cut[0]


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
        support_size = max(support_size, node.groups.count(w)) if terms.penalised(t) else support_size
        n_left = int(np.count_nonzero(node.heights(plane) < 0))
    else:
        right, left = np.flatnonzero(node.plus), np.flatnonzero(node.minus)
        if not len(right) or not len(left):
            return None
        d = node.Z[rng.choice(right)] - node.Z[rng.choice(left)]
    if node.groups.count(d) > support_size:
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
