"""A lower bound on OCT-H that needs no MIP solver."""

from __future__ import annotations

from dataclasses import replace

from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.search import Search
from margotree.engines import RunControl
from margotree.solution import Stopped

#: Up to this depth the best univariate tree takes next to no time; its share of the time left at most.
_DEPTH, _SHARE = 2, 0.1


def floor(problem: OctProblem, control: RunControl) -> float:
    """What every tree of OCT-H is worth at least.

    Either all of its splits are by one feature, then it is worth no less than the best tree of OCT-1; or one of them is
    by several, then at least two features are paid for.
    """
    if not problem.read(control):
        return 0.0
    if problem.mu is None or not problem.alpha or problem.depth > _DEPTH or control.must_stop() is not None:
        return problem.floor
    univariate = replace(problem, mu=None)
    found = Search().search(univariate, control.part(_SHARE * control.remaining), None)
    if found.stopped is not Stopped.SOLVED:
        return problem.floor
    return min(univariate.evaluate(found.splits).objective, problem.floor + 2.0 * problem.alpha)
