"""The decorators of compiled functions and of structs: without the GIL, in plain IEEE arithmetic, kept on disk."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

from margotree.engines.numba_backend.choice import ways
from margotree.notices import print_once

try:
    from margotree.engines.numba_backend.disk_cache import KernelCache
except ImportError:  # another version of Numba
    KernelCache = None  # type: ignore[assignment, misc]

T = TypeVar("T")

#: Where kernels are, and how to recognise a file that has some.
_HOME = Path(__file__).resolve().parents[2]
_HAS_KERNELS = re.compile(rb"^\s*@(kernel|inner|struct)\b", re.M)
#: The files of this package that machine code does not depend on.
_NOT_COMPILING = {"__init__.py", "ahead_of_time.py"}

#: Options of all compiled functions: no wrappers, but entry points have the one by which Python calls them.
_SETTINGS = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function: Any = None, *, allocates: bool = True, **options: Any) -> Any:
    """Decorate a function that Python calls: compiled at its first call, once per installation.

    Machine code on disk is used if no kernel's source has changed, whichever file it is in, and if the file is intact
    (:mod:`margotree.engines.numba_backend.disk_cache`).

    Parameters
    ----------
    allocates : bool
        Whether the function makes arrays.  False leaves out counting references to arrays, one atomic addition each at
        every call.  Such functions may return views only to each other, and call only each other.
    **options
        Further options of `numba.njit`.
    """
    settings = {**_SETTINGS, "no_cpython_wrapper": False, **_ours(True, allocates), **options}

    def compiled(function: Any) -> Any:
        dispatcher = _dispatcher(function, settings)
        if KernelCache is None:
            print_once("compiled kernels are not saved: this version of Numba is too new; install numba<0.69")
            return dispatcher
        try:
            dispatcher._cache = KernelCache(function, fingerprint())
        except RuntimeError:  # no folder to keep machine code in
            print_once("no folder can be written to keep compiled kernels in, so they do not last; set NUMBA_CACHE_DIR")
        return dispatcher

    return compiled if function is None else compiled(function)


def inner(function: Any = None, *, allocates: bool = True, **options: Any) -> Any:
    """Decorate a function that only kernels call: the cached entry point contains it.

    It has no wrapper that unpacks Python arguments and no machine code of its own.  Python must not call it.  The
    parameters are those of :func:`kernel`.
    """
    settings = {**_SETTINGS, **_ours(False, allocates), **options}

    def compiled(function: Any) -> Any:
        return _dispatcher(function, settings)

    return compiled if function is None else compiled(function)


def struct(kind: type[T]) -> type[T]:
    """Decorate a named tuple of arrays and numbers: compiled functions get its address, and do not write to it."""
    if "structs" in ways():
        from margotree.engines.numba_backend.structs import register

        register(kind)
    return kind


@cache
def fingerprint() -> str:
    """A digest of all kernels' sources and of how they are compiled."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for path in sorted(_HOME.rglob("*.py")):
        source = path.read_bytes()
        if (path.parent == here and path.name not in _NOT_COMPILING) or _HAS_KERNELS.search(source):
            digest.update(source)
    return digest.hexdigest()


def _dispatcher(function: Any, settings: dict[str, Any]) -> Any:
    dispatcher = njit(**settings)(function)
    if "literals" in ways():
        from margotree.engines.numba_backend.linking import without_literals

        without_literals(dispatcher)
    return dispatcher


def _ours(entry: bool, allocates: bool) -> dict[str, Any]:
    """Options of `njit` that build on Numba's internals."""
    if not ways():
        return {}
    from margotree.engines.numba_backend.linking import pipeline

    return pipeline(entry=entry, counted=allocates)
