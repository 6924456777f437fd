"""The engine for OCT-1 and OCT-H: a MIP solver, after a local search for OCT-H."""

from __future__ import annotations

from margotree.baselines.mip import BaselineMip
from margotree.baselines.oct.improve import improve
from margotree.baselines.oct.lower_bound import oct_h_bound
from margotree.baselines.oct.milp import OctModel, formulate
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.search import KERNELS
from margotree.baselines.oct.tree_cleanup import clean_tree, numbered_splits
from margotree.engines import RunControl
from margotree.engines.numba_backend import Part
from margotree.problem import Splits, TrainingProblem

#: The share of the remaining time for the local search, and its largest time in seconds.
_SHARE, _MAX_SECONDS = 0.25, 60.0


class OctMip(BaselineMip[OctProblem]):
    """The MILP of Bertsimas and Dunn (see :mod:`margotree.baselines.oct.milp`), solved by one solver."""

    models = frozenset({"oct_1", "oct_h"})

    def initial_tree(self, problem: OctProblem, start: Splits | None, control: RunControl) -> Splits:
        given = None if start is None or not problem.merge_samples(control) else clean_tree(problem, start, control)
        return numbered_splits(problem, None) if given is None else given

    def improve(self, problem: OctProblem, tree: Splits, control: RunControl) -> Splits:
        if problem.mu is None:
            return tree  # the engine "search" finds the best univariate tree
        abandoned = self.adapter.exceeded_limit(self.n_entries(problem), control) is not None
        part = control if abandoned else control.part(min(_MAX_SECONDS, _SHARE * control.remaining))

        def report(value: float) -> None:
            control.report(self.name, incumbent=value, bound=problem.trivial_bound, message="local search")

        return improve(problem, tree, control=part, report=report, seed=control.limits.seed)

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        return (KERNELS,) if problem.model == "oct_h" else ()  # for the lower bound

    def lower_bound(self, problem: OctProblem, control: RunControl) -> float:
        return oct_h_bound(problem, control)

    def n_entries(self, problem: OctProblem) -> float:
        """The entries of two rows per point and node, with the features and for OCT-H also their ranks."""
        return 2.0 * problem.n_nodes * problem.points.X.size * (1 if problem.mu is None else 2)

    def mip_form(self, problem: OctProblem, value: float) -> OctModel:
        return formulate(problem, size=value)
