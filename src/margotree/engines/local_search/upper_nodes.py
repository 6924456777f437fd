"""Better hyperplanes for an upper node while its subtrees stay as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from margotree.engines.local_search.kernels.reduced_problem import GAIN, search_lines
from margotree.engines.local_search.node_samples import Node, Plane
from margotree.engines.local_search.support_search import ROUGH, exchanged, lightest, rough_svm
from margotree.engines.local_search.training_data import Terms
from margotree.problem.problem import FloatArray

#: Prices of the side that is cheaper below, against that of the label; beyond so many samples one of them, by chance.
_PRICES, _MANY = (1.0, 0.1, 0.01), 10_000
#: Lengths of a direction that are tried, as shares of what its SVM made it.
_LENGTHS = np.array([1.0, 3.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4])
#: A direction is found from so many samples at most; lines are searched with up to so many, along so many features at
#: most and so many samples in all.
_DIRECTION, _LINES_UP_TO, _LINES, _ON_LINES = 10_000, 20_000, 25, 100_000
#: Turns on lines at most.
_TURNS = 40
#: Share of directions whose features are exchanged one by one, where a split has a budget or prices.
_EXCHANGED = 0.1
#: So many of the lightest features are tried to be dropped.
_LIGHT = 3
#: Up to so many samples, so many SVMs leave out ever more of those who are lost.
_RESIGNED_UP_TO, _RESIGNED = 5_000, 10


class Proposal:
    """The best hyperplane found so far for a node's reduced problem."""

    def __init__(self, terms: Terms, t: int, node: Node, plane: Plane) -> None:
        self.terms, self.t, self.node = terms, t, node
        self.plane = plane
        self.h, value = node.measure(plane)
        self.value = self.start = value + terms.price(t, plane[0])
        self.aimed = False  # whether directions brought something, and not only lines

    def offer(self, plane: Plane) -> bool:
        """Take a hyperplane if it is better, by its value computed from scratch."""
        h, value = self.node.measure(plane)
        value += self.terms.price(self.t, plane[0])
        if not value < self.value - GAIN * abs(self.value):
            return False
        self.plane, self.h, self.value = plane, h, value
        return True

    @property
    def gain(self) -> float:
        return self.start - self.value


def propose(
    terms: Terms, t: int, node: Node, plane: Plane, rng: np.random.Generator, flag: FloatArray, one: bool = False
) -> Proposal:
    """The best found along SVM directions at several lengths, or along ``one`` of them, and on lines through it."""
    best = Proposal(terms, t, node, plane)
    best.offer(node.no_split()[0])
    many = len(node.Z) > _MANY
    prices = [*_PRICES, 10.0 ** rng.uniform(-3.0, 1.0)]
    heard = _thinned(node, rng)
    aims = []
    for lam in [prices[rng.integers(len(prices))]] if one or many else prices:
        if flag[0]:
            return best
        aims.append(_direction(terms, t, heard, lam, plane, rng, flag))
    if np.any(plane[0]) and not flag[0] and (many or not one):
        aims.append(_direction(terms, t, _not_lost(heard, plane, rng), prices[-1], plane, rng, flag))
    for w, _ in [*aims, plane]:
        _cut_across(best, w)
    if not one and len(node.Z) <= _RESIGNED_UP_TO:
        _resign(best, heard, prices[-1], rng, flag)
    best.aimed = best.gain > GAIN * best.start
    if len(node.Z) <= _LINES_UP_TO:
        _search_lines(best, aims, rng, flag)
    if terms.limited(t) and terms.soft(t):
        _drop_features(best, flag)
    return best


def _cut_across(best: Proposal, w: FloatArray) -> bool:
    """Offer the best hyperplane across a direction."""
    if not np.any(w):
        return False
    cut = best.node.best_cut(w, _LENGTHS, best.value - best.terms.price(best.t, w))
    return cut is not None and best.offer(cut[0])


