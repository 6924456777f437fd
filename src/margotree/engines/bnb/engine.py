"""Our exact engine: branch and bound on which way a sample goes.  No big-M, no solver, no licence."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from margotree.engines.base import Answer, Engine
from margotree.engines.bnb.improve import improve
from margotree.engines.bnb.margot import MargotBrancher, Tactics, merge_duplicates
from margotree.engines.bnb.search import Search
from margotree.engines.kernels.jit import compiling
from margotree.engines.tiny import tiny_problem
from margotree.engines.watch import Watch
from margotree.problem import Problem, Splits, TrainingProblem, evaluate

#: Share of the time that better incumbents may take before the search begins.
_IMPROVE_SHARE = 0.1


class BranchAndBound(Engine):
    """Certified trees by a search over partial routings (docs/engine.md)."""

    name = "bnb"
    models = frozenset({"margot"})

    def __init__(self, tactics: Tactics | None = None) -> None:
        self.tactics = tactics or Tactics()

    def version(self) -> str:
        from margotree import __version__

        return __version__

    def refuses(self, problem: Problem) -> str | None:
        if problem.max_weight is not None:
            return "bnb does not bound weights (max_weight)"
        return super().refuses(problem)

    def prepare(self, problem: TrainingProblem) -> None:
        _compile()

    def search(self, problem: Problem, watch: Watch, start: Splits | None) -> Answer:
        merged, _ = merge_duplicates(problem)
        first = start if start is not None else trivial_tree(problem)
        brancher = MargotBrancher(merged, self.tactics)
        if self.tactics.improve:
            first = improve(brancher, _starts(problem, start), watch.part(_IMPROVE_SHARE * watch.remaining))
        search = Search(brancher, lambda tree: allowed_value(merged, tree), watch, first)
        stopped = search.run()
        return Answer(
            splits=search.incumbent,
            stopped=stopped,
            bound=max(0.0, search.bound),
            nodes=search.steps,
            f0=allowed_value(merged, first),
            f1=search.f1,
        )


@cache
def _compile() -> None:
    """Solve a tiny problem, so that everything is compiled or loaded from the cache."""
    with compiling():
        BranchAndBound().search(tiny_problem("margot"), Watch(), None)


def _starts(problem: Problem, start: Splits | None) -> list[Splits]:
    return [trivial_tree(problem)] if start is None else [start, trivial_tree(problem)]


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
