"""The progress of a list of fits: one line that is updated on a terminal, a line every 10 seconds in a pipe."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import TextIO

#: Seconds between two lines, on a terminal and in a pipe.
_TERMINAL, _PIPE = 0.2, 10.0


class FitCounter:
    """Counts finished fits and writes the line of progress.

    Parameters
    ----------
    total : int
        The number of fits.
    known : int
        How many of them were in the file of results already.
    verbose : int
        0 writes nothing, 1 a line of progress, 2 one line per fit.
    seconds : float
        The time limit of all fits together.
    """

    def __init__(
        self, total: int, known: int = 0, *, verbose: int = 1, stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic, seconds: float = math.inf,
    ) -> None:  # fmt: skip
        self.total, self.known, self.done = total, known, 0
        self.stream = stream if stream is not None else sys.stderr
        self.verbose = int(verbose)
        self._live = self.verbose == 1 and self.stream.isatty()
        self._seconds = seconds
        self._clock, self._began, self._shown = clock, clock(), -float("inf")

    def add(self, message: str = "") -> None:
        """Count one more fit; ``message`` is appended to the line."""
        self.done += 1
        now = self._clock()
        every = 0.0 if self.verbose > 1 else _TERMINAL if self._live else _PIPE
        last = self.known + self.done == self.total
        if self.verbose and (last or now - self._shown >= every):
            self._shown = now
            self._show(self.line(message))
            if self._live and last:
                self.stream.write("\n")

    def end(self) -> None:
        """End the line on a terminal, so that the next output begins a new line."""
        if self._live and self.done and self.known + self.done < self.total:
            self.stream.write("\n")
            self.stream.flush()

    def line(self, message: str = "") -> str:
        """The line: fits done, time elapsed, and an estimate of the time left."""
        elapsed, left = self._clock() - self._began, self.total - self.known - self.done
        words = [f"{self.known + self.done} of {self.total} fits", f"{duration(elapsed)} elapsed"]
        if left and self.done:
            seconds = min(elapsed / self.done * left, max(0.0, self._seconds - elapsed))
            words.append(f"about {duration(seconds)} left")
        return ", ".join([*words, *([message] if message else [])])

    def _show(self, line: str) -> None:
        self.stream.write(f"\r{line}\x1b[K" if self._live else f"{line}\n")
        self.stream.flush()


def duration(seconds: float) -> str:
    """Format seconds: 42 s, 3:05 min, 1:02:07 h."""
    whole = int(round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, s = divmod(whole, 60)
    return f"{minutes}:{s:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{s:02d} h"