def _resign(best: Proposal, node: Node, lam: float, rng: np.random.Generator, flag: FloatArray) -> None:
    """From the best hyperplane, SVMs that no longer hear those who are lost to the one before, while that pays.

    Where a split is cheap itself and all depends on who goes where, wishes that cannot be met only pull it astray.
    """
    for _ in range(_RESIGNED):
        if flag[0] or not np.any(best.plane[0]):
            return
        aim = _direction(best.terms, best.t, _not_lost(node, best.plane, rng), lam, best.plane, rng, flag)
        if not _cut_across(best, aim[0]):
            return


def _drop_features(best: Proposal, flag: FloatArray) -> None:
    """Let go of the lightest features while their price is more than they are worth."""
    while not flag[0] and any(_drops(best, j) for j in lightest(best.node, best.plane[0], _LIGHT)):
        pass


def _drops(best: Proposal, j: int) -> bool:
    """Whether it pays to do without feature ``j``; if so that is done."""
    w = best.plane[0].copy()
    w[j] = 0.0
    cut = best.node.best_cut(w, _LENGTHS, best.value - best.terms.price(best.t, w)) if np.any(w) else None
    return cut is not None and best.offer(cut[0])


def _thinned(node: Node, rng: np.random.Generator) -> Node:
    m = len(node.Z)
    return node if m <= _DIRECTION else node.thinned(np.sort(rng.choice(m, _DIRECTION, replace=False)))


def _not_lost(node: Node, plane: Plane, rng: np.random.Generator) -> Node:
    """The node without the wishes of those far on the side that is dearer for them."""
    h = node.heights(plane)
    wish = np.sign(node.low - node.high) * h
    lost = wish < np.quantile(np.abs(h), rng.random()) * -1.0
    return replace(node, low=np.where(lost, 0.0, node.low), high=np.where(lost, 0.0, node.high))


def _direction(
    terms: Terms, t: int, node: Node, lam: float, plane: Plane, rng: np.random.Generator, flag: FloatArray
) -> Plane:
    """The SVM that hears every sample twice: its label, and at the price ``lam`` the side that is cheaper below."""
    more = node.low - node.high
    twice = replace(node, plus=node.plus + lam * np.maximum(0.0, more), minus=node.minus + lam * np.maximum(0.0, -more))
    found, value = rough_svm(terms, t, twice, plane, rng, flag)
    if terms.limited(t) and rng.random() < _EXCHANGED:
        found, _ = exchanged(replace(terms, narrow=ROUGH), t, twice, found, value + terms.price(t, found[0]), flag)
    return found


def _search_lines(best: Proposal, aims: list[Plane], rng: np.random.Generator, flag: FloatArray) -> None:
    """Exact minima on lines: towards the SVMs, longer or shorter, to and fro, and along single features."""
    terms, t, features = best.terms, best.t, _features(best, rng)
    w, h, at = best.plane[0].copy(), best.h, np.array([best.plane[1], best.value])
    ends = np.array([np.append(*aim) for aim in aims]).reshape(-1, w.size + 1)
    budget, price = int(terms.budget[t]), float(terms.alpha[t])
    chance = rng.random((_TURNS if np.any(w) and not best.aimed else 0, 4))
    search_lines(best.node.reduced, w, h, at, ends, features, chance, best.node.eps, budget, price, flag)
    best.plane, best.value = (w, float(at[0])), float(at[1])


def _features(best: Proposal, rng: np.random.Generator) -> np.ndarray:
    """The features along which to search: some of all, or those of the split where others are ruled out."""
    p = best.node.Z.shape[1]
    full = np.count_nonzero(best.plane[0]) >= best.terms.budget[best.t]
    if full and not best.terms.soft(best.t) and best.terms.limited(best.t):
        return np.flatnonzero(best.plane[0])
    return rng.permutation(p)[: min(_LINES, _ON_LINES // len(best.node.Z))]
