"""Compile parts of the kernels at the same time, each in a process of its own, before the clock of a fit starts.

A part is a function, "module:function", that calls some entry points on a tiny problem.  Other processes leave the
machine code in the cache, from where this one loads it.  Numba compiles one function at a time per process.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numba

from margotree.engines.kernels.jit import fingerprint, kernel, say_once

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

#: Seconds that a part takes on one core, about; what is said to somebody who waits.
_SECONDS = 12


@kernel()
def _probe() -> int:
    """Nothing; it tells where machine code is kept."""
    return 0


def compile_parts(parts: Sequence[str]) -> None:
    """Have these parts compiled or loaded; says so on stderr if that takes a while."""
    todo = [part for part in parts if part not in _ready]
    missing = deque(part for part in todo if not _marker(part).exists())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    helpers = min(cores, len(missing)) - 1 if _cache_folder() is not None else 0
    if missing:
        names = ", ".join(part.rpartition(":")[2].replace("_", " ") for part in missing)
        seconds = _SECONDS * -(-len(missing) // (1 + max(helpers, 0)))
        say_once(
            f"compiling {len(missing)} of {len(parts)} parts ({names}) with {1 + max(helpers, 0)} process(es),"
            f" once per installation; about {seconds} seconds",
            "compiling",
        )
    threads = [threading.Thread(target=_help, args=(missing,), daemon=True) for _ in range(helpers)]
    for thread in threads:
        thread.start()
    while missing:
        try:
            run(missing.pop())
        except IndexError:  # a helper was faster
            break
    for thread in threads:
        thread.join()
    for part in todo:  # what others have compiled is loaded
        run(part)


#: Parts that are compiled or loaded in this process.
_ready: set[str] = set()


def run(part: str) -> None:
    """Compile or load one part in this process."""
    if part in _ready:
        return
    module, _, function = part.partition(":")
    with alone(part):
        getattr(importlib.import_module(module), function)()
    _ready.add(part)
    if _cache_folder() is not None:
        with suppress(OSError):
            _marker(part).touch()


@contextmanager
def alone(part: str) -> Iterator[None]:
    """One process at a time compiles a part; those that come later wait, and find it in the cache.

    Where several fits begin at once on a new installation, as in a grid search, nothing is compiled twice.
    """
    lock = None
    if fcntl is not None and _cache_folder() is not None and not _marker(part).exists():
        with suppress(OSError):  # no lock is to be had: better twice than never
            lock = _marker(part).with_suffix(".lock").open("w")
            fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if lock is not None:
            lock.close()


def _help(missing: deque[str]) -> None:
    """Have parts compiled by other processes; one that fails is left to this one, which will say why."""
    while missing:
        try:
            part = missing.popleft()
        except IndexError:
            return
        subprocess.run(
            [sys.executable, "-m", "margotree.engines.kernels.parallel", part],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )


def _cache_folder() -> Path | None:
    """Where machine code is kept, if it is."""
    path = getattr(getattr(_probe, "stats", None), "cache_path", None)
    return Path(path) if path and os.access(path, os.W_OK) else None


def _marker(part: str) -> Path:
    """A file that is there if a part is in the cache; only a hint, nothing is wrong if it is."""
    folder = _cache_folder() or Path(os.devnull)
    version = f"{sys.implementation.cache_tag}-{numba.__version__}-{fingerprint()[:16]}"
    return folder / f"{part.replace(':', '.')}-{version}.compiled"


if __name__ == "__main__":
    from margotree.engines.kernels.parallel import run as run_part

    for name in sys.argv[1:]:
        run_part(name)
