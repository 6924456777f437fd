"""COPT through coptpy, an optional solver; without a licence file it solves small models, for non-commercial use."""

from __future__ import annotations

import ctypes
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from margotree.engines.base import EngineError
from margotree.engines.mip.adapter import Adapter, Job, Progress, why_stopped
from margotree.engines.mip.engine import MipEngine
from margotree.engines.mip.model import MipModel, MipResult
from margotree.engines.run_control import RunControl
from margotree.solution import Stopped

#: COPT's status codes.
_STATUS = {
    1: Stopped.SOLVED,
    6: Stopped.NODES,
    8: Stopped.TIME,
    10: Stopped.INTERRUPTED,
}
#: COPT's error for a model beyond the licence, its infinity, and how many solutions to keep besides the best.
_TOO_LARGE, _INFINITY, _KEPT = 4, 1e30, 9


class CoptAdapter(Adapter):
    """The adapter for COPT."""

    name = "copt"
    package = "coptpy"
    install = 'pip install "margotree[copt]"'
    kinds = frozenset({"MILP", "MIQP", "MIQCP"})

    def version(self) -> str:
        from coptpy import COPT

        return f"{COPT.VERSION_MAJOR}.{COPT.VERSION_MINOR}.{COPT.VERSION_TECHNICAL}"

    def _run(self, job: Job, progress: Progress) -> MipResult:
        import coptpy

        try:
            with _quiet_stdout():
                environment = coptpy.Envr()
            with environment as env, env.createModel("") as model:
                _build(model, job.mip)
                _set_options(model, job)
                if job.start is not None:
                    model.setMipStart(model.getVars(), job.start.tolist())
                    model.loadMipStart()
                listener = _register_callback(model, job.control, progress)
                # COPT holds the interpreter's lock while it solves, so its callbacks check the limits
                model.solve()
                del listener
                return _translate(model, job.mip, job.control, progress)
        except coptpy.CoptError as error:
            raise self._explain(error, job.mip) from error

    def _explain(self, error: Any, mip: MipModel) -> EngineError:
        if error.retcode == _TOO_LARGE:
            return self.licence_error(mip, "without a licence file: 2000 variables and 2000 rows")
        return EngineError(f"copt failed: {error}")


class Copt(MipEngine):
    """The paper's formulation on COPT."""

    name = "copt"
    models = frozenset({"margot", "hfs", "sfs"})
    adapter = CoptAdapter()


@contextmanager
def _quiet_stdout() -> Iterator[None]:
    """Discard the process's standard output: COPT prints its licence there and has no option against it."""
    sys.stdout.flush()
    libc = ctypes.CDLL(None) if os.name == "posix" else None
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
        if libc is not None:
            libc.fflush(None)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _build(model: Any, mip: MipModel) -> None:
    """Build the model in COPT."""
    from coptpy import COPT

    kinds = [COPT.INTEGER if whole else COPT.CONTINUOUS for whole in mip.integer]
    low, high, under, over = (
        np.clip(side, -_INFINITY, _INFINITY) for side in (mip.lower, mip.upper, mip.row_lower, mip.row_upper)
    )
    model.loadMatrix(mip.linear, mip.rows.tocsc(), under, over, low, high, kinds)
    model.setObjSense(COPT.MINIMIZE)
    if np.any(mip.quadratic):
        model.loadQ(sparse.diags(0.5 * mip.quadratic).tocoo())
    x = model.getVars()
    for k, upper in enumerate(mip.ball_upper):
        squares, linear = mip.ball_squares[[k]].tocoo(), mip.ball_linear[[k]].tocoo()
        row = sum(0.5 * v * x[j] * x[j] for j, v in zip(squares.col.tolist(), squares.data.tolist(), strict=True))
        row += sum(v * x[j] for j, v in zip(linear.col.tolist(), linear.data.tolist(), strict=True))
        model.addQConstr(row <= float(upper))


def _set_options(model: Any, job: Job) -> None:
    """Pass tolerances and limits to COPT."""
    model.setParam("Logging", 0)
    model.setParam("FeasTol", job.mip.tolerance)
    model.setParam("IntTol", job.mip.tolerance)
    model.setParam("RelGap", job.gap)
    model.setParam("Threads", job.threads)
    if math.isfinite(job.control.remaining):
        model.setParam("TimeLimit", job.control.remaining)
    if math.isfinite(job.control.limits.nodes):
        model.setParam("NodeLimit", int(job.control.limits.nodes))


def _register_callback(model: Any, control: RunControl, progress: Progress) -> Any:
    """Register a callback that notes COPT's bounds and stops it; the caller keeps it alive while COPT runs."""
    from coptpy import COPT, CallbackBase

    class Listener(CallbackBase):
        def callback(self) -> None:
            best = self.getInfo(COPT.CBInfo.BestObj) if self.getInfo(COPT.CBInfo.HasIncumbent) else math.inf
            progress.note(incumbent=best, bound=self.getInfo(COPT.CBInfo.BestBnd))
            progress.report_to(control)
            if control.must_stop() is not None:
                self.interrupt()

    listener = Listener()
    model.setCallback(listener, COPT.CBCONTEXT_MIPRELAX | COPT.CBCONTEXT_MIPSOL | COPT.CBCONTEXT_MIPNODE)
    return listener


def _translate(model: Any, mip: MipModel, control: RunControl, progress: Progress) -> MipResult:
    """The result of COPT."""
    is_mip = bool(np.any(mip.integer))
    stopped = why_stopped(control, _STATUS.get(model.status, Stopped.STALLED))
    found = bool(model.hasmipsol if is_mip else model.haslpsol)
    value = (model.objval if is_mip else model.lpobjval) if found else math.inf
    bound = model.bestbnd if is_mip else (value if stopped is Stopped.SOLVED else -math.inf)
    progress.note(incumbent=value, bound=bound, nodes=int(model.nodecnt) if is_mip else 0)
    x = model.getVars()
    points = [np.array(model.getInfo("Value", x))] if found else []
    for k in range(min(_KEPT, model.poolsols if is_mip and found else 0)):
        points.append(np.array(model.getPoolSolution(k, x)))
    progress.f1 = math.nan  # its callbacks count no nodes, so the best value after the root node is not known
    return progress.result(points, stopped)
