"""Compile parts of the kernels in parallel, each in a process of its own, before the clock of a fit starts.

A part is a function that calls some entry points on a tiny problem.  Helper processes write the machine code to the
cache, from which this process loads it; Numba compiles one function at a time per process.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from margotree.engines.numba_backend.decorators import fingerprint, kernel
from margotree.engines.numba_backend.sealed_files import can_save, variant
from margotree.notices import status

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

#: Seconds before something is printed: if parts are missing, and if all only have to be loaded.
_SILENT_SECONDS, _SILENT_SECONDS_LOADING = 1.0, 4.0

#: The name of this module, also when it is run as a script.
MODULE = "margotree.engines.numba_backend.ahead_of_time"

#: Parts that have been compiled or loaded in this process.
_compiled: set[str] = set()


class Part(NamedTuple):
    """Kernels that are compiled by calling one function.

    Parameters
    ----------
    name : str
        "module:function" or, with a text as its argument, "module:function:argument".
    seconds : float
        Approximate compile time on one core, 0 if the function only calls kernels of other parts.
    includes : tuple of Part
        Parts whose kernels this part compiles, too.
    """

    name: str
    seconds: float = 0.0
    includes: tuple[Part, ...] = ()

    def __str__(self) -> str:
        return " ".join(self.name.split(":")[1:]).replace("_", " ")


@kernel()
def _probe() -> int:
    """A kernel whose cache folder is that of all kernels."""
    return 0


def compile_ahead(parts: Iterable[Part]) -> None:
    """Compile or load these parts; if that takes long, show on stderr what is done and the remaining time."""
    todo = [part for part in dict.fromkeys(parts) if part.name not in _compiled]
    if not todo:
        return
    missing = _without_included([part for part in todo if part.seconds and not _marker(part.name).exists()])
    work = _Compilation(missing, min(_cores(), len(missing)) if len(missing) > 1 and _can_share() else 1)
    with status(work.state, work.summary, after=_SILENT_SECONDS if missing else _SILENT_SECONDS_LOADING):
        work.compile_all()
        for part in sorted(todo, key=lambda part: -part.seconds):  # loads what other processes have compiled
            run(part.name)


def _without_included(parts: list[Part]) -> list[Part]:
    """The parts that no other one includes."""
    included = {inner for part in parts for inner in _all_included(part)}
    return [part for part in parts if part not in included]


def _all_included(part: Part) -> Iterator[Part]:
    """The parts that a part includes, directly or indirectly."""
    for inner in part.includes:
        yield inner
        yield from _all_included(inner)


class _Compilation:
    """The compilation of parts by this process and by helper processes."""

    def __init__(self, missing: Sequence[Part], processes: int) -> None:
        self.waiting = deque(sorted(missing, key=lambda part: -part.seconds))
        self.processes, self.n = processes, len(missing)
        self.running: list[Part] = []
        self.done: list[Part] = []
        self.seconds, self.began = sum(part.seconds for part in missing), time.monotonic()

    def compile_all(self) -> None:
        """Compile all parts."""
        helpers = [threading.Thread(target=self._compile_elsewhere, daemon=True) for _ in range(self.processes - 1)]
        for helper in helpers:
            helper.start()
        while (part := self._next()) is not None:
            run(part.name)
            self._finish(part)
        for helper in helpers:
            helper.join()

    def _compile_elsewhere(self) -> None:
        """Compile parts in helper processes; a part that fails there is compiled again here, which raises its error."""
        while (part := self._next()) is not None:
            subprocess.run(
                [sys.executable, "-m", MODULE, part.name],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
            self._finish(part)

    def _next(self) -> Part | None:
        """The next part to compile, or None."""
        try:
            part = self.waiting.popleft()
        except IndexError:
            return None
        self.running.append(part)
        return part

    def _finish(self, part: Part) -> None:
        self.running.remove(part)
        self.done.append(part)

    def state(self) -> str:
        """What is compiled, how many parts are done, and the remaining time."""
        if not self.n:
            return "loading compiled kernels"
        todo = ", ".join(map(str, [*self.running, *self.waiting]))
        return (
            f"compiling kernels: {len(self.done)} of {self.n} parts done, about {self._seconds_left():.0f} s left"
            f" (once per installation; {self.processes} process{'es' * (self.processes > 1)}): {todo}"
        )

    def _seconds_left(self) -> float:
        """Seconds until all is compiled, from the speed so far."""
        elapsed, done = time.monotonic() - self.began, sum(part.seconds for part in [*self.done])
        slowdown = elapsed * self.processes / done if done else 1.0
        return max(1.0, slowdown * self.seconds / self.processes - elapsed)

    def summary(self) -> str:
        """The last line."""
        seconds = time.monotonic() - self.began
        parts = f"{self.n} part{'s' * (self.n > 1)} of the kernels"
        return f"compiled {parts} in {seconds:.1f} s" if self.n else "loaded compiled kernels"


def run(name: str) -> None:
    """Compile or load the part of this name in this process."""
    if name in _compiled:
        return
    module, function, *argument = name.split(":")
    with compile_lock(name):
        getattr(importlib.import_module(module), function)(*argument)
    _compiled.add(name)
    if _cache_folder() is not None:
        with suppress(OSError):
            _marker(name).touch()


@contextmanager
def compile_lock(part: str) -> Iterator[None]:
    """Hold the lock of a part: one process at a time compiles it, and the others wait and find it in the cache.

    If several fits start at once on a new installation, as in a grid search, nothing is compiled twice.
    """
    lock = None
    if fcntl is not None and _cache_folder() is not None and not _marker(part).exists():
        with suppress(OSError):  # without a lock the part may be compiled twice
            lock = _marker(part).with_suffix(".lock").open("w")
            fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if lock is not None:
            lock.close()


def _cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _can_share() -> bool:
    """Whether helper processes can pass machine code to this one."""
    folder = _cache_folder()
    return folder is not None and can_save(folder)


def _cache_folder() -> Path | None:
    """The folder of the cache if it is writable, else None."""
    path = getattr(getattr(_probe, "stats", None), "cache_path", None)
    return Path(path) if path and os.access(path, os.W_OK) else None


def _marker(part: str) -> Path:
    """A file that exists if a part is in the cache; a hint only, which may be wrong."""
    folder = _cache_folder() or Path(os.devnull)
    version = hashlib.sha256(f"{sys.implementation.cache_tag}{variant()}{fingerprint()}".encode()).hexdigest()
    return folder / f"{part.replace(':', '.')}-{version[:16]}.compiled"


if __name__ == "__main__":
    from margotree.engines.numba_backend.ahead_of_time import run as run_part

    for name in sys.argv[1:]:
        run_part(name)
