"""The base class of the adapters of MIP solvers; it ends a solver's run at the limits and at Ctrl-C."""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from margotree.engines.base import EngineError, NotInstalled, Refused
from margotree.engines.mip.model import FloatArray, MipModel, MipResult
from margotree.engines.run_control import RunControl
from margotree.solution import Stopped

#: Seconds between two checks of the limits while a solver runs, and between two progress reports without news.
_POLL, _REPORT_EVERY = 0.02, 1.0

#: A solver that does not stop at the time limit is abandoned after these seconds, or this share of its time.
_PATIENCE, _PATIENCE_SHARE = 0.15, 0.02

#: Memory of one entry of a model while it is built and passed to the solver.
_BYTES_PER_ENTRY = 60

#: Solvers return values from here on for infinity.
HUGE = 1e20


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """A model with its objective scaled, and the arguments of :meth:`Adapter.run`."""

    mip: MipModel
    control: RunControl
    gap: float
    threads: int
    start: FloatArray | None
    seed: int


class Adapter(ABC):
    """One solver behind the solver-independent description: build the model, set options, run, convert the result.

    Subclasses define the attributes below, :meth:`version` and :meth:`_run`.
    """

    #: The engine's name, the package to import, and the command that installs it.
    name: str
    package: str
    install: str
    #: The kinds of model it solves, see :attr:`MipModel.kind`.
    kinds: frozenset[str] = frozenset({"MILP"})
    #: The value of its node counter at the root node.
    at_root: int = 0
    #: Approximate number of entries of a model that are built and passed to the solver per second.
    entries_per_second: float = 5e6

    def missing(self) -> str | None:
        """The command that installs the solver; None if the solver is installed.  Does not import it."""
        return None if find_spec(self.package) is not None else self.install

    @abstractmethod
    def version(self) -> str:
        """The solver's version."""

    def run(
        self,
        mip: MipModel,
        *,
        control: RunControl,
        gap: float = 1e-4,
        threads: int = 1,
        start: FloatArray | None = None,
        seed: int = 0,
    ) -> MipResult:
        """Solve a model within the limits of ``control``.

        Parameters
        ----------
        mip : MipModel
            The model.
        control : RunControl
            The limits.
        gap : float
            Relative gap at which the solver stops.
        threads, seed : int
            Options of the solver.
        start : array, optional
            A first solution.
        """
        if (command := self.missing()) is not None:
            raise NotInstalled(f"engine {self.name!r} is not installed: {command}")
        if mip.kind not in self.kinds:
            raise Refused(f"{self.name} does not solve {mip.kind} models, only {' and '.join(sorted(self.kinds))}")
        if (reason := control.must_stop()) is not None:
            return MipResult(x=None, stopped=reason)
        job = Job(mip=mip.scaled(), control=control, gap=gap, threads=max(1, threads), start=start, seed=seed % 2**31)
        result = self._run(job, Progress(self.name, mip.scale, self.at_root))
        if result.stopped is Stopped.INTERRUPTED:
            control.interrupt()  # some solvers handle Ctrl-C before Python does
        return result

    def exceeded_limit(self, entries: float, control: RunControl) -> tuple[Stopped, str] | None:
        """The limit that a model with this number of entries would exceed, and a message; None if it can be built."""
        if entries / self.entries_per_second >= control.remaining:
            return Stopped.TIME, f"the model for {self.name} ({entries:.3g} entries) was not built: not enough time"
        if entries * _BYTES_PER_ENTRY > control.limits.memory:
            return Stopped.MEMORY, f"the model for {self.name} ({entries:.3g} entries) was not built: not enough memory"
        return None

    @abstractmethod
    def _run(self, job: Job, progress: Progress) -> MipResult:
        """As :meth:`run`, for a solver that is installed and a model of a kind that it solves."""

    def licence_error(self, mip: MipModel, limits: str) -> EngineError:
        """The error for a model that the licence does not cover."""
        return EngineError(
            f"{self.name}'s licence on this machine does not cover this model of {mip.n_variables} variables and "
            f"{mip.n_rows} rows ({limits}); use a full licence, fewer samples, or an engine without a limit: scip"
        )


