"""What all MIP engines share: a run within limits, and the conversion of a solver's result to a tree and a valid bound."""

from __future__ import annotations

import math
from collections.abc import Sequence

from margotree.engines.base import Answer
from margotree.engines.mip.adapter import Adapter
from margotree.engines.mip.model import FloatArray, MipModel, MipResult
from margotree.engines.run_control import RunControl
from margotree.problem import Splits, TrainingProblem
from margotree.solution import Stopped, relative_gap

#: Share of a solver's bound given up for its tolerances (about 1e-6 on rows, 1e-7 on reduced costs).
SAFETY = 2e-6

#: The same for what the tolerances let through in absolute terms, as a share of the size the objective is scaled by.
_ABSOLUTE = 1e-9


def run(adapter: Adapter, mip: MipModel, control: RunControl, start: FloatArray | None) -> MipResult:
    """Have a model solved within a run control, a shade closer than asked for, so that tolerances can be given up."""
    limits = control.limits
    gap = max(0.0, limits.gap - 2 * SAFETY)
    return adapter.run(mip, control=control, gap=gap, threads=limits.n_jobs, start=start, seed=limits.seed)


def points(result: MipResult) -> list[FloatArray]:
    """The solver's best point, if it has one, and its others."""
    return [] if result.x is None else [result.x, *result.others]


def better(problem: TrainingProblem, tree: Splits, other: Splits | None) -> Splits:
    """The other tree if there is one that is allowed and worth less."""
    if other is None:
        return tree
    found = problem.evaluate(other)
    return other if found.feasible and found.objective < problem.evaluate(tree).objective else tree


def answer(
    problem: TrainingProblem,
    result: MipResult,
    first: Splits,
    trees: Sequence[Splits],
    grace: RunControl,
    *,
    gap: float,
    floor: float,
    size: float,
    restriction: str = "",
) -> Answer:
    """The best of the trees made of the solver's points and the one to fall back on, with what is known about it.

    ``grace`` is the run control they were made within; see `honest_bound` for the numbers.
    """
    best = first
    for tree in trees:
        best = better(problem, best, tree)
    objective = problem.evaluate(best).objective
    stopped, bound, warnings = honest_bound(result, objective, floor=floor, size=size, restriction=restriction, gap=gap)
    if result.x is not None and not trees:
        warnings.append(no_tree(grace))
    return Answer(
        splits=best,
        stopped=stopped,
        bound=bound,
        nodes=result.nodes,
        f0=result.f0,
        f1=result.f1,
        restriction=restriction,
        warnings=tuple(warnings),
    )


def no_tree(control: RunControl) -> str:
    """What to say when a solver's answer gave no tree."""
    if control.over:
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
