"""What became of missing cells in training: which were filled in and with what, which rows were left out and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Columns that a sentence names at most.
_NAMED = 8


@dataclass(frozen=True, kw_only=True)
class Filled:
    """``cells`` missing cells of a column that ``value`` stands in for; ``flag`` as in an encoding's column."""

    column: str
    cells: int
    value: float | str
    flag: bool = False


@dataclass(frozen=True, kw_only=True)
class MissingReport:
    """Of the ``rows`` of the training file, ``used`` took part in training.

    ``unlabelled`` rows were left out because their target is missing, ``incomplete`` ones because other cells are;
    ``holes`` counts those cells by column.  ``weightless`` rows are among those used but have weight 0.
    """

    rows: int = 0
    used: int = 0
    filled: tuple[Filled, ...] = ()
    unlabelled: int = 0
    incomplete: int = 0
    holes: tuple[tuple[str, int], ...] = ()
    weightless: int = 0

    def sentences(self, target: str, weight: str | None = None) -> list[str]:
        """What a user should know about it, a sentence each; none where no cell was missing."""
        return [text for text in (self._left_out(target), self._filled(), self._weightless(weight)) if text]

    def _left_out(self, target: str) -> str:
        if self.used == self.rows:
            return ""
        reasons = [f"{self.unlabelled} without a label under {target!r}"] if self.unlabelled else []
        if self.incomplete:
            columns = _joined([f"{name!r} {count}" for name, count in _most(self.holes)], len(self.holes))
            reasons.append(f"{self.incomplete} with missing cells (by column: {columns})")
        return f"{self.rows - self.used} of {self.rows} rows left out: {', '.join(reasons)}"

    def _filled(self) -> str:
        if not self.filled:
            return ""
        most = sorted(self.filled, key=lambda one: -one.cells)[:_NAMED]
        cells = sum(one.cells for one in self.filled)
        flags = any(one.flag for one in self.filled)
        return (
            f"{cells} missing cell{'s' * (cells > 1)} filled in: "
            f"{_joined([_words(one) for one in most], len(self.filled))}"
            + ("; the 0/1 features called '... missing' tell where" if flags else "")
        )

    def _weightless(self, weight: str | None) -> str:
        if not self.weightless:
            return ""
        return f"{self.weightless} of {self.rows} rows have weight 0 under {weight!r} and do not count"

    # -- in the tree file ---------------------------------------------------------------------------------------

    def to_record(self) -> dict[str, Any]:
        """JSON values from which :meth:`from_record` makes the same report."""
        filled = [
            {"column": one.column, "cells": one.cells, "value": one.value, "flag": one.flag} for one in self.filled
        ]
        return {
            "rows": self.rows, "used": self.used, "filled": filled, "unlabelled": self.unlabelled,
            "incomplete": self.incomplete, "holes": dict(self.holes), "weightless": self.weightless,
        }  # fmt: skip

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> MissingReport:
        """Read what :meth:`to_record` wrote; ValueError if it makes no sense."""
        counts = {name: record[name] for name in ("rows", "used", "unlabelled", "incomplete", "weightless")}
        holes = record["holes"]
        filled = tuple(
            Filled(column=one["column"], cells=one["cells"], value=one["value"], flag=one["flag"])
            for one in record["filled"]
        )
        for name, count in [*counts.items(), *holes.items(), *((one.column, one.cells) for one in filled)]:
            if type(count) is not int or count < 0:
                raise ValueError(f"the number of rows or cells under {name!r} cannot be {count!r}")
        for one in filled:
            fits = isinstance(one.column, str) and type(one.value) in (int, float, str) and type(one.flag) is bool
            if not fits or (isinstance(one.value, int) and float(one.value) != one.value):
                raise ValueError(f"a column that was filled in cannot be described by {one!r}")
        return cls(**counts, filled=filled, holes=tuple(holes.items()))


def _words(one: Filled) -> str:
    if isinstance(one.value, str):
        return f"{one.column!r} {one.cells} with {one.value!r} (the most frequent word)"
    return f"{one.column!r} {one.cells} with {one.value:g} (the median)"


def _most(holes: tuple[tuple[str, int], ...]) -> list[tuple[str, int]]:
    return sorted(holes, key=lambda one: -one[1])[:_NAMED]


def _joined(shown: list[str], columns: int) -> str:
    more = f" and {columns - len(shown)} more columns" if columns > len(shown) else ""
    return ", ".join(shown) + more
