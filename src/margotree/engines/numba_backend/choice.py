"""Which of this package's ways of compiling are used; without them Numba compiles in its own way."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module

import numba

#: The environment variable that selects Numba's own compilation ("plain") or switches off single ways ("without
#: lowering,structs"), to measure what they save.
VARIABLE = "MARGOTREE_NUMBA"
#: The first and the last version of Numba with which the tests pass.
TESTED = (0, 61), (0, 68)
#: The modules that build on Numba's internals.
_INTERNALS = (".linking", ".structs")
#: All ways: inner functions linked before they are optimised; literal arguments typed like others; short lowering;
#: cached types of calls; structs passed by pointer; no reference counts.
WAYS = ("linking", "literals", "lowering", "cached_typing", "structs", "references")


@cache
def ways() -> frozenset[str]:
    """The ways in use: none if Numba's own compilation is selected, or if this version of Numba may not allow them."""
    asked = os.environ.get(VARIABLE, "")
    if asked == "plain" or not _internals_are_there():
        return frozenset()
    without = asked.removeprefix("without ").split(",") if asked else []
    if asked and (not asked.startswith("without ") or not set(without) <= set(WAYS)):
        raise ValueError(f'{VARIABLE} must be "plain", or "without" some of {", ".join(WAYS)}; got {asked!r}')
    return frozenset(WAYS) - set(without)


def plain() -> bool:
    """Whether kernels are compiled in Numba's own way."""
    return not ways()


def _internals_are_there() -> bool:
    """Whether Numba has a tested version and all internals that this package uses."""
    if not TESTED[0] <= numba.version_info.short <= TESTED[1]:
        return False
    try:
        for name in _INTERNALS:
            import_module(name, __package__)
    except (ImportError, AttributeError):
        return False
    return True
