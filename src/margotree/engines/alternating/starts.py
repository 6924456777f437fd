"""Where descents start from: the tree at hand, greedy trees, soft trees, trees by chance, later the best disturbed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from margotree.engines.alternating.descend import Draws
from margotree.engines.alternating.draw import FRESH, Draw
from margotree.engines.alternating.terms import Found
from margotree.problem import topology
from margotree.problem.problem import FloatArray

#: So many starts are from nothing; after them this share is, and the others disturb one of the best trees.
_FIRST, _SHARE = 12, 0.4
#: Of the first starts from nothing so many are every other time a soft tree; later so many of the best of them tell how
#: often.  So many soft trees are trained for one to go on.
_EVERY_OTHER, _TELL, _OF = 4, 4, 2
#: Of the disturbed trees this times that share is made soft again.
_SOFT_AGAIN = 0.6


@dataclass(frozen=True, kw_only=True, eq=False)
class Start:
    """A tree, and which of its nodes to draw anew and how.

    If ``soft`` is not 0, the tree is first trained as that many soft trees (from chance if it has no splits), of which
    the best goes on.
    """

    W: FloatArray
    B: FloatArray
    kinds: Draws
    soft: int = 0


@dataclass(kw_only=True)
class Record:
    """What starts from nothing have come to, soft trees and others: who does better is asked more often."""

    soft: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    _asked: int = 0  # others so far

    def next_other(self) -> int:
        """The number of a start from nothing that is no soft tree."""
        self._asked += 1
        return self._asked - 1

    def note(self, start: Start, value: float) -> None:
        if not np.any(start.W):
            (self.soft if start.soft else self.others).append(value)

    @property
    def share(self) -> float:
        """How many of the best are of soft trees, as if there had been one more of each."""
        values = sorted([*((v, True) for v in self.soft), *((v, False) for v in self.others)])[:_TELL]
        return (1 + sum(soft for _, soft in values)) / (2 + len(values))

    def asks_soft(self, number: int, rng: np.random.Generator) -> bool:
        """Whether the start of this number, from nothing, is to be a soft tree."""
        return number % 2 == 0 if number < _EVERY_OTHER else bool(rng.random() < self.share)

    def asks_soft_again(self, rng: np.random.Generator) -> bool:
        """Whether a good tree is to be disturbed by making it soft again."""
        return bool(rng.random() < _SOFT_AGAIN * self.share)


def next_start(
    number: int, depth: int, n_features: int, best: list[Found], record: Record, rng: np.random.Generator
) -> Start:
    """The start of this number; ``best`` are the best trees so far, best first."""
    if number >= _FIRST and best and depth > 1 and rng.random() > _SHARE:
        tree = best[min(int(rng.exponential(1.0)), len(best) - 1)]
        return soft_again(tree) if record.asks_soft_again(rng) else _disturbed(tree, depth, rng)
    if depth > 1 and record.asks_soft(number, rng):
        return soft(depth, n_features)
    return fresh(_kinds(record.next_other(), depth, rng), n_features)


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


def _kinds(number: int, depth: int, rng: np.random.Generator) -> Draws:
    nodes = topology.n_nodes(depth)
    if number < 2:
        return np.full(nodes, (Draw.SVM, Draw.CART)[number])
    kinds = rng.choice(FRESH[1:], nodes) if rng.random() < 0.5 else np.full(nodes, Draw.CART)
    kinds[0] = rng.choice(FRESH[1:])
    return kinds


def _disturbed(tree: Found, depth: int, rng: np.random.Generator) -> Start:
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
