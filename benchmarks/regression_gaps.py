"""Gaps of the exact search for numeric targets after a minute, beside SCIP (the table of docs/regression.md).

    python benchmarks/regression_gaps.py --data FOLDER [--seconds 60] [--engines bnb scip] [--clock cpu]
    python benchmarks/regression_gaps.py --data FOLDER --rows 20 --tables TABLE [TABLE ...]

Depth 2, one thread, features scaled to [0, 1], targets standardised by the regressor.  The data are eight small tables
of regression benchmarks as CSV files, with the target in the last column and no column ``fold``; of concrete the first
100 and 200 rows in a random order.  Rows are appended to a file, one setting of ``C`` after the other; an interrupted
run continues with the next row.  With ``--clock cpu`` limits are in processor time, for busy machines; ``cpu`` is the
processor time of a fit in seconds.  With ``--rows``, and any tables of the folder, the rows say whether the engines
agree on small problems that both solve.
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

from breadth import count_processor_time
from margotree import MargotRegressor

#: The file of a table and its number of rows; None: all.
TABLES: dict[str, tuple[str, int | None]] = {
    "servo": ("servo", None),
    "machine": ("machine", None),
    "yacht": ("yacht", None),
    "auto_mpg": ("auto_mpg", None),
    "real_estate": ("real_estate", None),
    "synch": ("synch", None),
    "concrete_100": ("concrete", 100),
    "concrete_200": ("concrete", 200),
}
#: C of the split, and of the formulas.
SETTINGS = ((0.01, 10.0), (0.01, 1.0), (1.0, 1.0))
COLUMNS = ("data", "C_split", "C_leaf", "engine", "seconds", "objective", "bound", "gap", "nodes", "stopped", "cpu")


def read(name: str, folder: Path, most: int | None) -> tuple[pd.DataFrame, pd.Series]:
    """The features and the targets of a table, of at most ``most`` rows."""
    file, rows = TABLES.get(name, (name, None))
    rows = rows if most is None else most
    path = next(path for path in (folder / f"{file}.csv", folder / "published" / f"{file}.csv") if path.exists())
    table = pd.read_csv(path).drop(columns="fold", errors="ignore")
    if rows is not None:
        table = table.iloc[np.random.default_rng(0).permutation(len(table))[:rows]]
    return table.iloc[:, :-1], table.iloc[:, -1]


def measure(case: dict[str, Any], folder: Path, most: int | None) -> dict[str, Any]:
    """The certificate of one fit."""
    X, y = read(case["data"], folder, most)
    C = [case["C_split"], case["C_leaf"]]
    model = MargotRegressor(depth=2, C=C, engine=case["engine"], time_limit=case["seconds"], n_jobs=1)
    cpu = time.process_time()
    proof = model.fit(X, y).certificate_
    return case | {
        "objective": f"{proof.objective:.9g}", "bound": f"{proof.bound:.9g}", "gap": f"{proof.gap:.4%}",
        "nodes": proof.nodes, "stopped": str(proof.stopped), "cpu": f"{time.process_time() - cpu:.1f}",
    }  # fmt: skip


def use_processor_time() -> None:
    """Measure limits in processor time, those of SCIP, too."""
    from margotree.engines.mip import scip

    count_processor_time()
    set_options = scip._set_options

    def with_processor_time(model: Any, job: Any) -> None:
        model.setParam("timing/clocktype", 1)
        set_options(model, job)

    scip._set_options = with_processor_time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--rows", type=int, help="so many rows of each table, drawn at random")
    parser.add_argument("--engines", nargs="+", default=["bnb", "scip"])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--out", type=Path, default=Path("regression_gaps.csv"))
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if args.clock == "cpu":
        use_processor_time()
    done = set()
    if args.out.exists():
        with args.out.open(newline="") as file:
            done = {tuple(row[name] for name in COLUMNS[:5]) for row in csv.DictReader(file)}
    for split, leaf in SETTINGS:
        for name in args.tables:
            for engine in args.engines:
                values = (name, split, leaf, engine, args.seconds)
                if tuple(map(str, values)) in done:
                    continue
                row, new = (
                    measure(dict(zip(COLUMNS, values, strict=False)), args.data, args.rows),
                    not args.out.exists(),
                )
                with args.out.open("a", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS)
                    if new:
                        writer.writeheader()
                    writer.writerow(row)
                print(row, flush=True)


if __name__ == "__main__":
    main()
