"""The paper's tables from rows of results: our value, the paper's, and the difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from os import PathLike
from typing import Any

from margotree.model_selection.result_rows import Rows
from margotree.paper.data import DataError, paper_table
from margotree.paper.experiments import chosen_settings
from margotree.paper.experiments.case import row_identity
from margotree.paper.experiments.measures import MEASURES, Measure
from margotree.paper.experiments.samples import samples
from margotree.paper.experiments.specs import Method, SearchSpec, Spec, find, resolve_sets
from margotree.paper.experiments.table_cells import Cell, cell_columns, mean
from margotree.paper.experiments.text_table import FORMATS, UNPROVED, Column, Grid

_NOTES = (f"Each cell: ours, the paper's, ours minus the paper's. {UNPROVED} before ours: not proved optimal.",)

_FIRST = (Column(key="method", head="method"), Column(key="dataset", head="data set"))

RowsByCase = dict[tuple[Any, ...], dict[str, Any]]


def table(name: str, store: str | PathLike[str], format: str = "text", data: Sequence[str] | None = None) -> str:
    """Format a table.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    store : path
        The file of results.
    format : str
        "text", "csv", "latex" or "markdown".
    data : sequence of str, optional
        The sets to show; all by default.
    """
    if format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; there are: {', '.join(FORMATS)}")
    return FORMATS[format](grid_of(name, store, resolve_sets(data)))


def grid_of(name: str, store: str | PathLike[str], data: Sequence[str] | None = None) -> Grid:
    """The table as a :class:`Grid`."""
    spec = find(name)
    with Rows(store, must_exist=True) as rows:
        if isinstance(spec, Spec) and spec.layout == "datasets":
            return _datasets(spec, data)
        if isinstance(spec, SearchSpec):
            return chosen_settings.grid_of(spec, rows, data)
        return _LAYOUTS[spec.layout](spec, best_rows(rows.where(kind="fit")), data)


def best_rows(rows: Iterable[dict[str, Any]]) -> RowsByCase:
    """The row to show for every case: one proved optimal, then the one with the larger time limit, then the newest."""
    best: RowsByCase = {}
    for row in rows:
        k = row_identity(row)
        if k not in best or _rank(row) >= _rank(best[k]):
            best[k] = row
    return best


def _rank(row: dict[str, Any]) -> tuple[bool, float]:
    return row["proved"] == "optimal", row["time_limit"] or 0.0


# -- one row per method and data set ----------------------------------------------------------------------------


def _plain(spec: Spec, rows_by_case: RowsByCase, data: Sequence[str] | None) -> Grid:
    """The layout of most tables: the measures of the spec for every method and set."""
    measures = [MEASURES[m] for m in spec.measures]
    columns = [*_FIRST, *(c for m in measures for c in cell_columns(m.title, m.column))]

    def cells(method: Method, name: str) -> list[Cell]:
        return [_cell(spec, rows_by_case, name, method, measure) for measure in measures]

    return Grid(title=spec.title, columns=columns, rows=_lines(spec, data, cells), notes=_NOTES)


def _gains(spec: Spec, rows_by_case: RowsByCase, data: Sequence[str] | None) -> Grid:
    """The layout for fixed hyperparameters, with ``d``: the gain of the tuned ones."""
    measures = [MEASURES[m] for m in spec.measures]
    tuned = {m.model: m for m in spec.methods if not m.shown}
    columns = [*_FIRST, *(c for m in measures for c in cell_columns(m.title, m.column))]
    columns += [c for m in measures for c in cell_columns(f"d {m.title}", f"d_{m.column}")]

    def cells(method: Method, name: str) -> list[Cell]:
        fixed = [_cell(spec, rows_by_case, name, method, m) for m in measures]
        best = [_cell(spec, rows_by_case, name, tuned[method.model], m) for m in measures]
        return [*fixed, *(_gain(spec, name, method, f, b) for f, b in zip(fixed, best, strict=True))]

    notes = (*_NOTES, "d > 0: tuning is better.")
    return Grid(title=spec.title, columns=columns, rows=_lines(spec, data, cells), notes=notes)


def _gain(spec: Spec, name: str, method: Method, fixed: Cell, best: Cell) -> Cell:
    measure = fixed.measure
    theirs = _paper_value(spec, name, f"{method.column}_d_{measure.column}")
    if fixed.ours is None or best.ours is None:
        return Cell(measure, None, theirs)
    sign = 1 if measure.more_is_better else -1
    return Cell(measure, sign * (best.ours - fixed.ours), theirs, proved=fixed.proved and best.proved)


def _lines(spec: Spec, data: Sequence[str] | None, cells: Callable[[Method, str], list[Cell]]) -> list[list[str]]:
    """The rows of each method: one per set, and their mean."""
    lines, names = [], _sets(spec, data)
    for method in spec.methods:
        if method.shown:
            body = [cells(method, name) for name in names]
            lines += [[method.title, name, *_texts(line)] for name, line in zip(names, body, strict=True)]
            if len(body) > 1:
                lines.append([method.title, "Mean", *_texts(map(mean, zip(*body, strict=True)))])
    return lines


def _texts(cells: Iterable[Cell]) -> list[str]:
    return [text for cell in cells for text in cell.texts()]


def _starts(spec: Spec, rows_by_case: RowsByCase, data: Sequence[str] | None) -> Grid:
    """The layout for starts: f0 and f1 without a start and with the Local SVM tree, for every model and set."""
    columns = [*_FIRST]
    for f in spec.measures:
        for started, words in (("none", "no start"), ("local_svm", "Local SVM")):
            columns += cell_columns(f"{f}, {words}", f"{f}_{started}")
    lines = []
    for without, with_ in zip(spec.methods[::2], spec.methods[1::2], strict=True):
        for name in _sets(spec, data):
            printed = _by_model(spec, without.title, name)
            line = [without.title, name]
            for f in spec.measures:
                for method, started in ((without, "none"), (with_, "local_svm")):
                    row = rows_by_case.get(method.case(name).identity())
                    line += Cell.from_row(MEASURES[f], row, printed.get(f"{f}_{started}"), mark=False).texts()
            lines.append(line)
    return Grid(title=spec.title, columns=columns, rows=lines, notes=_NOTES[:1])


def _by_model(spec: Spec, model: str, name: str) -> dict[str, Any]:
    assert spec.reference is not None
    return next((r for r in _reference(spec.reference) if (r["model"], r["dataset"]) == (model, name)), {})


_LAYOUTS: dict[str, Callable[[Spec, RowsByCase, Sequence[str] | None], Grid]] = {
    "plain": _plain,
    "gains": _gains,
    "starts": _starts,
}


def _datasets(spec: Spec, data: Sequence[str] | None) -> Grid:
    """The table of the data sets, which needs no fits."""
    columns = [Column(key="dataset", head="data set")]
    for key, title in (("n_samples", "samples"), ("n_features", "features"), ("negative_percent", "negative %")):
        columns += cell_columns(title, key)
    whole = Measure(column="", title="", extract=len, digits=0)
    lines, absent = [], []
    for name in _sets(spec, data):
        try:
            split = samples(name)
        except DataError as error:
            absent.append((name, error))
            continue
        n = len(split.y_train) + len(split.y_test)
        negative = 100 * (sum(split.y_train < 0) + sum(split.y_test < 0)) / n
        ours = {"n_samples": n, "n_features": split.X_train.shape[1], "negative_percent": negative}
        line = [name]
        for key, value in ours.items():
            line += Cell(whole, value, _paper_value(spec, name, key)).texts()
        lines.append(line)
    if absent and not lines:
        raise absent[0][1]
    notes = ["Each cell: ours, the paper's, the difference."]
    notes += [f"Data missing: {', '.join(name for name, _ in absent)}."] if absent else []
    return Grid(
        title=spec.title,
        columns=columns,
        rows=lines,
        notes=notes,
        marks=False,
    )


def _cell(spec: Spec, rows_by_case: RowsByCase, name: str, method: Method, measure: Measure) -> Cell:
    theirs = _paper_value(spec, name, f"{method.column}_{measure.column}")
    return Cell.from_row(
        measure, rows_by_case.get(method.case(name).identity()), theirs, mark=method.model != "local_svm"
    )


def _paper_value(spec: Spec, name: str, column: str) -> Any:
    """The value that the paper prints for a set; None if it prints none."""
    if spec.reference is None:
        return None
    row = next((r for r in _reference(spec.reference) if r["dataset"] == name), {})
    return row.get(column)


@cache
def _reference(name: str) -> list[dict[str, Any]]:
    """A table of the paper, cached because every cell reads it."""
    return paper_table(name)


def _sets(spec: Spec, data: Sequence[str] | None) -> list[str]:
    return [name for name in spec.data if data is None or name in data]
