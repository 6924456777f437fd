"""How one cell of a table becomes features: the one description that prediction, exports and pages follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FloatTuple = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class CellRule:
    """How a cell of ``column`` gives the values of ``features``.  The first of these that applies decides:

    1. The cell is missing: ``missing`` holds the values, or is None if such a row cannot be classified.
    2. The cell is one of ``words``, in any case and spacing: the values stand beside the word.
    3. The column is ``numeric`` and the cell is a number, alone or followed by one of ``units``: the first feature has
       that value, the others (the indicator of a missing cell) are 0.
    4. Otherwise the row cannot be classified.
    """

    column: str
    features: tuple[str, ...]
    missing: FloatTuple | None = None
    words: tuple[tuple[str, FloatTuple], ...] = ()
    numeric: bool = False
    units: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """The rule as JSON values."""
        return {
            "column": self.column,
            "features": list(self.features),
            "missing": None if self.missing is None else list(self.missing),
            "words": {word: list(values) for word, values in self.words},
            "numeric": self.numeric,
            "units": list(self.units),
        }


@dataclass(frozen=True, kw_only=True)
class RawColumns:
    """The columns of a raw row, in the order of their features.

    ``missing`` are the cells (in lower case, without blanks around them) that mean "not known"; ``comma`` says that
    fractions may be written with a decimal comma.  ``typed`` tells that the columns are numbers already and not text:
    those of a tree trained from Python, which describes no table.
    """

    rules: tuple[CellRule, ...]
    missing: tuple[str, ...]
    comma: bool = False
    typed: bool = False

    def record(self) -> dict[str, Any]:
        """The description as JSON values."""
        rules = [rule.record() for rule in self.rules]
        return {"columns": rules, "missing": list(self.missing), "comma": self.comma}

    def rule_of(self) -> Mapping[int, tuple[CellRule, int]]:
        """The rule and the position within its features, by the position among all features."""
        places = [(rule, k) for rule in self.rules for k in range(len(rule.features))]
        return dict(enumerate(places))
