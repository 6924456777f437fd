"""The decorators of compiled functions and of structs: without the GIL, with IEEE arithmetic, cached on disk."""

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

#: The root of the package, and the pattern of files that contain kernels.
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]
_HAS_KERNELS = re.compile(rb"^\s*@(kernel|inner|struct)\b", re.M)
#: Files of this package that machine code does not depend on.
_NOT_COMPILING = {"__init__.py", "ahead_of_time.py"}

#: Options of all compiled functions: no wrappers; entry points have the one by which Python calls them.
_SETTINGS = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function: Any = None, *, allocates: bool = True, **options: Any) -> Any:
    """Decorate a function that Python calls: compiled at its first call, once per installation.

    Machine code on disk is used if no kernel's source has changed, whichever file it is in, and if the file is intact
    (:mod:`margotree.engines.numba_backend.disk_cache`).

    Parameters
    ----------
    allocates : bool
        Whether the function creates arrays.  False omits reference counts of arrays, one atomic addition each at
        every call.  Such functions may return views only to each other, and call only each other.
    **options
        Further options of `numba.njit`.
    """
    settings = {**_SETTINGS, "no_cpython_wrapper": False, **_internal_options(True, allocates), **options}

    def compiled(function: Any) -> Any:
        dispatcher = _dispatcher(function, settings)
        if KernelCache is None:
            print_once("compiled kernels are not saved: this version of Numba is not supported; install numba<0.69")
            return dispatcher
        try:
            dispatcher._cache = KernelCache(function, fingerprint())
        except RuntimeError:  # no folder for machine code
            print_once("no folder for compiled kernels is writable, so they are not saved; set NUMBA_CACHE_DIR")
        return dispatcher

    return compiled if function is None else compiled(function)


def inner(function: Any = None, *, allocates: bool = True, **options: Any) -> Any:
    """Decorate a function that only kernels call: it is compiled into their cached machine code.

    It has no wrapper that unpacks Python arguments and no machine code of its own.  Python must not call it.  The
    parameters are those of :func:`kernel`.
    """
    settings = {**_SETTINGS, **_internal_options(False, allocates), **options}

    def compiled(function: Any) -> Any:
        return _dispatcher(function, settings)

    return compiled if function is None else compiled(function)


def struct(kind: type[T]) -> type[T]:
    """Decorate a named tuple of arrays and numbers: compiled functions receive a pointer to it and only read it."""
    if "structs" in ways():
        from margotree.engines.numba_backend.structs import register

        register(kind)
    return kind


@cache
def fingerprint() -> str:
    """A digest of the sources of all kernels and of the modules that compile them."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for path in sorted(_PACKAGE_ROOT.rglob("*.py")):
        source = path.read_bytes()
        if (path.parent == here and path.name not in _NOT_COMPILING) or _HAS_KERNELS.search(source):
            digest.update(source)
    return digest.hexdigest()


def _dispatcher(function: Any, settings: dict[str, Any]) -> Any:
    """The compiled function."""
    dispatcher = njit(**settings)(function)
    if "literals" in ways():
        from margotree.engines.numba_backend.linking import without_literals

        without_literals(dispatcher)
    return dispatcher


def _internal_options(entry: bool, allocates: bool) -> dict[str, Any]:
    """Options of `njit` that use Numba's internals."""
    if not ways():
        return {}
    from margotree.engines.numba_backend.linking import pipeline

    return pipeline(entry=entry, counted=allocates)
