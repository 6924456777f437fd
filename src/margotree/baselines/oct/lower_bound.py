"""A lower bound on OCT-H that needs no MIP solver."""

from __future__ import annotations

from dataclasses import replace

from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.search import Search
from margotree.engines import RunControl
from margotree.solution import Stopped

#: The largest depth at which the best univariate tree is computed, and its share of the time left.
_DEPTH, _SHARE = 2, 0.1


def oct_h_bound(problem: OctProblem, control: RunControl) -> float:
    """A lower bound on the objective of any tree of OCT-H.

    If all splits of a tree use one feature, its objective is at least that of the best tree of OCT-1.  Otherwise the
    tree uses at least two features, and the penalty is at least ``2 alpha``.
    """
    if not problem.merge_samples(control):
        return 0.0
    if problem.mu is None or not problem.alpha or problem.depth > _DEPTH or control.must_stop() is not None:
        return problem.trivial_bound
    univariate = replace(problem, mu=None)
    found = Search().search(univariate, control.part(_SHARE * control.remaining), None)
    if found.stopped is not Stopped.SOLVED:
        return problem.trivial_bound
    return min(univariate.evaluate(found.splits).objective, problem.trivial_bound + 2.0 * problem.alpha)
