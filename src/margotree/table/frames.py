"""Data frames that are to be numbers: which columns are not, and what to do about each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

#: Columns that a message names at most.
_NAMED = 6

_ENCODE = (
    'encode words, for instance with OneHotEncoder in a Pipeline (see "Words and missing values: a pipeline" in the '
    "gallery, examples/gallery/plot_5_pipeline.py)"
)


@dataclass(frozen=True, kw_only=True)
class Odd:
    """A column that is not numbers: its name (or position), its dtype, a cell, and what it holds instead."""

    name: Any
    dtype: str
    cell: str
    holds: str

    def __str__(self) -> str:
        return f"{self.name!r} (dtype {self.dtype}, such as {self.cell})"


def dates(X: Any) -> list[Odd]:
    """The columns of dates and of durations: as numbers they would have a unit that nobody chose."""
    # Asked of all columns at once: there may be thousands, and this comes before every prediction.
    dtypes = [X.dtype] if isinstance(X, np.ndarray) else getattr(X, "dtypes", ()) if hasattr(X, "iloc") else ()
    if not any(getattr(dtype, "kind", "") in ("M", "m") for dtype in np.atleast_1d(np.array(dtypes, dtype=object))):
        return []
    found = []
    for name, column in _columns(X):
        if (kind := column.dtype.kind) in ("M", "m"):
            holds = "dates" if kind == "M" else "durations"
            found.append(Odd(name=name, dtype=str(column.dtype), cell=_first(column), holds=holds))
    return found


def non_numeric_columns(X: Any) -> list[Odd]:
    """All columns that cannot be taken as numbers."""
    found = dates(X)
    known = {odd.name for odd in found}
    for name, column in _columns(X):
        if name not in known and (odd := _odd_cell(column)) is not None:
            dtype = str(getattr(column, "dtype", "object"))
            holds = "words" if isinstance(odd, str) else "dates" if hasattr(odd, "year") else "other objects"
            found.append(Odd(name=name, dtype=dtype, cell=repr(odd) if isinstance(odd, str) else str(odd), holds=holds))
    return found


def advice(odd: list[Odd]) -> str:
    """Which columns are not numbers, and what to do."""
    held = [kind for kind in ("words", "dates", "durations", "other objects") if any(one.holds == kind for one in odd)]
    parts = [f"Columns that hold {kind}: {_shown([one for one in odd if one.holds == kind])}." for kind in held]
    seconds = "turn durations into numbers, with .dt.total_seconds()"
    ways = {"words": _ENCODE, "dates": _in_days(odd), "durations": seconds}
    chosen = [ways[kind] for kind in held if kind in ways]
    return "  ".join([*parts, f"A tree takes numbers: {'; '.join([*chosen, 'or leave these columns out'])}."])


def holes(X: Any) -> str:
    """The columns with missing values and in how many rows; empty if they cannot be told."""
    counts = [(name, _missing(column)) for name, column in _columns(X)]
    some = [f"{name!r} ({count} row{'s' * (count > 1)})" for name, count in counts if count]
    return _listed(some)


def _columns(X: Any) -> list[tuple[Any, Any]]:
    """The columns by name, of an array by position."""
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        return [(name, X.iloc[:, j]) for j, name in enumerate(X.columns)]
    if isinstance(X, list | tuple):
        X = np.array(X, dtype=object)
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        return []
    return [(j, X[:, j]) for j in range(X.shape[1])]


def _odd_cell(column: Any) -> Any:
    """A cell that is no number; None if there is none, or if they are complex numbers."""
    if getattr(getattr(column, "dtype", None), "kind", "") == "c":
        return None
    try:
        np.asarray(column, dtype=np.float64)
        return None
    except (TypeError, ValueError):
        cells = np.asarray(column, dtype=object)
    return next((cell for cell in cells if not _is_missing(cell) and not _is_number(cell)), None)


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _is_missing(cell: Any) -> bool:
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def _missing(column: Any) -> int:
    if hasattr(column, "isna"):
        return int(column.isna().sum())
    if column.dtype.kind == "f":
        return int(np.isnan(column).sum())
    return sum(map(_is_missing, column)) if column.dtype.kind == "O" else 0


def missing_rows(y: Any) -> list[int]:
    """The positions of missing labels, counted from 0."""
    if hasattr(y, "isna"):
        found = np.asarray(y.isna(), dtype=bool)
    else:
        try:
            values = np.asarray(y if isinstance(y, np.ndarray) else np.array(y, dtype=object))
        except ValueError:  # rows of different lengths
            return []
        if values.dtype.kind == "f":
            found = np.isnan(values)
        elif values.dtype.kind == "O":
            found = np.array([_is_missing(value) for value in values.ravel()], dtype=bool).reshape(values.shape)
        else:
            return []
    return np.flatnonzero(found).tolist() if found.ndim == 1 else []


def _first(column: Any) -> str:
    return str(next(iter(column), ""))


def _in_days(odd: list[Odd]) -> str:
    name = next((one.name for one in odd if one.dtype.startswith("datetime64")), None)
    example = "" if name is None else f", such as (X[{name!r}] - X[{name!r}].min()).dt.days"
    return f"turn dates into a number of days{example}"


def _shown(odd: list[Odd]) -> str:
    return _listed([str(one) for one in odd])


def _listed(texts: list[str]) -> str:
    return ", ".join(texts[:_NAMED]) + (f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else "")
