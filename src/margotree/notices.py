"""Warnings of fits, and lines on stderr other than a fit's progress: those printed once, and a long preparation."""

from __future__ import annotations

import shutil
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

#: Topics that have been printed.
_printed: set[str] = set()
#: Number of status lines that are shown now.
_shown = 0

_WARNINGS_SUPPRESSED: ContextVar[bool] = ContextVar("warnings_suppressed", default=False)


@contextmanager
def without_fit_warnings() -> Iterator[None]:
    """Suppress the warnings of fits in this context and thread, as in a search that also tries poor settings."""
    token = _WARNINGS_SUPPRESSED.set(True)
    try:
        yield
    finally:
        _WARNINGS_SUPPRESSED.reset(token)


def warn_from_fit(message: str, category: type[UserWarning]) -> None:
    """Issue a warning at the caller of ``fit``, unless the message is empty or warnings are suppressed."""
    if message and not _WARNINGS_SUPPRESSED.get():
        warnings.warn(message, category, stacklevel=3)


def print_once(text: str, topic: str | None = None) -> None:
    """Print a line on stderr, unless this text, or any text on the same topic, was printed in this process."""
    if (topic or text) not in _printed:
        _printed.add(topic or text)
        print(f"margotree: {text}", file=sys.stderr)


def status_is_shown() -> bool:
    """Whether a status line is on stderr now, so that other progress is not written over it."""
    return _shown > 0


@contextmanager
def status(
    text: Callable[[], str], finished: Callable[[], str], *, after: float = 0.0, every: float = 0.5
) -> Iterator[None]:
    """Show the state of the block on stderr if it takes longer than ``after`` seconds.

    On a terminal one line is rewritten in place.  A log file gets one line at the start, and another one at the end.

    Parameters
    ----------
    text : callable
        Returns the current state.
    finished : callable
        Returns the last line, printed when the block ends without an error.
    after : float
        Seconds before the first line.
    every : float
        Seconds between two updates of a line on a terminal.
    """
    line, ended = _Line(sys.stderr), threading.Event()
    thread = threading.Thread(target=_rewrite, args=(line, text, ended, after, every), daemon=True)
    thread.start()
    last = ""
    try:
        yield
        last = finished()
    finally:
        ended.set()
        thread.join()
        line.close(last)


def _rewrite(line: _Line, text: Callable[[], str], ended: threading.Event, after: float, every: float) -> None:
    """Show the line after ``after`` seconds and, on a terminal, update it until ``ended`` is set."""
    if ended.wait(after):
        return
    line.show(text())
    while line.live and not ended.wait(every):
        line.show(text())


class _Line:
    """A line that is rewritten in place on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.live, self.shown = stream, stream.isatty(), False

    def show(self, text: str) -> None:
        """Show the text, in place of the former one on a terminal."""
        global _shown
        if not self.shown:
            self.shown = True
            _shown += 1
        self._write(text)

    def close(self, text: str) -> None:
        """Print the last text, if there is one, and end the line, if it was shown."""
        global _shown
        if not self.shown:
            return
        if text:
            self._write(text)
        if self.live:
            self.stream.write("\n")
            self.stream.flush()
        _shown -= 1

    def _write(self, text: str) -> None:
        text = f"margotree: {text}"
        if self.live:  # a line that wraps could not be rewritten
            text = text[: max(20, shutil.get_terminal_size().columns - 1)]
        self.stream.write(f"\r{text}\x1b[K" if self.live else f"{text}\n")
        self.stream.flush()
