"""Find the columns of data frames and arrays that are not numeric, and missing values, for error messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

#: The largest number of columns that a message names.
_MAX_NAMED = 6

#: The kinds of values that are not numeric, in the order of the message.
_KINDS = ("words", "dates", "durations", "other objects")

_ENCODE = (
    "words are read in a column of a data frame that has words in training, too, or in one of an array that "
    "categorical_features names"
)


@dataclass(frozen=True, kw_only=True)
class NonNumericColumn:
    """A column that is not numeric: its name (or position), its dtype, an example cell, and the kind of its values."""

    name: Any
    dtype: str
    cell: str
    holds: str

    def __str__(self) -> str:
        return f"{self.name!r} (dtype {self.dtype}, such as {self.cell})"


def date_columns(X: Any) -> list[NonNumericColumn]:
    """The columns of dates and of durations, whose conversion to numbers would choose an arbitrary unit."""
    # All dtypes are tested at once, because there may be thousands of columns and this runs before every prediction.
    dtypes = [X.dtype] if isinstance(X, np.ndarray) else getattr(X, "dtypes", ()) if hasattr(X, "iloc") else ()
    if not any(getattr(dtype, "kind", "") in ("M", "m") for dtype in np.atleast_1d(np.array(dtypes, dtype=object))):
        return []
    found = []
    for name, column in _columns(X):
        if (kind := column.dtype.kind) in ("M", "m"):
            holds = "dates" if kind == "M" else "durations"
            found.append(NonNumericColumn(name=name, dtype=str(column.dtype), cell=_first_cell(column), holds=holds))
    return found


def non_numeric_columns(X: Any) -> list[NonNumericColumn]:
    """All columns that cannot be converted to numbers."""
    found = date_columns(X)
    known = {columns.name for columns in found}
    for name, column in _columns(X):
        if name not in known and (cell := _non_numeric_cell(column)) is not None:
            dtype = str(getattr(column, "dtype", "object"))
            holds = "words" if isinstance(cell, str) else "dates" if hasattr(cell, "year") else "other objects"
            found.append(
                NonNumericColumn(
                    name=name, dtype=dtype, cell=repr(cell) if isinstance(cell, str) else str(cell), holds=holds
                )
            )
    return found


def non_numeric_message(columns: list[NonNumericColumn]) -> str:
    """The error message about columns that are not numeric, with what to do."""
    by_kind = {kind: [column for column in columns if column.holds == kind] for kind in _KINDS}
    found = [kind for kind in _KINDS if by_kind[kind]]
    parts = [f"Columns that hold {kind}: {_column_list(by_kind[kind])}." for kind in found]
    seconds = "convert durations to numbers with .dt.total_seconds()"
    hints = {"words": _ENCODE, "dates": _date_hint(columns), "durations": seconds}
    chosen = [hints[kind] for kind in found if kind in hints]
    return "  ".join([*parts, f"A tree needs numbers: {'; '.join([*chosen, 'or leave out these columns'])}."])


def missing_counts(X: Any) -> str:
    """The columns with missing values and the number of their rows, as text; empty if there are none."""
    counts = [(name, _count_missing(column)) for name, column in _columns(X)]
    some = [f"{name!r} ({count} row{'s' * (count > 1)})" for name, count in counts if count]
    return _format_list(some)


def _columns(X: Any) -> list[tuple[Any, Any]]:
    """The columns with their names; those of an array with their positions."""
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        return [(name, X.iloc[:, j]) for j, name in enumerate(X.columns)]
    if isinstance(X, list | tuple):
        X = np.array(X, dtype=object)
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        return []
    return [(j, X[:, j]) for j in range(X.shape[1])]


def _non_numeric_cell(column: Any) -> Any:
    """The first cell that is not a number; None if there is none, or if the cells are complex numbers."""
    if getattr(getattr(column, "dtype", None), "kind", "") == "c":
        return None
    try:
        np.asarray(column, dtype=np.float64)
        return None
    except (TypeError, ValueError):
        cells = np.asarray(column, dtype=object)
    return next((cell for cell in cells if not is_missing(cell) and not _is_number(cell)), None)


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, NA or NaT."""
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def _count_missing(column: Any) -> int:
    if hasattr(column, "isna"):
        return int(column.isna().sum())
    if column.dtype.kind == "f":
        return int(np.isnan(column).sum())
    return sum(map(is_missing, column)) if column.dtype.kind == "O" else 0


def missing_rows(y: Any) -> list[int]:
    """The positions of missing labels, starting at 0."""
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
            found = np.array([is_missing(value) for value in values.ravel()], dtype=bool).reshape(values.shape)
        else:
            return []
    return np.flatnonzero(found).tolist() if found.ndim == 1 else []


def _first_cell(column: Any) -> str:
    return str(next(iter(column), ""))


def _date_hint(columns: list[NonNumericColumn]) -> str:
    name = next((column.name for column in columns if column.dtype.startswith("datetime64")), None)
    example = "" if name is None else f", for example (X[{name!r}] - X[{name!r}].min()).dt.days"
    return f"fit with dates='days-since', or convert dates to a number of days{example}"


def _column_list(columns: list[NonNumericColumn]) -> str:
    return _format_list([str(column) for column in columns])


def _format_list(texts: list[str]) -> str:
    return ", ".join(texts[:_MAX_NAMED]) + (f" and {len(texts) - _MAX_NAMED} more" if len(texts) > _MAX_NAMED else "")
