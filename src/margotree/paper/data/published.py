"""The numbers printed in the paper: its tables of results and hyperparameters."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import Any

from margotree.paper.data.catalogue import find

Cell = str | float | tuple[int, ...] | None

_MODELS = {
    "margot": "margot",
    "hfs-margot": "hfs",
    "sfs-margot": "sfs",
    "oct-1": "oct_1",
    "oct-h": "oct_h",
    "oct-h*": "oct_h_star",
    "mm-svm-oct": "mm_svm_oct",
}


def paper_tables() -> tuple[str, ...]:
    """The names of the tables for :func:`paper_table`."""
    return tuple(sorted(f.name[:-4] for f in _folder().iterdir() if f.name.endswith(".csv")))


def paper_table(name: str) -> list[dict[str, Cell]]:
    """A table of the paper, one dict per row: numbers as floats, features per node as a tuple, a dash as None.

    Times are in seconds, gaps and accuracies in percent; a ``_d_`` column is the printed difference between tuned and
    fixed hyperparameters.
    """
    file = _folder() / f"{name}.csv"
    if not file.is_file():
        raise ValueError(f"unknown table {name!r}; there are: {', '.join(paper_tables())}")
    with file.open(encoding="utf-8", newline="") as lines:
        return [{column: _cell(column, text) for column, text in row.items()} for row in csv.DictReader(lines)]


def paper_hyperparameters(model: str, dataset: str, *, depth: int = 2, fixed: bool = False) -> dict[str, Any]:
    """The hyperparameters of the paper for a model and a data set, as keyword arguments.

    Parameters
    ----------
    model : str
        margot, hfs, sfs (for :meth:`Problem.make <margotree.problem.Problem.make>`: ``C``, ``budget``, ``alpha``; hfs
        and sfs are those of the feature-driven rule), oct_1, oct_h, oct_h_star (``alpha``) or mm_svm_oct (``c1``,
        ``c3``).
    dataset : str
        Name of a set.
    depth : int, default 2
        Depth of the tree.  C and budgets are one per level; as in the paper, levels below the second repeat it.
    fixed : bool, default False
        The setting that the paper uses for all sets, instead of the tuned one.
    """
    model = _model(model)
    row = _row(model, find(dataset).name, fixed)
    if model in {"margot", "hfs", "sfs"}:
        return _margot(model, row, depth)
    names = ("c1", "c3") if model == "mm_svm_oct" else ("alpha",)
    return {key: row[f"{model}_{key}"] for key in names}


def _margot(model: str, row: dict[str, Cell], depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"C": _levels(row[f"{model}_C0"], row[f"{model}_C1"], depth)}
    if model == "hfs":
        found["budget"] = [int(B) for B in _levels(row["hfs_B0"], row["hfs_B1"], depth)]
    if model == "sfs":
        found |= {"budget": [1] * depth, "alpha": row["sfs_alpha"]}
    return found


def _levels(first: Any, second: Any, depth: int) -> list[float]:
    return [first] + [second] * (depth - 1)


def _row(model: str, dataset: str, fixed: bool) -> dict[str, Cell]:
    if fixed:
        if model not in {"margot", "hfs", "sfs"}:
            raise ValueError(f"the paper fixes hyperparameters for margot, hfs and sfs only, not for {model}")
        return paper_table("hyperparameters_fixed")[0]
    table = "hyperparameters" if model in {"margot", "oct_h", "mm_svm_oct"} else "hyperparameters_fs"
    for row in paper_table(table):
        if row["dataset"] == dataset:
            return row
    raise ValueError(f"the paper prints no hyperparameters for {dataset}")


def _model(name: str) -> str:
    plain = name.strip().lower()
    model = _MODELS.get(plain, _MODELS.get(plain.rstrip("*"), plain))
    if model not in _MODELS.values():
        raise ValueError(f"unknown model {name!r}; there are: {', '.join(_MODELS.values())}")
    return model


def _cell(column: str, text: str) -> Cell:
    if column in {"dataset", "model"}:
        return text
    if column.endswith("_F_t"):
        return tuple(int(count) for count in text.split())
    return float(text) if text else None


def _folder() -> Any:
    return files("margotree.paper.data") / "reference"
