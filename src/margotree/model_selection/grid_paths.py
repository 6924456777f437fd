"""Ways through a grid on which every setting is a small step from the one before it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

#: Parameters along which one walks; the first that a setting has is taken.
_ALONG = ("C", "c1", "alpha")


def walks(settings: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Positions of the settings, grouped into walks along growing C of the root (or c1, or alpha).

    A fit starts from the tree of the setting before it.  Strong regularisation comes first: its trees are the quickest
    to prove.  The walks do not depend on anything but the grid, so a search is the same on one core and on many.
    """
    groups: dict[str, list[tuple[float, int]]] = {}
    for k, setting in enumerate(settings):
        step, rest = _step(setting)
        groups.setdefault(rest, []).append((step, k))
    return [[k for _, k in sorted(group)] for group in groups.values()]


def _step(setting: Mapping[str, Any]) -> tuple[float, str]:
    """Where on its walk a setting is, and what the walk has in common."""
    name = next((n for n in _ALONG if n in setting), None)
    others = {n: value for n, value in setting.items() if n != name}
    if name is None:
        return 0.0, _plain(others)
    value = setting[name]
    levels = list(value) if isinstance(value, (list, tuple)) else [value]
    return float(levels[0]), _plain({**others, name: levels[1:]})


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
