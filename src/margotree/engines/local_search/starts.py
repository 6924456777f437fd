"""Where descents start from: the tree at hand, greedy trees, soft trees, trees by chance, later the best disturbed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np

from margotree.engines.local_search.annealing import Manner
from margotree.engines.local_search.descent import Draws
from margotree.engines.local_search.initial_splits import FRESH, Draw
from margotree.engines.local_search.training_data import Found
from margotree.problem import topology
from margotree.problem.problem import FloatArray

#: So many starts of an island are from nothing; after them those ways are taken more often that bring better trees.
_FIRST = 3
#: Of the first starts so many are every other time a soft tree, if from nothing; later so many of the best of them tell
#: how often.  So many soft trees are trained for one to go on.
_EVERY_OTHER, _TELL, _OF = 4, 4, 12
#: The share of soft trees that are trained in any manner; of the others so many are taken as an example.
_ANY_MANNER, _GOOD_MANNERS = 0.5, 4
#: A tree that is better than the best by this share has brought all that a start can be credited with.
_FULL = 0.005
#: What each way is credited with, and how many starts it is charged for, before it has been tried.
_CREDIT, _CHARGE = 1.0, 2.0


class Way(IntEnum):
    """Where a start comes from."""

    FROM_NOTHING = 0
    DISTURBED = 1  # one of the best trees, with some nodes drawn anew
    SOFT_AGAIN = 2  # one of the best trees, made soft and then sharper again
    SUBTREE = 3  # one of the best trees, with a subtree trained by itself from elsewhere


#: What a start of each way costs beside the others.
_COST = (4.0, 1.0, 1.0, 0.3)


@dataclass(frozen=True, kw_only=True, eq=False)
class Start:
    """A tree, and which of its nodes to draw anew and how.

    If ``soft`` is not 0, the tree is first trained as that many soft trees (from chance if it has no splits), of which
    the best goes on.  If ``below`` is given, it is where the subtree of node ``top`` starts from, by itself.
    """

    W: FloatArray
    B: FloatArray
    kinds: Draws
    soft: int = 0
    top: int = 0
    below: Start | None = None


@dataclass(kw_only=True)
class Record:
    """What starts have come to: who does better is asked more often."""

    soft: list[float] = field(default_factory=list)  # values of soft trees and others, from nothing
    others: list[float] = field(default_factory=list)
    manners: list[tuple[float, Manner]] = field(default_factory=list)  # of soft trees from nothing, with values
    _asked_soft: int = 0  # soft trees from nothing so far
    _asked: int = 0  # others
    _credit: list[float] = field(default_factory=lambda: [_CREDIT] * len(Way))
    _charge: list[float] = field(default_factory=lambda: [_CHARGE] * len(Way))

    def next_manner(self, rng: np.random.Generator) -> Manner:
        """How a soft tree is to be trained: by chance, or much as one of the best before it."""
        if rng.random() < _ANY_MANNER or not self.manners:
            return Manner.by_chance(rng)
        best = sorted(self.manners, key=lambda one: one[0])[:_GOOD_MANNERS]
        return best[rng.integers(len(best))][1].like(rng)

    def next_other(self) -> int:
        """The number of a start from nothing that is no soft tree."""
        self._asked += 1
        return self._asked - 1

    def next_way(self, number: int, depth: int, rng: np.random.Generator) -> Way:
        """The way of the start of this number on its island: the one that pays best, as far as is known.

        How often a way brings a better tree is drawn from what its record leaves possible (Thompson sampling), so that
        ways are tried again for as long as they may be the best.
        """
        if number < _FIRST or depth == 1:
            return Way.FROM_NOTHING
        ways = [way for way in Way if depth > 2 or way is not Way.SUBTREE]  # which would be a single SVM
        return max(ways, key=lambda way: rng.gamma(self._credit[way]) / self._charge[way])

    def note(self, start: Start, value: float, before: float, number: int) -> None:
        """Take down what the start of this number on its island has come to, and the best value there before."""
        way = _way(start)
        if way is Way.FROM_NOTHING:
            (self.soft if start.soft else self.others).append(value)
        if number >= _FIRST:  # there was a choice
            self._charge[way] += _COST[way]
            self._credit[way] += min(1.0, max(0.0, 1.0 - value / before) / _FULL) if before > 0 else 0.0

    @property
    def share(self) -> float:
        """How many of the best are of soft trees, as if there had been one more of each."""
        values = sorted([*((v, True) for v in self.soft), *((v, False) for v in self.others)])[:_TELL]
        return (1 + sum(soft for _, soft in values)) / (2 + len(values))

    def asks_soft(self, rng: np.random.Generator) -> bool:
        """Whether the next start from nothing is to be a soft tree."""
        number = self._asked_soft + self._asked
        soft = number % 2 == 0 if number < _EVERY_OTHER else bool(rng.random() < self.share)
        self._asked_soft += soft
        return soft


def _way(start: Start) -> Way:
    if not np.any(start.W):
        return Way.FROM_NOTHING
    if start.below is not None:
        return Way.SUBTREE
    return Way.SOFT_AGAIN if start.soft else Way.DISTURBED


def idleness(start: Start, number: int) -> float:
    """How much an island has been idle with the start of this number: the first ones have nothing to better, and a
    subtree is soon done."""
    return min(1.0, _COST[_way(start)]) if number >= _FIRST else 0.0


def soft(depth: int, n_features: int) -> Start:
    nodes = topology.n_nodes(depth)
    return replace(fresh(np.full(nodes, Draw.KEEP), n_features), soft=_OF)


def soft_again(tree: Found) -> Start:
    return replace(kept(tree), soft=1)


def greedy(depth: int, n_features: int) -> Start:
    """The tree that Local SVM would make."""
    return fresh(np.full(topology.n_nodes(depth), Draw.SVM), n_features)


def fresh(kinds: Draws, n_features: int) -> Start:
    return Start(W=np.zeros((len(kinds), n_features)), B=np.ones(len(kinds)), kinds=kinds)


def kept(tree: Found) -> Start:
    """The tree as it is."""
    return Start(W=tree.W, B=tree.B, kinds=np.full(len(tree.B), Draw.KEEP))


def first_kinds(number: int, depth: int, rng: np.random.Generator) -> Draws:
    """How the nodes of a start from nothing are drawn: CART, SVMs, then by chance."""
    nodes = topology.n_nodes(depth)
    if number < 2:
        return np.full(nodes, (Draw.CART, Draw.SVM)[number])
    kinds = rng.choice(FRESH[1:], nodes) if rng.random() < 0.5 else np.full(nodes, Draw.CART)
    kinds[0] = rng.choice(FRESH[1:])
    return kinds


def disturbed(tree: Found, depth: int, rng: np.random.Generator) -> Start:
    """One node redrawn, all upper nodes shaken, two subtrees swapped, or one copied over its sibling."""
    W, B, kinds = tree.W.copy(), tree.B.copy(), np.full(len(tree.B), Draw.KEEP)
    t = int(rng.integers(len(topology.upper(depth))))
    left, right = (topology.subtree(s, depth) for s in (topology.left(t), topology.right(t)))
    move = rng.random()
    if move < 0.6:
        kinds[t] = rng.choice([*FRESH, Draw.SHAKEN, Draw.SHAKEN])
        # Its subtrees are trained again from what they were, or drawn anew as well.
        below = [s for s in left + right if s not in topology.upper(depth) or rng.random() < 0.3]
        kinds[below] = rng.choice(FRESH, len(below))
    elif move < 0.8:
        kinds[: len(topology.upper(depth))] = Draw.SHAKEN
    elif move < 0.9:
        W[left], W[right], B[left], B[right] = W[right], W[left], B[right], B[left]
    else:
        to, source = (left, right) if rng.random() < 0.5 else (right, left)
        W[to], B[to] = W[source], B[source]
        kinds[t] = Draw.BETWEEN if rng.random() < 0.5 else Draw.SHAKEN
    return Start(W=W, B=B, kinds=kinds)
