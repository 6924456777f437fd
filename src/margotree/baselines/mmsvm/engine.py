"""MM-SVM-OCT on a MIP solver that takes second-order cones."""

from __future__ import annotations

from margotree.baselines.mip import RivalMip
from margotree.baselines.mmsvm.miqcp import MmSvmModel, formulate
from margotree.baselines.mmsvm.problem import MmSvmProblem
from margotree.baselines.mmsvm.start import adopt, constant_offsets
from margotree.engines import RunControl
from margotree.engines.node.svm import solve_node
from margotree.problem import Splits, topology

#: The share of the time left for a first bound.
_SHARE = 0.1


class MmSvmMip(RivalMip[MmSvmProblem]):
    """The source's model on one solver."""

    models = frozenset({"mm_svm_oct"})

    def first(self, problem: MmSvmProblem, start: Splits | None, control: RunControl) -> Splits:
        if start is None:
            return constant_offsets(problem)
        return start if problem.evaluate(start).feasible else adopt(problem, start, control)

    def floor(self, problem: MmSvmProblem, control: RunControl) -> float:
        """Everybody pays at the root, whose own ``1/2 |w|^2`` bounds ``delta`` from below: an SVM."""
        if problem.c2 is not None:
            return 0.0
        margin = problem.margin
        found = solve_node(margin.X, margin.y, problem.c1 * margin.weight, time_limit=_SHARE * control.remaining)
        return max(0.0, float(found.bound))

    def entries(self, problem: MmSvmProblem) -> float:
        """One row per sample and node, two more per sample above the last level, with all features."""
        return float(problem.margin.X.size) * (problem.n_nodes + 2 * len(topology.upper(problem.depth)))

    def form(self, problem: MmSvmProblem, value: float) -> MmSvmModel:
        return formulate(problem, value)
