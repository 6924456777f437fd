"""What goes on the page, taken from a file of results."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

from margotree.model_selection.models import TITLES
from margotree.model_selection.result_rows import Rows
from margotree.paper.experiments import figure, figure_names, names
from margotree.paper.experiments.samples import PLANE
from margotree.paper.experiments.tables import grid_of
from margotree.paper.experiments.text_table import Grid
from margotree.solution import Certificate
from margotree.tree import Tree


@dataclass(frozen=True, kw_only=True)
class Fit:
    """One trained tree: what was asked for, what is proved, and its rules."""

    data: str
    model: str
    terms: str
    certificate: Certificate
    train: float | None
    test: float | None
    rules: str
    finished: str


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure as PNG."""

    figure: str
    name: str
    png: bytes


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Everything the page shows.  ``missing`` are tables and figures whose fits were not run."""

    source: str
    n_rows: int
    n_folds: int
    first: str
    last: str
    tables: Sequence[Grid]
    pictures: Sequence[Picture]
    fits: Sequence[Fit]
    missing: Sequence[str]
    makers: Sequence[tuple[str, int]]
    changed_data: Sequence[str]


def gather(store: str | PathLike[str], *, figures: bool = True) -> Contents:
    """Read a file of results; it is not changed."""
    with Rows(store, must_exist=True) as rows:
        every = rows.where()
    fits = [row for row in every if row["kind"] == "fit" and row["certificate"]]
    sets = list(dict.fromkeys(row["data"] for row in every))
    tables = {name: grid_of(name, store, sets) for name in names()}
    empty = [f"table {name}" for name, grid in tables.items() if not _holds_ours(grid)]
    pictures, undrawn = _pictures(store) if figures and find_spec("matplotlib") else ([], [])
    finished = sorted(filter(None, (row["finished"] for row in every)))
    return Contents(
        source=Path(store).name,
        n_rows=len(every),
        n_folds=sum(row["kind"] == "fold" for row in every),
        first=finished[0] if finished else "",
        last=finished[-1] if finished else "",
        tables=[grid for grid in tables.values() if _holds_ours(grid)],
        pictures=pictures,
        fits=sorted((_fit(row) for row in fits), key=lambda fit: (fit.model, fit.data, fit.terms)),
        missing=[*empty, *(f"figure {name}" for name in undrawn)],
        makers=Counter(_maker(row) for row in every).most_common(),
        changed_data=sorted({row["data"] for row in fits if row["data_as_in_paper"] == 0} - set(PLANE)),
    )


def _holds_ours(grid: Grid) -> bool:
    """Whether some cell of ours is filled; a table without cells of ours speaks for itself."""
    ours = [k for k, column in enumerate(grid.columns) if column.head == "ours"]
    return bool(grid.rows) and (not ours or any(row[k] not in {"-", ""} for row in grid.rows for k in ours))


def _pictures(store: str | PathLike[str]) -> tuple[list[Picture], list[str]]:
    drawn: list[Picture] = []
    undrawn: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in figure_names():
            try:
                paths = figure(name, store, folder)
            except ValueError:
                # Said by the experiments where none of the fits of a figure is there.
                undrawn.append(name)
                continue
            drawn += [Picture(figure=name, name=path.stem, png=path.read_bytes()) for path in paths]
    return drawn, undrawn


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


def _maker(row: Mapping[str, Any]) -> str:
    """The machine and the versions behind a row, in a line."""
    machine, versions = row["machine"] or {}, row["versions"] or {}
    where = f"{machine.get('system', '?')} {machine.get('processor', '')}, {machine.get('cores', '?')} cores"
    return f"{where}: " + ", ".join(f"{name} {version}" for name, version in versions.items())
