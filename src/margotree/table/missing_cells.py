"""Report on missing cells in training: which cells were filled with what, which rows were left out and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: The largest number of columns that a sentence names.
_MAX_NAMED = 8


@dataclass(frozen=True, kw_only=True)
class Filled:
    """``cells`` missing cells of a column were replaced by ``value``; ``flag`` is that of the encoding's column."""

    column: str
    cells: int
    value: float | str
    flag: bool = False


@dataclass(frozen=True, kw_only=True)
class MissingReport:
    """Counts of rows and missing cells: of the ``rows`` of the training file, ``used`` were used in training.

    ``unlabelled`` rows were left out because their label is missing, ``incomplete`` rows because other cells are
    missing; ``missing_by_column`` counts those cells by column.  ``weightless`` rows are used but have weight 0.
    """

    rows: int = 0
    used: int = 0
    filled: tuple[Filled, ...] = ()
    unlabelled: int = 0
    incomplete: int = 0
    missing_by_column: tuple[tuple[str, int], ...] = ()
    weightless: int = 0

    def sentences(self, target: str, weight: str | None = None) -> list[str]:
        """The report as sentences for the user; empty if no cell was missing."""
        return [
            text
            for text in (self._left_out_sentence(target), self._filled_sentence(), self._weightless_sentence(weight))
            if text
        ]

    def _left_out_sentence(self, target: str) -> str:
        if self.used == self.rows:
            return ""
        reasons = [f"{self.unlabelled} without a label in column {target!r}"] if self.unlabelled else []
        if self.incomplete:
            columns = _format_list(
                [f"{name!r} {count}" for name, count in _largest(self.missing_by_column)], len(self.missing_by_column)
            )
            reasons.append(f"{self.incomplete} with missing cells (by column: {columns})")
        return f"{self.rows - self.used} of {self.rows} rows left out: {', '.join(reasons)}"

    def _filled_sentence(self) -> str:
        if not self.filled:
            return ""
        largest = sorted(self.filled, key=lambda one: -one.cells)[:_MAX_NAMED]
        cells = sum(one.cells for one in self.filled)
        any_indicator = any(one.flag for one in self.filled)
        return (
            f"{cells} missing cell{'s' * (cells > 1)} filled: "
            f"{_format_list([_filled_text(one) for one in largest], len(self.filled))}"
            + ("; the 0/1 features named '... missing' show where" if any_indicator else "")
        )

    def _weightless_sentence(self, weight: str | None) -> str:
        if not self.weightless:
            return ""
        return f"{self.weightless} of {self.rows} rows have weight 0 in column {weight!r} and do not count"

    # -- in the tree file ---------------------------------------------------------------------------------------

    def to_record(self) -> dict[str, Any]:
        """The JSON values of the report; :meth:`from_record` is the inverse."""
        filled = [
            {"column": one.column, "cells": one.cells, "value": one.value, "flag": one.flag} for one in self.filled
        ]
        return {
            "rows": self.rows, "used": self.used, "filled": filled, "unlabelled": self.unlabelled,
            "incomplete": self.incomplete, "holes": dict(self.missing_by_column), "weightless": self.weightless,
        }  # fmt: skip

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> MissingReport:
        """The report of JSON values that :meth:`to_record` returned; ValueError if they are not valid."""
        counts = {name: record[name] for name in ("rows", "used", "unlabelled", "incomplete", "weightless")}
        missing_by_column = record["holes"]
        filled = tuple(
            Filled(column=one["column"], cells=one["cells"], value=one["value"], flag=one["flag"])
            for one in record["filled"]
        )
        for name, count in [*counts.items(), *missing_by_column.items(), *((one.column, one.cells) for one in filled)]:
            if type(count) is not int or count < 0:
                raise ValueError(f"the number of rows or cells in {name!r} cannot be {count!r}")
        for one in filled:
            fits = isinstance(one.column, str) and type(one.value) in (int, float, str) and type(one.flag) is bool
            if not fits or (isinstance(one.value, int) and float(one.value) != one.value):
                raise ValueError(f"a filled column cannot be described by {one!r}")
        return cls(**counts, filled=filled, missing_by_column=tuple(missing_by_column.items()))


def _filled_text(one: Filled) -> str:
    if isinstance(one.value, str):
        return f"{one.column!r} {one.cells} with {one.value!r} (the most frequent word)"
    return f"{one.column!r} {one.cells} with {one.value:g} (the median)"


def _largest(missing_by_column: tuple[tuple[str, int], ...]) -> list[tuple[str, int]]:
    return sorted(missing_by_column, key=lambda one: -one[1])[:_MAX_NAMED]


def _format_list(shown: list[str], columns: int) -> str:
    more = f" and {columns - len(shown)} more columns" if columns > len(shown) else ""
    return ", ".join(shown) + more
