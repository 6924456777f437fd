"""OCT-1 and OCT-H on a MIP solver."""

from __future__ import annotations

from margotree.baselines.mip import RivalMip
from margotree.baselines.oct.milp import OctModel, formulate
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.shape import lay_out, settle
from margotree.problem import Splits


class OctMip(RivalMip[OctProblem]):
    """The source's MILP on one solver."""

    models = frozenset({"oct_1", "oct_h"})

    def first(self, problem: OctProblem, start: Splits | None) -> Splits:
        given = None if start is None else settle(problem, start)
        return lay_out(problem, None) if given is None else given

    def floor(self, problem: OctProblem) -> float:
        return problem.points.irreducible / problem.baseline

    def form(self, problem: OctProblem, value: float) -> OctModel:
        return formulate(problem, size=value)
