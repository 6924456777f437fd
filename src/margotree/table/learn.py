"""Deciding what the columns of a training file are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from margotree.table.cells import numbers
from margotree.table.encoding import Category, Column, Encoding, Number
from margotree.table.table import Table, TableError

#: A column with at least this share of numbers was meant to be one of numbers.
_MOSTLY = 0.5


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What the user said about the columns; names are headers."""

    target: str
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    weight: str | None = None
    positive: str | None = None
    missing: str = "error"
    max_categories: int = 30


def learn(table: Table, wishes: Wishes) -> tuple[Encoding, tuple[str, ...]]:
    """The encoding of a training file, and what the user should know about it."""
    target = table.find(wishes.target)
    weight = None if wishes.weight is None else table.find(wishes.weight)
    aside = {target, weight, *(table.find(name) for name in wishes.drop)}
    words = {table.find(name) for name in wishes.categorical}
    notes: list[str] = []
    columns: list[Column] = []
    for name in table.names:
        if name not in aside and _says_something(table, name, notes):
            columns.append(_category(table, name, wishes) if name in words else _column(table, name, wishes, notes))
    if not columns:
        raise TableError(f"{table.source} has no column left to tell {target!r} by")
    positive, whole = _labels(table, target, wishes)
    encoding = Encoding(
        columns=tuple(columns), target=target, weight=weight, positive=positive, whole=whole, missing=wishes.missing
    )
    _check_names(encoding)
    return encoding, tuple(notes)


def _says_something(table: Table, name: str, notes: list[str]) -> bool:
    """Whether a column has two different cells; if not it is left out and that is said."""
    seen = set(table.column(name)) - {""}
    if len(seen) >= 2:
        return True
    what = f"holds nothing but {next(iter(seen))!r}" if seen else "is empty"
    notes.append(f"column {name!r} {what}: left out")
    return False


def _column(table: Table, name: str, wishes: Wishes, notes: list[str]) -> Column:
    cells = table.column(name)
    values, bad = numbers(cells, table)
    known = np.array([bool(cell) for cell in cells])
    if len(bad) == 0:
        if _looks_like_row_numbers(values[known]):
            notes.append(
                f"column {name!r} counts the rows; if it is only a number for each, say --drop {_quoted(name)}"
            )
        return Number(name=name, fill=float(np.median(values[known])) if wishes.missing == "median" else None)
    if 1 - len(bad) / known.sum() > _MOSTLY:
        raise TableError(
            f"{table.source}, line {table.lines[bad[0]]}: {cells[bad[0]]!r} under {name!r} is no number, but most "
            f"cells there are ({len(bad)} of {known.sum()} are not).  Mend it, say --na {_quoted(cells[bad[0]])} if it "
            f"means that the value is not known, --categorical {_quoted(name)} if these are words after all, or "
            f"--drop {_quoted(name)}"
        )
    return _category(table, name, wishes)


def _category(table: Table, name: str, wishes: Wishes) -> Category:
    counts = Counter(cell for cell in table.column(name) if cell)
    if len(counts) > wishes.max_categories:
        examples = ", ".join(repr(word) for word, _ in counts.most_common(3))
        raise TableError(
            f"column {name!r} holds {len(counts)} different words ({examples}, ...), and each would become a feature.  "
            f"Leave it out with --drop {_quoted(name)}, turn it into numbers or into fewer groups, or say "
            f"--max-categories {len(counts)}{_comma_hint(table, name)}"
        )
    fill = counts.most_common(1)[0][0] if wishes.missing == "median" else None
    return Category(name=name, values=tuple(sorted(counts)), fill=fill)


def _labels(table: Table, target: str, wishes: Wishes) -> tuple[str | None, bool]:
    """The positive label if one was asked for, and whether labels are whole numbers."""
    counts = Counter(cell for cell in table.column(target) if cell)
    if not counts:
        raise TableError(f"the target column {target!r} is empty")
    if wishes.positive is not None:
        if wishes.positive not in counts:
            raise TableError(f"no row has the label {wishes.positive!r} under {target!r}; there are {_some(counts)}")
        return wishes.positive, False
    if len(counts) == 1:
        raise TableError(f"all rows have the label {next(iter(counts))!r} under {target!r}; a tree needs two classes")
    values, bad = numbers(list(counts), table)
    if len(bad) == 0 and len(counts) > 20:
        raise TableError(
            f"the target {target!r} holds {len(counts)} different numbers: that is a measurement, not classes.  Choose "
            "a limit and write a column that says which rows lie above it"
        )
    return None, len(bad) == 0 and bool(np.all(values == np.round(values)) and np.all(np.abs(values) < 2**53))


def _looks_like_row_numbers(values: np.ndarray) -> bool:
    """Whole numbers, one after the other, each once."""
    return len(values) > 10 and bool(np.all(np.abs(np.diff(values)) == 1) and len(set(values.tolist())) == len(values))


def _check_names(encoding: Encoding) -> None:
    twice = [name for name, times in Counter(encoding.features).items() if times > 1]
    if twice:
        raise TableError(f"two features would be called {twice[0]!r}; rename one of the columns")


def _comma_hint(table: Table, name: str) -> str:
    cells = [cell for cell in table.column(name) if cell]
    if (
        table.decimal == "."
        and sum("," in cell and not cell.strip("+-0123456789,.") for cell in cells) > len(cells) / 2
    ):
        return "; if these are numbers with a decimal comma, say --decimal ,"
    return ""


def _some(counts: Counter[str]) -> str:
    shown = ", ".join(f"{label!r} ({times})" for label, times in counts.most_common(6))
    return shown + (f" and {len(counts) - 6} more" if len(counts) > 6 else "")


def _quoted(name: str) -> str:
    return f'"{name}"' if not name.replace("_", "").isalnum() else name
