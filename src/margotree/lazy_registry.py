"""What lower layers offer and higher ones do: found by name when it is asked for.

A tree has a method that draws it, but drawing builds on trees, not the other way round.  So the tree asks here, and
``margotree/__init__.py``, which lies above all, has said where to look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

_HOMES: dict[str, str] = {}


def provide(homes: Mapping[str, str]) -> None:
    """Say where functions live: ``{"plot_tree": "package.module"}``; nothing is imported yet."""
    _HOMES.update(homes)


def is_registered(name: str) -> bool:
    return name in _HOMES


def get(name: str) -> Callable[..., Any]:
    """The function of this name, imported now; what stands before a space is its name there (``"restate oct_1"``)."""
    function: Callable[..., Any] = getattr(import_module(_HOMES[name]), name.split()[0])
    return function
