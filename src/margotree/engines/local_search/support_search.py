"""The SVM of a node on a subset of the features (its support), and the search for a good support.

A support is a set of groups of features; by default every feature is a group. The search begins with the groups that
have the largest weights in an SVM on all features. Then it drops, adds and exchanges single groups.

In all functions, ``guess`` is the hyperplane from which an SVM is trained, ``last_width`` the last smoothing width, and
``flag`` an array with one number that another thread sets to stop the training.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.kernels.svm import svm
from margotree.engines.local_search.node_samples import Node, Plane
from margotree.engines.local_search.training_data import Terms
from margotree.problem.problem import FloatArray

Columns = NDArray[np.int64]

#: First smoothing widths: without a guess, and from a good guess; last width where only a direction is needed. The
#: first is large enough for samples at the hyperplane itself, where all of them are at the beginning, to lie on the
#: smoothed part: the loss then has curvature, and the first step has the right length.
COLD, WARM, ROUGH = 2.0, 0.1, 1e-2
#: Without a guess, and with more than twice this number of samples, an SVM of about this number is solved first.
_SUBSAMPLE = 2_000
#: With a hard budget, features are ranked by an SVM of about this number of samples, if there are twice as many.
_RANKING_SAMPLE = 1_000
#: With more features than this and than samples, the SVM is solved in the span of the samples.
_WIDE = 100
#: Features considered for each exchange: added ones with the largest gradient, dropped ones with the smallest weight.
_MAX_ADDED, _MAX_DROPPED = 3, 2


def plain_svm(
    node: Node, guess: Plane, last_width: float, flag: FloatArray, first_width: float = 0.0
) -> tuple[Plane, float]:
    """The SVM of a node on all features, and its value (without feature penalties).

    ``first_width`` and ``last_width`` are smoothing widths of the hinge loss; a ``first_width`` of 0 stands for the
    default.
    """
    if not np.any(guess[0]) and len(node.Z) > 2 * _SUBSAMPLE:
        guess = plain_svm(_every_kth(node, _SUBSAMPLE), guess, ROUGH, flag, COLD)[0]
        first_width = WARM if np.any(guess[0]) else COLD
    first_width = (first_width or (WARM if np.any(guess[0]) else COLD)) * node.unit
    Z, basis = node.Z, None
    if Z.shape[1] > max(_WIDE, len(Z)):
        # The weights lie in the span of the samples: an orthonormal basis of it has as many coordinates as samples.
        basis, coordinates = np.linalg.qr(Z.T)
        Z = np.ascontiguousarray(coordinates.T)
    theta = np.append(guess[0] if basis is None else guess[0] @ basis, guess[1])
    widths = first_width, last_width * node.unit
    value = svm(Z, node.plus, node.minus, *node.all_corners, theta, *widths, node.squared, flag)
    w = theta[:-1].copy() if basis is None else basis @ theta[:-1]
    return (w, float(theta[-1])), value


def _every_kth(node: Node, count: int, rng: np.random.Generator | None = None) -> Node:
    """A subset of ``count`` or somewhat more evenly spaced samples of a node, with scaled penalties."""
    step = len(node.Z) // count
    if step < 2:
        return node
    subset = node.subset(np.arange(0 if rng is None else rng.integers(step), len(node.Z), step))
    return replace(subset, plus=step * subset.plus, minus=step * subset.minus)


def svm_on(node: Node, cols: Columns, guess: Plane, last_width: float, flag: FloatArray) -> tuple[Plane, float]:
    """The SVM of a node on the features ``cols``, and its value (without feature penalties)."""
    if len(cols) == node.Z.shape[1]:
        return plain_svm(node, guess, last_width, flag)
    if not len(cols):
        b, value = node.best_constant()
        return (np.zeros(node.Z.shape[1]), b), value
    theta = np.empty(len(cols) + 1)
    theta[:-1], theta[-1] = guess[0][cols], guess[1]
    # Contiguous rows: kernels would be compiled again for another layout.
    widths = WARM * node.unit, last_width * node.unit
    Z = node.Z.take(cols, axis=1)
    value = svm(Z, node.plus, node.minus, *node.all_corners, theta, *widths, node.squared, flag)
    w = np.zeros(node.Z.shape[1])
    w[cols] = theta[:-1]
    return (w, float(theta[-1])), value


def largest_weights(node: Node, w: FloatArray, count: int) -> Columns:
    """The features of the ``count`` groups with the largest products of weight and standard deviation."""
    return node.groups.columns(np.argsort(-node.groups.norms(w * node.spread), kind="stable")[:count])


def smallest_weights(node: Node, w: FloatArray, count: int) -> Columns:
    """The ``count`` groups, among those used, with the smallest products of weight and standard deviation."""
    used = node.groups.used(w)
    return used[np.argsort(node.groups.norms(w * node.spread)[used], kind="stable")][:count]


def rough_svm(
    terms: Terms, t: int, node: Node, guess: Plane, rng: np.random.Generator, flag: FloatArray
) -> tuple[Plane, float]:
    """An approximate SVM of an upper node, and its value, on a random number of groups with the largest weights."""
    first_width = 0.3 if np.any(guess[0]) else COLD
    size = terms.random_support_size(t, rng)
    if size >= node.groups.n_groups:
        return plain_svm(node, guess, ROUGH, flag, first_width)
    sample = node if terms.penalised(t) else _every_kth(node, _RANKING_SAMPLE, rng)
    full, _ = plain_svm(sample, guess, ROUGH, flag, first_width)
    return svm_on(node, largest_weights(sample, full[0], size), full, ROUGH, flag)


def feature_elimination(
    node: Node, plane: Plane, size: int, last_width: float, flag: FloatArray
) -> Iterator[tuple[Plane, float]]:
    """SVMs on fewer and fewer groups, down to ``size``: each keeps the larger half of the previous weights."""
    count = node.groups.count(plane[0])
    while count > size:
        count = max(size, count // 2)
        plane, value = svm_on(node, largest_weights(node, plane[0], count), plane, last_width, flag)
        yield plane, value


def best_svm(terms: Terms, t: int, node: Node, guess: Plane, flag: FloatArray) -> tuple[Plane, float]:
    """A good SVM of a node within its budget or with feature penalties, and its value including the penalties."""

    def penalised_value(found: tuple[Plane, float]) -> float:
        return found[1] + terms.feature_penalty(t, found[0][0])

    if not terms.limited(t):
        return plain_svm(node, guess, terms.last_width, flag)
    if terms.budget[t] == 0 and not terms.penalised(t):
        return svm_on(node, np.arange(0), guess, terms.last_width, flag)
    budget, penalised = int(terms.budget[t]), terms.penalised(t)
    sample = node if penalised else _every_kth(node, _RANKING_SAMPLE)
    full, value = plain_svm(sample, guess, ROUGH, flag, COLD)
    if terms.feature_penalty(t, full[0]) < value:
        full, value = plain_svm(sample, full, terms.last_width, flag)
    candidates = [(full, value), *feature_elimination(sample, full, budget, terms.last_width, flag)]
    if sample is not node:  # the budget is hard: the last candidate meets it
        guide = candidates[-1][0]
        candidates = [svm_on(node, largest_weights(sample, guide[0], budget), guide, terms.last_width, flag)]
    current = node.groups.used(guess[0])
    if 0 < len(current) and (penalised or len(current) <= budget):
        candidates.append(svm_on(node, node.groups.columns(current), guess, terms.last_width, flag))
    best = min(candidates, key=penalised_value)
    return exchange_features(terms, t, node, best[0], penalised_value(best), flag)


def exchange_features(
    terms: Terms, t: int, node: Node, plane: Plane, value: float, flag: FloatArray
) -> tuple[Plane, float]:
    """Improve the support of the hyperplane of node ``t``; return the new hyperplane and its value.

    One of the groups with the smallest weights is dropped, one of those with the largest gradient is added, or both,
    and the SVM is trained again, as long as the value decreases. Both values include the feature penalties.
    """
    improved = True
    while improved and not flag[0]:
        improved = False
        for support in _neighbouring_supports(terms, t, node, plane):
            candidate, new_value = svm_on(node, node.groups.columns(support), plane, terms.last_width, flag)
            new_value += terms.penalty_of(t, len(support))
            if new_value < value * (1.0 - 1e-6):
                plane, value, improved = candidate, new_value, True
                break
    return plane, value


def _neighbouring_supports(terms: Terms, t: int, node: Node, plane: Plane) -> Iterator[Columns]:
    """The supports that differ from that of ``plane`` by one dropped group, one added group, or both.

    Supports that a hard budget does not allow are left out.
    """
    current, droppable = node.groups.used(plane[0]), smallest_weights(node, plane[0], _MAX_DROPPED).tolist()
    h = node.heights(plane)
    gradient = node.groups.norms((node.items.slope(h) @ node.Z) * node.spread)
    gradient[current] = 0.0
    addable = [added for added in np.argsort(-gradient, kind="stable")[:_MAX_ADDED].tolist() if gradient[added] > 0]
    used, penalised = current.tolist(), terms.penalised(t)
    moves = [(dropped, None) for dropped in droppable] if penalised and len(used) > 1 else []
    if penalised or len(used) < terms.budget[t]:
        moves += [(None, added) for added in addable]
    for dropped, added in [*moves, *((dropped, added) for added in addable for dropped in droppable)]:
        yield np.array(sorted([*(k for k in used if k != dropped), *([] if added is None else [added])]))
