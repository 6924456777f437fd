"""What a call of an operator or of one of Numba's functions gives, by the types of its arguments: asked once.

Numba goes through all that it knows of an operator at every call, dozens of ways to add for each ``+``, and does so
again when it writes the call down.  The answer is always the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba import types
from numba.core.targetconfig import ConfigStack

from margotree.engines.numba_backend.choice import ways

_Function: Any = types.Function
_ask = _Function.get_call_type
#: Answers by function, types of arguments and settings.
_known: dict[Any, Any] = {}
#: Settings as text by the address of the object, which is kept so that the address stays its own.
_settings: dict[int, tuple[str, Any]] = {}
_depth = 0


@contextmanager
def remembered() -> Iterator[None]:
    """Inside, answers are kept.  The caller holds Numba's lock."""
    global _depth
    _depth += 1
    if "cached_typing" in ways():
        _Function.get_call_type = _answer
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0:
            _Function.get_call_type = _ask
            _settings.clear()


def _answer(function: Any, context: Any, args: Any, kws: Any) -> Any:
    if kws:
        return _ask(function, context, args, kws)
    flags = ConfigStack.top_or_none()
    if id(flags) not in _settings:
        _settings[id(flags)] = str(flags), flags
    key = function, args, _settings[id(flags)][0]
    if key not in _known:
        _known[key] = _ask(function, context, args, kws)
    return _known[key]
