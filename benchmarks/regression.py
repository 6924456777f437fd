"""Regression trees beside the usual regressors on many tables: ``python benchmarks/regression.py --help``.

Every CSV file of a folder (numbers, target last) is divided into folds: by its column ``fold``, if it has one, or into
five shuffled folds.  Every method is trained on the other folds and chooses its hyperparameters there.  A row is one
table, fold and method: R2 and mean absolute error on the test fold, splits, numbers to read, seconds, and the
hyperparameters.  Rows are appended to a file; an interrupted run continues with the next row.  ``--table`` prints
the mean R2 by table and method, and the means over the tables that every method has.

``--limit`` is the time limit of a fit of ours, and ``--total`` ends the run.  ``--folds 1`` uses the first fold only.
``--clock cpu`` measures limits and seconds in processor time, for busy machines, with one thread.

"margotree" is ``MargotRegressorCV()``, "budgets" the same with ``budgets="auto"``, "two features" has three splits and
four formulas of at most two features each.  Models of other packages are there if these are installed: ``pystreed``
(optimal trees with linear leaves, depth 3), ``cubist`` (rules with linear formulas) and ``obliquetree`` (depth 4).
"""

from __future__ import annotations

import argparse
import csv
import importlib
import importlib.util
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVR
from sklearn.tree import DecisionTreeRegressor

from breadth import CLOCK, count_processor_time
from margotree import MargotRegressorCV

COLUMNS = ("data", "fold", "method", "rows", "columns", "r2", "mae", "nodes", "numbers", "seconds", "chosen", "limit")

Row = dict[str, Any]


