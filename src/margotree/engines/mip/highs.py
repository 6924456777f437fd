"""HiGHS through highspy: linear objectives only, for the MILP models of baselines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from margotree.engines.mip.adapter import Adapter, Job, Progress, run_in_thread, why_stopped
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
    """The adapter for HiGHS."""

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
            _set_start(solver, job.start)
        _register_callback(solver, progress)
        if not run_in_thread(solver.run, solver.cancelSolve, job.control, progress, abandon=True):
            return progress.result_so_far(job.control)
        return _translate(solver, job.control, progress)


class Highs(MipEngine):
    """HiGHS as an engine for trees: it refuses all of them, since it solves MILP or QP but not MIQP."""

    name = "highs"
    models = frozenset()
    adapter = HighsAdapter()

    def refuses(self, problem: Problem) -> str | None:
        return f"highs does not solve {problem.model} problems: they are MIQP, and it solves MILP only"


def _build(mip: MipModel) -> Any:
    """The model in HiGHS."""
    import highspy

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    # One call with whole arrays: one object per entry took longer than typical time limits.
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
    """Pass tolerances, limits and seed to HiGHS."""
    solver.setOptionValue("mip_feasibility_tolerance", job.mip.tolerance)
    solver.setOptionValue("mip_rel_gap", job.gap)
    solver.setOptionValue("threads", job.threads)
    solver.setOptionValue("random_seed", job.seed)
    if math.isfinite(job.control.remaining):
        solver.setOptionValue("time_limit", job.control.remaining)
    if math.isfinite(job.control.limits.nodes):
        solver.setOptionValue("mip_max_nodes", int(job.control.limits.nodes))


def _set_start(solver: Any, start: FloatArray) -> None:
    """Pass a first solution to HiGHS."""
    import highspy

    solution = highspy.HighsSolution()
    solution.col_value = start.tolist()
    solver.setSolution(solution)


def _register_callback(solver: Any, progress: Progress) -> None:
    """Register callbacks that write HiGHS' bounds into ``progress`` and stop it on request."""

    def update(event: Any) -> None:
        data = event.data_out
        progress.note(incumbent=data.mip_primal_bound, bound=data.mip_dual_bound, nodes=data.mip_node_count)

    def improved(event: Any) -> None:
        update(event)
        progress.best = np.array(event.data_out.mip_solution)

    solver.HandleUserInterrupt = True
    solver.cbMipImprovingSolution += improved
    solver.cbMipInterrupt += update


def _translate(solver: Any, control: RunControl, progress: Progress) -> MipResult:
    """The result of HiGHS."""
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