class Progress:
    """The latest state of a running solver, in the model's own units.

    The solver's thread writes it, the calling thread reads it.
    """

    def __init__(self, phase: str, scale: float = 1.0, at_root: int = 0) -> None:
        self.phase, self.scale, self.at_root = phase, scale, at_root
        self.incumbent, self.bound, self.nodes, self.open_nodes = math.inf, -math.inf, 0, 0
        self.f0 = self.f1 = math.nan
        self.best: FloatArray | None = None  # the point of the incumbent, if the solver returns it
        self._reported: tuple[float, float] = (math.nan, math.nan)
        self._reported_at = -math.inf

    def note(
        self, *, incumbent: float = math.inf, bound: float = -math.inf, nodes: int = 0, open_nodes: int = 0
    ) -> None:
        """Update the state; incumbents found while only the root node is counted belong to the root."""
        if abs(incumbent) < HUGE and incumbent / self.scale < self.incumbent:
            self.incumbent = float(incumbent) / self.scale
            self.f0 = self.incumbent if math.isnan(self.f0) else self.f0
        if nodes <= self.at_root:
            self.f1 = self.incumbent if math.isfinite(self.incumbent) else math.nan
        if abs(bound) < HUGE:
            self.bound = max(self.bound, float(bound) / self.scale)
        self.nodes, self.open_nodes = max(self.nodes, int(nodes)), int(open_nodes)

    def result(self, points: Sequence[FloatArray], stopped: Stopped) -> MipResult:
        """The solver's result, from its points, best one first."""
        return MipResult(
            x=points[0] if points else None,
            objective=self.incumbent if points else math.inf,
            bound=self.bound,
            stopped=stopped,
            nodes=self.nodes,
            f0=self.f0,
            f1=self.f1,
            others=tuple(points[1:]),
        )

    def result_so_far(self, control: RunControl) -> MipResult:
        """The result of a solver that was abandoned."""
        return self.result([] if self.best is None else [self.best], why_stopped(control, Stopped.TIME))

    def report_to(self, control: RunControl) -> None:
        """Pass news on to the listener of the run control, and the unchanged state once per second."""
        news = (self.incumbent, self.bound)
        if news == self._reported and control.elapsed - self._reported_at < _REPORT_EVERY:
            return
        self._reported, self._reported_at = news, control.elapsed
        control.report(self.phase, incumbent=news[0], bound=news[1], nodes=self.nodes, open_nodes=self.open_nodes)


def run_in_thread(
    solve: Callable[[], None],
    stop: Callable[[], None],
    control: RunControl,
    progress: Progress,
    *,
    abandon: bool = False,
) -> bool:
    """Run a solver call in a thread of its own and check the limits in this one; True once the call has returned.

    The calling thread stays free to handle Ctrl-C.  When the run control says so, it calls ``stop`` repeatedly, since
    some solvers ignore it in some phases, and waits for the solver.

    Parameters
    ----------
    solve, stop : callable
        Runs the solver; makes it return early.
    control, progress
        The limits; the state that the solver's callbacks update.
    abandon : bool
        Whether to return False if the solver does not stop soon.  It then runs on in its thread and must not be used
        any more; its last state is in ``progress``.
    """
    failure: list[BaseException] = []

    def work() -> None:
        try:
            solve()
        except BaseException as error:
            failure.append(error)

    # Not a daemon: the interpreter waits for an abandoned solver before it shuts down.
    thread = threading.Thread(target=work, name=f"margotree-{progress.phase}")
    thread.start()
    try:
        patience = _wait(thread, stop, control, progress)
    except BaseException:
        patience = math.inf
        raise
    finally:
        until = time.monotonic() + (patience if abandon else math.inf)
        while thread.is_alive() and time.monotonic() < until:
            stop()
            thread.join(_POLL)
    if failure:
        raise failure[0]
    return not thread.is_alive()


def _wait(thread: threading.Thread, stop: Callable[[], None], control: RunControl, progress: Progress) -> float:
    """Check the limits until the thread ends or the time is up; returns the seconds that the solver has to stop."""
    while thread.is_alive():
        thread.join(_POLL)
        progress.report_to(control)
        if control.must_stop(progress.nodes) is Stopped.TIME:
            break
        if control.must_stop(progress.nodes) is not None:
            stop()
    return max(_PATIENCE, _PATIENCE_SHARE * control.limits.time)


def why_stopped(control: RunControl, otherwise: Stopped) -> Stopped:
    """The reason of the run control if it stopped the solver, else ``otherwise``, that of the solver's status."""
    if control.interrupted:
        return Stopped.INTERRUPTED
    return Stopped.TIME if control.remaining <= 0.0 and otherwise is not Stopped.SOLVED else otherwise
