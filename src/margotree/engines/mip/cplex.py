"""CPLEX through its Python interface, an optional solver; the community edition from pip solves small models."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from margotree.engines.base import EngineError
from margotree.engines.mip.adapter import HUGE, Adapter, Job, Progress, run_in_thread, why_stopped
from margotree.engines.mip.engine import MipEngine
from margotree.engines.mip.model import MipModel, MipResult
from margotree.engines.run_control import RunControl
from margotree.solution import Stopped

#: CPLEX's status codes (continuous, then MIP).
_STATUS = {
    1: Stopped.SOLVED,
    11: Stopped.TIME,
    13: Stopped.INTERRUPTED,
    101: Stopped.SOLVED,
    102: Stopped.SOLVED,
    105: Stopped.NODES,
    106: Stopped.NODES,
    107: Stopped.TIME,
    108: Stopped.TIME,
    111: Stopped.MEMORY,
    112: Stopped.MEMORY,
    113: Stopped.INTERRUPTED,
    114: Stopped.INTERRUPTED,
}
#: CPLEX's error for a model beyond the community edition, and how many solutions to keep besides the best.
_TOO_LARGE, _KEPT = 1016, 9


class CplexAdapter(Adapter):
    """The adapter for CPLEX."""

    name = "cplex"
    package = "cplex"
    install = 'pip install "margotree[cplex]"'
    kinds = frozenset({"MILP", "MIQP", "MIQCP"})

    def version(self) -> str:
        import cplex

        return str(cplex.__version__)

    def _run(self, job: Job, progress: Progress) -> MipResult:
        import cplex

        try:
            with cplex.Cplex() as model:
                _build(model, job.mip)
                _set_options(model, job)
                if job.start is not None and np.any(job.mip.integer):
                    columns = list(range(job.mip.n_variables))
                    model.MIP_starts.add([columns, job.start.tolist()], model.MIP_starts.effort_level.solve_fixed)
                _register_callback(model, job.mip, progress)
                aborter = model.use_aborter(cplex.Aborter())
                run_in_thread(model.solve, aborter.abort, job.control, progress)
                return _translate(model, job.mip, job.control, progress)
        except cplex.exceptions.CplexSolverError as error:
            raise self._explain(error, job.mip) from error

    def _explain(self, error: Any, mip: MipModel) -> EngineError:
        if len(error.args) > 2 and error.args[2] == _TOO_LARGE:
            return self.licence_error(mip, "the community edition: 1000 variables and 1000 rows")
        return EngineError(f"cplex failed: {error}")


class Cplex(MipEngine):
    """The paper's formulation on CPLEX."""

    name = "cplex"
    models = frozenset({"margot", "hfs", "sfs"})
    adapter = CplexAdapter()


def _build(model: Any, mip: MipModel) -> None:
    """Build the model in CPLEX."""
    for mute in (model.set_log_stream, model.set_results_stream, model.set_warning_stream, model.set_error_stream):
        mute(None)
    low, high = np.maximum(mip.lower, -HUGE), np.minimum(mip.upper, HUGE)
    kinds = "".join(np.where(mip.integer, "I", "C")) if np.any(mip.integer) else ""
    model.variables.add(obj=mip.linear.tolist(), lb=low.tolist(), ub=high.tolist(), types=kinds)
    if np.any(mip.quadratic):
        model.objective.set_quadratic(mip.quadratic.tolist())
    matrix, senses, sides = mip.one_sided()
    rows = [[i, v] for i, v in _pairs(matrix)]
    letters = "".join({"<": "L", ">": "G", "=": "E"}[s] for s in senses)
    model.linear_constraints.add(lin_expr=rows, senses=letters, rhs=sides.tolist())
    balls = zip(_pairs(mip.ball_squares), _pairs(mip.ball_linear), mip.ball_upper.tolist(), strict=True)
    for (squares, halves), linear, upper in balls:
        model.quadratic_constraints.add(
            quad_expr=[squares, squares, [0.5 * v for v in halves]], lin_expr=list(linear), sense="L", rhs=upper
        )


def _pairs(matrix: Any) -> list[tuple[list[int], list[float]]]:
    """Columns and values of every row of a CSR matrix."""
    ends = matrix.indptr.tolist()
    columns, values = matrix.indices.tolist(), matrix.data.tolist()
    return [(columns[a:b], values[a:b]) for a, b in pairwise(ends)]


def _set_options(model: Any, job: Job) -> None:
    """Pass tolerances, limits and seed to CPLEX."""
    parameters = model.parameters
    parameters.simplex.tolerances.feasibility.set(job.mip.tolerance)
    parameters.mip.tolerances.integrality.set(job.mip.tolerance)
    parameters.mip.tolerances.mipgap.set(job.gap)
    parameters.threads.set(job.threads)
    parameters.randomseed.set(job.seed)
    parameters.mip.pool.capacity.set(1 + _KEPT)
    if math.isfinite(job.control.remaining):
        parameters.timelimit.set(job.control.remaining)
    if math.isfinite(job.control.limits.nodes):
        parameters.mip.limits.nodes.set(int(job.control.limits.nodes))
    if math.isfinite(job.control.limits.memory):
        parameters.mip.limits.treememory.set(job.control.limits.memory / 2**20)


def _register_callback(model: Any, mip: MipModel, progress: Progress) -> None:
    """Register a callback that writes CPLEX's bounds into ``progress``."""
    from cplex.callbacks import Context

    class Listener:
        def invoke(self, context: Any) -> None:
            info = context.info
            progress.note(
                incumbent=context.get_double_info(info.best_solution),
                bound=context.get_double_info(info.best_bound),
                nodes=context.get_long_info(info.node_count),
                open_nodes=context.get_long_info(info.nodes_left),
            )

    if np.any(mip.integer):
        model.set_callback(Listener(), Context.id.global_progress)


def _translate(model: Any, mip: MipModel, control: RunControl, progress: Progress) -> MipResult:
    """The result of CPLEX."""
    answer, is_mip = model.solution, bool(np.any(mip.integer))
    found = answer.is_primal_feasible()
    stopped = why_stopped(control, _STATUS.get(answer.get_status(), Stopped.STALLED))
    value = answer.get_objective_value() if found else math.inf
    best = answer.MIP.get_best_objective() if is_mip else (value if stopped is Stopped.SOLVED else -math.inf)
    progress.note(incumbent=value, bound=best, nodes=answer.progress.get_num_nodes_processed())
    points = [np.array(answer.get_values())] if found else []
    if is_mip and found:
        pool = range(answer.pool.get_num())
        ranked = sorted(pool, key=lambda k: answer.pool.get_objective_value(k))
        points += [np.array(answer.pool.get_values(k)) for k in ranked]
    return progress.result(points, stopped)
