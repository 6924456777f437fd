"""A better hyperplane for an upper node while its subtrees are fixed: directions of SVMs, thresholds, line searches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from margotree.engines.local_search.kernels.reduced_problem import GAIN, search_lines
from margotree.engines.local_search.node_samples import Node, Plane
from margotree.engines.local_search.support_search import (
    ROUGH,
    best_svm,
    exchange_features,
    rough_svm,
    smallest_weights,
)
from margotree.engines.local_search.training_data import Terms
from margotree.problem.problem import FloatArray

#: The weights of the subtree costs relative to the label in SVM directions; with more than this number of samples only
#: one of them is used, at random.
_SUBTREE_WEIGHTS, _MANY_SAMPLES = (1.0, 0.1, 0.01), 10_000
#: The lengths of a direction that are tried, as multiples of the length that its SVM gives.
_LENGTHS = np.array([1.0, 3.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4])
#: The largest number of samples from which a direction is computed; the largest number of samples of a node with line
#: searches; the largest number of features searched, and of features times samples.
_MAX_DIRECTION_SAMPLES, _MAX_LINE_SAMPLES, _MAX_LINES, _MAX_LINE_WORK = 10_000, 20_000, 25, 100_000
#: The largest number of edge directions.
_MAX_EDGES = 40
#: The share of directions whose features are exchanged one by one, where a split has a budget or feature penalties.
_EXCHANGE_SHARE = 0.1
#: The number of groups of features with the smallest weights that may be dropped.
_MAX_DROPPED = 3
#: The largest number of samples of a node whose direction is refined; the largest number of SVMs.
_MAX_REFINED_SAMPLES, _MAX_REFINED = 5_000, 10


class Proposal:
    """The best hyperplane found so far for a node's reduced problem."""

    def __init__(self, terms: Terms, t: int, node: Node, plane: Plane) -> None:
        self.terms, self.t, self.node = terms, t, node
        self.plane = plane
        self.h, value = node.evaluate(plane)
        self.value = self.start = value + terms.feature_penalty(t, plane[0])
        self.directions_improved = False  # whether directions improved the objective, not only lines

    def offer(self, plane: Plane) -> bool:
        """Replace the hyperplane by a better one; the value is recomputed. Return whether it was better."""
        h, value = self.node.evaluate(plane)
        value += self.terms.feature_penalty(self.t, plane[0])
        if not value < self.value - GAIN * abs(self.value):
            return False
        self.plane, self.h, self.value = plane, h, value
        return True

    @property
    def gain(self) -> float:
        """By how much the objective has decreased."""
        return self.start - self.value


def propose(
    terms: Terms, t: int, node: Node, plane: Plane, rng: np.random.Generator, flag: FloatArray, single: bool = False
) -> Proposal:
    """The best hyperplane found for the reduced problem of an upper node.

    Parameters
    ----------
    terms : Terms
        The training problem.
    t : int
        The node.
    node : Node
        Its samples with their subtree costs.
    plane : Plane
        Its current hyperplane.
    rng : numpy.random.Generator
        The source of randomness.
    flag : array of length 1
        Another thread may set ``flag[0]`` to stop the search.
    single : bool, default False
        Whether a single SVM direction is tried instead of several; line searches follow in any case.

    Returns
    -------
    Proposal
        The best hyperplane, and whether directions improved the current one.
    """
    best = Proposal(terms, t, node, plane)
    best.offer(node.best_without_features()[0])
    many = len(node.Z) > _MANY_SAMPLES
    weights = [*_SUBTREE_WEIGHTS, 10.0 ** rng.uniform(-3.0, 1.0)]
    sample = _subset(node, rng)
    directions = []
    for weight in [weights[rng.integers(len(weights))]] if single or many else weights:
        if flag[0]:
            return best
        directions.append(_direction(terms, t, sample, weight, plane, rng, flag))
    if np.any(plane[0]) and not flag[0] and (many or not single):
        directions.append(_direction(terms, t, _without_misplaced(sample, plane, rng), weights[-1], plane, rng, flag))
    for w, _ in [*directions, plane]:
        _cut_across(best, w)
    if not single and len(node.Z) <= _MAX_REFINED_SAMPLES:
        _refine_direction(best, sample, weights[-1], rng, flag)
    best.directions_improved = best.gain > GAIN * best.start
    if node.by_side and not flag[0]:
        directions.append(_refit(best, flag))
        best.offer(directions[-1])
    if len(node.Z) <= _MAX_LINE_SAMPLES:
        _search_lines(best, directions, rng, flag)
    if terms.limited(t) and terms.penalised(t):
        _drop_features(best, flag)
    return best


def _refit(best: Proposal, flag: FloatArray) -> Plane:
    """The SVM whose labels are the sides that the samples take: the best hyperplane while no sample changes sides."""
    node, right = best.node, best.h >= -0.5 * best.node.eps
    labelled = replace(
        node, plus=np.where(right, node.plus, 0.0), minus=np.where(right, 0.0, node.minus), by_side=False
    )
    return best_svm(best.terms, best.t, labelled, best.plane, flag)[0]


