"""Limits, progress and interruption of a fit."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from margotree.solution import Stopped, relative_gap

#: What :meth:`RunControl.grace` adds to a time limit: these seconds, or this share of it.
_GRACE, _GRACE_SHARE = 0.15, 0.03


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When a fit stops, and the number of threads.

    With a limit on nodes every phase of the work has its share of nodes instead of seconds, so that one thread does the
    same work every time unless the time limit is reached.

    Parameters
    ----------
    time : float
        Seconds in all.
    gap : float
        Relative gap.
    nodes : float
        Number of search nodes.
    memory : float
        Bytes of memory.
    n_jobs : int
        Number of threads.
    seed : int
        Seed of the random numbers.
    """

    time: float = math.inf
    gap: float = 1e-4
    nodes: float = math.inf
    memory: float = 2e9
    n_jobs: int = 1
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Event:
    """A progress report: phase, seconds, and the state of the search."""

    phase: str
    elapsed: float
    incumbent: float = math.inf
    bound: float = -math.inf
    nodes: int = 0
    open_nodes: int = 0
    message: str = ""

    @property
    def gap(self) -> float:
        """(incumbent - bound) / incumbent."""
        return relative_gap(self.incumbent, self.bound)


Listener = Callable[[Event], None]


class TrainedTrees:
    """The number of trees whose nodes have all been trained, in all phases of a fit."""

    def __init__(self) -> None:
        self.trees = 0


class RunControl:
    """A running clock with its limits, its listener and a flag that Ctrl-C sets.

    Parameters
    ----------
    limits : Limits, optional
        No limits without them.
    listener : callable, optional
        Receives an :class:`Event` at every report.
    """

    def __init__(self, limits: Limits | None = None, listener: Listener | None = None) -> None:
        self.limits = limits or Limits()
        self.listener = listener
        self._began = time.perf_counter()
        self._before = 0.0  # seconds of the fit before this part of it
        self._stop = threading.Event()
        self._trained = TrainedTrees()

    @property
    def elapsed(self) -> float:
        """Seconds since the start of this part."""
        return time.perf_counter() - self._began

    @property
    def remaining(self) -> float:
        """Seconds until the time limit."""
        return max(0.0, self.limits.time - self.elapsed)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._stop.is_set()

    @property
    def over(self) -> bool:
        """Whether to stop at once: interrupted, or out of time."""
        return self.interrupted or self.elapsed >= self.limits.time

    @property
    def has_tree(self) -> bool:
        """Whether all nodes of some tree were trained, in any phase of the fit."""
        return self._trained.trees > 0

    def count_trained_tree(self) -> None:
        """Record that all nodes of a tree were trained: by a greedy heuristic, a soft tree or a sweep of a descent."""
        self._trained.trees += 1

    def interrupt(self) -> None:
        """Set the flag that ends the fit."""
        self._stop.set()

    def stop_with(self, flag: threading.Event) -> None:
        """Use a flag that is shared with others, such as that of a loop of fits."""
        self._stop = flag

    def must_stop(self, nodes: int = 0) -> Stopped | None:
        """The reason to stop now, or None."""
        if self.interrupted:
            return Stopped.INTERRUPTED
        if self.elapsed >= self.limits.time:
            return Stopped.TIME
        return Stopped.NODES if nodes >= self.limits.nodes else None

    def part(self, seconds: float) -> RunControl:
        """A run control for a part of the work of at most ``seconds``, with the same listener and stop flag."""
        limits = replace(self.limits, time=min(seconds, self.remaining))
        before = self._before + self.elapsed
        control = RunControl(limits, self.listener)
        control._stop, control._before, control._trained = self._stop, before, self._trained
        return control

    def in_units(self, unit: float) -> RunControl:
        """The same run control for work whose objective values are reported multiplied by ``unit``."""
        if unit == 1.0:
            return self
        return self._translated(lambda e: replace(e, incumbent=e.incumbent * unit, bound=e.bound * unit))

    def for_relaxation(self) -> RunControl:
        """The same run control for a search in a relaxation of the problem.

        Bounds of the relaxation are reported. Its trees are not: they need not be feasible, and have another objective.
        """
        return self._translated(lambda e: replace(e, incumbent=math.inf))

    def _translated(self, translate: Callable[[Event], Event]) -> RunControl:
        """The same run control, whose listener receives translated events."""
        listener = self.listener
        if listener is None:
            return self
        control = RunControl(self.limits, lambda event: listener(translate(event)))
        control._began, control._before, control._stop = self._began, self._before, self._stop
        control._trained = self._trained
        return control

    @property
    def by_nodes(self) -> bool:
        """Whether phases are measured in search nodes instead of seconds, so that work is repeatable."""
        return math.isfinite(self.limits.nodes)

    def share(self, *, seconds: float, nodes: float) -> RunControl:
        """A run control for a phase: at most ``seconds`` or, where phases are measured in nodes, ``nodes``."""
        if not self.by_nodes:
            return self.part(seconds)
        control = self.part(self.remaining)
        control.limits = replace(control.limits, nodes=nodes)
        return control

    def grace(self) -> RunControl:
        """A run control for the work after the time limit, such as reading a solver's result.

        It lasts for the remaining time, or a little beyond the limit if that is longer.
        """
        seconds = max(self.remaining, _GRACE, _GRACE_SHARE * self.limits.time)
        control = RunControl(replace(self.limits, time=seconds), self.listener)
        control._before = self._before + self.elapsed
        return control

    def report(self, phase: str, **facts: Any) -> None:
        """Send an event to the listener; ``facts`` are fields of :class:`Event`."""
        if self.listener is not None:
            self.listener(Event(phase=phase, elapsed=self._before + self.elapsed, **facts))


