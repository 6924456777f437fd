"""A MIP solver as an engine: formulate, run the adapter, polish whatever comes back, report an honest bound."""

from __future__ import annotations

import math
from functools import cache
from typing import Literal

import numpy as np

from margotree.engines.base import Answer, Engine
from margotree.engines.kernels.jit import compiling
from margotree.engines.mip.adapter import Adapter
from margotree.engines.mip.constants import Constants, derived_constants, paper_constants
from margotree.engines.mip.formulation import Formulation, formulate
from margotree.engines.mip.model import FloatArray, MipResult
from margotree.engines.mip.normal import binding, normalise
from margotree.engines.polish import polish
from margotree.engines.tiny import tiny_problem
from margotree.engines.watch import Watch
from margotree.problem import Problem, Splits, TrainingProblem, evaluate, topology
from margotree.solution import Stopped, relative_gap

BigM = Literal["derived", "paper"]

#: Share of a solver's bound given up for its tolerances (about 1e-6 on rows, 1e-7 on reduced costs).
SAFETY = 2e-6

#: The same for what the tolerances let through in absolute terms, as a share of the size the objective is scaled by.
_ABSOLUTE = 1e-9


class MipEngine(Engine):
    """The paper's formulation on one solver.

    ``big_m="paper"`` takes the paper's constants, whose proof then holds only under them; the default derives constants
    that cut off no optimum.  ``label_cuts`` adds the inequality that a sample routed against its label pays.
    """

    adapter: Adapter

    def __init__(self, *, big_m: BigM = "derived", label_cuts: bool = True) -> None:
        if big_m not in ("derived", "paper"):
            raise ValueError(f'big_m must be "derived" or "paper", got {big_m!r}')
        self.big_m = big_m
        self.label_cuts = label_cuts

    def missing(self) -> str | None:
        return self.adapter.missing()

    def version(self) -> str:
        return self.adapter.version()

    def prepare(self, problem: TrainingProblem) -> None:
        _compile()

    def search(self, problem: Problem, watch: Watch, start: Splits | None) -> Answer:
        hopeless = self.adapter.hopeless(_entries(problem), watch)
        if hopeless is not None:
            tree = _one_way(problem) if start is None else start
            return Answer(splits=tree, stopped=hopeless[0], bound=0.0, warnings=hopeless[1:])
        first = _first_tree(problem, start, watch)
        value = evaluate(problem, first).objective
        constants = self.constants(problem, value, watch.remaining)
        if (reason := watch.must_stop()) is not None:
            return Answer(splits=first, stopped=reason, bound=constants.floor, restriction=constants.restriction)
        form = formulate(problem, constants, label_cuts=self.label_cuts, size=value)
        point = None if start is None else form.point(normalise(problem, first))
        limits = watch.limits
        result = self.adapter.run(
            form.mip,
            watch=watch,
            gap=max(0.0, limits.gap - 2 * SAFETY),
            threads=limits.n_jobs,
            start=point,
            seed=limits.seed,
        )
        return _answer(form, result, first, watch)

    def constants(self, problem: Problem, upper: float, time_limit: float = math.inf) -> Constants:
        """The constants of the model, given the value of a known tree."""
        return paper_constants(problem) if self.big_m == "paper" else derived_constants(problem, upper, time_limit)


@cache
def _compile() -> None:
    """Have the node kernels, which give the constants and the polish, ready before a clock starts."""
    tiny = tiny_problem("margot")
    with compiling():
        derived_constants(tiny, evaluate(tiny, _first_tree(tiny, None, Watch())).objective)


def _first_tree(problem: Problem, start: Splits | None, watch: Watch) -> Splits:
    """A tree to fall back on: the start with its nodes re-solved, or one that sends everybody the same way."""
    tree = _one_way(problem) if start is None else start
    support = None if problem.budget is None else tree.w != 0
    return _better(problem, tree, polish(problem, evaluate(problem, tree).node, support, watch))


def _entries(problem: Problem) -> float:
    """About how many entries the rows of the model have: one per sample and feature at every node, and two more above
    the last level."""
    return float(problem.X.size) * (problem.n_nodes + 2 * len(topology.upper(problem.depth)))


