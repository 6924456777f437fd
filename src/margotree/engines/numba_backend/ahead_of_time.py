"""Compile parts of the kernels at the same time, each in a process of its own, before the clock of a fit starts.

A part is a function that calls some entry points on a tiny problem.  Other processes leave the machine code in the
cache, from where this one loads it; Numba compiles one function at a time per process.
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

#: Seconds before something is printed: if parts are missing, and if all should only have to be loaded.
_PATIENCE, _PATIENCE_LOADING = 1.0, 4.0

#: This module, however it is run.
MODULE = "margotree.engines.numba_backend.ahead_of_time"

#: Parts that are compiled or loaded in this process.
_ready: set[str] = set()


class Part(NamedTuple):
    """Kernels that are compiled by calling one function.

    ``name`` is "module:function" or, with a text as its argument, "module:function:argument".  Compiling takes about
    ``seconds`` on one core, 0 if the function only calls kernels of other parts.  A part that ``includes`` others
    compiles all of theirs.
    """

    name: str
    seconds: float = 0.0
    includes: tuple[Part, ...] = ()

    def __str__(self) -> str:
        return " ".join(self.name.split(":")[1:]).replace("_", " ")


@kernel()
def _probe() -> int:
    """Nothing; it tells where machine code is kept."""
    return 0


def compile_ahead(parts: Iterable[Part]) -> None:
    """Compile or load these parts; if that takes a while, show on stderr what is done and how long it will take."""
    todo = [part for part in dict.fromkeys(parts) if part.name not in _ready]
    if not todo:
        return
    missing = _without_included([part for part in todo if part.seconds and not _marker(part.name).exists()])
    work = _Work(missing, min(_cores(), len(missing)) if len(missing) > 1 and _saves() else 1)
    with status(work.state, work.summary, after=_PATIENCE if missing else _PATIENCE_LOADING):
        work.do()
        for part in sorted(todo, key=lambda part: -part.seconds):  # what others have compiled is loaded
            run(part.name)


def _without_included(parts: list[Part]) -> list[Part]:
    """The parts that no other one compiles."""
    included = {inner for part in parts for inner in _all_included(part)}
    return [part for part in parts if part not in included]


def _all_included(part: Part) -> Iterator[Part]:
    for inner in part.includes:
        yield inner
        yield from _all_included(inner)


class _Work:
    """Parts that are compiled by this process and by others that help."""

    def __init__(self, missing: Sequence[Part], processes: int) -> None:
        self.waiting = deque(sorted(missing, key=lambda part: -part.seconds))
        self.processes, self.n = processes, len(missing)
        self.under_way: list[Part] = []
        self.done: list[Part] = []
        self.seconds, self.began = sum(part.seconds for part in missing), time.monotonic()

    def do(self) -> None:
        helpers = [threading.Thread(target=self._help, daemon=True) for _ in range(self.processes - 1)]
        for helper in helpers:
            helper.start()
        while (part := self._next()) is not None:
            run(part.name)
            self._finish(part)
        for helper in helpers:
            helper.join()

    def _help(self) -> None:
        """Have parts compiled by other processes; one that fails is left to this process, which raises its error."""
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
        try:
            part = self.waiting.popleft()
        except IndexError:
            return None
        self.under_way.append(part)
        return part

    def _finish(self, part: Part) -> None:
        self.under_way.remove(part)
        self.done.append(part)

    def state(self) -> str:
        """What is compiled, how many parts are done and how long the rest will take."""
        if not self.n:
            return "loading compiled kernels"
        todo = ", ".join(map(str, [*self.under_way, *self.waiting]))
        return (
            f"compiling kernels: {len(self.done)} of {self.n} parts done, about {self._left():.0f} s left"
            f" (once per installation; {self.processes} process{'es' * (self.processes > 1)}): {todo}"
        )

    def _left(self) -> float:
        """Seconds until all is compiled, by the speed so far."""
        elapsed, done = time.monotonic() - self.began, sum(part.seconds for part in [*self.done])
        pace = elapsed * self.processes / done if done else 1.0
        return max(1.0, pace * self.seconds / self.processes - elapsed)

    def summary(self) -> str:
        seconds = time.monotonic() - self.began
        parts = f"{self.n} part{'s' * (self.n > 1)} of the kernels"
        return f"compiled {parts} in {seconds:.1f} s" if self.n else "loaded compiled kernels"


def run(name: str) -> None:
    """Compile or load the part of this name in this process."""
    if name in _ready:
        return
    module, function, *argument = name.split(":")
    with alone(name):
        getattr(importlib.import_module(module), function)(*argument)
    _ready.add(name)
    if _cache_folder() is not None:
        with suppress(OSError):
            _marker(name).touch()


@contextmanager
def alone(part: str) -> Iterator[None]:
    """One process at a time compiles a part; those that come later wait, and find it in the cache.

    Where several fits begin at once on a new installation, as in a grid search, nothing is compiled twice.
    """
    lock = None
    if fcntl is not None and _cache_folder() is not None and not _marker(part).exists():
        with suppress(OSError):  # without a lock: better twice than never
            lock = _marker(part).with_suffix(".lock").open("w")
            fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if lock is not None:
            lock.close()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _saves() -> bool:
    """Whether what other processes compile can reach this one."""
    folder = _cache_folder()
    return folder is not None and can_save(folder)


def _cache_folder() -> Path | None:
    """Where machine code is kept, if it is."""
    path = getattr(getattr(_probe, "stats", None), "cache_path", None)
    return Path(path) if path and os.access(path, os.W_OK) else None


def _marker(part: str) -> Path:
    """A file that exists if a part is in the cache; only a hint, nothing is wrong if it is."""
    folder = _cache_folder() or Path(os.devnull)
    version = hashlib.sha256(f"{sys.implementation.cache_tag}{variant()}{fingerprint()}".encode()).hexdigest()
    return folder / f"{part.replace(':', '.')}-{version[:16]}.compiled"


if __name__ == "__main__":
    from margotree.engines.numba_backend.ahead_of_time import run as run_part

    for name in sys.argv[1:]:
        run_part(name)