class NestedFitInterrupted(KeyboardInterrupt):
    """Raised after Ctrl-C in a fit inside a loop of fits, whose tree must not count as a result; it ends the loop."""


#: The flag of the current loop of fits, set by Ctrl-C; None outside a loop.  Threads share it: their fits belong to the
#: loop.
_loop: threading.Event | None = None


@contextmanager
def loop_of_fits() -> Iterator[threading.Event]:
    """Within the block, the first Ctrl-C stops all running fits, in any thread, and sets the event: the loop is over.

    The second one raises as usual.  A loop within a loop is part of it.
    """
    global _loop
    if _loop is not None or threading.current_thread() is not threading.main_thread():
        yield _loop or threading.Event()
        return
    over = threading.Event()
    _loop = over
    try:
        with _first_ctrl_c(over.set):
            yield over
    finally:
        _loop = None


def loop_is_over() -> bool:
    """Whether Ctrl-C has ended the loop of fits that runs in this process."""
    return _loop is not None and _loop.is_set()


@contextmanager
def ctrl_c(control: RunControl) -> Iterator[RunControl]:
    """Within the block, the first Ctrl-C ends the fit with its incumbent; the second one raises as usual."""
    if _loop is not None:
        control.stop_with(_loop)
        yield control
        return
    if threading.current_thread() is not threading.main_thread():
        yield control
        return

    with _first_ctrl_c(control.interrupt):
        yield control


@contextmanager
def holding_ctrl_c() -> Iterator[threading.Event]:
    """Within the block, the first Ctrl-C only sets the event, so that a trained tree is not lost; the second raises."""
    came = threading.Event()
    if _loop is not None or threading.current_thread() is not threading.main_thread():
        yield came
        return
    with _first_ctrl_c(came.set):
        yield came


@contextmanager
def _first_ctrl_c(call: Callable[[], None]) -> Iterator[None]:
    """Call ``call`` at the first Ctrl-C; later ones have their former effect."""

    def handler(signum: int, frame: Any) -> None:
        call()
        signal.signal(signal.SIGINT, before)

    # Defined before the new handler is set, which a Ctrl-C may call at once.
    before = signal.getsignal(signal.SIGINT) or signal.default_int_handler
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def flag_after(flag: Any, seconds: float) -> Iterator[None]:
    """Set ``flag[0]`` to 1 after ``seconds``, unless the block ends earlier; compiled kernels read this flag."""
    if seconds == math.inf:
        yield
        return
    timer = threading.Timer(max(0.0, seconds), flag.__setitem__, (0, 1.0))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
