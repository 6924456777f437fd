"""Our exact engine: branch and bound on which way a sample goes and on which features a split uses.

No big-M, no solver, no licence.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from margotree.engines.base import Answer, Engine
from margotree.engines.bnb.improve import improve
from margotree.engines.bnb.margot import MargotBrancher, Tactics, merge_duplicates
from margotree.engines.bnb.menu import count_supports
from margotree.engines.bnb.priced import PricedBrancher
from margotree.engines.bnb.search import Brancher, Search
from margotree.engines.bnb.sparse import SparseBrancher, SparseTactics, sparsified, without_budget
from margotree.engines.kernels.jit import compiling
from margotree.engines.node import LARGE, solve_large
from margotree.engines.polish import without_noise
from margotree.engines.tiny import tiny_problem
from margotree.engines.watch import Watch
from margotree.problem import Problem, Splits, TrainingProblem, evaluate
from margotree.solution import Stopped

#: Share of the time that better incumbents may take before the search begins.
_IMPROVE_SHARE = 0.1
#: Where features have prices: share of the time, and seconds at most, for a first try of each kind.
_TRIAL_SHARE, _TRIAL_MOST = 0.05, 30.0
#: And share of the time for a start without them.
_RELAXED_SHARE = 0.15
#: So many supports of a node are listed at most.
_MOST_SUPPORTS = 50_000


class BranchAndBound(Engine):
    """Certified trees by a search over partial routings and supports (docs/engine.md)."""

    name = "bnb"
    models = frozenset({"margot", "hfs", "sfs"})

    def __init__(self, tactics: Tactics | None = None, sparse: SparseTactics | None = None) -> None:
        self.tactics = tactics or Tactics()
        self.sparse = sparse or SparseTactics()

    def version(self) -> str:
        from margotree import __version__

        return __version__

    def refuses(self, problem: Problem) -> str | None:
        if problem.max_weight is not None:
            return "bnb does not bound weights (max_weight)"
        if problem.model == "hfs" and count_supports(problem) > _MOST_SUPPORTS:
            return f"bnb lists the supports of a node, and here they are more than {_MOST_SUPPORTS}"
        return super().refuses(problem)

    def prepare(self, problem: TrainingProblem) -> None:
        _compile(getattr(problem, "model", "margot"))

    def search(self, problem: Problem, watch: Watch, start: Splits | None) -> Answer:
        merged, _ = merge_duplicates(problem)
        if merged.budget is not None and not _binding(merged):
            merged = without_budget(merged)
        trees = [trivial_tree(problem)] if start is None else [start, trivial_tree(problem)]
        first = min(trees, key=lambda tree: allowed_value(merged, tree))
        run = self._run_plain if merged.budget is None else self._run_sparse
        search, first = run(merged, first, watch)
        return Answer(
            splits=without_noise(merged, search.incumbent),
            stopped=search.reason or Stopped.SOLVED,
            bound=max(0.0, search.bound),
            nodes=search.steps,
            f0=allowed_value(merged, first),
            f1=search.f1,
        )

    def _run_plain(self, problem: Problem, first: Splits, watch: Watch) -> tuple[Search, Splits]:
        """Search over routings first; returns the finished search and the tree it started from."""
        search, first = self._prepared(problem, first, watch)
        search.run()
        return search, first

    def _prepared(self, problem: Problem, first: Splits, watch: Watch) -> tuple[Search, Splits]:
        """The same before it has begun, with an improved start."""
        make = MargotBrancher if problem.alpha is None else PricedBrancher
        brancher = make(problem, self.tactics, least=_least(problem, watch))
        if self.tactics.improve:
            starts = [first, trivial_tree(problem)]
            first = improve(brancher, starts, watch.part(_IMPROVE_SHARE * watch.remaining))
        return _new_search(problem, brancher, first, watch), first

    def _run_sparse(self, problem: Problem, first: Splits, watch: Watch) -> tuple[Search, Splits]:
        """Search over supports first and then routings; where features have prices, that or the other way round."""
        brancher = SparseBrancher(problem, allowed_value(problem, first), self.sparse, watch.limits.gap)
        search = _new_search(problem, brancher, first, watch)
        if problem.alpha is None:
            search.run()
            return search, first
        search.run(_trial(watch))
        if search.reason is not Stopped.TIME or watch.must_stop() is not None:
            return search, first
        first, bound = self._sparsified(brancher, search, watch.part(_RELAXED_SHARE * watch.remaining))
        search.offer(first)
        other, first = self._prepared(problem, first, watch)
        other.floor, other.steps = max(search.bound, bound), search.steps
        other.run(_trial(watch))
        if other.reason is not Stopped.TIME or watch.must_stop() is not None:
            return other, first
        # Whichever has come further goes on.
        better, worse = (search, other) if search.bound > other.own_bound else (other, search)
        better.floor, better.steps = max(search.bound, other.bound), other.steps
        better.offer(worse.incumbent)
        better.run(watch)
        return better, first

    def _sparsified(self, brancher: SparseBrancher, search: Search, watch: Watch) -> tuple[Splits, float]:
        """Without prices a good tree is soon found: its routing made sparse is a start, and its bound is one."""
        problem = brancher.problem
        relaxed, _ = self._run_plain(without_budget(problem), search.incumbent, watch.part(0.7 * watch.remaining))
        trees = sparsified(brancher, relaxed.incumbent, search.best, watch)
        best = min([search.incumbent, *trees], key=lambda tree: allowed_value(problem, tree))
        return best, relaxed.bound


def _trial(watch: Watch) -> Watch:
    """The part of the time that a first try may take."""
    return watch.part(min(_TRIAL_MOST, _TRIAL_SHARE * watch.remaining))


def _new_search(problem: Problem, brancher: Brancher, first: Splits, watch: Watch) -> Search:
    return Search(brancher, lambda tree: allowed_value(problem, tree), watch, first)


def _least(problem: Problem, watch: Watch) -> float:
    """A first bound where samples are so many that the search may not get to one: the root split by itself."""
    if problem.n_samples <= LARGE:
        return 0.0
    return solve_large(problem.X, problem.y, problem.C[0] * problem.weight, _IMPROVE_SHARE * watch.remaining).bound


def _binding(problem: Problem) -> bool:
    """Whether any node's budget keeps features out or puts a price on them."""
    assert problem.budget is not None
    free = problem.alpha is not None and problem.alpha == 0
    return bool(np.any((problem.budget < problem.n_features) & ~np.asarray(free)))


@cache
def _compile(model: str) -> None:
    """Solve a tiny problem, so that everything is compiled or loaded from the cache."""
    with compiling():
        BranchAndBound().search(tiny_problem(model), Watch(), None)


def trivial_tree(problem: Problem) -> Splits:
    """All samples go right and get the label of the heavier class."""
    w = np.zeros((problem.n_nodes, problem.n_features))
    b = np.ones(problem.n_nodes)
    if problem.weight @ problem.y < 0:
        b[-1] = -1.0
    return Splits(w=w, b=b)


def allowed_value(problem: Problem, tree: Splits) -> float:
    """Value of a tree, infinite if it is not allowed."""
    found = evaluate(problem, tree)
    return found.objective if found.feasible else math.inf
