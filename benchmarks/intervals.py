"""Coverage of prediction intervals: ``python benchmarks/intervals.py`` (docs/regression.md).

Half of the samples of a table train a regression tree, a quarter calibrates it, and the last quarter is tested: the
share of targets in their intervals, and the median width of an interval as a share of the range of the targets.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

from margotree import MargotRegressor

TABLES = ("airfoil", "auto_mpg", "concrete", "housing", "kin8nm", "stock", "wine", "yacht")
MOST_ROWS = 4000


def read_table(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The features and the target, which is the last column."""
    path = next(path for path in (folder / f"{name}.csv", folder / "published" / f"{name}.csv") if path.exists())
    header = path.read_text(encoding="utf-8").split("\n", 1)[0].split(",")
    values = np.genfromtxt(path, delimiter=",", skip_header=1)
    kept = [k for k, column in enumerate(header) if column.strip('"') != "fold"]
    return values[:, kept[:-1]], values[:, kept[-1]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = Path(os.environ.get("MARGOTREE_DATA", ".")) / "regression"
    parser.add_argument("--data", type=Path, default=data)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--coverage", type=float, default=0.9)
    parser.add_argument("--nodes", type=int, default=5, help="limit of each fit: starts of the local search")
    args = parser.parse_args()
    print("| table | samples tested | coverage % | width % |\n| --- | ---: | ---: | ---: |")
    for name in args.tables:
        X, y = read_table(args.data, name)
        shares, widths = [], []
        for seed in range(args.seeds):
            order = np.random.default_rng(seed).permutation(len(y))[:MOST_ROWS]
            train, other, test = np.split(order, [len(order) // 2, 3 * len(order) // 4])
            model = MargotRegressor(depth=3, engine="alternating", node_limit=args.nodes).fit(X[train], y[train])
            low, high = model.calibrate(X[other], y[other]).predict_interval(X[test], coverage=args.coverage).T
            shares.append(np.mean((low <= y[test]) & (y[test] <= high)))
            widths.append(np.median(high - low) / np.ptp(y))
        print(f"| {name} | {len(test)} | {100 * np.mean(shares):.1f} | {100 * np.mean(widths):.0f} |", flush=True)


if __name__ == "__main__":
    main()
