"""OCT-1 and OCT-H on a MIP solver."""

from __future__ import annotations

from margotree.baselines.mip import RivalMip
from margotree.baselines.oct.improve import improve
from margotree.baselines.oct.lower_bound import floor
from margotree.baselines.oct.milp import OctModel, formulate
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.search import KERNELS
from margotree.baselines.oct.tree_cleanup import lay_out, settle
from margotree.engines import RunControl
from margotree.engines.numba_backend import Part
from margotree.problem import Splits, TrainingProblem

#: The local search's share of the time left, and its most in seconds.
_SHARE, _MOST = 0.25, 60.0


class OctMip(RivalMip[OctProblem]):
    """The source's MILP on one solver."""

    models = frozenset({"oct_1", "oct_h"})

    def first(self, problem: OctProblem, start: Splits | None, control: RunControl) -> Splits:
        given = None if start is None or not problem.read(control) else settle(problem, start, control)
        return lay_out(problem, None) if given is None else given

    def improve(self, problem: OctProblem, tree: Splits, control: RunControl) -> Splits:
        if problem.mu is None:
            return tree  # univariate starts are good already, and "search" finds the best
        hopeless = self.adapter.hopeless(self.entries(problem), control) is not None
        part = control if hopeless else control.part(min(_MOST, _SHARE * control.remaining))

        def tell(value: float) -> None:
            control.report(self.name, incumbent=value, bound=problem.floor, message="local search")

        return improve(problem, tree, control=part, tell=tell, seed=control.limits.seed)

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        return (KERNELS,) if problem.model == "oct_h" else ()  # for the lower bound

    def floor(self, problem: OctProblem, control: RunControl) -> float:
        return floor(problem, control)

    def entries(self, problem: OctProblem) -> float:
        """Two rows per point and node, with the features and for OCT-H their ranks."""
        return 2.0 * problem.n_nodes * problem.points.X.size * (1 if problem.mu is None else 2)

    def form(self, problem: OctProblem, value: float) -> OctModel:
        return formulate(problem, size=value)
