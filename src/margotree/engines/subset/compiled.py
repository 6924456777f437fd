"""How the compiled code of this folder is compiled."""

from __future__ import annotations

from typing import Any

from numba import njit

_WITHOUT_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

#: For functions that only compiled code calls: without wrappers for Python they compile in two thirds of the time, and
#: the cached entry point contains them.
inner = njit(nogil=True, **_WITHOUT_WRAPPERS)
