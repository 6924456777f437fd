"""Which of this package's ways of compiling are used; without them Numba compiles in its own way."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module

import numba

#: The environment variable that selects Numba's own compilation ("plain") or switches off single ways ("without
#: lowering,structs"), to measure what they save.
VARIABLE = "MARGOTREE_NUMBA"
#: The first and the last version of Numba that the tests have passed with.
TESTED = (0, 61), (0, 68)
#: The modules that build on Numba's internals.
_INTERNALS = (".linking", ".structs")
#: All ways: inner functions linked before they are optimised; calls with literal arguments typed as others; short
#: lowering; typing of calls remembered; structs passed by address; references not counted.
WAYS = ("linking", "literals", "lowering", "cached_typing", "structs", "references")


@cache
def ways() -> frozenset[str]:
    """The ways in use: none if Numba's own compilation is asked for, or if this version is not known to allow them."""
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
    """Whether Numba is of a tested version and has all that this package builds on."""
    if not TESTED[0] <= numba.version_info.short <= TESTED[1]:
        return False
    try:
        for name in _INTERNALS:
            import_module(name, __package__)
    except (ImportError, AttributeError):
        return False
    return True
