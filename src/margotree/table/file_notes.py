"""Notes for the user about a new file to which a tree is applied."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.table.amounts import MONTH_NAMES, TRUTH, has_unit
from margotree.table.dates import date_text
from margotree.table.encoding import Category, Column, Date, Encoding, Number
from margotree.table.table import Table

FloatArray = NDArray[np.float64]


def notes_about(encoding: Encoding, table: Table) -> list[str]:
    """Notes about unknown words, filled cells and missing units, with counts by column."""
    present = [column for column in encoding.columns if column.name in table.names]
    notes = [_unknown_words_note(column, table) for column in present]
    notes += [_filled_note(column, table) for column in present]
    notes += [_units_note(column, table) for column in present]
    return [note for note in notes if note]


@dataclass(frozen=True, kw_only=True)
class FarValues:
    """Numbers of a column that lie far outside the range of the training file: their count, one of them, the range."""

    column: str
    rows: int
    value: float
    low: float
    high: float
    since: str | None = None

    def __str__(self) -> str:
        value, low, high = (
            f"{x:g}" if self.since is None else date_text(x, self.since) for x in (self.value, self.low, self.high)
        )
        rows = "1 row has a value" if self.rows == 1 else f"{self.rows} rows have values"
        return f"{rows} in column {self.column!r} far outside the training range {low} to {high}, such as {value}"


def far_values(encoding: Encoding, X: FloatArray, low: FloatArray, high: FloatArray) -> list[FarValues]:
    """The columns with numbers that lie outside the training range by more than its length.

    Parameters
    ----------
    encoding : Encoding
        The columns.
    X : array of shape (rows, features)
        The features of new rows.
    low, high : array of shape (features,)
        The training range.
    """
    found, j = [], 0
    for column in encoding.columns:
        if isinstance(column, Number | Date) and high[j] > low[j]:
            values, length = X[:, j], high[j] - low[j]
            far = np.flatnonzero((values < low[j] - length) | (values > high[j] + length))
            if len(far):
                since = column.since if isinstance(column, Date) else None
                found.append(
                    FarValues(
                        column=column.name, rows=len(far), value=float(values[far[0]]), low=float(low[j]),
                        high=float(high[j]), since=since,
                    )
                )  # fmt: skip
        j += len(column.features)
    return found


def _unknown_words_note(column: Column, table: Table) -> str:
    if not isinstance(column, Category):
        return ""
    cells = table.column(column.name)
    counts = Counter(cells[k] for k in column.unknown_positions(cells))
    if not counts:
        return ""
    shown = ", ".join(f"{word!r} ({times})" for word, times in counts.most_common(6))
    more = f" and {len(counts) - 6} more" if len(counts) > 6 else ""
    # Two words have one feature, which is 1 for the second; an unknown word has the features of the first.
    two = len(column.values) == 2
    treated = f"as {column.values[0]!r}, the first of two words" if two else "as none of the known words"
    words = f"{counts.total()} rows have words in column {column.name!r} that are not in the training file"
    return f"{words}, treated {treated}: {shown}{more}"


def _filled_note(column: Column, table: Table) -> str:
    missing = sum(not cell for cell in table.column(column.name))
    if not missing or column.fill is None:
        return ""
    fill = repr(column.fill) if isinstance(column.fill, str) else f"{column.fill:g}"
    if isinstance(column, Date):
        fill = date_text(float(column.fill), column.since)
    return (
        f"{missing} of {table.n_rows} rows have no value in column {column.name!r}: replaced by {fill}, as in training"
    )


def _units_note(column: Column, table: Table) -> str:
    unit = column.unit if isinstance(column, Number) else None
    cells = table.column(column.name)
    if unit in (None, MONTH_NAMES, TRUTH) or not any(cells) or has_unit(cells, unit):
        return ""
    return f"column {column.name!r} has the unit {unit!r} in the training file and none here: the same unit is assumed"
