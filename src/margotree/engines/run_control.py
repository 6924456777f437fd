"""Time, progress and interruption: the one object an engine asks whether to go on."""

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

#: What :meth:`Watch.grace` adds to a time limit: so many seconds, or this share of it.
_GRACE, _GRACE_SHARE = 0.15, 0.03


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When to stop: seconds in all, relative gap, search nodes, bytes of memory; and how many threads to use.

    With a limit on nodes every phase of the work gets its share of nodes instead of seconds, so that one thread does
    the same work every time unless the seconds run out.
    """

    time: float = math.inf
    gap: float = 1e-4
    nodes: float = math.inf
    memory: float = 2e9
    n_jobs: int = 1
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Event:
    """A line of progress."""

    phase: str
    elapsed: float
    incumbent: float = math.inf
    bound: float = -math.inf
    nodes: int = 0
    open_nodes: int = 0
    message: str = ""

    @property
    def gap(self) -> float:
        return relative_gap(self.incumbent, self.bound)


Listener = Callable[[Event], None]


class Trained:
    """How many trees all of whose nodes are trained the work has had so far, in all of its phases."""

    def __init__(self) -> None:
        self.trees = 0


class RunControl:
    """A running clock with its limits, its listener and a flag that Ctrl-C raises."""

    def __init__(self, limits: Limits | None = None, listener: Listener | None = None) -> None:
        self.limits = limits or Limits()
        self.listener = listener
        self._began = time.perf_counter()
        self._before = 0.0  # what the work has taken before this part of it
        self._stop = threading.Event()
        self._trained = Trained()

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._began

    @property
    def remaining(self) -> float:
        return max(0.0, self.limits.time - self.elapsed)

    @property
    def interrupted(self) -> bool:
        return self._stop.is_set()

    @property
    def over(self) -> bool:
        """Whether to come to an end at once, whatever is being done: interrupted, or out of time."""
        return self.interrupted or self.elapsed >= self.limits.time

    @property
    def has_tree(self) -> bool:
        """Whether all nodes of some tree were trained, in whatever phase of the work."""
        return self._trained.trees > 0

    def count_trained_tree(self) -> None:
        """Note that all nodes of a tree were trained: by a greedy heuristic, a soft tree or the sweep of a descent."""
        self._trained.trees += 1

    def interrupt(self) -> None:
        self._stop.set()

    def stop_with(self, flag: threading.Event) -> None:
        """Take a flag that others raise and see too, such as that of a loop of fits."""
        self._stop = flag

    def must_stop(self, nodes: int = 0) -> Stopped | None:
        """The reason to stop now, or None."""
        if self.interrupted:
            return Stopped.INTERRUPTED
        if self.elapsed >= self.limits.time:
            return Stopped.TIME
        return Stopped.NODES if nodes >= self.limits.nodes else None

    def part(self, seconds: float) -> RunControl:
        """A run control for a part of the work: at most ``seconds``, same listener, interruption and count of trees."""
        limits = replace(self.limits, time=min(seconds, self.remaining))
        before = self._before + self.elapsed
        control = RunControl(limits, self.listener)
        control._stop, control._before, control._trained = self._stop, before, self._trained
        return control

    def in_units(self, unit: float) -> RunControl:
        """The same run control for work whose values are to be multiplied by ``unit`` before anybody hears of them."""
        listener = self.listener
        if listener is None or unit == 1.0:
            return self

        def tell(event: Event) -> None:
            listener(replace(event, incumbent=event.incumbent * unit, bound=event.bound * unit))

        control = RunControl(self.limits, tell)
        control._began, control._before, control._stop = self._began, self._before, self._stop
        control._trained = self._trained
        return control

    @property
    def by_nodes(self) -> bool:
        """Whether phases are measured in search nodes, so that work repeats; seconds then only end it as a whole."""
        return math.isfinite(self.limits.nodes)

    def share(self, *, seconds: float, nodes: float) -> RunControl:
        """A run control for a phase: at most ``seconds`` or, where phases are measured in nodes, ``nodes``."""
        if not self.by_nodes:
            return self.part(seconds)
        control = self.part(self.remaining)
        control.limits = replace(control.limits, nodes=nodes)
        return control

    def grace(self) -> RunControl:
        """A run control for what must still be done once the time is up, such as reading off what a solver found.

        It runs for what is left of the time or, if that is more, for a little while longer.
        """
        seconds = max(self.remaining, _GRACE, _GRACE_SHARE * self.limits.time)
        control = RunControl(replace(self.limits, time=seconds), self.listener)
        control._before = self._before + self.elapsed
        return control

    def report(self, phase: str, **facts: Any) -> None:
        if self.listener is not None:
            self.listener(Event(phase=phase, elapsed=self._before + self.elapsed, **facts))


#: Raised by Ctrl-C in a loop of fits; None outside of one.  Threads share it: their fits belong to the loop.
_loop: threading.Event | None = None


@contextmanager
def loop_of_fits() -> Iterator[threading.Event]:
    """While inside, the first Ctrl-C cuts all fits under way, in whatever thread, and sets the event: the loop is over.

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
    """While inside, the first Ctrl-C asks the engine to finish with what it has; the second one raises as usual."""
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
    """While inside, the first Ctrl-C only sets the event, so that a finished tree is not lost; a second one raises."""
    came = threading.Event()
    if _loop is not None or threading.current_thread() is not threading.main_thread():
        yield came
        return
    with _first_ctrl_c(came.set):
        yield came


@contextmanager
def _first_ctrl_c(call: Callable[[], None]) -> Iterator[None]:
    def ask_to_stop(signum: int, frame: Any) -> None:
        call()
        signal.signal(signal.SIGINT, before)

    # Known before ours is in place, so that a Ctrl-C in between finds it.
    before = signal.getsignal(signal.SIGINT) or signal.default_int_handler
    signal.signal(signal.SIGINT, ask_to_stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def flag_after(flag: Any, seconds: float) -> Iterator[None]:
    """Set ``flag[0]`` to 1 after so many seconds, unless the block is left before: how a clock reaches a kernel."""
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
