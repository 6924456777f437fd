"""A cache for the result types of calls of operators and functions, by the types of their arguments.

At every call Numba tries all implementations of an operator, dozens for each ``+``, when it infers types and again when
it generates code.  The result is always the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba import types
from numba.core.targetconfig import ConfigStack

from margotree.engines.numba_backend.choice import ways

_Function: Any = types.Function
_uncached_call_type = _Function.get_call_type
#: Result types by function, types of arguments and settings.
_call_types: dict[Any, Any] = {}
#: Settings as text by the id of the object; the object is kept so that the id stays unique.
_settings: dict[int, tuple[str, Any]] = {}
_depth = 0


@contextmanager
def cached_call_types() -> Iterator[None]:
    """Use the cache inside the block.  The caller holds Numba's lock."""
    global _depth
    _depth += 1
    if "cached_typing" in ways():
        _Function.get_call_type = _cached_call_type
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0:
            _Function.get_call_type = _uncached_call_type
            _settings.clear()


def _cached_call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """The result type of a call, from the cache if it is there."""
    if kws:
        return _uncached_call_type(function, context, args, kws)
    flags = ConfigStack.top_or_none()
    if id(flags) not in _settings:
        _settings[id(flags)] = str(flags), flags
    key = function, args, _settings[id(flags)][0]
    if key not in _call_types:
        _call_types[key] = _uncached_call_type(function, context, args, kws)
    return _call_types[key]
