"""How kernels are compiled: once per installation, cached on disk, without the GIL, in plain IEEE arithmetic."""

from __future__ import annotations

import hashlib
import math
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import options

from margotree.engines.kernels.disk_cache import KernelCache
from margotree.engines.kernels.linking import pipeline, without_literals
from margotree.notices import say_once

#: Where kernels live, and how to tell a file that has some.
_HOME = Path(__file__).resolve().parents[2]
_HAS_KERNELS = re.compile(rb"^\s*@(kernel|inner|bare|bare_kernel)\b", re.M)


#: What says how they are compiled.
_HOW = ("jit.py", "disk_cache.py", "linking.py", "lowering.py", "answers.py", "bundles.py")

#: Options of all compiled functions: no wrappers, but entry points have the one by which Python calls them.
_SETTINGS = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@cache
def fingerprint() -> str:
    """A digest of all kernels' sources, and of how they are compiled."""
    digest = hashlib.sha256()
    for name in _HOW:
        digest.update(Path(__file__).with_name(name).read_bytes())
    for path in sorted(_HOME.rglob("*.py")):
        if _HAS_KERNELS.search(source := path.read_bytes()):
            digest.update(source)
    return digest.hexdigest()


def kernel(function: Any = None, **more: Any) -> Any:
    """For functions that Python calls: compiled at their first call, once per installation.

    Numba takes what it has on disk for current if the file of the entry point has not changed, and does not look at
    those of the functions compiled into it.  Ours is current if no kernel has changed at all.  That holds wherever the
    machine code is kept, and when processes with old and new sources run side by side.
    """
    settings = {**_SETTINGS, "no_cpython_wrapper": False, **pipeline(entry=True), **more}

    def compiled(function: Any) -> Any:
        dispatcher = njit(**settings)(function)
        try:
            dispatcher._cache = KernelCache(function, fingerprint())
        except RuntimeError:  # no folder to keep machine code in
            say_once("no folder can be written to keep compiled kernels in, so they do not last; set NUMBA_CACHE_DIR")
        return without_literals(dispatcher)

    return compiled if function is None else compiled(function)


def inner(function: Any = None, **more: Any) -> Any:
    """For functions that only kernels call: without the wrapper that unpacks Python arguments, which takes long to
    compile, and without machine code of their own.  The cached entry point contains them.  Python must not call them.
    """
    settings = {**_SETTINGS, **pipeline(entry=False), **more}

    def compiled(function: Any) -> Any:
        return without_literals(njit(**settings)(function))

    return compiled if function is None else compiled(function)


#: Numba's option that leaves out reference counts, if this version has it.
_UNCOUNTED = {"_nrt": False} if hasattr(getattr(options, "DefaultOptions", None), "_nrt") else {}
#: The same two for functions that make no arrays.  Counting references to the arrays of a workspace, one
#: atomic addition each at every call, costs time.  They may return views only to each other,
#: and call only each other.
bare_kernel: Any = partial(kernel, **_UNCOUNTED)
bare: Any = partial(inner, **_UNCOUNTED)

@contextmanager
def raising(flag: Any, seconds: float) -> Iterator[None]:
    """Set ``flag[0]`` to 1 after so many seconds, unless the block is left before: how a clock reaches a kernel."""
    if seconds == math.inf:
        yield
        return
    timer = threading.Timer(max(0.0, seconds), flag.__setitem__, (0, 1.0))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
