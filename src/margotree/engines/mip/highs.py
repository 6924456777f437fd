"""HiGHS through highspy: linear objectives only, for the rivals' MILP models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from margotree.engines.mip.adapter import Adapter, Job, Progress, run_watched, why_stopped
from margotree.engines.mip.engine import MipEngine
from margotree.engines.mip.model import FloatArray, MipModel, MipResult
from margotree.engines.run_control import RunControl
from margotree.problem import Problem
from margotree.solution import Stopped

_STATUS = {
    "kOptimal": Stopped.SOLVED,
    "kTimeLimit": Stopped.TIME,
    "kSolutionLimit": Stopped.NODES,
    "kMemoryLimit": Stopped.MEMORY,
    "kInterrupt": Stopped.INTERRUPTED,
}


class HighsAdapter(Adapter):
    name = "highs"
    package = "highspy"
    install = 'pip install "margotree[mip]"'
    kinds = frozenset({"MILP"})

    def version(self) -> str:
        import highspy

        return str(highspy.Highs().version())

    def _run(self, job: Job, progress: Progress) -> MipResult:
        solver = _build(job.mip)
        _set_options(solver, job)
        if job.start is not None:
            _offer(solver, job.start)
        _listen(solver, progress)
        if not run_watched(solver.run, solver.cancelSolve, job.control, progress, leave=True):
            return progress.left_behind(job.control)
        return _translate(solver, job.control, progress)


class Highs(MipEngine):
    """HiGHS as an engine for trees: it refuses them all, since it takes whole variables or squares but not both."""

    name = "highs"
    models = frozenset()
    adapter = HighsAdapter()

    def refuses(self, problem: Problem) -> str | None:
        return f"highs does not solve {problem.model} problems: they are MIQP, and it takes MILP only"


def _build(mip: MipModel) -> Any:
    import highspy

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    # All in one call with whole arrays: an object for every entry took longer than many a time limit.
    solver.passModel(
        mip.n_variables,
        len(mip.row_lower),
        mip.rows.nnz,
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        0.0,
        mip.linear,
        mip.lower,
        mip.upper,
        mip.row_lower,
        mip.row_upper,
        mip.rows.indptr.astype(np.int32),
        mip.rows.indices.astype(np.int32),
        mip.rows.data,
        mip.integer.astype(np.int32),
    )
    return solver


def _set_options(solver: Any, job: Job) -> None:
    solver.setOptionValue("mip_feasibility_tolerance", job.mip.tolerance)
    solver.setOptionValue("mip_rel_gap", job.gap)
    solver.setOptionValue("threads", job.threads)
    solver.setOptionValue("random_seed", job.seed)
    if math.isfinite(job.control.remaining):
        solver.setOptionValue("time_limit", job.control.remaining)
    if math.isfinite(job.control.limits.nodes):
        solver.setOptionValue("mip_max_nodes", int(job.control.limits.nodes))


def _offer(solver: Any, start: FloatArray) -> None:
    import highspy

    solution = highspy.HighsSolution()
    solution.col_value = start.tolist()
    solver.setSolution(solution)


def _listen(solver: Any, progress: Progress) -> None:
    """Have HiGHS write its bounds into ``progress``, and look for a request to stop, while it searches."""

    def heard(event: Any) -> None:
        data = event.data_out
        progress.note(incumbent=data.mip_primal_bound, bound=data.mip_dual_bound, nodes=data.mip_node_count)

    def improved(event: Any) -> None:
        heard(event)
        progress.best = np.array(event.data_out.mip_solution)

    solver.HandleUserInterrupt = True
    solver.cbMipImprovingSolution += improved
    solver.cbMipInterrupt += heard


def _translate(solver: Any, control: RunControl, progress: Progress) -> MipResult:
    import highspy

    info = solver.getInfo()
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    is_mip = any(t == highspy.HighsVarType.kInteger for t in solver.getLp().integrality_)
    stopped = why_stopped(control, _STATUS.get(solver.getModelStatus().name, Stopped.STALLED))
    bound = info.mip_dual_bound if is_mip else info.objective_function_value
    progress.note(
        incumbent=info.objective_function_value if found else math.inf,
        bound=bound if is_mip or stopped is Stopped.SOLVED else -math.inf,
        nodes=max(0, info.mip_node_count),
    )
    points = [np.array(solver.getSolution().col_value)] if found else []
    return progress.result(points, stopped)
