"""Trees on tables with words and missing cells: ``python benchmarks/mixed.py --help``.

Every table is split once per seed, three quarters for training.  The methods are our trees fitted to the data frame
itself (with a budget of three columns, and of two), the same trees behind one-hot columns and an imputer with
indicators (with a budget of three, which then counts features), boosted trees that read categories, and CART behind the
same pipeline.  A row is one table, seed and method:
accuracy or R2 on the test part, columns of the table used, numbers to read (``Tree.numbers_to_read``), seconds.  Rows
are appended to a file; an interrupted run continues with the next row.  ``--table`` prints the means over seeds, and
the mean differences to the trees behind one-hot columns with their standard errors.

``--clock cpu`` measures limits and seconds in processor time, for busy machines; every method runs on one thread.
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from breadth import CLOCK, count_processor_time
from margotree import MargotClassifier, MargotRegressor

COLUMNS = ("data", "seed", "method", "rows", "columns", "score", "used", "numbers", "seconds", "limit")
REGRESSION = ("ames", "autompg", "avocado", "cholesterol", "hitters", "pharynx", "sensory", "socmob", "wage")
CLASSES = ("colic", "hypothyroid", "oj", "adult", "australian", "german")
FOLDERS = ("mixed", "breadth")
#: Codes of these tables are words although they are numbers.
CODED = {"colic": 8}
METHODS = ("frame", "one-hot", "frame, 2", "boosting", "CART")
#: Our trees fitted to frames, by the budget of columns.
BUDGETS = {"frame": 3, "frame, 2": 2}

Row = dict[str, Any]


def read(name: str, folder: Path, most: int) -> tuple[pd.DataFrame, pd.Series]:
    """The columns and the target of a table, at most ``most`` rows."""
    path = next(folder / part / f"{name}.csv" for part in FOLDERS if (folder / part / f"{name}.csv").exists())
    table = pd.read_csv(path)
    table = table[table.iloc[:, -1].notna()].dropna(axis=1, how="all")
    if len(table) > most:
        table = table.sample(most, random_state=0)
    X, y = table.iloc[:, :-1].reset_index(drop=True), table.iloc[:, -1].reset_index(drop=True)
    for column in X:
        few_codes = name in CODED and X[column].nunique() <= CODED[name]
        if few_codes or not pd.api.types.is_numeric_dtype(X[column]):
            words = X[column].map(str, na_action="ignore")
            X[column] = words.astype("category")
    return X, y


def encoded(X: pd.DataFrame, estimator: Any) -> Pipeline:
    """An estimator behind one-hot columns and an imputer."""
    words = [name for name in X if isinstance(X[name].dtype, pd.CategoricalDtype)]
    fill = SimpleImputer(strategy="median", add_indicator=True)
    encode = Pipeline(
        [
            ("fill", SimpleImputer(strategy="most_frequent", add_indicator=False)),
            ("encode", OneHotEncoder(drop="if_binary", handle_unknown="ignore", sparse_output=False)),
        ]
    )
    others = [name for name in X if name not in words]
    return Pipeline(
        [("columns", ColumnTransformer([("words", encode, words), ("rest", fill, others)])), ("tree", estimator)]
    )


def columns_of_features(model: Pipeline) -> list[str]:
    """The column of each feature of a pipeline."""
    transformer = model[0]
    found: list[str] = []
    for name, fitted, columns in transformer.transformers_:
        if name == "words" and columns:
            for column, out, drop in zip(columns, fitted[-1].categories_, fitted[-1].drop_idx_, strict=True):
                found += [column] * (len(out) - (drop is not None))
        elif name == "rest" and columns:
            found += list(columns)
            found += [columns[k] for k in fitted.indicator_.features_]
    return found


def used_columns(method: str, model: Any) -> int | str:
    """The number of columns on which predictions depend; empty for boosted trees."""
    if method in BUDGETS:
        return len(model.selected_features_)
    if method == "boosting":
        return ""
    columns, tree = columns_of_features(model), model[-1]
    if method == "CART":
        return len({columns[j] for j in tree.tree_.feature if j >= 0})
    return len({columns[j] for j in tree.selected_features_})


def numbers_to_read(method: str, model: Any) -> int | str:
    """The size of the printed rules of our trees; empty for other methods."""
    if method in ("boosting", "CART"):
        return ""
    return int((model if method in BUDGETS else model[-1]).tree_.numbers_to_read)


def model_of(method: str, name: str, X: pd.DataFrame, limit: float | None, starts: int | None = None) -> Any:
    """The model of a method; trees have two levels of splits, with three columns each by default."""
    numbers, budget = name in REGRESSION, BUDGETS.get(method, 3)
    common = {"engine": "alternating", "time_limit": limit, "node_limit": starts, "budget": budget}
    if numbers:
        ours = MargotRegressor(depth=3, leaf_budget=budget, **common)
    else:
        ours = MargotClassifier(depth=2, C=10.0, **common)
    if method in BUDGETS:
        return ours
    if method == "one-hot":
        return encoded(X, ours)
    if method == "CART":
        cart = DecisionTreeRegressor if numbers else DecisionTreeClassifier
        return encoded(X, cart(max_leaf_nodes=8, random_state=0))
    boosting = HistGradientBoostingRegressor if numbers else HistGradientBoostingClassifier
    return boosting(categorical_features="from_dtype", random_state=0)


def measure(name: str, seed: int, method: str, folder: Path, limit: float | None, most: int, starts: int | None) -> Row:
    """One row."""
    X, y = read(name, folder, most)
    stratify = None if name in REGRESSION else y
    train, test = train_test_split(np.arange(len(X)), test_size=0.25, random_state=seed, stratify=stratify)
    model, began = model_of(method, name, X, limit, starts), CLOCK["now"]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X.iloc[train], y.iloc[train])
    seconds = CLOCK["now"]() - began
    score = model.score(X.iloc[test], y.iloc[test])
    return {
        "data": name, "seed": seed, "method": method, "rows": len(X), "columns": X.shape[1],
        "score": round(float(score), 4), "used": used_columns(method, model), "numbers": numbers_to_read(method, model),
        "seconds": round(seconds, 2), "limit": limit,
    }  # fmt: skip


def print_exact(folder: Path, limit: float, only: list[str]) -> None:
    """Print what the exact engine proves about trees with two columns per split, and behind one-hot columns with two
    features per split; codes with at most five values count as words, numeric targets become two classes."""
    print("| table | rows | depth | trees of | features | objective | gap | search nodes | seconds |")
    print("| --- " * 9 + "|")
    for name in only:
        X, y = read(name, folder, 4000)
        for column in X:
            if pd.api.types.is_numeric_dtype(X[column]) and 2 < X[column].nunique() <= 5:
                X[column] = X[column].map(lambda cell: f"{cell:g}", na_action="ignore").astype("category")
        y = (y > y.median()).astype(int) if name in REGRESSION else y
        for depth in (1, 2):
            for method in ("frame", "one-hot"):
                ours = MargotClassifier(depth=depth, budget=2, engine="bnb", time_limit=limit, n_jobs=1)
                began = CLOCK["now"]()
                (ours if method == "frame" else encoded(X, ours)).fit(X, y)
                c, seconds = ours.certificate_, CLOCK["now"]() - began
                cells = [name, len(X), depth, method, ours.tree_.n_features, f"{c.objective:.1f}", f"{c.gap:.2%}",
                         f"{c.nodes:,}", f"{seconds:.1f}"]  # fmt: skip
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


def print_table(path: Path) -> None:
    """Print the means over seeds as Markdown: score (columns used; numbers to read); then differences to the trees
    behind one-hot columns."""
    rows = pd.read_csv(path)
    tables = list(rows.groupby("data", sort=False))
    print("| table | rows | columns | seeds | " + " | ".join(METHODS) + " |")
    print("| --- " * (4 + len(METHODS)) + "|")
    for name, part in tables:
        cells = []
        for method in METHODS:
            mine = part[part.method == method]
            numbers = "" if mine.numbers.isna().all() else f"; {mine.numbers.mean():.0f}"
            used = "" if mine.used.isna().all() else f" ({mine.used.mean():.3g}{numbers})"
            cells.append("" if mine.empty else f"{mine.score.mean():.3f}{used}")
        seeds = part[part.method == "frame"].seed.nunique()
        print(f"| {name} | {part.rows.iloc[0]} | {part['columns'].iloc[0]} | {seeds} | " + " | ".join(cells) + " |")
    print("\n| table | " + " | ".join(f"{method} - one-hot" for method in BUDGETS) + " |")
    print("| --- " * (1 + len(BUDGETS)) + "|")
    for name, part in tables:
        score = part.pivot(index="seed", columns="method", values="score")
        less = [(score[method] - score["one-hot"]).dropna() for method in BUDGETS]
        print(f"| {name} | " + " | ".join(f"{one.mean():+.3f} ± {one.sem():.3f}" for one in less) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MARGOTREE_DATA", ".")))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/mixed_rows.csv"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds of a fit of ours")
    parser.add_argument("--starts", type=int, help="starts of a fit of ours, in place of the limit in seconds")
    parser.add_argument("--most", type=int, default=4000, help="the largest number of rows of a table")
    parser.add_argument("--only", nargs="+", choices=(*CLASSES, *REGRESSION), metavar="TABLE", help="these tables only")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="the clock of limits and seconds")
    parser.add_argument("--table", action="store_true", help="print the means of the rows")
    parser.add_argument("--exact", action="store_true", help="print what is proved about trees with two columns")
    args = parser.parse_args()
    if args.clock == "cpu":
        count_processor_time()
    if args.exact:
        print_exact(args.data, args.limit, args.only or ["cholesterol", "pharynx"])
        return
    if args.table:
        print_table(args.out)
        return
    done, limit = set(), None if args.starts else args.limit
    if args.out.exists():
        with args.out.open() as file:
            done = {(row["data"], int(row["seed"]), row["method"]) for row in csv.DictReader(file)}
    with args.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not done:
            writer.writeheader()
        for seed in range(args.seeds):
            for name in args.only or (*CLASSES, *REGRESSION):
                for method in METHODS:
                    if (name, seed, method) not in done:
                        row = measure(name, seed, method, args.data, limit, args.most, args.starts)
                        writer.writerow(row)
                        file.flush()
                        print(row, flush=True)


if __name__ == "__main__":
    main()
