"""What every solver adapter is, and how a long solver call is run so that the clock and Ctrl-C still work."""

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

#: Seconds between two looks at the clock while a solver runs, and between two lines of progress without news.
_LOOK, _QUIET = 0.02, 1.0

#: A solver that does not hear that its time is up is left behind after so many seconds, or this share of its time.
_PATIENCE, _PATIENCE_SHARE = 0.15, 0.02

#: What an entry of a model takes while it is built and handed over.
_BYTES_PER_ENTRY = 60

#: Values from here on are a solver's way to say infinity.
HUGE = 1e20


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """A model, its objective scaled, with all that :meth:`Adapter.run` was told about it."""

    mip: MipModel
    control: RunControl
    gap: float
    threads: int
    start: FloatArray | None
    seed: int


class Adapter(ABC):
    """One solver behind the neutral description: build, set options, run, translate back."""

    #: The engine's name, the package to import and how to get it.
    name: str
    package: str
    install: str
    #: The kinds of model it takes, see :attr:`MipModel.kind`.
    kinds: frozenset[str] = frozenset({"MILP"})
    #: What its node counter shows while it works on the root.
    at_root: int = 0
    #: Entries of a model that are written down and taken in per second, about.
    entries_per_second: float = 5e6

    def missing(self) -> str | None:
        """None if the solver is installed, else what to do.  Imports nothing."""
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
        """Solve within ``control``'s limits; ``start`` is offered to the solver as a first solution."""
        if (need := self.missing()) is not None:
            raise NotInstalled(f"engine {self.name!r} is not installed: {need}")
        if mip.kind not in self.kinds:
            raise Refused(f"{self.name} does not solve {mip.kind} models, only {' and '.join(sorted(self.kinds))}")
        if (reason := control.must_stop()) is not None:
            return MipResult(x=None, stopped=reason)
        job = Job(mip=mip.scaled(), control=control, gap=gap, threads=max(1, threads), start=start, seed=seed % 2**31)
        result = self._run(job, Progress(self.name, mip.scale, self.at_root))
        if result.stopped is Stopped.INTERRUPTED:
            control.interrupt()  # some solvers take Ctrl-C before Python sees it; pass it on
        return result

    def hopeless(self, entries: float, control: RunControl) -> tuple[Stopped, str] | None:
        """Why a model of so many entries need not be built: the limit it would break, and words; None if it may be."""
        if entries / self.entries_per_second >= control.remaining:
            return Stopped.TIME, f"a model of {entries:.3g} entries for {self.name} was not built: no time for it"
        if entries * _BYTES_PER_ENTRY > control.limits.memory:
            return Stopped.MEMORY, f"a model of {entries:.3g} entries for {self.name} was not built: no memory for it"
        return None

    @abstractmethod
    def _run(self, job: Job, progress: Progress) -> MipResult:
        """As :meth:`run`, once it is clear that the solver is there and takes the model."""

    def too_large(self, mip: MipModel, limits: str) -> EngineError:
        """What to say when a licence does not cover the model."""
        return EngineError(
            f"{self.name}'s licence on this machine does not cover this model of {mip.n_variables} variables and "
            f"{mip.n_rows} rows ({limits}); use a full licence, fewer samples, or an engine without a limit: scip"
        )


class Progress:
    """What a running solver last said, in the model's own units; written by its thread, read by the one that waits."""

    def __init__(self, phase: str, scale: float = 1.0, at_root: int = 0) -> None:
        self.phase, self.scale, self.at_root = phase, scale, at_root
        self.incumbent, self.bound, self.nodes, self.open_nodes = math.inf, -math.inf, 0, 0
        self.f0 = self.f1 = math.nan
        self.best: FloatArray | None = None  # the point behind the incumbent, from solvers that show it
        self._told: tuple[float, float] = (math.nan, math.nan)
        self._told_at = -math.inf

    def note(
        self, *, incumbent: float = math.inf, bound: float = -math.inf, nodes: int = 0, open_nodes: int = 0
    ) -> None:
        """Take over what the solver says; what it finds while it counts no node but the root belongs to the root."""
        if abs(incumbent) < HUGE and incumbent / self.scale < self.incumbent:
            self.incumbent = float(incumbent) / self.scale
            self.f0 = self.incumbent if math.isnan(self.f0) else self.f0
        if nodes <= self.at_root:
            self.f1 = self.incumbent if math.isfinite(self.incumbent) else math.nan
        if abs(bound) < HUGE:
            self.bound = max(self.bound, float(bound) / self.scale)
        self.nodes, self.open_nodes = max(self.nodes, int(nodes)), int(open_nodes)

    def result(self, points: Sequence[FloatArray], stopped: Stopped) -> MipResult:
        """What the solver found, best point first."""
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

    def left_behind(self, control: RunControl) -> MipResult:
        """What a solver had told when it was no longer waited for."""
        return self.result([] if self.best is None else [self.best], why_stopped(control, Stopped.TIME))

    def tell(self, control: RunControl) -> None:
        """Pass news on to the run control's listener, and a sign of life now and then."""
        news = (self.incumbent, self.bound)
        if news == self._told and control.elapsed - self._told_at < _QUIET:
            return
        self._told, self._told_at = news, control.elapsed
        control.report(self.phase, incumbent=news[0], bound=news[1], nodes=self.nodes, open_nodes=self.open_nodes)


def run_watched(
    solve: Callable[[], None], stop: Callable[[], None], control: RunControl, progress: Progress, *, leave: bool = False
) -> bool:
    """Run a solver call in a thread of its own while this one keeps the clock; True once the call is over.

    The calling thread stays free to handle Ctrl-C; when the control says so, it asks the solver to ``stop`` (again and
    again, since a solver may not listen in every phase) and waits until it has.  With ``leave`` it does not wait for
    ever: a solver that hears nothing for a while is left to come to its end by itself, and the answer is False.  It
    must not be touched any more then; what it has told so far is in ``progress``.
    """
    failure: list[BaseException] = []

    def work() -> None:
        try:
            solve()
        except BaseException as error:
            failure.append(error)

    # Not a daemon: should the solver be left behind, the interpreter waits for it before it takes itself apart.
    thread = threading.Thread(target=work, name=f"margotree-{progress.phase}")
    thread.start()
    try:
        patience = _wait(thread, stop, control, progress)
    except BaseException:
        patience = math.inf
        raise
    finally:
        until = time.monotonic() + (patience if leave else math.inf)
        while thread.is_alive() and time.monotonic() < until:
            stop()
            thread.join(_LOOK)
    if failure:
        raise failure[0]
    return not thread.is_alive()


def _wait(thread: threading.Thread, stop: Callable[[], None], control: RunControl, progress: Progress) -> float:
    """Keep the clock until the thread is done or the time is up; the seconds it may then take to hear that."""
    while thread.is_alive():
        thread.join(_LOOK)
        progress.tell(control)
        if control.must_stop(progress.nodes) is Stopped.TIME:
            break
        if control.must_stop(progress.nodes) is not None:
            stop()
    return max(_PATIENCE, _PATIENCE_SHARE * control.limits.time)


def why_stopped(control: RunControl, otherwise: Stopped) -> Stopped:
    """A stop that this side asked for is told by the run control, any other by the solver's status."""
    if control.interrupted:
        return Stopped.INTERRUPTED
    return Stopped.TIME if control.remaining <= 0.0 and otherwise is not Stopped.SOLVED else otherwise
