"""The engine for MM-SVM-OCT: a MIP solver that supports second-order cones."""

from __future__ import annotations

from margotree.baselines.mip import BaselineMip
from margotree.baselines.mmsvm.miqcp import MmSvmModel, formulate
from margotree.baselines.mmsvm.problem import MmSvmProblem
from margotree.baselines.mmsvm.start import best_polished_tree, constant_tree
from margotree.engines import RunControl
from margotree.engines.node.svm import solve_node
from margotree.problem import Splits, topology

#: The share of the remaining time for the first lower bound.
_SHARE = 0.1


class MmSvmMip(BaselineMip[MmSvmProblem]):
    """The mixed-integer model of Blanco, Japon and Puerto, solved by one solver."""

    models = frozenset({"mm_svm_oct"})

    def initial_tree(self, problem: MmSvmProblem, start: Splits | None, control: RunControl) -> Splits:
        if start is None:
            return constant_tree(problem)
        return start if problem.evaluate(start).feasible else best_polished_tree(problem, start, control)

    def lower_bound(self, problem: MmSvmProblem, control: RunControl) -> float:
        """The bound of the SVM at the root: all samples reach it, and its ``1/2 |w|^2`` is at most ``delta``."""
        if problem.c2 is not None:
            return 0.0
        margin = problem.margin
        found = solve_node(margin.X, margin.y, problem.c1 * margin.weight, time_limit=_SHARE * control.remaining)
        return max(0.0, float(found.bound))

    def n_entries(self, problem: MmSvmProblem) -> float:
        """The entries of one row per sample and node, and of two more per sample and upper node, with all features."""
        return float(problem.margin.X.size) * (problem.n_nodes + 2 * len(topology.upper(problem.depth)))

    def mip_form(self, problem: MmSvmProblem, value: float) -> MmSvmModel:
        return formulate(problem, value)
