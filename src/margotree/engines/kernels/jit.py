"""How kernels are compiled: once per installation, cached on disk, without the GIL, in plain IEEE arithmetic."""

from __future__ import annotations

import contextlib
import hashlib
import math
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import options

#: Where kernels live, and what their compiled forms are called.
_HOME, _COMPILED = Path(__file__).resolve().parents[2], ("*.nbi", "*.nbc")


def drop_stale(home: Path) -> bool:
    """Delete machine code below ``home`` that was compiled from other sources; returns whether there was any reason to.

    Numba looks at the file of an entry point and not at those of the functions compiled into it, so a change in one
    kernel would leave the old one running.
    """
    digest = hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        if b"kernel" in (source := path.read_bytes()):
            digest.update(source)
    stamp = home / "__pycache__" / "kernels.sha256"
    with contextlib.suppress(OSError):
        if stamp.exists() and stamp.read_text() == digest.hexdigest():
            return False
    with contextlib.suppress(OSError):  # a folder that cannot be written has nothing in it that we put there
        for pattern in _COMPILED:
            for path in home.rglob(pattern):
                path.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest.hexdigest())
    return True


drop_stale(_HOME)

#: For functions that Python calls.
kernel: Any = partial(njit, cache=True, nogil=True, error_model="numpy")
#: For functions that only kernels call: without the wrapper that unpacks Python arguments, which takes long to compile.
#: The cached entry point contains them.  Python must not call them.
inner: Any = partial(njit, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)

#: Numba's option that leaves out reference counts, if this version has it.
_UNCOUNTED = {"_nrt": False} if hasattr(getattr(options, "DefaultOptions", None), "_nrt") else {}
#: The same two for functions that make no arrays.  A state is a tuple of two dozen arrays; counting references to all
#: of them, one atomic addition each, at every call took half of the search.  They may return views only to each other,
#: and call only each other.
bare_kernel: Any = partial(kernel, **_UNCOUNTED)
bare: Any = partial(inner, **_UNCOUNTED)
#: For what only gives an entry point its structure: it is compiled as part of its callers and never by itself.
part: Any = partial(bare, inline="always")

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
