"""Laws about seconds on machines that stall: limits grow with the machine's slowness, and a law is tried three times.

A fault breaks such a law each time; another process that takes the processor away breaks it once.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

#: Seconds of the yardstick below on a quiet machine.
_QUIET = 0.1


def slowness() -> float:
    """How many times slower than a quiet machine this one is now, by the clock on the wall; 1 at least."""
    began = time.perf_counter()
    sum(range(3_000_000))
    return max(1.0, (time.perf_counter() - began) / _QUIET)


def three_tries(test: Callable[..., None]) -> Callable[..., None]:
    """The test, repeated where it fails; the third failure stands."""

    @functools.wraps(test)
    def tried(*args: Any, **asked: Any) -> None:
        for _ in range(2):
            try:
                return test(*args, **asked)
            except AssertionError:
                continue
        return test(*args, **asked)

    return tried
