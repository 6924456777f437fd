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
    """When to stop: seconds in all, relative gap, search nodes, bytes of memory; and how many threads to use."""

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


class Watch:
    """A running clock with its limits, its listener and a flag that Ctrl-C raises."""

    def __init__(self, limits: Limits | None = None, listener: Listener | None = None) -> None:
        self.limits = limits or Limits()
        self.listener = listener
        self._began = time.perf_counter()
        self._before = 0.0  # what the work has taken before this part of it
        self._stop = threading.Event()

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

    def interrupt(self) -> None:
        self._stop.set()

    def must_stop(self, nodes: int = 0) -> Stopped | None:
        """The reason to stop now, or None."""
        if self.interrupted:
            return Stopped.INTERRUPTED
        if self.elapsed >= self.limits.time:
            return Stopped.TIME
        return Stopped.NODES if nodes >= self.limits.nodes else None

    def part(self, seconds: float) -> Watch:
        """A watch for a part of the work: at most ``seconds``, same listener, same interruption."""
        limits = replace(self.limits, time=min(seconds, self.remaining))
        before = self._before + self.elapsed
        watch = Watch(limits, self.listener)
        watch._stop, watch._before = self._stop, before
        return watch

    def grace(self) -> Watch:
        """A watch for what must still be done once the time is up, such as reading off what a solver found.

        It runs for what is left of the time or, if that is more, for a little while longer.
        """
        seconds = max(self.remaining, _GRACE, _GRACE_SHARE * self.limits.time)
        watch = Watch(replace(self.limits, time=seconds), self.listener)
        watch._before = self._before + self.elapsed
        return watch

    def report(self, phase: str, **facts: Any) -> None:
        if self.listener is not None:
            self.listener(Event(phase=phase, elapsed=self._before + self.elapsed, **facts))


@contextmanager
def ctrl_c(watch: Watch) -> Iterator[Watch]:
    """While inside, the first Ctrl-C asks the engine to finish with what it has; the second one raises as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield watch
        return

    def ask_to_stop(signum: int, frame: Any) -> None:
        watch.interrupt()
        signal.signal(signal.SIGINT, before)

    # Known before ours is in place, so that a Ctrl-C in between finds it.
    before = signal.getsignal(signal.SIGINT) or signal.default_int_handler
    signal.signal(signal.SIGINT, ask_to_stop)
    try:
        yield watch
    finally:
        signal.signal(signal.SIGINT, before)
