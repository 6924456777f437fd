"""Checks of the entries of a tree file: a value of a wrong type raises a ValueError that names the entry."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margotree.table.encoding_json import check_record


def number(name: str, value: Any) -> float:
    """A finite number."""
    if not _is_number(value):
        raise ValueError(f"{name} must be a number, got {value!r:.80}")
    return float(value)


def array(name: str, value: Any, ndim: int, *, whole: bool = False) -> NDArray[np.float64]:
    """An array of numbers with ``ndim`` dimensions; of whole numbers if ``whole``."""
    try:
        found = np.array(value)
    except ValueError:  # rows of different lengths
        found = np.array(None)
    if found.dtype.kind not in ("iu" if whole else "iuf") or found.ndim != ndim:
        kind = "whole numbers" if whole else "numbers"
        raise ValueError(f"{name}: expected {kind} in {ndim} dimension{'s' * (ndim > 1)}, got {value!r:.80}")
    return found.astype(np.float64)


def words(name: str, value: Any) -> tuple[str, ...]:
    """A list of strings."""
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list, got {value!r:.80}")
    for word in value:
        if not isinstance(word, str):
            raise ValueError(f"each of {name} must be a string, got {word!r:.80}")
    return tuple(value)


def mapping(name: str, value: Any) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object, got {value!r:.80}")
    return dict(value)


def terms(value: Any, n_classes: int) -> dict[str, Any]:
    """The terms of the training problem; only the entries in ``_TERMS`` are checked."""
    found = mapping("terms", {} if value is None else value)
    for name, check in _TERMS.items():
        if found.get(name) is not None:
            check(f"terms: {name}", found[name])
    if found.get("n_classes", n_classes) not in (n_classes, None):
        raise ValueError(f"terms: n_classes is {found['n_classes']!r}, but there are {n_classes} classes")
    if found.get("class_weight") is not None and len(found["class_weight"]) != n_classes:
        raise ValueError(f"terms: class_weight needs a number for each of the {n_classes} classes")
    return found


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < _LARGEST_NUMBER and math.isfinite(value)


#: Larger whole numbers may be beyond the range of a float.
_LARGEST_NUMBER = 10**308


def _word(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string, got {value!r:.80}")


def _whole(name: str, value: Any) -> None:
    if type(value) is not int or abs(value) >= 2**53:
        raise ValueError(f"{name} must be a whole number, got {value!r:.80}")


def _numbers(name: str, value: Any) -> None:
    if not isinstance(value, list) or not all(map(_is_number, value)):
        raise ValueError(f"{name} must be a list of numbers, got {value!r:.80}")


def _number_or_numbers(name: str, value: Any) -> None:
    if not _is_number(value):
        _numbers(name, value)


def _signs(name: str, value: Any) -> None:
    rows = value if isinstance(value, list) else [None]
    if not all(isinstance(row, list) and all(type(sign) is int and abs(sign) == 1 for sign in row) for row in rows):
        raise ValueError(f"{name} must be rows of -1 and 1, got {value!r:.80}")


def _proof(name: str, value: Any) -> None:
    note = mapping(name, value)
    _word(f"{name}: sha256", note.get("sha256"))
    for entry in ("objective", "bound"):
        number(f"{name}: {entry}", note.get(entry))


def _table(name: str, value: Any) -> None:
    check_record(mapping(name, value))


_TERMS: Mapping[str, Callable[[str, Any], object]] = {
    "model": _word,
    "epsilon": number,
    "C": _number_or_numbers,
    "eps": number,
    "budget": _number_or_numbers,
    "groups": _numbers,
    "alpha": _number_or_numbers,
    "max_weight": number,
    "class_weight": _numbers,
    "n_classes": _whole,
    "sides": _signs,
    "min_leaf": number,
    "mu": number,
    "c1": number,
    "c2": number,
    "c3": number,
    "table": _table,
    "proof": _proof,
}
