"""Old import paths and names that keep working for one release, with a ``FutureWarning``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def forward(old: str, *new: str) -> Callable[[str], Any]:
    """Return a module-level ``__getattr__`` that looks names up in the packages that replace ``old``."""

    def look_up(name: str) -> Any:
        if not name.startswith("__"):
            for package in new:
                if hasattr(module := import_module(package), name):
                    text = f"{old} is deprecated and will be removed in 0.3; import {name} from {package} instead"
                    warnings.warn(text, FutureWarning, stacklevel=2)
                    return getattr(module, name)
        raise AttributeError(f"module {old!r} has no attribute {name!r}")

    return look_up


def renamed(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module-level ``__getattr__`` for names of ``package`` that were replaced: old to new."""

    def look_up(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        text = f"{package}.{name} is deprecated and will be removed in 0.3; use {package}.{names[name]} instead"
        warnings.warn(text, FutureWarning, stacklevel=2)
        return getattr(import_module(package), names[name])

    return look_up
