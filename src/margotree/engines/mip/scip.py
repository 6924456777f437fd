"""SCIP through PySCIPOpt, the open-source solver for the paper's MIQP."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np

from margotree.engines.mip.adapter import HUGE, Adapter, Job, Progress, run_in_thread, why_stopped
from margotree.engines.mip.engine import MipEngine
from margotree.engines.mip.model import FloatArray, MipModel, MipResult
from margotree.engines.run_control import RunControl
from margotree.solution import Stopped

_STATUS = {
    "optimal": Stopped.SOLVED,
    "gaplimit": Stopped.SOLVED,
    "timelimit": Stopped.TIME,
    "nodelimit": Stopped.NODES,
    "totalnodelimit": Stopped.NODES,
    "memlimit": Stopped.MEMORY,
    "userinterrupt": Stopped.INTERRUPTED,
}

#: Rows built between two checks of the limits, and solutions kept besides the best.
_BATCH, _KEPT = 256, 10


class ScipAdapter(Adapter):
    """The adapter for SCIP."""

    name = "scip"
    package = "pyscipopt"
    install = 'pip install "margotree[mip]"'
    kinds = frozenset({"MILP", "MIQP", "MIQCP"})
    at_root = 1
    entries_per_second = 1e6

    def version(self) -> str:
        import pyscipopt

        model = pyscipopt.Model()
        return f"{model.getMajorVersion()}.{model.getMinorVersion()}.{model.getTechVersion()}"

    def _run(self, job: Job, progress: Progress) -> MipResult:
        built = _build(job.mip, job.control)
        if built is None:
            return MipResult(x=None, stopped=job.control.must_stop() or Stopped.TIME)
        model, variables = built
        _set_options(model, job)
        if job.start is not None:
            _set_start(model, job.mip, variables, job.start)
        _register_callback(model, progress)
        if not run_in_thread(model.optimizeNogil, lambda: _interrupt(model), job.control, progress, abandon=True):
            return progress.result_so_far(job.control)
        return _translate(model, variables, job.control, progress)


class Scip(MipEngine):
    """The paper's formulation on SCIP."""

    name = "scip"
    models = frozenset({"margot", "hfs", "sfs"})
    adapter = ScipAdapter()


def _build(mip: MipModel, control: RunControl) -> tuple[Any, list[Any]] | None:
    """The model in SCIP; None if the time ran out before it was built."""
    import pyscipopt

    model = pyscipopt.Model()
    model.hideOutput()
    low, high, cost = _finite(mip.lower), _finite(mip.upper), mip.linear.tolist()
    kinds = ["I" if whole else "C" for whole in mip.integer]
    for binary in np.flatnonzero(mip.integer & (mip.lower == 0.0) & (mip.upper == 1.0)):
        kinds[binary] = "B"
    variables: list[Any] = []
    for j in range(mip.n_variables):
        if j % _BATCH == 0 and control.over:
            return None
        variables.append(model.addVar(f"x{j}", vtype=kinds[j], lb=low[j], ub=high[j], obj=cost[j]))
    terms = [pyscipopt.scip.Term(v) for v in variables]
    for k in range(len(mip.row_lower)):
        if k % _BATCH == 0 and control.must_stop() is not None:
            return None
        row = {terms[i]: v for i, v in _entries(mip.rows, k)}
        model.addCons(_between(row, mip.row_lower[k], mip.row_upper[k]))
    _add_squares(model, mip, variables)
    return model, variables


def _add_squares(model: Any, mip: MipModel, variables: list[Any]) -> None:
    """Add the quadratic objective through epigraph variables ``q_j >= 1/2 quadratic_j x_j^2``, and the quadratic rows.

    SCIP accepts no quadratic objective.  One epigraph variable per square and one for their sum give the same bounds;
    the single squares are a little faster on most real data sets (docs/mip.md).
    """
    from pyscipopt.scip import Expr, ExprCons, Term

    for j in np.flatnonzero(mip.quadratic):
        q = model.addVar(f"q{j}", lb=0.0, ub=None, obj=1.0)
        square = {Term(variables[j], variables[j]): 0.5 * float(mip.quadratic[j]), Term(q): -1.0}
        model.addCons(ExprCons(Expr(square), rhs=0.0))
    for k, upper in enumerate(mip.ball_upper):
        row = {Term(variables[i], variables[i]): 0.5 * v for i, v in _entries(mip.ball_squares, k)}
        row |= {Term(variables[i]): v for i, v in _entries(mip.ball_linear, k)}
        model.addCons(ExprCons(Expr(row), rhs=float(upper)))


