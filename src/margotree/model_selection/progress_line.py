"""How far a long list of fits has come: one line, kept up to date on a terminal, now and then in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

_TERMINAL, _PIPE = 0.2, 10.0


class Tally:
    """Counts fits; ``said`` may add a few words, such as the best so far."""

    def __init__(
        self, total: int, known: int = 0, *, verbose: int = 1, stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.total, self.known, self.done = total, known, 0
        self.stream = stream if stream is not None else sys.stderr
        self.verbose = int(verbose)
        self._live = self.verbose == 1 and self.stream.isatty()
        self._clock, self._began, self._shown = clock, clock(), -float("inf")

    def add(self, said: str = "") -> None:
        """One more fit is there."""
        self.done += 1
        now = self._clock()
        every = 0.0 if self.verbose > 1 else _TERMINAL if self._live else _PIPE
        last = self.known + self.done == self.total
        if self.verbose and (last or now - self._shown >= every):
            self._shown = now
            self._show(self.line(said))
            if self._live and last:
                self.stream.write("\n")

    def end(self) -> None:
        """No more will come: what is written next begins a line of its own."""
        if self._live and self.done and self.known + self.done < self.total:
            self.stream.write("\n")
            self.stream.flush()

    def line(self, said: str = "") -> str:
        elapsed, left = self._clock() - self._began, self.total - self.known - self.done
        words = [f"{self.known + self.done} of {self.total} fits", f"{duration(elapsed)} elapsed"]
        if left and self.done:
            words.append(f"about {duration(elapsed / self.done * left)} left")
        return ", ".join([*words, *([said] if said else [])])

    def _show(self, line: str) -> None:
        self.stream.write(f"\r{line}\x1b[K" if self._live else f"{line}\n")
        self.stream.flush()


def duration(seconds: float) -> str:
    """Seconds as a person says them: 42 s, 3:05 min, 1:02:07 h."""
    whole = int(round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, s = divmod(whole, 60)
    return f"{minutes}:{s:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{s:02d} h"
