"""How kernels are compiled: once per installation, cached on disk, without the GIL, in plain IEEE arithmetic."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from numba import njit

#: For functions that Python calls.
kernel: Any = partial(njit, cache=True, nogil=True, error_model="numpy")
#: For functions that only kernels call: without the wrapper that unpacks Python arguments, which takes long to compile.
#: The cached entry point contains them.  Python must not call them.
inner: Any = partial(njit, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)

#: Seconds after which loading from the cache can no longer be what takes so long.
_PATIENCE = 4.0


@contextmanager
def compiling() -> Iterator[None]:
    """Around a first call of kernels: if it takes long, say on stderr what is going on."""
    notice = threading.Timer(_PATIENCE, _say)
    notice.daemon = True
    notice.start()
    try:
        yield
    finally:
        notice.cancel()


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


def _say() -> None:
    print("margotree: compiling its kernels, once per installation; this takes a few minutes", file=sys.stderr)
