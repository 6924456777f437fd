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
#: Where features have prices: shares of the time, and seconds at most, for a first try and then without prices.
_QUICK_SHARE, _QUICK_MOST = 0.05, 30.0
_RELAXED_SHARE, _RELAXED_MOST = 0.2, 120.0
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
        """Search over routings alone; returns the finished search and the tree it started from."""
        brancher = MargotBrancher(problem, self.tactics, least=_least(problem, watch))
        if self.tactics.improve:
            starts = [first, trivial_tree(problem)]
            first = improve(brancher, starts, watch.part(_IMPROVE_SHARE * watch.remaining))
        return _searched(problem, brancher, first, watch), first

    def _run_sparse(self, problem: Problem, first: Splits, watch: Watch) -> tuple[Search, Splits]:
        """Search over routings and supports; if features have prices and it takes longer, with help from MARGOT."""
        gap = watch.limits.gap
        brancher = SparseBrancher(problem, allowed_value(problem, first), self.sparse, gap)
        if problem.alpha is None:
            return _searched(problem, brancher, first, watch), first
        search = _searched(problem, brancher, first, watch.part(min(_QUICK_MOST, _QUICK_SHARE * watch.remaining)))
        if search.reason is not Stopped.TIME or watch.must_stop() is not None:
            return search, first
        # Without prices the problem is quickly bounded, and the routing of its tree is a start.
        part = watch.part(min(_RELAXED_MOST, _RELAXED_SHARE * watch.remaining))
        relaxed, _ = self._run_plain(without_budget(problem), search.incumbent, part)
        best = allowed_value(problem, search.incumbent)
        trees = sparsified(brancher, relaxed.incumbent, best, watch.part(part.limits.time))
        first = min([search.incumbent, *trees], key=lambda tree: allowed_value(problem, tree))
        best, least = allowed_value(problem, first), max(search.bound, relaxed.bound, 0.0)
        return _searched(problem, SparseBrancher(problem, best, self.sparse, gap, least), first, watch), first


def _searched(problem: Problem, brancher: Brancher, first: Splits, watch: Watch) -> Search:
    search = Search(brancher, lambda tree: allowed_value(problem, tree), watch, first)
    search.run()
    return search


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