def read_numbers(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Samples, targets, and the number of the fold of each sample if the table has a column ``fold``."""
    with open(path, encoding="utf-8") as stream:
        names = next(csv.reader(stream))
    values = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    X, y = values[:, :-1], values[:, -1]
    return (X[:, 1:], y, X[:, 0]) if names[0] == "fold" else (X, y, None)


def tables(folder: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]]:
    """Name, samples, targets and folds of every table, small ones first."""
    for path in sorted(folder.glob("*.csv"), key=lambda p: p.stat().st_size):
        X, y, fold = read_numbers(path)
        if fold is not None:
            folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in np.unique(fold)]
        else:
            folds = list(KFold(5, shuffle=True, random_state=0).split(X))
        yield path.stem, X, y, folds


def methods(limit: float, jobs: int) -> dict[str, Callable[[], Any]]:
    """The methods by name; each call makes an unfitted regressor."""
    options: dict[str, Any] = {"time_limit": limit, "n_jobs": jobs, "engine": "alternating"}
    return {
        "margotree": lambda: MargotRegressorCV(**options),
        "margotree, budgets": lambda: MargotRegressorCV(budgets="auto", **options),
        "margotree, two features": lambda: MargotRegressorCV(depths=[3], budgets=[2], **options),
        "ridge": lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))),
        "linear SVR": lambda: make_pipeline(StandardScaler(), LinearSVR(max_iter=20_000, random_state=0)),
        "CART 3": lambda: DecisionTreeRegressor(max_depth=3, random_state=0),
        "CART 4": lambda: DecisionTreeRegressor(max_depth=4, random_state=0),
        "CART 5": lambda: DecisionTreeRegressor(max_depth=5, random_state=0),
        "CART": lambda: DecisionTreeRegressor(random_state=0),
        "forest": lambda: RandomForestRegressor(random_state=0, n_jobs=jobs),
        "boosted": lambda: HistGradientBoostingRegressor(random_state=0),
        **{name: make for name, (package, make) in OTHERS.items() if importlib.util.find_spec(package)},
    }


def _module(name: str) -> Any:
    return importlib.import_module(name)


#: Models of other packages: the module, and what makes an unfitted regressor.
OTHERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "cubist": ("cubist", lambda: _module("cubist").Cubist(random_state=0)),
    "obliquetree": ("obliquetree", lambda: _module("obliquetree").Regressor(max_depth=4, random_state=0)),
    "pystreed": ("pystreed", lambda: _module("pystreed").STreeDPiecewiseLinearRegressor(max_depth=3, time_limit=120)),
}


def size(model: Any) -> tuple[int | str, int | str]:
    """Splits and numbers to read of a model; empty if they are not known.

    Numbers to read are 1 for a threshold, a constant and a coefficient; trees of ours count their printed rules
    (``HyperplaneTree.numbers_to_read``), boosted trees and forests the thresholds and values of all nodes.
    """
    if hasattr(model, "tree_") and hasattr(model.tree_, "numbers_to_read"):
        return len(model.tree_.outline().nodes), model.tree_.numbers_to_read
    if isinstance(model, DecisionTreeRegressor):
        splits = int(model.tree_.node_count - model.get_n_leaves())
        return splits, splits + int(model.get_n_leaves())
    if isinstance(model, RandomForestRegressor):
        return "", sum(int(tree.tree_.node_count) for tree in model.estimators_)
    if isinstance(model, HistGradientBoostingRegressor):
        return "", sum(len(tree.nodes) for stage in model._predictors for tree in stage)
    if isinstance(model, Pipeline) and hasattr(model[-1], "coef_"):
        return 0, 1 + int(np.count_nonzero(model[-1].coef_))
    return "", ""


def fit(make: Callable[[], Any], X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> Row:
    """Train a method on a fold and measure it."""
    began = CLOCK["now"]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(X[train], y[train])
    seconds, predicted = CLOCK["now"]() - began, model.predict(X[test])
    nodes, numbers = size(model)
    chosen = {
        name: getattr(model, name)
        for name in ("depth_", "C_", "epsilon_", "budget_", "leaf_budget_")
        if hasattr(model, name)
    }
    return {
        "rows": len(X), "columns": X.shape[1], "r2": round(float(r2_score(y[test], predicted)), 5),
        "mae": float(mean_absolute_error(y[test], predicted)), "nodes": nodes, "numbers": numbers,
        "seconds": round(seconds, 2), "chosen": chosen or "",
    }  # fmt: skip


def read(path: Path) -> list[Row]:
    """The rows of a file; none if it does not exist."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def run(args: argparse.Namespace) -> None:
    """Append the rows that the file does not have, until the total time is over."""
    ends, known = CLOCK["now"]() + args.total, {(r["data"], r["fold"], r["method"]) for r in read(args.out)}
    if args.clock == "cpu":
        count_processor_time()
    known_methods = methods(args.limit, 1 if args.clock == "cpu" else args.jobs)
    chosen = {name: make for name, make in known_methods.items() if name in (args.only or known_methods)}
    chosen = {name: make for name, make in chosen.items() if name not in args.without}
    is_new = not args.out.exists()
    with open(args.out, "a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        if is_new:
            writer.writeheader()
        for name, X, y, folds in tables(args.folder):
            if args.data and name not in args.data:
                continue
            for k, (train, test) in enumerate(folds[: args.folds]):
                for method, make in chosen.items():
                    if (name, str(k), method) in known:
                        continue
                    if CLOCK["now"]() > ends:
                        return
                    row = {"data": name, "fold": k, "method": method, **fit(make, X, y, train, test)}
                    writer.writerow({**row, "limit": args.limit})
                    stream.flush()
                    print(f"{name}, fold {k}, {method}: R2 {row['r2']:.3f} in {row['seconds']} s", flush=True)


def table(rows: list[Row]) -> str:
    """Mean R2 by table and method, and the means over the tables that every method has."""
    names = list(dict.fromkeys(row["method"] for row in rows))
    scores: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        scores.setdefault((row["data"], row["method"]), []).append(float(row["r2"]))
    data = list(dict.fromkeys(row["data"] for row in rows))
    lines = ["| table | " + " | ".join(names) + " |", "| --- |" + " ---: |" * len(names)]
    means = {key: float(np.mean(found)) for key, found in scores.items()}
    for one in data:
        cells = [f"{means[one, name]:.3f}" if (one, name) in means else "" for name in names]
        lines.append(f"| {one} | " + " | ".join(cells) + " |")
    complete = [one for one in data if all((one, name) in means for name in names)]
    if complete:
        overall = [f"{np.mean([means[one, name] for one in complete]):.3f}" for name in names]
        lines.append(f"| mean of {len(complete)} | " + " | ".join(overall) + " |")
    return "\n".join(lines)


#: Labels and colours of the picture, by method; the other methods are black.
LABELS = {
    "margotree": ("margotree, all features", "#b5451b"),
    "margotree, budgets": ("1 to 3 features", "#b5451b"),
    "margotree, two features": ("2 features per split and formula", "#b5451b"),
    "CART 3": ("CART 3", "#44546a"),
    "CART 4": ("4", "#44546a"),
    "CART 5": ("5", "#44546a"),
    "CART": ("unlimited", "#44546a"),
}


def draw(rows: list[Row], path: Path) -> None:
    """Draw the mean R2 against the mean numbers to read, for the methods that have all tables."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    # Linear SVR does not scale targets, and fails on tables with large ones.
    rows = [row for row in rows if row["numbers"] and row["method"] != "linear SVR"]
    of, data = {(row["data"], row["method"]) for row in rows}, list(dict.fromkeys(row["data"] for row in rows))
    names = [name for name in dict.fromkeys(row["method"] for row in rows) if all((one, name) in of for one in data)]
    figure, ax = plt.subplots(figsize=(7.5, 4.0), layout="constrained")
    for family, colour in (("margotree", "#b5451b"), ("CART", "#44546a")):
        points = sorted(_mean_point(rows, name, data) for name in names if name.startswith(family))
        ax.plot(*zip(*points, strict=True), "-", color=colour, lw=1)
    for name in names:
        label, colour = LABELS.get(name, (name, "black"))
        x, y = _mean_point(rows, name, data)
        ax.plot(x, y, "o" if name.startswith("margotree") else "s", color=colour, ms=6)
        # A line is above these points.
        below = name in {"margotree, two features", "CART", "CART 3", "CART 4", "ridge"}
        ax.annotate(
            label, (x, y), (0, -14 if below else 7), textcoords="offset points", fontsize=8, color=colour,
            ha="left" if name == "CART 3" else "right" if name == "ridge" else "center",
        )  # fmt: skip
    ax.set_xscale("log")
    ax.margins(x=0.12, y=0.12)
    ax.set_xlabel("numbers to read, mean")
    ax.set_ylabel(f"R2 on test folds, mean of {len(data)} tables")
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def _mean_point(rows: list[Row], name: str, data: list[str]) -> tuple[float, float]:
    """The numbers to read and the R2 of a method: means over the folds of a table, then over tables."""
    points = []
    for one in data:
        some = [row for row in rows if row["data"] == one and row["method"] == name]
        points.append([np.mean([float(row[column]) for row in some]) for column in ("numbers", "r2")])
    numbers, r2 = np.mean(points, axis=0)
    return float(numbers), float(r2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="folder with the CSV files")
    parser.add_argument("--out", type=Path, default=Path("regression_rows.csv"), help="file of the rows")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds per fit of ours (120)")
    parser.add_argument("--total", type=float, default=float("inf"), help="seconds after which no fit begins")
    parser.add_argument("--folds", type=int, default=5, help="folds to use (5)")
    parser.add_argument("--jobs", type=int, default=2, help="threads (2)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: processor time, one thread")
    parser.add_argument("--only", action="append", help="run this method; repeatable")
    parser.add_argument("--data", action="append", help="use this table of the folder; repeatable")
    parser.add_argument("--without", action="append", default=[], help="leave a method out; repeatable")
    parser.add_argument("--table", action="store_true", help="print the means of the file of rows, and train nothing")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the file of rows, and train nothing")
    args = parser.parse_args()
    if args.picture:
        draw(read(args.out), args.picture)
    elif args.table:
        print(table(read(args.out)))
    elif args.folder is None:
        parser.error("name the folder with the tables")
    else:
        run(args)


if __name__ == "__main__":
    main()
