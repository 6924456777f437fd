"""From a solver's result to a tree and a valid bound, for all MIP engines."""

from __future__ import annotations

import math
from collections.abc import Sequence

from margotree.engines.base import Answer
from margotree.engines.mip.adapter import Adapter
from margotree.engines.mip.model import FloatArray, MipModel, MipResult
from margotree.engines.run_control import RunControl
from margotree.problem import Splits, TrainingProblem
from margotree.solution import Stopped, relative_gap

#: Share of a solver's bound that is subtracted for its tolerances (about 1e-6 on rows, 1e-7 on reduced costs).
SAFETY = 2e-6

#: The same for absolute errors, as a share of the size by which the objective is scaled.
_ABSOLUTE = 1e-9


def run(adapter: Adapter, mip: MipModel, control: RunControl, start: FloatArray | None) -> MipResult:
    """Solve a model within a run control, to a slightly smaller gap than requested.

    `SAFETY` is subtracted from the bound later.
    """
    limits = control.limits
    gap = max(0.0, limits.gap - 2 * SAFETY)
    return adapter.run(mip, control=control, gap=gap, threads=limits.n_jobs, start=start, seed=limits.seed)


def points(result: MipResult) -> list[FloatArray]:
    """The solver's points, the best one first; empty if it found none."""
    return [] if result.x is None else [result.x, *result.others]


def better_tree(problem: TrainingProblem, tree: Splits, other: Splits | None) -> Splits:
    """The other tree if it is allowed and has a smaller objective, else the first one."""
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
    lower_bound: float,
    size: float,
    restriction: str = "",
) -> Answer:
    """The best of the trees made from the solver's points and the fallback tree, with bound and warnings.

    Parameters
    ----------
    result : MipResult
        The solver's result.
    first : Splits
        The fallback tree.
    trees : sequence of Splits
        The trees made from the solver's points.
    grace : RunControl
        The run control within which they were made.
    gap, lower_bound, size, restriction
        As in `safe_bound`.
    """
    best = first
    for tree in trees:
        best = better_tree(problem, best, tree)
    objective = problem.evaluate(best).objective
    stopped, bound, warnings = safe_bound(
        result, objective, lower_bound=lower_bound, size=size, restriction=restriction, gap=gap
    )
    if result.x is not None and not trees:
        warnings.append(no_tree_warning(grace))
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


def no_tree_warning(control: RunControl) -> str:
    """The warning that no point of the solver gave a tree."""
    if control.over:
        return "no time was left to polish the solver's tree; the start is kept"
    return "no tree routes the samples as the solver's solution, valid within its tolerances, does; the start is kept"


def safe_bound(
    result: MipResult, objective: float, *, lower_bound: float, size: float, restriction: str = "", gap: float
) -> tuple[Stopped, float, list[str]]:
    """Why the solver stopped, its bound less its tolerances, and warnings, for a tree with this ``objective``.

    Parameters
    ----------
    lower_bound : float
        A bound known without the solver; the returned bound is at least this.
    size : float
        The approximate objective that the model is scaled by.
    restriction : str
        The restriction under which the model was solved, if any.
    gap : float
        The target; if the solver claims to be done while the tree misses this gap, it has stalled.
    """
    stopped, bound, warnings = _checked_bound(result, objective, lower_bound, size, restriction)
    if stopped is Stopped.SOLVED and relative_gap(objective, bound) > max(gap, 10 * SAFETY):
        stopped = Stopped.STALLED
        warnings.append(f"the solver stopped as optimal at {result.objective:.6g}; its tolerances leave this gap")
    return stopped, bound, warnings


def _checked_bound(
    result: MipResult, objective: float, lower_bound: float, size: float, restriction: str
) -> tuple[Stopped, float, list[str]]:
    """The solver's bound if it does not contradict the objective of the tree, with a reason to stop and warnings."""
    if not math.isfinite(result.bound):
        return result.stopped, lower_bound, []
    slack = SAFETY * max(objective, abs(result.bound)) + _ABSOLUTE * size
    bound = max(lower_bound, result.bound - slack)
    if bound <= objective + slack:
        return result.stopped, min(bound, objective), []
    if restriction:
        return result.stopped, objective, ["the tree violates the constants; its objective is below the solver's bound"]
    doubt = f"the solver's bound {bound:.10g} contradicts a tree of objective {objective:.10g} and is not used"
    return Stopped.STALLED, lower_bound, [doubt]
