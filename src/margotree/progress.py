"""The progress of a fit: one line that is updated on a terminal, a line every few seconds in a pipe."""

from __future__ import annotations

import math
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from margotree import notices

if TYPE_CHECKING:
    from margotree.engines import Event

#: Seconds between two lines, on a terminal (where a line replaces the one before) and in a pipe.
_TERMINAL, _PIPE = 0.1, 5.0
#: Seconds without an event after which the line is written again with the current time.
_SILENCE = 1.0

_RECORD: ContextVar[list[Event] | None] = ContextVar("record", default=None)


@contextmanager
def recording() -> Iterator[list[Event]]:
    """Record the events of the fits inside, at any verbosity: ``with recording() as events: model.fit(X, y)``.

    Yields a list, to which every event of the engines is appended.
    """
    events: list[Event] = []
    token = _RECORD.set(events)
    try:
        yield events
    finally:
        _RECORD.reset(token)


class Progress:
    """Receives the events of an engine and writes them; used as a context manager around the fit.

    Every line contains the best tree and the largest bound so far, also of earlier phases of the fit. While the engine
    sends no events, the line is written again with the current time.

    Parameters
    ----------
    verbose : int
        0 writes nothing, 1 a line of progress, 2 every event on its own line.
    stream : text file, optional
        Standard error by default.
    clock : callable
        Returns seconds; for tests.
    """

    def __init__(
        self, verbose: int = 1, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.verbose = int(verbose)
        self.stream = stream if stream is not None else sys.stderr
        self.live = self.verbose == 1 and self.stream.isatty()
        self._every = 0.0 if self.verbose > 1 else _TERMINAL if self.live else _PIPE
        self._clock = clock
        self._shown_time = -math.inf
        self._unshown: Event | None = None
        self._last: Event | None = None
        self._incumbent, self._bound = math.inf, -math.inf
        self._event_time = math.inf
        self._record = _RECORD.get()
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def __call__(self, event: Event) -> None:
        with self._lock:
            if self._record is not None:
                self._record.append(event)
            if self.verbose == 0:
                return
            self._incumbent = min(self._incumbent, event.incumbent)
            self._bound = max(self._bound, event.bound)
            event = replace(event, incumbent=self._incumbent, bound=self._bound)
            first, self._unshown, self._last = self._last is None, event, event
            self._event_time = self._clock()
            if first or self._clock() - self._shown_time >= self._every:
                self._show()

    def __enter__(self) -> Callable[[Event], None] | None:
        if self.verbose == 1:
            self._event_time = self._clock()
            threading.Thread(target=self._refresh_clock, daemon=True).start()
        return self if self.verbose > 0 or self._record is not None else None

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._ended.set()
        with self._lock:
            if self._unshown is not None:
                self._show()
            if self.live and self._shown_time > -math.inf:
                self.stream.write("\n")
                self.stream.flush()

    def _refresh_clock(self) -> None:
        """Write the line again while the engine sends no events; runs in a thread."""
        while not self._ended.wait(_SILENCE / 2):
            with self._lock:
                if notices.status_is_shown():  # the line of the notices about compilation is on the terminal
                    self._event_time = self._clock()
                silent = self._clock() - self._event_time
                due = self._clock() - self._shown_time >= max(self._every, _SILENCE / 2)
                if silent >= _SILENCE and due and not self._ended.is_set():
                    self._unshown = self._aged_event(silent)
                    self._show()

    def _aged_event(self, silent: float) -> Event:
        """The last event with its time increased by the seconds since then."""
        if self._last is None:
            from margotree.engines import Event

            return Event(phase="preparing", elapsed=silent)
        return replace(self._last, elapsed=self._last.elapsed + silent)

    def _show(self) -> None:
        """Write the last event."""
        assert self._unshown is not None
        line = format_event(self._unshown)
        if self.live:
            # A line that wraps cannot be replaced by the next one.
            width = max(20, shutil.get_terminal_size().columns - 1)
            line = (line if len(line) <= width else format_event(self._unshown, short=True))[:width]
        # Carriage return before and erase-to-end after the text: the cursor stays behind the text.
        self.stream.write(f"\r{line}\x1b[K" if self.live else f"{line}\n")
        self.stream.flush()
        self._shown_time, self._unshown = self._clock(), None


def format_event(event: Event, *, short: bool = False) -> str:
    """Format an event as one line: phase, seconds, what is proved, incumbent, bound, and number of search nodes.

    A ``short`` line contains the gap as a number instead of the sentence about it.
    """
    from margotree.solution import gap_statement, gap_text  # imports NumPy, which help and completion do not need

    incumbent = f"{event.incumbent:.6g}" if math.isfinite(event.incumbent) else "none yet"
    bound = f"{event.bound:.6g}" if math.isfinite(event.bound) else "none yet"
    parts = [f"{event.phase} {event.elapsed:.1f} s"]
    if math.isfinite(event.incumbent) or math.isfinite(event.bound):
        proved = f"gap {gap_text(event.gap)}" if short else gap_statement(event.gap)
        parts += [proved, f"incumbent {incumbent}", f"bound {bound}"]
    else:
        parts.append("no tree yet")
    if event.nodes:
        parts.append(f"nodes {event.nodes}" + (f" ({event.open_nodes} open)" if event.open_nodes else ""))
    if event.message:
        parts.append(event.message)
    return ", ".join(parts)
