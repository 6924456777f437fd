"""The engine of a MIP solver: formulate, run the adapter, polish the points it returns, report a valid bound."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from margotree.engines import compiled_parts
from margotree.engines.base import Answer, Engine
from margotree.engines.mip.adapter import Adapter
from margotree.engines.mip.constants import Constants, derived_constants, paper_constants
from margotree.engines.mip.formulation import Formulation, formulate
from margotree.engines.mip.losses import Losses
from margotree.engines.mip.model import MipResult
from margotree.engines.mip.normal_form import binding, normalise
from margotree.engines.mip.result import answer, better_tree, points, run
from margotree.engines.numba_backend import Part
from margotree.engines.polish import polish
from margotree.engines.run_control import RunControl
from margotree.engines.trivial_trees import trivial_tree
from margotree.problem import Problem, Splits, TrainingProblem, evaluate
from margotree.problem.tiny_problems import tiny_problem

BigM = Literal["derived", "paper"]


class MipEngine(Engine):
    """The mixed-integer formulation of any task on one solver.

    Parameters
    ----------
    big_m : "derived" or "paper"
        The big-M constants: derived ones that cut off no optimum, or the paper's.  With the paper's constants the bound
        holds only for trees that satisfy them.
    label_cuts : bool
        Whether to add the smallest loss of samples routed to the side away from their corner.
    """

    adapter: Adapter
    counts_groups = True

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
        exceeded_limit = self.adapter.exceeded_limit(_entries(problem), control)
        if exceeded_limit is not None:
            tree = trivial_tree(problem) if start is None else start
            return Answer(splits=tree, stopped=exceeded_limit[0], bound=0.0, warnings=exceeded_limit[1:])
        first = _fallback_tree(problem, start, control)
        value = evaluate(problem, first).objective
        constants = self.constants(problem, value, control.remaining)
        if (reason := control.must_stop()) is not None:
            return Answer(splits=first, stopped=reason, bound=constants.lower_bound, restriction=constants.restriction)
        form = formulate(problem, constants, label_cuts=self.label_cuts, size=value)
        point = None if start is None else form.point(*normalise(problem, first))
        result = run(self.adapter, form.mip, control, point)
        return _answer(form, result, first, control)

    def constants(self, problem: Problem, upper: float, time_limit: float = math.inf) -> Constants:
        """The constants of the model, given the objective ``upper`` of a known tree."""
        return paper_constants(problem) if self.big_m == "paper" else derived_constants(problem, upper, time_limit)


def bound_tiny() -> None:
    """Call the node kernels, which compute the constants and polish trees, on a tiny problem."""
    tiny = tiny_problem("margot")
    derived_constants(tiny, evaluate(tiny, _fallback_tree(tiny, None, RunControl())).objective)


def _fallback_tree(problem: Problem, start: Splits | None, control: RunControl) -> Splits:
    """The tree that is returned if the solver finds no better one: the start, or the constant tree, polished."""
    tree = trivial_tree(problem) if start is None else start
    support, found = None if problem.budget is None else tree.w != 0, evaluate(problem, tree)
    return better_tree(problem, tree, polish(problem, found.node, support, control, choices=found.choices))


def _entries(problem: Problem) -> float:
    """The approximate number of entries of the model's rows.

    There is one per loss and feature at every node, and two per sample and feature above the last level.
    """
    losses = Losses.of(problem)
    rows = sum(len(losses.at(t).rows) for t in range(problem.n_nodes)) + 2 * problem.n_upper * problem.n_samples
    return float(problem.n_features * rows)


def _polished(form: Formulation, result: MipResult, control: RunControl) -> Splits | None:
    """The polished tree of the solver's best point, or of the first other point that has one."""
    trees = (
        polish(form.problem, form.node(x), form.support(x), control, choices=form.choices(x)) for x in points(result)
    )
    return next((tree for tree in trees if tree is not None), None)


def _answer(form: Formulation, result: MipResult, first: Splits, control: RunControl) -> Answer:
    """The better of the polished tree and the fallback tree ``first``, with bound and warnings."""
    grace, constants = control.grace(), form.constants
    tree = _polished(form, result, grace)
    found = answer(
        form.problem, result, first, [] if tree is None else [tree], grace,
        gap=control.limits.gap, lower_bound=constants.lower_bound, size=form.mip.size,
        restriction=constants.restriction,
    )  # fmt: skip
    return replace(found, warnings=(*found.warnings, *_constants_warnings(form, found.splits)))


def _constants_warnings(form: Formulation, tree: Splits) -> list[str]:
    """Warnings about the constants that the tree touches or exceeds."""
    names = binding(form.problem, form.constants, tree)
    if not names:
        return []
    if form.constants.restriction:
        return [f"the tree is at or beyond the constants {', '.join(names)}: without them a better one may exist"]
    return [f"the tree is at the derived constants {', '.join(names)}, which cut off no optimum"]
