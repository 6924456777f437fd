"""What a long fit shows while it runs: one line that updates on a terminal, a line now and then in a pipe."""

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

#: Seconds between two lines: on a terminal, where a line replaces the one before, and in a pipe.
_TERMINAL, _PIPE = 0.1, 5.0
#: Seconds of silence after which the clock is shown to be running.
_SILENCE = 1.0

_RECORD: ContextVar[list[Event] | None] = ContextVar("record", default=None)


@contextmanager
def recording() -> Iterator[list[Event]]:
    """Keep what the fits inside report, however verbose they are: ``with recording() as events: model.fit(X, y)``."""
    events: list[Event] = []
    token = _RECORD.set(events)
    try:
        yield events
    finally:
        _RECORD.reset(token)


class Progress:
    """Listens to an engine and writes what it hears; use it as a context manager around the fit.

    ``verbose`` 0 writes nothing, 1 a line that is kept up to date, 2 every event on a line of its own.  While the
    engine is silent the clock goes on, so that nobody takes a long step for a dead one.
    """

    def __init__(
        self, verbose: int = 1, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.verbose = int(verbose)
        self.stream = stream if stream is not None else sys.stderr
        self.live = self.verbose == 1 and self.stream.isatty()
        self._every = 0.0 if self.verbose > 1 else _TERMINAL if self.live else _PIPE
        self._clock = clock
        self._shown_at = -math.inf
        self._unshown: Event | None = None
        self._last: Event | None = None
        self._heard_at = math.inf
        self._record = _RECORD.get()
        self._lock = threading.Lock()
        self._over = threading.Event()

    def __call__(self, event: Event) -> None:
        with self._lock:
            if self._record is not None:
                self._record.append(event)
            if self.verbose == 0:
                return
            first, self._unshown, self._last = self._last is None, event, event
            self._heard_at = self._clock()
            if first or self._clock() - self._shown_at >= self._every:
                self._show()

    def __enter__(self) -> Callable[[Event], None] | None:
        if self.verbose == 1:
            self._heard_at = self._clock()
            threading.Thread(target=self._beat, daemon=True).start()
        return self if self.verbose > 0 or self._record is not None else None

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._over.set()
        with self._lock:
            if self._unshown is not None:
                self._show()
            if self.live and self._shown_at > -math.inf:
                self.stream.write("\n")
                self.stream.flush()

    def _beat(self) -> None:
        while not self._over.wait(_SILENCE / 2):
            with self._lock:
                if notices.status_is_shown():  # a line about compiling, and nothing else
                    self._heard_at = self._clock()
                silent = self._clock() - self._heard_at
                due = self._clock() - self._shown_at >= max(self._every, _SILENCE / 2)
                if silent >= _SILENCE and due and not self._over.is_set():
                    self._unshown = self._later(silent)
                    self._show()

    def _later(self, silent: float) -> Event:
        """What was heard last, as many seconds older."""
        if self._last is None:
            from margotree.engines import Event

            return Event(phase="preparing", elapsed=silent)
        return replace(self._last, elapsed=self._last.elapsed + silent)

    def _show(self) -> None:
        assert self._unshown is not None
        line = format_event(self._unshown)
        if self.live:
            # A line that wraps could not be replaced by the next one.
            room = max(20, shutil.get_terminal_size().columns - 1)
            line = (line if len(line) <= room else format_event(self._unshown, brief=True))[:room]
        # Carriage return first and erase-to-end last: the cursor rests behind the text.
        self.stream.write(f"\r{line}\x1b[K" if self.live else f"{line}\n")
        self.stream.flush()
        self._shown_at, self._unshown = self._clock(), None


def format_event(event: Event, *, brief: bool = False) -> str:
    """One line: phase, seconds, what is proved so far, the best tree's value, the bound, the search nodes.

    A ``brief`` line shows the gap alone in place of the sentence about it.
    """
    from margotree.solution import gap_statement, gap_text  # imports NumPy, which help and completion do without

    incumbent = f"{event.incumbent:.6g}" if math.isfinite(event.incumbent) else "none yet"
    bound = f"{event.bound:.6g}" if math.isfinite(event.bound) else "none yet"
    parts = [f"{event.phase} {event.elapsed:.1f} s"]
    if math.isfinite(event.incumbent) or math.isfinite(event.bound):
        proved = f"gap {gap_text(event.gap)}" if brief else gap_statement(event.gap)
        parts += [proved, f"incumbent {incumbent}", f"bound {bound}"]
    else:
        parts.append("no tree yet")
    if event.nodes:
        parts.append(f"nodes {event.nodes}" + (f" ({event.open_nodes} open)" if event.open_nodes else ""))
    if event.message:
        parts.append(event.message)
    return ", ".join(parts)