def _entries(matrix: Any, k: int) -> list[tuple[int, float]]:
    """Columns and values of row ``k``."""
    a, b = matrix.indptr[k : k + 2]
    return list(zip(matrix.indices[a:b].tolist(), matrix.data[a:b].tolist(), strict=True))


def _between(row: dict[Any, float], lower: float, upper: float) -> Any:
    """The constraint ``lower <= row <= upper``."""
    from pyscipopt.scip import Expr, ExprCons

    sides = {}
    if lower > -HUGE:
        sides["lhs"] = float(lower)
    if upper < HUGE:
        sides["rhs"] = float(upper)
    return ExprCons(Expr(row), **sides)


def _finite(bound: FloatArray) -> list[float | None]:
    """Bounds with None for infinity."""
    return [float(v) if abs(v) < HUGE else None for v in bound]


def _set_options(model: Any, job: Job) -> None:
    """Pass tolerances, limits and seed to SCIP."""
    # its LP solver supports 1e-10 and prints errors below; in numerical trouble SCIP requests a thousandth of this
    tolerance = max(job.mip.tolerance, 1e-7)
    model.setParam("numerics/feastol", tolerance)
    model.setParam("constraints/nonlinear/tightenlpfeastol", tolerance > 1e-7)
    # the run control handles Ctrl-C; SCIP's handler would replace it
    model.setParam("misc/catchctrlc", False)
    # only heuristics use the NLP relaxation, and the Ipopt in some ARM wheels crashes with illegal instructions
    model.setParam("nlp/disable", True)
    model.setParam("randomization/randomseedshift", job.seed)
    # SCIP measures the gap against the smaller of both bounds, so its gap is never below the certificate's
    model.setParam("limits/gap", job.gap)
    # on these big-M rows it takes up to two thirds of the time without a benefit (docs/mip.md)
    model.setParam("separating/aggregation/freq", -1)
    if math.isfinite(job.control.remaining):
        model.setParam("limits/time", job.control.remaining)
    if math.isfinite(job.control.limits.nodes):
        model.setParam("limits/totalnodes", int(job.control.limits.nodes))
    if math.isfinite(job.control.limits.memory):
        model.setParam("limits/memory", job.control.limits.memory / 2**20)


def _set_start(model: Any, mip: MipModel, variables: list[Any], start: FloatArray) -> None:
    """Pass a first solution to SCIP."""
    solution = model.createSol()
    for v, value in zip(variables, start.tolist(), strict=True):
        model.setSolVal(solution, v, value)
    squares = np.flatnonzero(mip.quadratic)
    epigraph = model.getVars()[mip.n_variables :]
    for q, j in zip(epigraph, squares, strict=True):
        model.setSolVal(solution, q, 0.5 * float(mip.quadratic[j]) * float(start[j]) ** 2)
    model.addSol(solution)


def _register_callback(model: Any, progress: Progress) -> None:
    """Register a callback that writes SCIP's bounds into ``progress`` at every solution and node."""
    from pyscipopt import SCIP_EVENTTYPE, SCIP_STAGE, Eventhdlr

    events = SCIP_EVENTTYPE.BESTSOLFOUND | SCIP_EVENTTYPE.NODESOLVED | SCIP_EVENTTYPE.LPSOLVED

    class Listener(Eventhdlr):
        def eventinit(self) -> None:
            self.model.catchEvent(events, self)

        def eventexec(self, event: Any) -> None:
            m = self.model
            left = m.getNNodesLeft() if m.getStage() == SCIP_STAGE.SOLVING else 0
            progress.note(
                incumbent=m.getPrimalbound(),
                bound=m.getDualbound(),
                nodes=m.getNTotalNodes(),
                open_nodes=left,
            )

    model.includeEventhdlr(Listener(), "margotree", "passes progress on")


def _interrupt(model: Any) -> None:
    """Ask SCIP to stop; it accepts this only from presolving until it is done."""
    from pyscipopt import SCIP_STAGE

    if SCIP_STAGE.PRESOLVING <= model.getStage() <= SCIP_STAGE.SOLVED:
        with suppress(Exception):  # the stage may have changed in the meantime; the caller repeats the request
            model.interruptSolve()


def _translate(model: Any, variables: list[Any], control: RunControl, progress: Progress) -> MipResult:
    """The result of SCIP."""
    points: list[FloatArray] = []
    for solution in model.getSols()[: 1 + _KEPT]:
        if points and control.over:
            break  # no time for more than the best
        points.append(np.array([model.getSolVal(solution, v) for v in variables]))
    stopped = why_stopped(control, _STATUS.get(model.getStatus(), Stopped.STALLED))
    progress.note(
        incumbent=model.getPrimalbound() if points else math.inf,
        bound=model.getDualbound(),
        nodes=model.getNTotalNodes(),
    )
    return progress.result(points, stopped)
