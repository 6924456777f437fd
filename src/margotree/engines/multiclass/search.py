"""Many descents for several classes: starts, the race on parts of the samples, and the engine around them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from margotree.engines.alternating.search import AlternatingSearch, Effort
from margotree.engines.alternating.starts import Record, Start, fresh, soft, soft_again
from margotree.engines.alternating.terms import Found
from margotree.engines.base import Answer, Engine
from margotree.engines.kernels.jit import compiling
from margotree.engines.multiclass.anneal import ClassSoftTree
from margotree.engines.multiclass.descend import Draws, descend, settled
from margotree.engines.multiclass.draw import FRESH, Draw
from margotree.engines.multiclass.terms import ClassTerms
from margotree.engines.polish import without_noise
from margotree.engines.presolve import MODERATE, merge_duplicates
from margotree.engines.tiny import tiny_multiclass
from margotree.engines.watch import Watch
from margotree.problem import MulticlassProblem, Splits, TrainingProblem, topology
from margotree.solution import Stopped

#: So many starts are from nothing; after them this share is, and the others disturb one of the best trees.
_FIRST, _SHARE = 12, 0.25
#: Descents for several classes cost more each: fewer of them may bring nothing.
_EFFORT = Effort(least=20, most=1000, patience=30)


class ClassSearch(AlternatingSearch):
    """The descents of one problem of several classes."""

    descent = staticmethod(descend)
    settled = staticmethod(settled)
    soft_tree = ClassSoftTree
    heard = (1.0,)  # with less, sides and labels come out worse

    def __init__(self, problem: MulticlassProblem, watch: Watch, effort: Effort | None = None) -> None:
        self.classes = problem
        stand_in: Any = problem  # it has all that the search asks of a problem of two classes
        super().__init__(stand_in, watch, effort or _EFFORT)

    def _terms(self) -> ClassTerms:
        return ClassTerms.of(self.classes)

    def _constant(self) -> Found:
        tree = constant_tree(self.classes)
        return Found(W=tree.w, B=tree.b, value=self._value(tree))

    def _is_enough(self) -> bool:
        return self.starts >= self.watch.limits.nodes or super()._is_enough()

    def _greedy_start(self) -> Start:
        return fresh(_kinds(0, self.classes.n_nodes, np.random.default_rng(0)), self.classes.n_features)

    def _new_start(self, number: int, rng: np.random.Generator) -> Start:
        return _next_start(number, self.classes, self.best, self.record, rng)


def _next_start(
    number: int, problem: MulticlassProblem, best: list[Found], record: Record, rng: np.random.Generator
) -> Start:
    """The start of this number; ``best`` are the best trees so far, best first."""
    if number >= _FIRST and best and problem.depth > 1 and rng.random() > _SHARE:
        tree = best[min(int(rng.exponential(1.0)), len(best) - 1)]
        return soft_again(tree) if record.asks_soft_again(rng) else _disturbed(tree, problem.depth, rng)
    if problem.depth > 1 and record.asks_soft(number, rng):
        return soft(problem.depth, problem.n_features)
    return fresh(_kinds(record.next_other(), problem.n_nodes, rng), problem.n_features)


def _kinds(number: int, nodes: int, rng: np.random.Generator) -> Draws:
    """First CART and the greedy tree; then one way for all nodes, or another for each."""
    if number < 4:
        return np.full(nodes, (Draw.GREEDY, Draw.CART, Draw.BETWEEN, Draw.MEANS)[number])
    if rng.random() < 0.5:
        return np.full(nodes, rng.choice([Draw.BETWEEN, Draw.MEANS, Draw.FEATURE]))
    return rng.choice(FRESH, nodes)


def _disturbed(tree: Found, depth: int, rng: np.random.Generator) -> Start:
    """One subtree redrawn or its top alone, or all upper nodes shaken."""
    kinds = np.full(len(tree.B), Draw.KEEP)
    upper = topology.upper(depth)
    t = int(rng.integers(len(upper)))
    move = rng.random()
    if move < 0.4:
        below = topology.subtree(t, depth)
        kinds[below] = rng.choice(FRESH, len(below))
    elif move < 0.8:
        kinds[t] = rng.choice([*FRESH, Draw.SHAKEN, Draw.SHAKEN])
        kinds[[s for s in topology.subtree(t, depth) if s not in upper]] = Draw.BETWEEN
    else:
        kinds[: len(upper)] = Draw.SHAKEN
    return Start(W=tree.W.copy(), B=tree.B.copy(), kinds=kinds)


def constant_tree(problem: MulticlassProblem) -> Splits:
    """All samples go one way and get the label of the heaviest class: allowed in every problem."""
    w = np.zeros((problem.n_nodes, problem.n_features))
    trees = [Splits(w=w, b=np.full(problem.n_nodes, side)) for side in (1.0, -1.0)]
    return min(trees, key=lambda tree: problem.evaluate(tree).objective)


def alternate(problem: MulticlassProblem, given: list[Splits], watch: Watch, effort: Effort | None = None) -> Splits:
    """The best tree that alternation finds; allowed, and never worse than those given that are, or the constant."""
    search = ClassSearch(problem, watch, effort)
    search.run(given)
    return search.answer()


class Alternating(Engine[MulticlassProblem]):
    """Good trees for any number of classes, and nothing proved about them.

    Descents from many starts; it ends when starts stop paying off or time is up.
    """

    name = "alternating"
    models = frozenset({"margot", "hfs", "sfs"})
    proves = False

    def __init__(self, effort: Effort | None = None) -> None:
        self.effort = effort

    def makes_start(self, problem: MulticlassProblem) -> bool:
        return True

    def prepare(self, problem: TrainingProblem) -> None:
        compile_for(problem.model)

    def search(self, problem: MulticlassProblem, watch: Watch, start: Splits | None) -> Answer:
        problem, _ = merge_duplicates(problem, MODERATE)
        best = alternate(problem, [] if start is None else [start], watch, self.effort)
        stopped = watch.must_stop() or Stopped.HEURISTIC
        return Answer(splits=without_noise(problem, best), stopped=stopped)


@cache
def compile_for(model: str) -> None:
    """Train a tiny tree, so that everything is compiled or loaded from the cache; the same for all engines."""
    with compiling():
        Alternating(Effort(least=5, most=5)).search(tiny_multiclass(model), Watch(), None)