def _cut_across(best: Proposal, w: FloatArray) -> bool:
    """Offer the best threshold along a direction."""
    if not np.any(w):
        return False
    cut = best.node.best_cut(w, _LENGTHS, best.value - best.terms.feature_penalty(best.t, w))
    return cut is not None and best.offer(cut[0])


def _refine_direction(best: Proposal, node: Node, weight: float, rng: np.random.Generator, flag: FloatArray) -> None:
    """Train SVMs without the samples that are misplaced by the best hyperplane, while this improves the objective.

    Where the subtree costs dominate, target sides that no hyperplane satisfies would distort the direction.
    """
    for _ in range(_MAX_REFINED):
        if flag[0] or not np.any(best.plane[0]):
            return
        found = _direction(best.terms, best.t, _without_misplaced(node, best.plane, rng), weight, best.plane, rng, flag)
        if not _cut_across(best, found[0]):
            return


def _drop_features(best: Proposal, flag: FloatArray) -> None:
    """Drop the groups with the smallest weights while this lowers the objective with its feature penalties."""
    while not flag[0] and any(_drop_group(best, j) for j in smallest_weights(best.node, best.plane[0], _MAX_DROPPED)):
        pass


def _drop_group(best: Proposal, group: int) -> bool:
    """Drop the features of a group if this lowers the objective; return whether they were dropped."""
    w = best.plane[0].copy()
    w[best.node.groups.columns([group])] = 0.0
    cut = best.node.best_cut(w, _LENGTHS, best.value - best.terms.feature_penalty(best.t, w)) if np.any(w) else None
    return cut is not None and best.offer(cut[0])


def _subset(node: Node, rng: np.random.Generator) -> Node:
    """The node itself or a random subset of its samples, as many as directions are computed from."""
    m = len(node.Z)
    return (
        node
        if m <= _MAX_DIRECTION_SAMPLES
        else node.subset(np.sort(rng.choice(m, _MAX_DIRECTION_SAMPLES, replace=False)))
    )


def _without_misplaced(node: Node, plane: Plane, rng: np.random.Generator) -> Node:
    """The node without the subtree costs of the samples far on the side with the larger subtree cost."""
    h = node.heights(plane)
    margin = np.sign(node.left_cost - node.right_cost) * h
    misplaced = margin < np.quantile(np.abs(h), rng.random()) * -1.0
    return replace(
        node, left_cost=np.where(misplaced, 0.0, node.left_cost), right_cost=np.where(misplaced, 0.0, node.right_cost)
    )


def _direction(
    terms: Terms, t: int, node: Node, weight: float, plane: Plane, rng: np.random.Generator, flag: FloatArray
) -> Plane:
    """An SVM in which every sample occurs twice: with its label, and with its target side.

    The penalty of the target side is ``weight`` times the difference of the subtree costs.
    """
    extra = node.left_cost - node.right_cost
    plus, minus = node.plus, node.minus
    if node.by_side:  # losses on the target side
        plus, minus = np.where(extra > 0.0, plus, 0.0), np.where(extra < 0.0, minus, 0.0)
    weighted = replace(
        node,
        plus=plus + weight * np.maximum(0.0, extra),
        minus=minus + weight * np.maximum(0.0, -extra),
        by_side=False,
    )
    found, value = rough_svm(terms, t, weighted, plane, rng, flag)
    if terms.limited(t) and rng.random() < _EXCHANGE_SHARE:
        found, _ = exchange_features(
            replace(terms, last_width=ROUGH), t, weighted, found, value + terms.feature_penalty(t, found[0]), flag
        )
    return found


def _search_lines(best: Proposal, directions: list[Plane], rng: np.random.Generator, flag: FloatArray) -> None:
    """Search exactly on lines: towards the SVMs, changing the length, the offset or one weight, and along edge
    directions."""
    terms, t, features = best.terms, best.t, _features(best, rng)
    w, h, state = best.plane[0].copy(), best.h, np.array([best.plane[1], best.value])
    targets = np.array([np.append(*found) for found in directions]).reshape(-1, w.size + 1)
    budget, alpha = int(terms.budget[t]), float(terms.alpha[t])
    uniforms = rng.random((_MAX_EDGES if np.any(w) and not best.directions_improved else 0, 4))
    search_lines(best.node.reduced, w, h, state, targets, features, uniforms, best.node.eps, budget, alpha, flag)
    best.plane, best.value = (w, float(state[0])), float(state[1])


def _features(best: Proposal, rng: np.random.Generator) -> np.ndarray:
    """The features along which to search: some of all, or those of the split where the budget rules out others."""
    p, groups = best.node.Z.shape[1], best.node.groups
    full = groups.count(best.plane[0]) >= best.terms.budget[best.t]
    if full and not best.terms.penalised(best.t) and best.terms.limited(best.t):
        return groups.columns(groups.used(best.plane[0]))
    return rng.permutation(p)[: min(_MAX_LINES, _MAX_LINE_WORK // len(best.node.Z))]
