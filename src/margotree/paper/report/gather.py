"""The contents of the report page, read from a file of results."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

from margotree.model_selection.result_rows import Rows
from margotree.paper.experiments import figure, figure_names, names
from margotree.paper.experiments.samples import PLANE_SETS
from margotree.paper.experiments.tables import grid_of
from margotree.paper.experiments.text_table import Grid
from margotree.paper.tuning.models import TITLES
from margotree.solution import Certificate
from margotree.tree import Tree


@dataclass(frozen=True, kw_only=True)
class Fit:
    """One trained tree: its hyperparameters (``terms``), certificate, accuracies and rules."""

    data: str
    model: str
    terms: str
    certificate: Certificate
    train: float | None
    test: float | None
    rules: str
    finished: str


@dataclass(frozen=True, kw_only=True)
class FigureImage:
    """A figure as PNG."""

    figure: str
    name: str
    png: bytes


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The contents of the page.

    ``missing`` are the tables and figures whose fits were not run, ``environments`` the machines and versions with
    their numbers of rows, ``changed_data`` the sets whose table is not that of the authors.
    """

    source: str
    n_rows: int
    n_folds: int
    first: str
    last: str
    tables: Sequence[Grid]
    figures: Sequence[FigureImage]
    fits: Sequence[Fit]
    missing: Sequence[str]
    environments: Sequence[tuple[str, int]]
    changed_data: Sequence[str]


def gather(store: str | PathLike[str], *, figures: bool = True) -> Contents:
    """Read the contents of the page from a file of results, which is not changed.

    ``figures`` False leaves the figures out; so does a missing matplotlib.
    """
    with Rows(store, must_exist=True) as rows:
        all_rows = rows.where()
    fits = [row for row in all_rows if row["kind"] == "fit" and row["certificate"]]
    set_names = list(dict.fromkeys(row["data"] for row in all_rows))
    tables = {name: grid_of(name, store, set_names) for name in names()}
    empty = [f"table {name}" for name, grid in tables.items() if not _has_our_results(grid)]
    images, not_drawn = _draw_figures(store) if figures and find_spec("matplotlib") else ([], [])
    finished = sorted(filter(None, (row["finished"] for row in all_rows)))
    return Contents(
        source=Path(store).name,
        n_rows=len(all_rows),
        n_folds=sum(row["kind"] == "fold" for row in all_rows),
        first=finished[0] if finished else "",
        last=finished[-1] if finished else "",
        tables=[grid for grid in tables.values() if _has_our_results(grid)],
        figures=images,
        fits=sorted((_fit(row) for row in fits), key=lambda fit: (fit.model, fit.data, fit.terms)),
        missing=[*empty, *(f"figure {name}" for name in not_drawn)],
        environments=Counter(_environment(row) for row in all_rows).most_common(),
        changed_data=sorted({row["data"] for row in fits if row["data_as_in_paper"] == 0} - set(PLANE_SETS)),
    )


def _has_our_results(grid: Grid) -> bool:
    """Whether the table has rows and, if it has columns of our results, some result in them."""
    ours = [k for k, column in enumerate(grid.columns) if column.head == "ours"]
    return bool(grid.rows) and (not ours or any(row[k] not in {"-", ""} for row in grid.rows for k in ours))


def _draw_figures(store: str | PathLike[str]) -> tuple[list[FigureImage], list[str]]:
    """The figures as images, and the names of those that could not be drawn."""
    images: list[FigureImage] = []
    not_drawn: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in figure_names():
            try:
                paths = figure(name, store, folder)
            except ValueError:
                # None of the fits of the figure is in the file.
                not_drawn.append(name)
                continue
            images += [FigureImage(figure=name, name=path.stem, png=path.read_bytes()) for path in paths]
    return images, not_drawn


def _fit(row: Mapping[str, Any]) -> Fit:
    tree = Tree.from_dict(row["tree"])
    params = ", ".join(f"{name} {_shown(value)}" for name, value in (row["params"] or {}).items())
    start = "" if row["start"] else ", no start"
    return Fit(
        data=row["data"],
        model=TITLES.get(row["model"], row["model"]),
        terms=f"depth {row['depth']}, {params}, limit {row['time_limit']:g} s{start}" if row["time_limit"] else params,
        certificate=Certificate.from_dict(row["certificate"]),
        train=row["train_acc"],
        test=row["test_acc"],
        rules=tree.export_text(width=110),
        finished=row["finished"] or "",
    )


def _shown(value: Any) -> str:
    return "/".join(f"{v:g}" for v in value) if isinstance(value, list) else f"{value:g}"


def _environment(row: Mapping[str, Any]) -> str:
    """The machine and the versions of a row, as one line."""
    machine, versions = row["machine"] or {}, row["versions"] or {}
    where = f"{machine.get('system', '?')} {machine.get('processor', '')}, {machine.get('cores', '?')} cores"
    return f"{where}: " + ", ".join(f"{name} {version}" for name, version in versions.items())
