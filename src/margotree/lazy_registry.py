"""A registry of functions of higher layers that lower layers call; a function is imported when it is first used.

For example, a tree has a method that draws it, but drawing is built on trees.  The method therefore takes the function
from this registry, and ``margotree/__init__.py`` has registered where it is defined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

_MODULES: dict[str, str] = {}


def provide(modules: Mapping[str, str]) -> None:
    """Register functions and their modules, ``{"plot_tree": "package.module"}``; nothing is imported yet."""
    _MODULES.update(modules)


def is_registered(name: str) -> bool:
    """Whether a function of this name is registered."""
    return name in _MODULES


def get(name: str) -> Callable[..., Any]:
    """Import and return the function of this name.

    The registered name may have a suffix after a space, which is not part of the function's name (``"restate oct_1"``).
    """
    function: Callable[..., Any] = getattr(import_module(_MODULES[name]), name.split()[0])
    return function
