"""Deciding what the columns of a training file are."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margotree.table.amounts import MONTH_NAMES, bare, unit_of, units_of
from margotree.table.cells import numbers
from margotree.table.encoding import Category, Column, Encoding, Number
from margotree.table.normalised_words import Spellings, fold, merged, merging_note
from margotree.table.suspect_columns import Cells, drops, in_one_note, look_like_dates, quoted, suspicion
from margotree.table.table import Table, TableError

#: A column with at least this share of numbers was meant to be one of numbers.
_MOSTLY = 0.5
#: Ways with missing cells that put something in.
FILLING = ("median", "indicator")


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """What the user said about the columns; names are headers."""

    target: str
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    weight: str | None = None
    positive: str | None = None
    missing: str = "error"
    max_categories: int = 30


def learn_encoding(table: Table, wishes: ColumnOptions) -> tuple[Encoding, tuple[str, ...]]:
    """The encoding of a training file, and what the user should know about it.

    What cannot be used is refused all at once, so that nobody has to come back for every column.
    """
    target = table.find(wishes.target)
    weight = None if wishes.weight is None else table.find(wishes.weight)
    aside = {target, weight, *(table.find(name) for name in wishes.drop)}
    words = {table.find(name) for name in wishes.categorical}
    notes: list[str] = []
    labels = _labels(table, target, wishes, notes)
    columns: list[Column] = []
    refused: dict[str, str] = {}
    for name in table.names:
        if name in aside or not _says_something(table, name, notes):
            continue
        try:
            decide = _category if name in words else _column
            columns.append(decide(table, name, wishes, notes))
        except TableError as error:
            refused[name] = str(error)
    _refuse(refused)
    if not columns:
        raise TableError(f"{table.source} has no column left to tell {target!r} by")
    encoding = Encoding(
        columns=tuple(columns), target=target, weight=weight, missing=wishes.missing, decimal=table.decimal,
        source=os.path.basename(table.source), **labels,
    )  # fmt: skip
    _check_names(encoding)
    return encoding, (*notes, *in_one_note(_suspects(table, encoding, words)))


def _refuse(refused: dict[str, str]) -> None:
    if len(refused) == 1:
        raise TableError(next(iter(refused.values())))
    if refused:
        lines = "".join(f"\n  {reason}" for reason in refused.values())
        raise TableError(
            f"{len(refused)} columns cannot be used as they are:{lines}\n  to leave them all out, say {drops(refused)}"
        )


def _suspects(table: Table, encoding: Encoding, words: set[str]) -> dict[str, str]:
    """Columns that may not belong among the features, with the reason; those the user spoke about are left alone."""
    labels = table.column(encoding.target)
    told = encoding.labels(table, [k for k, label in enumerate(labels) if label]).tolist()
    rest = iter(map(str, told))
    labels = [next(rest) if label else "" for label in labels]
    found = {}
    for column in encoding.columns:
        cells = table.column(column.name)
        values = None if isinstance(column, Category) else numbers(bare(cells, column.unit), table)[0]
        if reason := suspicion(Cells(name=column.name, cells=cells, values=values, labels=labels)):
            found[column.name] = reason
    # A user who says that numbers are words knows what they are, unless they give the target away.
    return {name: reason for name, reason in found.items() if name not in words or "target" in reason}


def _says_something(table: Table, name: str, notes: list[str]) -> bool:
    """Whether a column has two different cells; if not it is left out and that is said."""
    seen = {fold(cell): cell for cell in set(table.column(name)) if cell}
    if len(seen) >= 2:
        return True
    what = f"holds nothing but {next(iter(seen.values()))!r}" if seen else "is empty"
    notes.append(f"column {name!r} {what}: left out")
    return False


def _column(table: Table, name: str, wishes: ColumnOptions, notes: list[str]) -> Column:
    cells = table.column(name)
    unit = unit_of(cells)
    values, bad = numbers(bare(cells, unit), table)
    known = np.array([bool(cell) for cell in cells])
    if len(bad) == 0:
        notes += _unit_note(cells, name, unit)
        median = float(np.median(values[known]))
        fill = median if wishes.missing in FILLING else None
        return Number(name=name, fill=fill, unit=unit, flag=_flag(cells, wishes), typical=median)
    if 1 - len(bad) / known.sum() > _MOSTLY:
        raise TableError(
            f"{table.source}, line {table.lines[bad[0]]}: {cells[bad[0]]!r} under {name!r} is no number, but most "
            f"cells there are ({len(bad)} of {known.sum()} are not).  Mend it, say --na {quoted(cells[bad[0]])} if it "
            f"means that the value is not known, --categorical {quoted(name)} if these are words after all, or "
            f"--drop {quoted(name)}"
        )
    return _category(table, name, wishes, notes)


def _unit_note(cells: Sequence[str], name: str, unit: str | None) -> list[str]:
    """What was made of amounts that are not bare numbers."""
    if unit is None:
        return []
    if unit == MONTH_NAMES:
        return [f"the months under {name!r} are read as 1 to 12; say --categorical {quoted(name)} for a feature each"]
    without = sum(cell == plain for cell, plain in zip(cells, bare(cells, unit), strict=True) if cell)
    mixed = f"; {without} cells are written without it and taken as the same" if without else ""
    example = next(cell for cell, plain in zip(cells, bare(cells, unit), strict=True) if cell != plain)
    return [f"cells under {name!r} such as {example!r} are read as numbers, without the {unit!r}{mixed}"]


def _flag(cells: Sequence[str], wishes: ColumnOptions) -> bool:
    return wishes.missing == "indicator" and not all(cells)


def _category(table: Table, name: str, wishes: ColumnOptions, notes: list[str]) -> Category:
    cells = table.column(name)
    counts, several = merged(cells)
    if len(counts) > wishes.max_categories:
        examples = ", ".join(repr(word) for word, _ in counts.most_common(3))
        raise TableError(
            f"column {name!r} holds {len(counts)} different words ({examples}, ...), and each would become a feature.  "
            f"Leave it out with --drop {quoted(name)}, turn it into {_turned(cells)}, or say "
            f"--max-categories {len(counts)}{_comma_hint(table, name)}"
        )
    notes += merging_note(name, several)
    commonest = counts.most_common(1)[0][0]
    fill = commonest if wishes.missing in FILLING else None
    return Category(name=name, values=tuple(sorted(counts)), fill=fill, flag=_flag(cells, wishes), typical=commonest)


def _turned(cells: Sequence[str]) -> str:
    """What a column of many words had better be."""
    if look_like_dates(cells):
        return "a number of days or years (these are dates)"
    if len(units := units_of(cells)) > 1:
        return f"numbers of one unit (these have several: {', '.join(units[:4])})"
    return "numbers or into fewer groups"


def _labels(table: Table, target: str, wishes: ColumnOptions, notes: list[str]) -> dict[str, Any]:
    """What the encoding keeps of the labels: the positive one if asked for, whether they are whole numbers, how they
    are spelled."""
    counts, several = merged(table.column(target))
    if not counts:
        raise TableError(f"the target column {target!r} is empty")
    notes += merging_note(target, several)
    if wishes.positive is not None:
        positive = Spellings(list(counts))(wishes.positive)
        if positive is None:
            raise TableError(f"no row has the label {wishes.positive!r} under {target!r}; there are {_some(counts)}")
        return {"positive": positive}
    if len(counts) == 1:
        raise TableError(f"all rows have the label {next(iter(counts))!r} under {target!r}; a tree needs two classes")
    values, bad = numbers(list(counts), table)
    if len(bad) == 0 and len(counts) > 20:
        raise TableError(
            f"the target {target!r} holds {len(counts)} different numbers: that is a measurement, not classes.  Choose "
            "a limit and write a column that says which rows lie above it"
        )
    whole = len(bad) == 0 and bool(np.all(values == np.round(values)) and np.all(np.abs(values) < 2**53))
    return {"whole": whole, "spelling": tuple(sorted(counts))}


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
