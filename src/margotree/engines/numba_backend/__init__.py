"""All code that uses Numba's internals: how kernels are compiled, cached on disk and compiled ahead of a fit.

Kernels use three names:

- :func:`kernel`, for functions that Python calls (entry points);
- :func:`inner`, for functions that only kernels call;
- :func:`struct`, for named tuples of arrays and numbers that are passed by pointer.

Engines use :func:`compile_ahead` with the :class:`Part` s of the kernels that they call.

Start reading in ``decorators.py``.  It builds on

- ``choice.py``: whether kernels are compiled in the ways of this package or in Numba's own;
- ``linking.py``: inner functions become machine code once, inside their entry points;
- ``lowering.py``: array entries and loops in few instructions;
- ``cached_typing.py``: a cache for the types of calls;
- ``structs.py``: structs passed by pointer;
- ``disk_cache.py`` and ``sealed_files.py``: machine code on disk;
- ``ahead_of_time.py``: parts of the kernels compiled in parallel, before a fit's clock starts.

docs/compiling.md has measurements of what each of these saves.  With a version of Numba other than those tested, or
with ``MARGOTREE_NUMBA=plain``, kernels are compiled in Numba's own way, which takes longer and gives the same results.
"""

from margotree.engines.numba_backend.ahead_of_time import Part, compile_ahead
from margotree.engines.numba_backend.decorators import inner, kernel, struct

__all__ = ["Part", "compile_ahead", "inner", "kernel", "struct"]
