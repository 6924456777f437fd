"""Encode the columns of a table as features, labels and weights.

An :class:`Encoding` is learned from the training file (``column_inference``), saved with the tree and applied to new
files.  Its columns are of the classes :class:`Number`, :class:`Date`, :class:`Category` and :class:`Ordered`.  Data
frames have encodings of the same classes (``frame_encoding``).
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from margotree.table.amounts import number_words, unit_spellings, without_unit
from margotree.table.cell_rules import CellRule, RawColumns
from margotree.table.cells import MISSING, parse_numbers
from margotree.table.dates import day_number, days_since
from margotree.table.missing_cells import Filled, MissingReport
from margotree.table.normalised_words import Spellings, fold
from margotree.table.read_options import ReadOptions
from margotree.table.table import MissingCells, Table, TableError, suggestion

FloatArray = NDArray[np.float64]
LabelArray = NDArray[np.int64] | NDArray[np.str_] | NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Number:
    """A column of numbers.

    ``fill`` replaces missing cells, unless it is None.  ``unit`` is the unit of the numbers ("%", "months", names of
    months, true and false).  ``flag`` adds a 0/1 feature that is 1 where the cell is missing.  ``typical`` is the
    median of the training file, for display only.
    """

    name: str
    fill: float | None = None
    unit: str | None = None
    flag: bool = False
    typical: float | None = field(default=None, compare=False)

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name, *_missing_feature(self))

    @property
    def rule(self) -> CellRule:
        """The rule that turns a cell into the features."""
        words = number_words(self.unit)
        present = (0.0,) * self.flag
        return CellRule(
            column=self.name,
            features=self.features,
            missing=None if self.fill is None else (self.fill, *(1.0,) * self.flag),
            words=tuple((word, (number, *present)) for word, number in words.items()),
            numeric=True,
            units=unit_spellings(self.unit),
        )

    def encode(self, cells: Sequence[str], table: Table, unknown: str) -> FloatArray:
        """The features of each cell; NaN where the cell is missing and ``fill`` is None."""
        values, bad = parse_numbers(without_unit(cells, self.unit), table)
        if len(bad):
            raise TableError(
                f"{table.source}, line {table.lines[bad[0]]}: {cells[bad[0]]!r} in column {self.name!r} is not a "
                f"number, but the tree was trained on numbers in this column{_and_more(len(bad))}"
            )
        return self.coded(values)

    def coded(self, values: FloatArray) -> FloatArray:
        """The features of numbers, which are NaN where the cell is missing."""
        return _coded_numbers(values, self.rule)


@dataclass(frozen=True, kw_only=True)
class Date:
    """A column of dates: the number of days since the first date of the training file.

    ``form`` is the form of the dates (one of :data:`margotree.table.dates.FORMS`), ``since`` the first date
    (YYYY-MM-DD).  ``fill``, ``flag`` and ``typical`` are as in :class:`Number`, in days.
    """

    name: str
    form: str
    since: str
    fill: float | None = None
    flag: bool = False
    typical: float | None = field(default=None, compare=False)

    @classmethod
    def learnt(cls, name: str, form: str, cells: Sequence[str], *, fills: bool, indicates: bool) -> Date:
        """The column whose first date is that of the cells.

        The median date replaces missing cells if ``fills``; a feature shows where cells are missing if ``indicates``.
        """
        numbers = [day_number(cell, form) for cell in cells if cell]
        first = min(numbers)
        median = float(np.floor(np.median(numbers) - first))
        return cls(
            name=name, form=form, since=datetime.date.fromordinal(int(first)).isoformat(),
            fill=median if fills else None, flag=indicates and not all(cells), typical=median,
        )  # fmt: skip

    @property
    def features(self) -> tuple[str, ...]:
        return (f"{self.name} (days since {self.since})", *_missing_feature(self))

    @property
    def rule(self) -> CellRule:
        """The rule that turns a cell into the features."""
        return CellRule(
            column=self.name,
            features=self.features,
            missing=None if self.fill is None else (self.fill, *(1.0,) * self.flag),
            numeric=True,
            date=(self.form, self.since),
        )

    def encode(self, cells: Sequence[str], table: Table, unknown: str) -> FloatArray:
        """The features of each cell; NaN where the cell is missing and ``fill`` is None."""
        return self.coded(cells, [f"{table.source}, line {line}: " for line in table.lines])

    def coded(self, cells: Sequence[str], places: Sequence[str] | None = None) -> FloatArray:
        """The features of cells; an error says the place of a cell that is no date."""
        values, bad = days_since(cells, self.form, self.since)
        if len(bad):
            raise TableError(
                f"{'' if places is None else places[bad[0]]}{cells[bad[0]]!r} in column {self.name!r} is not a date of "
                f"the form {self.form}, as in training{_and_more(len(bad))}"
            )
        return _coded_numbers(values, self.rule)


@dataclass(frozen=True, kw_only=True)
class Category:
    """A column of words: a 0/1 feature for each word; for two words, one feature that is 1 for the second.

    Words that differ in case or blanks are the same.  ``fill`` and ``flag`` are as in :class:`Number`.  ``typical`` is
    the most frequent word of the training file, for display only.  With ``others`` any other word is allowed, and all
    its features are 0; otherwise it is an error.
    """

    name: str
    values: tuple[str, ...]
    fill: str | None = None
    flag: bool = False
    typical: str | None = field(default=None, compare=False)
    others: bool = False

    @property
    def encoded_values(self) -> tuple[str, ...]:
        """The words that have a feature."""
        return self.values[1:] if len(self.values) == 2 else self.values

    @property
    def features(self) -> tuple[str, ...]:
        return (*(f"{self.name}={value}" for value in self.encoded_values), *_missing_feature(self))

    @property
    def rule(self) -> CellRule:
        """The rule that turns a cell into the features."""
        coded = {
            word: tuple(float(word == encoded_values) for encoded_values in self.encoded_values) for word in self.values
        }
        present = (0.0,) * self.flag
        return CellRule(
            column=self.name,
            features=self.features,
            missing=None if self.fill is None else (*coded[self.fill], *(1.0,) * self.flag),
            words=tuple((word, (*values, *present)) for word, values in coded.items()),
            other=(0.0,) * len(self.features) if self.others else None,
        )

    def unknown_positions(self, cells: Sequence[str]) -> list[int]:
        """The positions of cells with words that are not in the training file, where these are not allowed."""
        return [] if self.others else _unknown_positions(cells, self.values)

    def encode(self, cells: Sequence[str], table: Table, unknown: str) -> FloatArray:
        """The 0/1 features of each cell.

        A word that is not in the training file is an error; with ``unknown="ignore"`` all its features are 0.
        """
        if unknown != "ignore":
            _refuse_unknown(self, cells, table)
        return self.coded(cells)

    def coded(self, cells: Sequence[str]) -> FloatArray:
        """The 0/1 features of each cell; those of a word that is not in the training file are 0."""
        return _coded_words(cells, self.rule, (0.0,) * len(self.features))


@dataclass(frozen=True, kw_only=True)
class Ordered:
    """A column of words with an order: one feature, the position of the word in ``values``, from 0 on.

    ``fill`` and ``flag`` are as in :class:`Number`, ``typical`` as in :class:`Category`.  With ``others`` a word that
    is not in ``values`` counts as missing; otherwise it is an error.
    """

    name: str
    values: tuple[str, ...]
    fill: str | None = None
    flag: bool = False
    typical: str | None = field(default=None, compare=False)
    others: bool = True

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name, *_missing_feature(self))

    @property
    def rule(self) -> CellRule:
        """The rule that turns a cell into the features."""
        present = (0.0,) * self.flag
        words = tuple((word, (float(k), *present)) for k, word in enumerate(self.values))
        missing = None if self.fill is None else (float(self.values.index(self.fill)), *(1.0,) * self.flag)
        other = missing if self.others else None
        return CellRule(column=self.name, features=self.features, missing=missing, words=words, other=other)

    def unknown_positions(self, cells: Sequence[str]) -> list[int]:
        """The positions of cells with words that are not in the training file, where these are not allowed."""
        return [] if self.others else _unknown_positions(cells, self.values)

    def encode(self, cells: Sequence[str], table: Table, unknown: str) -> FloatArray:
        """The features of each cell; NaN where the cell is missing and ``fill`` is None."""
        if unknown != "ignore":
            _refuse_unknown(self, cells, table)
        return self.coded(cells)

    def coded(self, cells: Sequence[str]) -> FloatArray:
        """The same as :meth:`encode`, for any cells."""
        rule = self.rule
        return _coded_words(cells, rule, (np.nan,) * len(rule.features) if rule.missing is None else rule.missing)


Column = Number | Date | Category | Ordered


def _unknown_positions(cells: Sequence[str], words: Sequence[str]) -> list[int]:
    """The positions of cells that are neither empty nor one of the words."""
    known = Spellings(words)
    unknown = {cell for cell in set(cells) if cell and known(cell) is None}
    return [k for k, cell in enumerate(cells) if cell in unknown] if unknown else []


def _refuse_unknown(column: Category | Ordered, cells: Sequence[str], table: Table) -> None:
    """Raise TableError if a cell has a word that is neither known nor allowed."""
    if positions := column.unknown_positions(cells):
        raise TableError(
            f"{table.source}, line {table.lines[positions[0]]}: {cells[positions[0]]!r} in column {column.name!r} is "
            f"not a word of the training file{_and_more(len(positions))}; its words are {known_words(column)}.  "
            "Correct the cell, or add --unknown ignore to treat such a word as none of them"
        )


def known_words(column: Category | Ordered) -> str:
    """The first words of a column, for messages."""
    return ", ".join(map(repr, column.values[:8])) + (", ..." if len(column.values) > 8 else "")


def _coded_numbers(values: FloatArray, rule: CellRule) -> FloatArray:
    """The features of numbers, which are NaN where the cell is missing."""
    coded = np.zeros((len(values), len(rule.features)))
    coded[:, 0] = values
    coded[np.isnan(values)] = np.nan if rule.missing is None else rule.missing
    return coded


def _coded_words(cells: Sequence[str], rule: CellRule, other: tuple[float, ...]) -> FloatArray:
    """The features of words: ``other`` are those of unknown words; NaN where missing cells are not filled."""
    spelled, size = Spellings([word for word, _ in rule.words]), len(rule.features)
    values_of: dict[str | None, tuple[float, ...]] = dict(rule.words) | {None: other}
    coded = {cell: values_of[spelled(cell)] for cell in set(cells) if cell}
    coded[""] = (np.nan,) * size if rule.missing is None else rule.missing
    different = {cell: k for k, cell in enumerate(coded)}
    numbers = np.array(list(coded.values()), dtype=np.float64).reshape(-1, size)
    return numbers[[different[cell] for cell in cells]]


def _missing_feature(column: Column) -> tuple[str, ...]:
    return (f"{column.name} missing",) if column.flag else ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """The training rows of a table: features, labels, weights (None: all equal) and positions in the table.

    ``report`` counts missing cells and the rows that were left out.
    """

    X: FloatArray
    y: LabelArray
    weight: FloatArray | None
    rows: list[int]
    report: MissingReport = field(default_factory=MissingReport)

    @property
    def is_numeric(self) -> bool:
        """Whether the targets are numbers to predict, and not labels."""
        return self.y.dtype.kind == "f"

    def fingerprint(self) -> str:
        """SHA-256 of features, labels and weights; equal for the same rows in the same order."""
        digest = hashlib.sha256(str(self.X.shape).encode())
        digest.update((np.asarray(self.X, dtype="<f8") + 0.0).tobytes())
        digest.update("\n".join(map(str, self.y.tolist())).encode())
        if self.weight is not None:
            digest.update(np.asarray(self.weight, dtype="<f8").tobytes())
        return digest.hexdigest()

    def fingerprint_of_set(self) -> str:
        """SHA-256 of the rows that does not depend on their order."""
        columns = self.X if self.weight is None else np.column_stack([self.X, self.weight])
        table = np.asarray(columns, dtype="<f8") + 0.0
        rows = sorted(row.tobytes() + str(label).encode() for row, label in zip(table, self.y.tolist(), strict=True))
        digest = hashlib.sha256(str((self.X.shape, self.weight is not None)).encode())
        for row in rows:
            digest.update(len(row).to_bytes(8, "little") + row)
        return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """How the columns of a table become features, labels and weights.

    Parameters
    ----------
    columns : tuple of Number, Date, Category or Ordered
        The columns that become features.
    target : str
        The column with the labels.
    weight : str, optional
        The column with the weight of each row.
    positive : str, optional
        The label of the positive class; all other labels form the negative class.
    above : float, optional
        The limit of a numeric target whose two classes are the numbers above it and the others.
    numeric : bool
        Whether the target is a number to predict, and not a label.
    whole : bool
        Whether the labels are whole numbers.
    missing : {"error", "drop", "median", "indicator"}
        How missing cells of the training file were treated: as an error; their rows were left out; they were replaced
        by the median (or the most frequent word); replaced, and a 0/1 feature shows where.
    spelling : tuple of str
        The labels as they are spelled in the training file.
    decimal : str
        How the training file writes fractions; see :class:`Table`.
    source : str
        The name of the training file, for display only.
    reading : Reading
        The options with which the training file was read.
    """

    columns: tuple[Column, ...]
    target: str
    weight: str | None = None
    positive: str | None = None
    above: float | None = None
    numeric: bool = False
    whole: bool = False
    missing: str = "error"
    spelling: tuple[str, ...] = ()
    decimal: str = "."
    source: str = field(default="", compare=False)
    reading: ReadOptions = field(default_factory=ReadOptions)

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def date_columns(self) -> frozenset[str]:
        """The names of the columns of dates."""
        return frozenset(column.name for column in self.columns if isinstance(column, Date))

    @property
    def groups(self) -> tuple[int, ...]:
        """The position of its column for each feature, so that budgets can count columns."""
        return tuple(k for k, column in enumerate(self.columns) for _ in column.features)

    @property
    def raw(self) -> RawColumns:
        """The rules that turn a raw row into the features, for exports and report pages."""
        rules = tuple(column.rule for column in self.columns)
        words = MISSING | {word.strip().casefold() for word in self.reading.missing or ()}
        return RawColumns(rules=rules, missing=tuple(sorted(words)), comma=self.decimal != ".")

    def apply(self, table: Table, *, unknown: str = "error", missing: str = "error") -> tuple[FloatArray, list[int]]:
        """Encode the features of the rows of a table.

        Parameters
        ----------
        table : Table
            The table to encode.
        unknown : {"error", "ignore"}
            How words that are not in the training file are treated: as an error, or as none of the known words.
        missing : {"error", "skip"}
            How rows are treated that have a missing cell without a replacement: as an error, or they are left out.

        Returns
        -------
        X : array (rows, features)
            The features.
        rows : list of int
            The positions of these rows in the table.
        """
        parts = [c.encode(self._cells(c.name, table), table, unknown) for c in self.columns]
        X = np.hstack(parts)
        incomplete = np.flatnonzero(np.isnan(X).any(axis=1))
        if len(incomplete) and missing != "skip":
            self._raise_missing(table, parts, int(incomplete[0]), len(incomplete))
        kept = np.flatnonzero(~np.isnan(X).any(axis=1))
        return X[kept], kept.tolist()

    def labels(self, table: Table, rows: Sequence[int] | None = None) -> LabelArray:
        """The labels of the rows (default: all), spelled as in the training file."""
        cells = self._cells(self.target, table)
        chosen = cells if rows is None else [cells[i] for i in rows]
        if self.positive is not None:
            positive = fold(self.positive)
            return np.array([self.positive if fold(cell) == positive else f"not {self.positive}" for cell in chosen])
        if self.numeric or self.above is not None:
            return self._numbers(table, chosen)
        if not self.whole:
            known = Spellings(self.spelling)
            return np.array([known(cell) or cell for cell in chosen], dtype=np.str_)
        try:
            return np.array([int(float(cell.replace(",", "."))) for cell in chosen], dtype=np.int64)
        except (ValueError, OverflowError):
            raise TableError(
                f"{table.source}: a label in column {self.target!r} is not a whole number, but all labels of the "
                "training file are"
            ) from None

    def _numbers(self, table: Table, cells: Sequence[str]) -> LabelArray:
        """The numbers in cells of the target column, or whether each is above the limit."""
        values, bad = parse_numbers(cells, table)
        if len(bad):
            raise TableError(
                f"{table.source}: {cells[bad[0]]!r} in the target column {self.target!r} is not a number"
                f"{_and_more(len(bad))}"
            )
        if self.above is None:
            return values
        return np.where(values > self.above, *above_labels(self.above)).astype(np.str_)

    def weights(self, table: Table, rows: Sequence[int]) -> FloatArray | None:
        """The weights of the rows; None if all are equal."""
        if self.weight is None:
            return None
        values, bad = parse_numbers(self._cells(self.weight, table), table)
        values = values[list(rows)]
        if len(bad) or not np.all(np.isfinite(values)) or np.any(values < 0):
            raise TableError(
                f"{table.source}: the weights in column {self.weight!r} must be numbers of at least 0, and "
                "none may be missing"
            )
        return values

    def training(self, table: Table) -> Samples:
        """Encode the rows of a training file; rows without a label are an error if ``missing`` is "error"."""
        X, rows = self.apply(table, missing="skip" if self.missing == "drop" else "error")
        cells = self._cells(self.target, table)
        labelled = [k for k, i in enumerate(rows) if cells[i]]
        if len(labelled) < len(rows) and self.missing == "error":
            line = next(table.lines[i] for i in rows if not cells[i])
            raise MissingCells(
                f"{table.source}, line {line}: no label in column {self.target!r}{_and_more(len(rows) - len(labelled))}"
            )
        rows = [rows[k] for k in labelled]
        weight = self.weights(table, rows)
        report = self._report(table, cells, rows, weight)
        return Samples(X=X[labelled], y=self.labels(table, rows), weight=weight, rows=rows, report=report)

    def _report(
        self, table: Table, labels: Sequence[str], rows: Sequence[int], weight: FloatArray | None
    ) -> MissingReport:
        """Count the missing cells; ``rows`` are the positions of the rows that are used."""
        used = np.zeros(table.n_rows, dtype=bool)
        used[list(rows)] = True
        labelled = np.array([bool(label) for label in labels], dtype=bool)
        filled, missing_by_column = [], []
        for column in self.columns:
            empty = np.array([not cell for cell in self._cells(column.name, table)], dtype=bool)
            if column.fill is None and (count := int((empty & labelled & ~used).sum())):
                missing_by_column.append((column.name, count))
            elif column.fill is not None and (count := int((empty & used).sum())):
                filled.append(Filled(column=column.name, cells=count, value=column.fill, flag=column.flag))
        return MissingReport(
            rows=table.n_rows,
            used=len(rows),
            filled=tuple(filled),
            unlabelled=int((~labelled).sum()),
            incomplete=int((labelled & ~used).sum()),
            missing_by_column=tuple(missing_by_column),
            weightless=0 if weight is None else int((weight == 0).sum()),
        )

    def _cells(self, name: str, table: Table) -> list[str]:
        if name not in table.names:
            absent = [c.name for c in self.columns if c.name not in table.names] or [name]
            hint = suggestion(absent[0], table.names)
            raise TableError(f"{table.source} does not have {_column_list(absent)}, which the tree needs; {hint}")
        return table.column(name)

    def _raise_missing(self, table: Table, parts: list[FloatArray], row: int, rows: int) -> None:
        missing_by_column = {
            c.name: int(np.isnan(p).any(axis=1).sum()) for c, p in zip(self.columns, parts, strict=True)
        }
        missing_by_column = {name: count for name, count in missing_by_column.items() if count}
        ordered = sorted(missing_by_column, key=lambda name: -missing_by_column[name])
        counts = ", ".join(f"{name!r} {missing_by_column[name]}" for name in ordered[:6]) + (
            ", ..." if len(ordered) > 6 else ""
        )
        raise MissingCells(
            f"{table.source} has missing cells in {rows} of {table.n_rows} rows (the first is line {table.lines[row]}; "
            f"by column: {counts})"
        )


def above_labels(limit: float) -> tuple[str, str]:
    """The labels of numbers above a limit, and of the others."""
    return f"above {limit:g}", f"at most {limit:g}"


def _column_list(names: Sequence[str]) -> str:
    encoded_values = ", ".join(map(repr, names[:6])) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return f"the column{'s' if len(names) > 1 else ''} {encoded_values}"


def _and_more(count: int) -> str:
    return f" (and in {count - 1} more rows)" if count > 1 else ""
