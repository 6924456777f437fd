"""How kernels are compiled: once per installation, cached on disk, without the GIL, in plain IEEE arithmetic."""

from __future__ import annotations

from functools import partial

from numba import njit

#: For functions that Python calls.
kernel = partial(njit, cache=True, nogil=True, error_model="numpy")
#: For functions that only kernels call: without the wrapper that unpacks Python arguments, which takes long to compile.
inner = partial(kernel, no_cpython_wrapper=True, no_cfunc_wrapper=True)
