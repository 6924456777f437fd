"""The rules that turn one cell of a table into features, shared by prediction, exports and report pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FloatTuple = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class CellRule:
    """The rule that turns a cell of ``column`` into the values of ``features``.  The first case that applies decides:

    1. The cell is missing: ``missing`` holds the values, or is None if such a row cannot be classified.
    2. The cell is one of ``words``, in any case and spacing: each word is listed with its values.
    3. The column is ``numeric`` and the cell is a number, alone or followed by one of ``units``: the first feature has
       that value, the others (the indicator of a missing cell) are 0. If ``date`` is not None, the number is that of
       the days from its second entry (YYYY-MM-DD) to the date in the cell, which has the form of its first entry and
       may be followed by a blank or a T and a time (:mod:`margotree.table.dates`).
    4. Otherwise ``other`` holds the values; the row cannot be classified if it is None.
    """

    column: str
    features: tuple[str, ...]
    missing: FloatTuple | None = None
    words: tuple[tuple[str, FloatTuple], ...] = ()
    numeric: bool = False
    units: tuple[str, ...] = ()
    other: FloatTuple | None = None
    date: tuple[str, str] | None = None

    def record(self) -> dict[str, Any]:
        """The rule as JSON values."""
        return {
            "column": self.column,
            "features": list(self.features),
            "missing": None if self.missing is None else list(self.missing),
            "words": {word: list(values) for word, values in self.words},
            "numeric": self.numeric,
            "units": list(self.units),
            "other": None if self.other is None else list(self.other),
            "date": None if self.date is None else list(self.date),
        }


@dataclass(frozen=True, kw_only=True)
class RawColumns:
    """The rules of all columns of a raw row, in the order of their features.

    ``missing`` are the cells (in lower case, without blanks around them) that mean a missing value.  ``comma`` is true
    if fractions may be written with a decimal comma.  ``numeric_cells`` is true if the cells are numbers and not text:
    the cells of a tree that was trained from Python and describes no table.
    """

    rules: tuple[CellRule, ...]
    missing: tuple[str, ...]
    comma: bool = False
    numeric_cells: bool = False

    def record(self) -> dict[str, Any]:
        """The description as JSON values."""
        rules = [rule.record() for rule in self.rules]
        return {"columns": rules, "missing": list(self.missing), "comma": self.comma}

    def rules_by_feature(self) -> Mapping[int, tuple[CellRule, int]]:
        """For the position of each feature: its rule, and its position within the features of that rule."""
        pairs = [(rule, k) for rule in self.rules for k in range(len(rule.features))]
        return dict(enumerate(pairs))
