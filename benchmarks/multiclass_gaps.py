"""How far the search for several classes gets in a minute, beside SCIP (the table of docs/multiclass.md).

    python benchmarks/multiclass_gaps.py --data FOLDER [--seconds 60] [--engines bnb scip] [--out gaps.csv]

Depth 2, features brought to [0, 1], one thread.  ``hayes-roth`` is made here by the rule of the set of that name (132
rows of four coded attributes, three classes); the others are CSV files with the label in the last column.  Rows are
written as they come, and a run that was stopped goes on where it was.  ``cpu`` are the processor's seconds: on a busy
machine they are fewer than the clock's.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from margotree import MargotClassifier

SETS: dict[str, list[Any]] = {
    "iris": [1.0, (0.1, 10.0)],
    "wine": [1.0, (0.1, 10.0)],
    "hayes-roth": [1.0, (0.1, 10.0)],
    "vehicle": [1.0],
}
COLUMNS = ("data", "C", "engine", "seconds", "objective", "bound", "gap", "nodes", "stopped", "clock", "cpu")


def hayes_roth(n: int = 132, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Class 3 where an attribute is 4; else 1 or 2, whichever value is the more frequent among age, education and
    marital state (either if equal); the hobby says nothing."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(1, 4, n), rng.choice([1, 2, 3, 4], (n, 3), p=[0.35, 0.35, 0.2, 0.1])])
    ones, twos = (X[:, 1:] == 1).sum(axis=1), (X[:, 1:] == 2).sum(axis=1)
    y = np.where(ones > twos, 1, np.where(twos > ones, 2, rng.integers(1, 3, n)))
    return X.astype(np.float64), np.where((X[:, 1:] == 4).any(axis=1), 3, y)


def read(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    if name == "hayes-roth":
        return hayes_roth()
    table = pd.read_csv(folder / f"{name}.csv")
    return table.iloc[:, :-1].to_numpy(np.float64), table.iloc[:, -1].to_numpy()


def measure(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    X, y = read(case["data"], folder)
    model = MargotClassifier(depth=2, C=case["C"], engine=case["engine"], time_limit=case["seconds"])
    clock, cpu = time.perf_counter(), time.process_time()
    proof = model.fit(X, y).certificate_
    return case | {
        "objective": f"{proof.objective:.6g}", "bound": f"{proof.bound:.6g}", "gap": f"{proof.gap:.4%}",
        "nodes": proof.nodes, "stopped": str(proof.stopped), "clock": f"{time.perf_counter() - clock:.1f}",
        "cpu": f"{time.process_time() - cpu:.1f}",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--engines", nargs="+", default=["bnb", "scip"])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=Path("multiclass_gaps.csv"))
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    done = set()
    if args.out.exists():
        with args.out.open(newline="") as file:
            done = {tuple(row[name] for name in COLUMNS[:4]) for row in csv.DictReader(file)}
    for name in args.sets:
        for C in SETS[name]:
            for engine in args.engines:
                case = {"data": name, "C": C, "engine": engine, "seconds": args.seconds}
                if tuple(str(value) for value in case.values()) in done:
                    continue
                row, new = measure(case, args.data), not args.out.exists()
                with args.out.open("a", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS)
                    if new:
                        writer.writeheader()
                    writer.writerow(row)
                print(row, flush=True)


if __name__ == "__main__":
    main()
