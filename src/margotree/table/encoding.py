"""How the columns of a table become features: learned from the training file, kept with the tree, used on new files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from margotree.table.amounts import bare, month_words, spellings
from margotree.table.cell_rules import CellRule, RawColumns
from margotree.table.cells import MISSING, numbers
from margotree.table.missing_cells import Filled, MissingReport
from margotree.table.normalised_words import Spellings, fold
from margotree.table.read_options import Reading
from margotree.table.table import MissingCells, Table, TableError, suggestion

FloatArray = NDArray[np.float64]
LabelArray = NDArray[np.int64] | NDArray[np.str_]


@dataclass(frozen=True, kw_only=True)
class Number:
    """A column of numbers; ``fill`` stands in for a missing cell if there is one.

    ``unit`` is what they are written with ("%", "months", names of months); ``flag`` adds a 0/1 feature that says
    where the cell was missing.  ``typical`` is the median of the training file, for display alone.
    """

    name: str
    fill: float | None = None
    unit: str | None = None
    flag: bool = False
    typical: float | None = field(default=None, compare=False)

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name, *_flagged(self))

    @property
    def rule(self) -> CellRule:
        """How a cell becomes the features."""
        months = month_words(self.unit)
        present = (0.0,) * self.flag
        return CellRule(
            column=self.name,
            features=self.features,
            missing=None if self.fill is None else (self.fill, *(1.0,) * self.flag),
            words=tuple((word, (number, *present)) for word, number in months.items()),
            numeric=True,
            units=spellings(self.unit),
        )

    def encode(self, cells: Sequence[str], table: Table, unknown: str) -> FloatArray:
        """The features of each cell; NaN where the cell is missing and nothing stands in."""
        values, bad = numbers(bare(cells, self.unit), table)
        if len(bad):
            raise TableError(
                f"{table.source}, line {table.lines[bad[0]]}: {cells[bad[0]]!r} under {self.name!r} is no number, "
                f"but the tree was trained on numbers there{_and_more(len(bad))}"
            )
        coded = np.zeros((len(cells), len(self.features)))
        coded[:, 0] = values
        coded[np.isnan(values)] = np.nan if (missing := self.rule.missing) is None else missing
        return coded


@dataclass(frozen=True, kw_only=True)
class Category:
    """A column of words: a 0/1 feature for each of them, or one for the second of two; ``flag`` as in :class:`Number`.

    Words that differ in case or blanks are the same.  ``typical`` is the commonest word of the training file, for
    display alone.
    """

    name: str
    values: tuple[str, ...]
    fill: str | None = None
    flag: bool = False
    typical: str | None = field(default=None, compare=False)

    @property
    def shown(self) -> tuple[str, ...]:
        return self.values[1:] if len(self.values) == 2 else self.values

    @property
    def features(self) -> tuple[str, ...]:
        return (*(f"{self.name}={value}" for value in self.shown), *_flagged(self))

    @property
    def rule(self) -> CellRule:
        """How a cell becomes the features."""
        coded = {word: tuple(float(word == shown) for shown in self.shown) for word in self.values}
        present = (0.0,) * self.flag
        return CellRule(
            column=self.name,
            features=self.features,
            missing=None if self.fill is None else (*coded[self.fill], *(1.0,) * self.flag),
            words=tuple((word, (*values, *present)) for word, values in coded.items()),
        )

    def strangers(self, cells: Sequence[str]) -> list[int]:
        """Positions of the words that training did not see."""
        known = Spellings(self.values)
        odd = {cell for cell in set(cells) if cell and known(cell) is None}
        return [k for k, cell in enumerate(cells) if cell in odd] if odd else []

    def encode(self, cells: Sequence[str], table: Table, unknown: str) -> FloatArray:
        """0/1 features; a word that training did not see is refused, or is none of them if ``unknown="ignore"``."""
        strange = self.strangers(cells)
        if strange and unknown != "ignore":
            known = ", ".join(map(repr, self.values[:8])) + (", ..." if len(self.values) > 8 else "")
            raise TableError(
                f"{table.source}, line {table.lines[strange[0]]}: {cells[strange[0]]!r} under {self.name!r} was in no "
                f"training row, which had {known}{_and_more(len(strange))}; mend the cell, or say --unknown ignore to "
                "take it as none of them"
            )
        rule, spelled = self.rule, Spellings(self.values)
        size = len(rule.features)
        values_of: dict[str | None, tuple[float, ...]] = dict(rule.words) | {None: (0.0,) * size}
        coded = {cell: values_of[spelled(cell)] for cell in set(cells) if cell}
        coded[""] = (np.nan,) * size if rule.missing is None else rule.missing
        return np.array([coded[cell] for cell in cells], dtype=np.float64).reshape(-1, size)


Column = Number | Category


def _flagged(column: Column) -> tuple[str, ...]:
    return (f"{column.name} missing",) if column.flag else ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """The training rows of a table: features, labels, weights (None: all count the same) and where they stood.

    ``report`` tells what became of missing cells.
    """

    X: FloatArray
    y: LabelArray
    weight: FloatArray | None
    rows: list[int]
    report: MissingReport = field(default_factory=MissingReport)

    def fingerprint(self) -> str:
        """SHA-256 of numbers, labels and weights, by which the same rows in the same order are known again."""
        digest = hashlib.sha256(str(self.X.shape).encode())
        digest.update((np.asarray(self.X, dtype="<f8") + 0.0).tobytes())
        digest.update("\n".join(map(str, self.y.tolist())).encode())
        if self.weight is not None:
            digest.update(np.asarray(self.weight, dtype="<f8").tobytes())
        return digest.hexdigest()

    def fingerprint_of_set(self) -> str:
        """SHA-256 by which the same rows are known again whatever their order."""
        numbers = self.X if self.weight is None else np.column_stack([self.X, self.weight])
        table = np.asarray(numbers, dtype="<f8") + 0.0
        rows = sorted(row.tobytes() + str(label).encode() for row, label in zip(table, self.y.tolist(), strict=True))
        digest = hashlib.sha256(str((self.X.shape, self.weight is not None)).encode())
        for row in rows:
            digest.update(len(row).to_bytes(8, "little") + row)
        return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """Which columns are features, which one is the target, and what happens to missing cells.

    ``missing`` is "error", "drop" (training rows with one are left out), "median" (the median, or the commonest word,
    stands in) or "indicator" (the same, and a feature says where).  ``positive`` names the label that is told apart
    from all others, if that was asked for; ``whole`` says that labels are whole numbers; ``spelling`` holds the labels
    as training spelled them.  ``decimal`` is how the training file writes fractions (see :class:`Table`), and
    ``source`` its name, for display alone; ``reading`` holds the reader's options for the training file.
    """

    columns: tuple[Column, ...]
    target: str
    weight: str | None = None
    positive: str | None = None
    whole: bool = False
    missing: str = "error"
    spelling: tuple[str, ...] = ()
    decimal: str = "."
    source: str = field(default="", compare=False)
    reading: Reading = field(default_factory=Reading)

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def raw(self) -> RawColumns:
        """How a raw row becomes the features: what exports and pages follow."""
        rules = tuple(column.rule for column in self.columns)
        words = MISSING | {word.strip().casefold() for word in self.reading.missing or ()}
        return RawColumns(rules=rules, missing=tuple(sorted(words)), comma=self.decimal != ".")

    def apply(self, table: Table, *, unknown: str = "error", missing: str = "error") -> tuple[FloatArray, list[int]]:
        """The features of each row, and which rows have them all.

        Rows with a missing cell that nothing stands in for are an error, unless ``missing`` is "skip": then they are
        not among the rows returned.
        """
        parts = [c.encode(self._cells(c.name, table), table, unknown) for c in self.columns]
        X = np.hstack(parts)
        incomplete = np.flatnonzero(np.isnan(X).any(axis=1))
        if len(incomplete) and missing != "skip":
            self._complain(table, parts, int(incomplete[0]), len(incomplete))
        kept = np.flatnonzero(~np.isnan(X).any(axis=1))
        return X[kept], kept.tolist()

    def labels(self, table: Table, rows: Sequence[int] | None = None) -> LabelArray:
        """The labels of the rows, as training spelled them."""
        cells = self._cells(self.target, table)
        chosen = cells if rows is None else [cells[i] for i in rows]
        if self.positive is not None:
            wanted = fold(self.positive)
            return np.array([self.positive if fold(cell) == wanted else f"not {self.positive}" for cell in chosen])
        if not self.whole:
            known = Spellings(self.spelling)
            return np.array([known(cell) or cell for cell in chosen], dtype=np.str_)
        try:
            return np.array([int(float(cell.replace(",", "."))) for cell in chosen], dtype=np.int64)
        except (ValueError, OverflowError):
            raise TableError(
                f"{table.source}: a label under {self.target!r} is no whole number, as all were in training"
            ) from None

    def weights(self, table: Table, rows: Sequence[int]) -> FloatArray | None:
        """How much each row counts, None if all count the same."""
        if self.weight is None:
            return None
        values, bad = numbers(self._cells(self.weight, table), table)
        values = values[list(rows)]
        if len(bad) or not np.all(np.isfinite(values)) or np.any(values < 0):
            raise TableError(
                f"{table.source}: the weights under {self.weight!r} must be numbers, 0 or more, none missing"
            )
        return values

    def training(self, table: Table) -> Samples:
        """The rows that take part in training, as numbers."""
        X, rows = self.apply(table, missing="skip" if self.missing == "drop" else "error")
        cells = self._cells(self.target, table)
        labelled = [k for k, i in enumerate(rows) if cells[i]]
        if len(labelled) < len(rows) and self.missing == "error":
            line = next(table.lines[i] for i in rows if not cells[i])
            raise MissingCells(
                f"{table.source}, line {line}: no label under {self.target!r}{_and_more(len(rows) - len(labelled))}"
            )
        rows = [rows[k] for k in labelled]
        weight = self.weights(table, rows)
        report = self._report(table, cells, rows, weight)
        return Samples(X=X[labelled], y=self.labels(table, rows), weight=weight, rows=rows, report=report)

    def _report(
        self, table: Table, labels: Sequence[str], rows: Sequence[int], weight: FloatArray | None
    ) -> MissingReport:
        """What became of the missing cells, where these rows are the ones used."""
        used = np.zeros(table.n_rows, dtype=bool)
        used[list(rows)] = True
        labelled = np.array([bool(label) for label in labels], dtype=bool)
        filled, holes = [], []
        for column in self.columns:
            empty = np.array([not cell for cell in self._cells(column.name, table)], dtype=bool)
            if column.fill is None and (count := int((empty & labelled & ~used).sum())):
                holes.append((column.name, count))
            elif column.fill is not None and (count := int((empty & used).sum())):
                filled.append(Filled(column=column.name, cells=count, value=column.fill, flag=column.flag))
        return MissingReport(
            rows=table.n_rows,
            used=len(rows),
            filled=tuple(filled),
            unlabelled=int((~labelled).sum()),
            incomplete=int((labelled & ~used).sum()),
            holes=tuple(holes),
            weightless=0 if weight is None else int((weight == 0).sum()),
        )

    def _cells(self, name: str, table: Table) -> list[str]:
        if name not in table.names:
            lacking = [c.name for c in self.columns if c.name not in table.names] or [name]
            hint = suggestion(lacking[0], table.names)
            raise TableError(f"{table.source} lacks {_names(lacking)}, which the tree was trained on; {hint}")
        return table.column(name)

    def _complain(self, table: Table, parts: list[FloatArray], row: int, rows: int) -> None:
        holes = {c.name: int(np.isnan(p).any(axis=1).sum()) for c, p in zip(self.columns, parts, strict=True)}
        holes = {name: count for name, count in holes.items() if count}
        worst = sorted(holes, key=lambda name: -holes[name])
        counts = ", ".join(f"{name!r} {holes[name]}" for name in worst[:6]) + (", ..." if len(worst) > 6 else "")
        raise MissingCells(
            f"{table.source} has missing cells in {rows} of {table.n_rows} rows (first in line {table.lines[row]}; by "
            f"column: {counts})"
        )


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:6])) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return f"the column{'s' if len(names) > 1 else ''} {shown}"


def _and_more(count: int) -> str:
    return f" (and in {count - 1} more rows)" if count > 1 else ""
