"""Gurobi through gurobipy, an optional solver; the paper's results were computed with it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from margotree.engines.base import EngineError
from margotree.engines.mip.adapter import Adapter, Job, Progress, run_in_thread, why_stopped
from margotree.engines.mip.engine import MipEngine
from margotree.engines.mip.model import MipModel, MipResult
from margotree.engines.run_control import RunControl
from margotree.solution import Stopped

#: Gurobi's status codes.
_STATUS = {
    2: Stopped.SOLVED,
    8: Stopped.NODES,
    9: Stopped.TIME,
    11: Stopped.INTERRUPTED,
    17: Stopped.MEMORY,
}
#: Gurobi's licence errors, and how many solutions to keep besides the best.
_TOO_LARGE, _NO_LICENCE, _KEPT = 10010, 10009, 9


class GurobiAdapter(Adapter):
    """The adapter for Gurobi."""

    name = "gurobi"
    package = "gurobipy"
    install = 'pip install "margotree[gurobi]"'
    kinds = frozenset({"MILP", "MIQP", "MIQCP"})

    def version(self) -> str:
        import gurobipy

        return ".".join(map(str, gurobipy.gurobi.version()))

    def _run(self, job: Job, progress: Progress) -> MipResult:
        import gurobipy

        try:
            with _environment(gurobipy) as env, gurobipy.Model(env=env) as model:
                x = _build(model, job.mip)
                _set_options(model, job)
                if job.start is not None:
                    x.Start = job.start
                run_in_thread(lambda: model.optimize(_callback(progress)), model.terminate, job.control, progress)
                return _translate(model, job.mip, job.control, progress)
        except gurobipy.GurobiError as error:
            raise self._explain(error, job.mip) from error

    def _explain(self, error: Any, mip: MipModel) -> EngineError:
        if error.errno == _TOO_LARGE:
            return self.licence_error(mip, "the pip licence: 2000 variables and rows, 200 with quadratic terms")
        if error.errno == _NO_LICENCE:
            return EngineError(f"gurobi has no valid licence on this machine: {error}")
        return EngineError(f"gurobi failed: {error}")


class Gurobi(MipEngine):
    """The paper's formulation on Gurobi, the paper's solver."""

    name = "gurobi"
    models = frozenset({"margot", "hfs", "sfs"})
    adapter = GurobiAdapter()


def _environment(gurobipy: Any) -> Any:
    """A Gurobi environment without output."""
    env = gurobipy.Env(empty=True)
    env.setParam("OutputFlag", 0)
    env.start()
    return env


def _build(model: Any, mip: MipModel) -> Any:
    """Build the model in Gurobi; returns its variables."""
    kinds = np.where(mip.integer, "I", "C")
    x = model.addMVar(mip.n_variables, lb=mip.lower, ub=mip.upper, vtype=kinds.tolist())
    squares = sparse.diags(0.5 * mip.quadratic, format="csr") if np.any(mip.quadratic) else None
    model.setMObjective(squares, mip.linear, 0.0, None, None, x, 1)
    matrix, senses, sides = mip.one_sided()
    model.addMConstr(matrix, x, senses, sides)
    for k, upper in enumerate(mip.ball_upper):
        ball = sparse.diags(0.5 * mip.ball_squares[[k]].toarray()[0], format="csr")
        model.addMQConstr(ball, mip.ball_linear[[k]].toarray()[0], "<", upper, x, x, x)
    return x


def _set_options(model: Any, job: Job) -> None:
    """Pass tolerances, limits and seed to Gurobi."""
    model.Params.FeasibilityTol = model.Params.IntFeasTol = job.mip.tolerance
    model.Params.MIPGap = job.gap
    model.Params.Threads = job.threads
    model.Params.Seed = job.seed
    model.Params.PoolSolutions = 1 + _KEPT
    if math.isfinite(job.control.remaining):
        model.Params.TimeLimit = job.control.remaining
    if math.isfinite(job.control.limits.nodes):
        model.Params.NodeLimit = job.control.limits.nodes
    if math.isfinite(job.control.limits.memory):
        model.Params.SoftMemLimit = job.control.limits.memory / 1e9


def _callback(progress: Progress) -> Any:
    """A callback that writes Gurobi's bounds into ``progress``."""
    from gurobipy import GRB

    def update(model: Any, where: int) -> None:
        if where == GRB.Callback.MIPSOL:
            progress.note(
                incumbent=model.cbGet(GRB.Callback.MIPSOL_OBJ),
                bound=model.cbGet(GRB.Callback.MIPSOL_OBJBND),
                nodes=int(model.cbGet(GRB.Callback.MIPSOL_NODCNT)),
            )
        elif where == GRB.Callback.MIP:
            progress.note(
                incumbent=model.cbGet(GRB.Callback.MIP_OBJBST),
                bound=model.cbGet(GRB.Callback.MIP_OBJBND),
                nodes=int(model.cbGet(GRB.Callback.MIP_NODCNT)),
                open_nodes=int(model.cbGet(GRB.Callback.MIP_NODLFT)),
            )

    return update


def _translate(model: Any, mip: MipModel, control: RunControl, progress: Progress) -> MipResult:
    """The result of Gurobi."""
    stopped = why_stopped(control, _STATUS.get(model.Status, Stopped.STALLED))
    found = model.SolCount > 0
    bound = model.ObjBound if model.IsMIP else (model.ObjVal if stopped is Stopped.SOLVED else -math.inf)
    progress.note(incumbent=model.ObjVal if found else math.inf, bound=bound, nodes=int(model.NodeCount))
    points = []
    for k in range(model.SolCount if model.IsMIP else 0):
        model.Params.SolutionNumber = k
        points.append(np.array(model.getAttr("Xn", model.getVars())))
    if found and not points:
        points = [np.array(model.getAttr("X", model.getVars()))]
    return progress.result(points, stopped)
