"""The columns of data frames and arrays as numbers or words."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margotree.table.cells import MISSING, stripped_cells
from margotree.table.dates import date_form
from margotree.table.frames import is_missing, non_numeric_columns, non_numeric_message
from margotree.table.table import TableError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class FrameColumn:
    """A column of a pandas or polars frame, or of an array."""

    name: str
    data: Any

    def at(self, rows: NDArray[np.int64]) -> FrameColumn:
        """The column with these rows only."""
        taken = self.data.iloc[rows] if hasattr(self.data, "iloc") else self.data[rows]
        return FrameColumn(name=self.name, data=taken)

    @property
    def order(self) -> tuple[str, ...] | None:
        """The words of an ordered category, smallest first; None for other columns."""
        dtype = getattr(self.data, "dtype", None)
        if getattr(dtype, "ordered", False):  # pandas
            return tuple(map(_word, dtype.categories.tolist()))  # type: ignore[union-attr]
        return None

    @property
    def is_boolean(self) -> bool:
        """Whether the cells are truth values."""
        dtype = str(getattr(self.data, "dtype", "")).casefold()
        if dtype != "object":
            return dtype in {"bool", "boolean"}
        known = [cell for cell in self._cells() if not is_missing(cell)]
        return bool(known) and all(isinstance(cell, bool | np.bool_) for cell in known)

    def date_form(self) -> str | None:
        """The form of the dates in the column, as :meth:`words` has them; None for other columns."""
        if isinstance(dtype := getattr(self.data, "dtype", None), np.dtype) and dtype.kind in "biufc":
            return None
        return date_form(self.words(), self.name)

    @property
    def has_words(self) -> bool:
        """Whether the dtype is a category, or a cell is a word that is not a number."""
        dtype = getattr(self.data, "dtype", None)
        if str(dtype).casefold().startswith(("category", "categorical", "enum")):
            return True
        if isinstance(dtype, np.dtype) and dtype.kind != "O":
            return dtype.kind in "US" and self._numbers() is None
        return self._numbers() is None

    def numbers(self) -> FloatArray:
        """The cells as numbers, NaN where they are missing; ValueError names a cell that is not a number."""
        values = self._numbers()
        if values is None:
            cell = next(cell for cell in self._cells() if not is_missing(cell) and not _is_number(cell))
            raise TableError(
                f"{cell!r} in column {self.name!r} is not a number, but the tree was trained on numbers in this column"
            )
        if np.any(np.isinf(values)):
            raise TableError(f"Input X contains infinity or a value too large: column {self.name!r}")
        return values

    def words(self) -> list[str]:
        """The cells as words without surrounding blanks; empty where they are missing."""
        different: dict[Any, str] = {}
        found = []
        for cell in self._cells():
            key = (type(cell), cell)
            if key not in different:
                different[key] = "" if is_missing(cell) else _word(cell)
            found.append(different[key])
        return stripped_cells(found)

    def _cells(self) -> list[Any]:
        """The cells as Python objects."""
        if hasattr(self.data, "to_list"):
            return list(self.data.to_list())
        return list(np.asarray(self.data).tolist())

    def _numbers(self) -> FloatArray | None:
        """The cells as numbers; None if some are not."""
        data = self.data
        dtype = getattr(data, "dtype", None)
        try:
            if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
                return np.asarray(data, dtype=np.float64)
            return np.array([np.nan if is_missing(cell) else _number(cell) for cell in self._cells()], dtype=np.float64)
        except (TypeError, ValueError):
            return None


def frame_columns(
    X: Any, names: Sequence[str] | None = None, *, dates: Collection[str] | None = ()
) -> list[FrameColumn]:
    """The columns of a frame or an array, by default with their own names or x0, x1, ...

    Raises ValueError for columns of objects that are neither numbers nor words, and for columns of dates except those
    named in ``dates``; None allows them in all columns.
    """
    if hasattr(X, "columns"):
        series = [X.iloc[:, k] if hasattr(X, "iloc") else X[name] for k, name in enumerate(X.columns)]
        names = [str(name) for name in X.columns] if names is None else names
    else:
        X = np.asarray(X)
        series = [X[:, k] for k in range(X.shape[1])]
        names = [f"x{k}" for k in range(X.shape[1])] if names is None else names
    odd = [
        column
        for column in non_numeric_columns(X)
        if column.holds != "words"
        and not (column.holds == "dates" and (dates is None or _name_of(column.name, names) in dates))
    ]
    if odd:
        raise ValueError(non_numeric_message(odd))
    return [FrameColumn(name=name, data=data) for name, data in zip(names, series, strict=True)]


def _name_of(name: Any, names: Sequence[str]) -> str:
    """The name of a column of a frame, or of the column of an array at a position."""
    return names[name] if isinstance(name, int) and name < len(names) and str(name) not in names else str(name)


def _number(cell: Any) -> float:
    if isinstance(cell, str) and cell.strip().casefold() in MISSING:
        return math.nan
    return float(cell)


def _is_number(cell: Any) -> bool:
    try:
        _number(cell)
    except (TypeError, ValueError):
        return False
    return True


def _word(cell: Any) -> str:
    """A cell as a word: whole numbers without a decimal point."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)
