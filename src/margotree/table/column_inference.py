"""Learn the encoding of a training file: decide for each column whether it holds numbers or words.

:func:`learn_encoding` is the entry point.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margotree.table.amounts import MONTH_NAMES, unit_of, units_of, without_unit
from margotree.table.cells import parse_numbers
from margotree.table.dates import FORMS, date_form
from margotree.table.encoding import Category, Column, Date, Encoding, Number
from margotree.table.normalised_words import Spellings, fold, merged, merging_note
from margotree.table.suspect_columns import (
    ColumnCells,
    combined_note,
    drop_options,
    first_suspicion,
    look_like_dates,
    shell_quoted,
)
from margotree.table.table import Table, TableError

#: A column with more than this share of numbers is taken as numeric; its other cells are errors.
_MIN_NUMERIC_SHARE = 0.5
#: A target with more different numbers is predicted as a number; with at least as many as the second, a note says that
#: they are treated as classes.
_MOST_CLASSES, _MANY_CLASSES = 20, 6
#: Values of ``ColumnOptions.missing`` that fill missing cells.
FILLING = ("median", "indicator")


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """The options about columns that the user gives; columns are named by their headers.

    Parameters
    ----------
    target : str
        The column with the class labels.
    drop : sequence of str
        Columns that are not used.
    categorical : sequence of str
        Columns whose cells are words even if all of them are numbers.
    weight : str, optional
        The column with the weight of each row.
    positive : str, optional
        The label of the positive class; all other labels form the negative class.
    missing : {"error", "drop", "median", "indicator"}
        How missing cells are treated; see :class:`~margotree.table.Encoding`.
    max_categories : int
        The largest number of different words in a column.
    task : {"classification", "regression"}, optional
        Whether the target holds labels or numbers to predict; by default more than 20 different numbers are predicted.
    above : float, optional
        The limit that makes two classes of a numeric target.
    date : {"days-since"}, optional
        Columns of dates become the number of days since their first date.
    """

    target: str
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    weight: str | None = None
    positive: str | None = None
    missing: str = "error"
    max_categories: int = 30
    task: str | None = None
    above: float | None = None
    date: str | None = None


def learn_encoding(table: Table, options: ColumnOptions) -> tuple[Encoding, tuple[str, ...]]:
    """Learn the encoding of a training file.

    Parameters
    ----------
    table : Table
        The training file.
    options : ColumnOptions
        Which column is the target, and how the others are used.

    Returns
    -------
    encoding : Encoding
        How the columns become features, labels and weights.
    notes : tuple of str
        Notes for the user, for instance about columns that are left out or may cause leakage.

    Raises
    ------
    TableError
        If columns cannot be used; the message lists all of them.
    """
    target = table.find(options.target)
    weight = None if options.weight is None else table.find(options.weight)
    excluded = {target, weight, *(table.find(name) for name in options.drop)}
    words = {table.find(name) for name in options.categorical}
    notes: list[str] = []
    labels = _label_settings(table, target, options, notes)
    columns: list[Column] = []
    refused: dict[str, str] = {}
    for name in table.names:
        if name in excluded or not _has_two_values(table, name, notes):
            continue
        try:
            decide = _category if name in words else _column
            columns.append(decide(table, name, options, notes))
        except TableError as error:
            refused[name] = str(error)
    _raise_refused(refused)
    if not columns:
        raise TableError(f"{table.source} has no usable column besides the target {target!r}")
    encoding = Encoding(
        columns=tuple(columns), target=target, weight=weight, missing=options.missing, decimal=table.decimal,
        source=os.path.basename(table.source), **labels,
    )  # fmt: skip
    _check_names(encoding)
    return encoding, (*notes, *combined_note(_suspects(table, encoding, words)))


def _raise_refused(refused: dict[str, str]) -> None:
    if len(refused) == 1:
        raise TableError(next(iter(refused.values())))
    if refused:
        lines = "".join(f"\n  {reason}" for reason in refused.values())
        raise TableError(
            f"{len(refused)} columns cannot be used:{lines}\n  to leave out all of them, add {drop_options(refused)}"
        )


def _suspects(table: Table, encoding: Encoding, words: set[str]) -> dict[str, str]:
    """Columns that may be unsuitable as features, with the reason; see :mod:`margotree.table.suspect_columns`."""
    labels = table.column(encoding.target) if not encoding.numeric else [""] * table.n_rows
    spelled_labels = encoding.labels(table, [k for k, label in enumerate(labels) if label]).tolist()
    rest = iter(map(str, spelled_labels))
    labels = [next(rest) if label else "" for label in labels]
    found = {}
    for column in encoding.columns:
        cells = table.column(column.name)
        unit = column.unit if isinstance(column, Number) else None
        values = parse_numbers(without_unit(cells, unit), table)[0] if isinstance(column, Number) else None
        if isinstance(column, Date):
            values = column.coded(cells)[:, 0]
        if reason := first_suspicion(ColumnCells(name=column.name, cells=cells, values=values, labels=labels)):
            found[column.name] = reason
    words = words | {column.name for column in encoding.columns if isinstance(column, Date)}
    # Columns that the user declares as categorical, and those of dates, are checked for leakage only.
    return {name: reason for name, reason in found.items() if name not in words or "leakage" in reason}


def _has_two_values(table: Table, name: str, notes: list[str]) -> bool:
    """Whether a column has two different cells; if it does not, a note says that it is left out."""
    seen = {fold(cell): cell for cell in set(table.column(name)) if cell}
    if len(seen) >= 2:
        return True
    what = f"has the same value {next(iter(seen.values()))!r} in all rows" if seen else "is empty"
    notes.append(f"column {name!r} {what}: it is left out")
    return False


def _column(table: Table, name: str, options: ColumnOptions, notes: list[str]) -> Column:
    cells = table.column(name)
    if options.date is not None and (column := _date(table, name, options)) is not None:
        return column
    unit = unit_of(cells)
    values, bad = parse_numbers(without_unit(cells, unit), table)
    known = np.array([bool(cell) for cell in cells])
    if len(bad) == 0:
        notes += _unit_note(cells, name, unit)
        median = float(np.median(values[known]))
        fill = median if options.missing in FILLING else None
        return Number(name=name, fill=fill, unit=unit, flag=_needs_indicator(cells, options), typical=median)
    if 1 - len(bad) / known.sum() > _MIN_NUMERIC_SHARE:
        raise TableError(
            f"{table.source}, line {table.lines[bad[0]]}: {cells[bad[0]]!r} in column {name!r} is not a number, but "
            f"most cells of the column are ({len(bad)} of {known.sum()} are not).  Correct the cell; or add "
            f"--na {shell_quoted(cells[bad[0]])} if it means a missing value, --categorical {shell_quoted(name)} if "
            f"the column holds categories, or --drop {shell_quoted(name)} to leave out the column"
        )
    return _category(table, name, options, notes)


def _date(table: Table, name: str, options: ColumnOptions) -> Date | None:
    """A column of dates; None if the cells are none."""
    cells = table.column(name)
    form = date_form(cells, name)
    if form is not None:
        return Date.learnt(
            name, form, cells, fills=options.missing in FILLING, indicates=options.missing == "indicator"
        )
    if look_like_dates(cells):
        raise TableError(
            f"the dates in column {name!r}, such as {next(filter(None, cells))!r}, are not all of one of the forms "
            f"{', '.join(FORMS)}; write them as {FORMS[0]}"
        )
    return None


def _unit_note(cells: Sequence[str], name: str, unit: str | None) -> list[str]:
    """A note about cells that are read as numbers although they are not bare numbers."""
    if unit is None:
        return []
    if unit == MONTH_NAMES:
        hint = f"add --categorical {shell_quoted(name)} for one feature per month"
        return [f"the months in column {name!r} are read as 1 to 12; {hint}"]
    without = sum(cell == plain for cell, plain in zip(cells, without_unit(cells, unit), strict=True) if cell)
    mixed = f"; {without} cells have no unit and are assumed to be in the same unit" if without else ""
    example = next(cell for cell, plain in zip(cells, without_unit(cells, unit), strict=True) if cell != plain)
    return [f"cells in column {name!r} such as {example!r} are read as numbers without the unit {unit!r}{mixed}"]


def _needs_indicator(cells: Sequence[str], options: ColumnOptions) -> bool:
    return options.missing == "indicator" and not all(cells)


def _category(table: Table, name: str, options: ColumnOptions, notes: list[str]) -> Category:
    cells = table.column(name)
    counts, several = merged(cells)
    if len(counts) > options.max_categories:
        examples = ", ".join(repr(word) for word, _ in counts.most_common(3))
        raise TableError(
            f"column {name!r} holds {len(counts)} different words ({examples}, ...), and each would become a feature.  "
            f"Leave out the column with --drop {shell_quoted(name)}, convert it in the file to "
            f"{_suggested_conversion(cells)}, or allow this many words with --max-categories {len(counts)}"
            f"{_comma_hint(table, name)}"
        )
    notes += merging_note(name, several)
    most_frequent = counts.most_common(1)[0][0]
    fill = most_frequent if options.missing in FILLING else None
    return Category(
        name=name, values=tuple(sorted(counts)), fill=fill, flag=_needs_indicator(cells, options), typical=most_frequent
    )


def _suggested_conversion(cells: Sequence[str]) -> str:
    """The advice in an error message: what a user can convert a column with too many different words to."""
    if look_like_dates(cells):
        return "a number of days or years (these are dates; --date days-since does this)"
    if len(units := units_of(cells)) > 1:
        return f"numbers of one unit (these have several: {', '.join(units[:4])})"
    return "numbers or to fewer categories"


def _label_settings(table: Table, target: str, options: ColumnOptions, notes: list[str]) -> dict[str, Any]:
    """The encoding's fields about labels: ``positive`` if it is given, otherwise ``whole`` and ``spelling``."""
    counts, several = merged(table.column(target))
    if not counts:
        raise TableError(f"the target column {target!r} is empty")
    notes += merging_note(target, several)
    if options.positive is not None:
        positive = Spellings(list(counts))(options.positive)
        if positive is None:
            raise TableError(
                f"no row has the label {options.positive!r} in the target column {target!r}; "
                f"its labels are {_label_counts(counts)}"
            )
        return {"positive": positive}
    values, bad = parse_numbers(list(counts), table)
    if options.above is not None:
        _check_numeric(table, target, bad, "--above")
        if np.all(values > options.above) or not np.any(values > options.above):
            raise TableError(
                f"--above {options.above:g} divides no rows: the numbers of the target column {target!r} are from "
                f"{values.min():g} to {values.max():g}"
            )
        return {"above": options.above}
    if options.task == "regression" or (options.task is None and len(bad) == 0 and len(counts) > _MOST_CLASSES):
        _check_numeric(table, target, bad, "--task regression")
        notes += _regression_note(target, values, options)
        return {"numeric": True}
    if options.task is None and len(counts) > _MOST_CLASSES:  # meant as numbers, but some are none
        most = len(bad) < _MIN_NUMERIC_SHARE * len(counts)
        if most or _comma_hint(table, target):
            raise TableError(
                f"{_not_a_number(table, target)}{', but most labels are' if most else ''}.  "
                f"{_corrections(table, target)}; or add --task classification for one class per label"
            )
    if len(counts) == 1:
        raise TableError(
            f"all rows have the label {next(iter(counts))!r} in the target column {target!r}; a tree needs two classes"
        )
    if options.task is None and len(bad) == 0 and len(counts) >= _MANY_CLASSES:
        notes.append(
            f"the {len(counts)} different numbers of the target column {target!r} are treated as classes; add "
            "--task regression to predict a number, or --above LIMIT for two classes"
        )
    whole = len(bad) == 0 and bool(np.all(values == np.round(values)) and np.all(np.abs(values) < 2**53))
    return {"whole": whole, "spelling": tuple(sorted(counts))}


