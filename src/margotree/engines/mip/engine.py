"""A MIP solver as an engine: formulate, run the adapter, polish whatever comes back, report an honest bound."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from margotree.engines import compiled_parts
from margotree.engines.base import Answer, Engine
from margotree.engines.mip.adapter import Adapter
from margotree.engines.mip.constants import Constants, derived_constants, paper_constants
from margotree.engines.mip.formulation import Formulation, formulate
from margotree.engines.mip.model import MipResult
from margotree.engines.mip.normal_form import binding, normalise
from margotree.engines.mip.result import answer, better, points, run
from margotree.engines.numba_backend import Part
from margotree.engines.polish import polish
from margotree.engines.run_control import RunControl
from margotree.engines.tiny_problems import tiny_problem
from margotree.engines.trivial_trees import trivial_tree
from margotree.problem import Problem, Splits, TrainingProblem, evaluate, topology

BigM = Literal["derived", "paper"]


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

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        return compiled_parts.NODE, Part(f"{__name__}:bound_tiny")

    def search(self, problem: Problem, control: RunControl, start: Splits | None) -> Answer:
        hopeless = self.adapter.hopeless(_entries(problem), control)
        if hopeless is not None:
            tree = trivial_tree(problem) if start is None else start
            return Answer(splits=tree, stopped=hopeless[0], bound=0.0, warnings=hopeless[1:])
        first = _first_tree(problem, start, control)
        value = evaluate(problem, first).objective
        constants = self.constants(problem, value, control.remaining)
        if (reason := control.must_stop()) is not None:
            return Answer(splits=first, stopped=reason, bound=constants.floor, restriction=constants.restriction)
        form = formulate(problem, constants, label_cuts=self.label_cuts, size=value)
        point = None if start is None else form.point(normalise(problem, first))
        result = run(self.adapter, form.mip, control, point)
        return _answer(form, result, first, control)

    def constants(self, problem: Problem, upper: float, time_limit: float = math.inf) -> Constants:
        """The constants of the model, given the value of a known tree."""
        return paper_constants(problem) if self.big_m == "paper" else derived_constants(problem, upper, time_limit)


def bound_tiny() -> None:
    """Call the node kernels, which give the constants and the polish, on a tiny problem."""
    tiny = tiny_problem("margot")
    derived_constants(tiny, evaluate(tiny, _first_tree(tiny, None, RunControl())).objective)


def _first_tree(problem: Problem, start: Splits | None, control: RunControl) -> Splits:
    """A tree to fall back on: the start with its nodes re-solved, or one that sends everybody the same way."""
    tree = trivial_tree(problem) if start is None else start
    support = None if problem.budget is None else tree.w != 0
    return better(problem, tree, polish(problem, evaluate(problem, tree).node, support, control))


def _entries(problem: Problem) -> float:
    """About how many entries the rows of the model have: one per sample and feature at every node, and two more above
    the last level."""
    return float(problem.X.size) * (problem.n_nodes + 2 * len(topology.upper(problem.depth)))


def _polished(form: Formulation, result: MipResult, control: RunControl) -> Splits | None:
    """The exact tree behind the solver's best point, or behind the first of its other points that is one."""
    trees = (polish(form.problem, form.node(x), form.support(x), control) for x in points(result))
    return next((tree for tree in trees if tree is not None), None)


def _answer(form: Formulation, result: MipResult, first: Splits, control: RunControl) -> Answer:
    """The better of the polished answer and the tree to fall back on, with what is known about it."""
    grace, constants = control.grace(), form.constants
    tree = _polished(form, result, grace)
    found = answer(
        form.problem, result, first, [] if tree is None else [tree], grace,
        gap=control.limits.gap, floor=constants.floor, size=form.mip.size, restriction=constants.restriction,
    )  # fmt: skip
    return replace(found, warnings=(*found.warnings, *_constants_warnings(form, found.splits)))


def _constants_warnings(form: Formulation, tree: Splits) -> list[str]:
    names = binding(form.problem, form.constants, tree)
    if not names:
        return []
    if form.constants.restriction:
        return [f"the tree touches or exceeds {', '.join(names)}: without these constants a better one may exist"]
    return [f"the tree lies at the derived constants {', '.join(names)}, which cut off no optimum"]
