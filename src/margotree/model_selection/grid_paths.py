"""Paths through a grid on which consecutive settings are similar, so that one tree is a good start for the next."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

#: The parameter that changes along a path: the first of these that a setting has.
_PATH_PARAMETERS = ("C", "c1", "alpha")


def grid_paths(settings: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Group the positions of the settings into paths along increasing C of the root (or c1, or alpha).

    A fit starts from the tree of the setting before it.  Strong regularisation comes first, because its trees are the
    fastest to certify.  The paths depend on the grid only; therefore a search is the same on one core and on many.
    """
    groups: dict[str, list[tuple[float, int]]] = {}
    for k, setting in enumerate(settings):
        position, rest = _position(setting)
        groups.setdefault(rest, []).append((position, k))
    return [[k for _, k in sorted(group)] for group in groups.values()]


def _position(setting: Mapping[str, Any]) -> tuple[float, str]:
    """The value of a setting along its path, and a key that all settings of the path have in common."""
    name = next((n for n in _PATH_PARAMETERS if n in setting), None)
    others = {n: value for n, value in setting.items() if n != name}
    if name is None:
        return 0.0, _text(others)
    value = setting[name]
    levels = list(value) if isinstance(value, (list, tuple)) else [value]
    return float(levels[0]), _text({**others, name: levels[1:]})


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