def _check_numeric(table: Table, target: str, bad: NDArray[np.int64], option: str) -> None:
    if len(bad):
        raise TableError(f"{_not_a_number(table, target)}, which {option} needs.  {_corrections(table, target)}")


def _not_a_number(table: Table, target: str) -> str:
    """The first cell of the target that is not a number, for a message."""
    row, cell = _first_word(table, target)
    return f"{table.source}, line {table.lines[row]}: {cell!r} in the target column {target!r} is not a number"


def _corrections(table: Table, target: str) -> str:
    """What to do about such a cell."""
    if hint := _comma_hint(table, target):
        return hint.removeprefix("; ").capitalize()
    cell = shell_quoted(_first_word(table, target)[1])
    return f"Correct the cell, or add --na {cell} --missing drop if it means a missing value"


def _first_word(table: Table, target: str) -> tuple[int, str]:
    """The row and the content of the first cell of the target that is not a number."""
    cells = table.column(target)
    row = int(parse_numbers(cells, table)[1][0])
    return row, cells[row]


def _regression_note(target: str, values: np.ndarray, options: ColumnOptions) -> list[str]:
    """A note that a numeric target is not taken as labels, and how to have it as classes."""
    if options.task is not None:
        return []
    middle = float(np.median(values))
    return [
        f"the target column {target!r} holds {len(values)} different numbers, which are predicted; add --above "
        f"{middle:g} for two classes, or --task classification for one class per number"
    ]


def _check_names(encoding: Encoding) -> None:
    repeated = [name for name, times in Counter(encoding.features).items() if times > 1]
    if repeated:
        raise TableError(f"two features would have the name {repeated[0]!r}; rename one of the columns")


def _comma_hint(table: Table, name: str) -> str:
    cells = [cell for cell in table.column(name) if cell]
    if (
        table.decimal == "."
        and sum("," in cell and not cell.strip("+-0123456789,.") for cell in cells) > len(cells) / 2
    ):
        return "; if these are numbers with a decimal comma, add --decimal ,"
    return ""


def _label_counts(counts: Counter[str]) -> str:
    shown = ", ".join(f"{label!r} ({times})" for label, times in counts.most_common(6))
    return shown + (f" and {len(counts) - 6} more" if len(counts) > 6 else "")
