"""Which features a split uses: the heaviest of a plain SVM, then features dropped, added and exchanged one by one."""

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

#: First width of the rounding: when nothing is known, and from a good guess; last where only a direction is wanted.
#: The first is wide enough for samples at the hyperplane itself, where they all are to begin with, to lie on the
#: rounding: the loss is then curved, and the first step of the right length.
COLD, WARM, ROUGH = 2.0, 0.1, 1e-2
#: From nothing, beyond twice so many samples, an SVM of about so many of them is the first guess.
_FEW = 2_000
#: Where budgets are hard features are ranked by an SVM of about so many samples, if there are twice as many.
_RANKED = 1_000
#: More features than this and than samples are too many.
_WIDE = 100
#: Features considered for each exchange, from the heaviest pull and from the lightest weight.
_PULLING, _LIGHT = 3, 2


def plain_svm(node: Node, guess: Plane, narrow: float, flag: FloatArray, wide: float = 0.0) -> tuple[Plane, float]:
    """The SVM on all features, from a guess."""
    if not np.any(guess[0]) and len(node.Z) > 2 * _FEW:
        guess = plain_svm(_some(node, _FEW), guess, ROUGH, flag, COLD)[0]
        wide = WARM if np.any(guess[0]) else COLD
    wide = wide or (WARM if np.any(guess[0]) else COLD)
    Z, turn = node.Z, None
    if Z.shape[1] > max(_WIDE, len(Z)):
        # Weights are sums of samples: as many features as samples will do, once the axes are turned towards them.
        turn, rows = np.linalg.qr(Z.T)
        Z = np.ascontiguousarray(rows.T)
    theta = np.append(guess[0] if turn is None else guess[0] @ turn, guess[1])
    value = svm(Z, node.plus, node.minus, theta, wide, narrow, flag)
    w = theta[:-1].copy() if turn is None else turn @ theta[:-1]
    return (w, float(theta[-1])), value


def _some(node: Node, count: int, rng: np.random.Generator | None = None) -> Node:
    """Every so-manieth sample of a node, ``count`` or somewhat more of them, standing for those left out as well."""
    step = len(node.Z) // count
    if step < 2:
        return node
    some = node.thinned(np.arange(0 if rng is None else rng.integers(step), len(node.Z), step))
    return replace(some, plus=step * some.plus, minus=step * some.minus)


def svm_on(node: Node, cols: Columns, guess: Plane, narrow: float, flag: FloatArray) -> tuple[Plane, float]:
    """The SVM on some features, from a guess."""
    if len(cols) == node.Z.shape[1]:
        return plain_svm(node, guess, narrow, flag)
    theta = np.empty(len(cols) + 1)
    theta[:-1], theta[-1] = guess[0][cols], guess[1]
    # As rows in memory: another layout would be compiled for anew.
    value = svm(node.Z.take(cols, axis=1), node.plus, node.minus, theta, WARM, narrow, flag)
    w = np.zeros(node.Z.shape[1])
    w[cols] = theta[:-1]
    return (w, float(theta[-1])), value


def heaviest(node: Node, w: FloatArray, count: int) -> Columns:
    """The features whose weights move samples most."""
    return np.sort(np.argsort(-np.abs(w) * node.spread, kind="stable")[:count])


def lightest(node: Node, w: FloatArray, count: int) -> Columns:
    """Of the features used, those whose weights move samples least; the lightest first."""
    cols = np.flatnonzero(w)
    return cols[np.argsort(np.abs(w[cols]) * node.spread[cols], kind="stable")][:count]


def rough_svm(
    terms: Terms, t: int, node: Node, guess: Plane, rng: np.random.Generator, flag: FloatArray
) -> tuple[Plane, float]:
    """An SVM of an upper node and its value, roughly, on as many features as chance gives it: the heaviest."""
    wide = 0.3 if np.any(guess[0]) else COLD
    size = terms.some_places(t, rng)
    if size >= node.Z.shape[1]:
        return plain_svm(node, guess, ROUGH, flag, wide)
    some = node if terms.soft(t) else _some(node, _RANKED, rng)
    full, _ = plain_svm(some, guess, ROUGH, flag, wide)
    return svm_on(node, heaviest(some, full[0], size), full, ROUGH, flag)


def eliminated(node: Node, plane: Plane, size: int, narrow: float, flag: FloatArray) -> Iterator[tuple[Plane, float]]:
    """SVMs on fewer and fewer features, down to ``size``: of those left the lighter half goes at a time."""
    count = int(np.count_nonzero(plane[0]))
    while count > size:
        count = max(size, count // 2)
        plane, value = svm_on(node, heaviest(node, plane[0], count), plane, narrow, flag)
        yield plane, value


def best_svm(terms: Terms, t: int, node: Node, guess: Plane, flag: FloatArray) -> tuple[Plane, float]:
    """A good SVM of a node within its budget or with its prices, which the value includes."""

    def priced(found: tuple[Plane, float]) -> float:
        return found[1] + terms.price(t, found[0][0])

    if not terms.limited(t):
        return plain_svm(node, guess, terms.narrow, flag)
    budget, soft = int(terms.budget[t]), terms.soft(t)
    some = node if soft else _some(node, _RANKED)
    full, value = plain_svm(some, guess, ROUGH, flag, COLD)
    if terms.price(t, full[0]) < value:
        full, value = plain_svm(some, full, terms.narrow, flag)
    tried = [(full, value), *eliminated(some, full, budget, terms.narrow, flag)]
    if some is not node:  # the budget is hard: the last of these keeps to it
        guide = tried[-1][0]
        tried = [svm_on(node, heaviest(some, guide[0], budget), guide, terms.narrow, flag)]
    now = np.flatnonzero(guess[0])
    if 0 < len(now) and (soft or len(now) <= budget):
        tried.append(svm_on(node, now, guess, terms.narrow, flag))
    best = min(tried, key=priced)
    return exchanged(terms, t, node, best[0], priced(best), flag)


def exchanged(terms: Terms, t: int, node: Node, plane: Plane, value: float, flag: FloatArray) -> tuple[Plane, float]:
    """Drop the lightest features, add those that pull most, or one for the other, while that pays."""
    better = True
    while better and not flag[0]:
        better = False
        for cols in _neighbours(terms, t, node, plane):
            tried, v = svm_on(node, cols, plane, terms.narrow, flag)
            v += terms.price_of(t, len(cols))
            if v < value * (1.0 - 1e-6):
                plane, value, better = tried, v, True
                break
    return plane, value


def _neighbours(terms: Terms, t: int, node: Node, plane: Plane) -> Iterator[Columns]:
    cols, light = np.flatnonzero(plane[0]), lightest(node, plane[0], _LIGHT).tolist()
    h = node.heights(plane)
    drawn = np.where(h < 1, node.plus, 0.0) - np.where(h > -1, node.minus, 0.0)
    pull = np.abs(drawn @ node.Z) * node.spread
    pull[cols] = 0.0
    strong = [j for j in np.argsort(-pull, kind="stable")[:_PULLING].tolist() if pull[j] > 0]
    used, soft = cols.tolist(), terms.soft(t)
    ways = [(out, None) for out in light] if soft and len(used) > 1 else []
    if soft or len(used) < terms.budget[t]:
        ways += [(None, j) for j in strong]
    for out, j in [*ways, *((out, j) for j in strong for out in light)]:
        yield np.array(sorted([*(k for k in used if k != out), *([] if j is None else [j])]))
