"""What the CV estimators reach in how much time: ``python benchmarks/cross_validation.py --help``.

Every CSV file of a folder (label last, text columns are one-hot encoded) is split once per seed, three quarters for
training, and each CV classifier is fitted with each time limit.  The method "regressor" is for a folder of tables with
numeric targets (``--data``).  A row is one table, seed, method and limit: accuracy (of regressors R2) on the test part,
seconds of the fit, whether it ended before the limit, the chosen setting, its mean score on the folds, and the numbers
to read.  Rows are appended to a file; an interrupted run continues with the next row.
``--table`` prints means over the tables for each method, limit and label.  To compare two versions, run both with
different labels and the same file.

``--clock cpu`` measures limits and seconds in processor time, for busy machines, with one thread.
"""

from __future__ import annotations

import argparse
import math
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from breadth import CLOCK, append, count_processor_time, read_rows, read_table
from margotree import HFSMargotClassifierCV, MargotClassifierCV, MargotRegressorCV
from regression import read_numbers

COLUMNS = (
    "label", "data", "seed", "method", "limit", "rows", "columns", "classes", "accuracy", "seconds", "ended",
    "best_score", "numbers", "settings_scored", "chosen",
)  # fmt: skip
METHODS = {"margot": MargotClassifierCV, "hfs": HFSMargotClassifierCV, "regressor": MargotRegressorCV}


def run_one(path: Path, seed: int, method: str, limit: float, n_jobs: int) -> dict[str, Any]:
    is_number = METHODS[method] is MargotRegressorCV
    X, y = read_numbers(path)[:2] if is_number else read_table(path)
    parts = train_test_split(X, y, random_state=seed, stratify=None if is_number else y, train_size=0.75)
    X, X_test, y, y_test = parts
    model = METHODS[method](time_limit=limit, n_jobs=n_jobs, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = CLOCK["now"]()
        model.fit(X, y)
    seconds = CLOCK["now"]() - began
    return {
        "data": path.stem, "seed": seed, "method": method, "limit": limit, "rows": len(y), "columns": X.shape[1],
        "classes": 0 if is_number else len(model.classes_), "accuracy": model.score(X_test, y_test), "seconds": seconds,
        "ended": int(seconds < 0.95 * limit), "best_score": model.best_score_,
        "numbers": getattr(model.tree_, "numbers_to_read", math.nan),
        "settings_scored": int(np.isfinite(model.scores_).any(axis=1).sum()),
        "chosen": f"depth={model.depth_} C={model.C_} budget={model.budget_}",
    }  # fmt: skip


def run_all(args: argparse.Namespace) -> None:
    deadline = time.monotonic() + args.total
    done = {(r["label"], r["data"], r["seed"], r["method"], float(r["limit"])) for r in read_rows(args.out)}
    tables = sorted(args.data.glob("*.csv"), key=lambda path: path.stat().st_size)
    for seed in args.seeds:
        for path in tables:
            with path.open() as file:
                n_rows = sum(1 for _ in file) - 1
            if n_rows > args.most_rows or (args.only and path.stem not in args.only):
                continue
            for method in args.methods:
                for limit in args.limits:
                    if (args.label, path.stem, str(seed), method, limit) in done:
                        continue
                    if time.monotonic() > deadline:
                        return
                    row = run_one(path, seed, method, limit, 1 if args.clock == "cpu" else args.jobs)
                    append(args.out, {"label": args.label, **row}, COLUMNS)


def show(rows: list[dict[str, Any]]) -> None:
    """Print means over the tables and seeds that every label, method and limit has."""
    groups = sorted({(r["method"], r["label"], float(r["limit"])) for r in rows})
    by = {(r["method"], r["label"], float(r["limit"]), r["data"], r["seed"]): r for r in rows}
    cases = sorted({(r["data"], r["seed"]) for r in rows})
    common = [case for case in cases if all((*group, *case) in by for group in groups)]
    print(f"{len(common)} tables and seeds: {', '.join(sorted({data for data, _ in common}))}\n")
    print("| method | version | limit | accuracy | seconds | median | ended | numbers |")
    print("| --- | --- |" + " ---: |" * 6)
    for group in groups:
        found = [by[(*group, *case)] for case in common]
        values = {c: np.array([float(r[c]) for r in found]) for c in ("accuracy", "seconds", "ended", "numbers")}
        print(
            f"| {group[0]} | {group[1]} | {group[2]:g} | {100 * values['accuracy'].mean():.2f} | "
            f"{values['seconds'].mean():.1f} | {np.median(values['seconds']):.1f} | "
            f"{100 * values['ended'].mean():.0f} % | {values['numbers'].mean():.1f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MARGOTREE_DATA", ".")) / "breadth")
    parser.add_argument("--only", nargs="+", metavar="TABLE", help="only these tables")
    parser.add_argument("--methods", nargs="+", default=["margot"], choices=list(METHODS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--limits", type=float, nargs="+", default=[10.0, 60.0], help="time limits in seconds")
    parser.add_argument("--jobs", type=int, default=2, help="threads (2); 1 with --clock cpu")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--most-rows", type=int, default=20_000, help="leave out tables with more rows")
    parser.add_argument("--total", type=float, default=math.inf, help="start no further fit after these seconds")
    parser.add_argument("--label", default="now", help="the name of the version that is measured")
    parser.add_argument("--out", type=Path, default=Path("results/cross_validation.csv"))
    parser.add_argument("--table", action="store_true", help="print the results in the file and run nothing")
    args = parser.parse_args()
    if args.clock == "cpu":
        count_processor_time()
    if not args.table:
        run_all(args)
    show(read_rows(args.out))


if __name__ == "__main__":
    main()