def _one_way(problem: Problem) -> Splits:
    """``w = 0`` and ``b`` the label of the heavier class at every node: always allowed."""
    sign = 1.0 if problem.weight @ problem.y >= 0 else -1.0
    b = np.full(problem.n_nodes, sign * max(1.0, problem.eps))
    return Splits(w=np.zeros((problem.n_nodes, problem.n_features)), b=b)


def _better(problem: Problem, tree: Splits, other: Splits | None) -> Splits:
    if other is None:
        return tree
    found = evaluate(problem, other)
    return other if found.feasible and found.objective < evaluate(problem, tree).objective else tree


def _polished(form: Formulation, result: MipResult, watch: Watch) -> Splits | None:
    """The exact tree behind the solver's best point, or behind the first of its other points that is one."""
    points: list[FloatArray] = [] if result.x is None else [result.x, *result.others]
    trees = (polish(form.problem, form.node(x), form.support(x), watch) for x in points)
    return next((tree for tree in trees if tree is not None), None)


def _answer(form: Formulation, result: MipResult, first: Splits, watch: Watch) -> Answer:
    """The better of the polished answer and the tree to fall back on, with what is known about it."""
    grace = watch.grace()
    tree = _polished(form, result, grace)
    best = _better(form.problem, first, tree)
    objective = evaluate(form.problem, best).objective
    constants, gap = form.constants, watch.limits.gap
    stopped, bound, warnings = honest_bound(
        result, objective, floor=constants.floor, size=form.mip.size, restriction=constants.restriction, gap=gap
    )
    if result.x is not None and tree is None:
        warnings.append(no_tree(grace))
    warnings += _constants_warnings(form, best)
    return Answer(
        splits=best,
        stopped=stopped,
        bound=bound,
        nodes=result.nodes,
        f0=result.f0,
        f1=result.f1,
        restriction=constants.restriction,
        warnings=tuple(warnings),
    )


def no_tree(watch: Watch) -> str:
    """What to say when a solver's answer gave no tree."""
    if watch.over:
        return "there was no time left to make a tree of the solver's answer; kept the start"
    return "no tree routes the samples as the solver's answer does (its tolerances do); kept the start"


def honest_bound(
    result: MipResult, objective: float, *, floor: float, size: float, restriction: str = "", gap: float
) -> tuple[Stopped, float, list[str]]:
    """Why a solver stopped, its bound less its tolerances, and warnings, for a tree of value ``objective``.

    The bound is never below ``floor``, which is known without the solver; ``size`` is the model's hint at what the
    objective is about.  A solver that calls it solved while the tree misses ``gap`` has stalled.
    """
    stopped, bound, warnings = _bound(result, objective, floor, size, restriction)
    if stopped is Stopped.SOLVED and relative_gap(objective, bound) > max(gap, 10 * SAFETY):
        stopped = Stopped.STALLED
        warnings.append(f"the solver calls it solved at {result.objective:.6g}; its tolerances leave this gap")
    return stopped, bound, warnings


def _bound(
    result: MipResult, objective: float, floor: float, size: float, restriction: str
) -> tuple[Stopped, float, list[str]]:
    if not math.isfinite(result.bound):
        return result.stopped, floor, []
    slack = SAFETY * max(objective, abs(result.bound)) + _ABSOLUTE * size
    bound = max(floor, result.bound - slack)
    if bound <= objective + slack:
        return result.stopped, min(bound, objective), []
    if restriction:
        return result.stopped, objective, ["the tree lies outside the constants and below the bound under them"]
    doubt = f"the solver's bound {bound:.10g} contradicts a tree of value {objective:.10g} and was dropped"
    return Stopped.STALLED, floor, [doubt]


def _constants_warnings(form: Formulation, tree: Splits) -> list[str]:
    names = binding(form.problem, form.constants, tree)
    if not names:
        return []
    if form.constants.restriction:
        return [f"the tree touches or exceeds {', '.join(names)}: without these constants a better one may exist"]
    return [f"the tree lies at the derived constants {', '.join(names)}, which cut off no optimum"]
