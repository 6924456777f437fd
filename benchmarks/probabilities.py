"""Log-loss and Brier score of class probabilities on public tables: ``python benchmarks/probabilities.py --help``.

Every table is split once per seed, three quarters for training. On the test part the script measures the default rule
of ``predict_proba``, the other two rules (for the same tree), logistic regression, and with ``--calibrated``
``CalibratedClassifierCV`` around the tree. It prints a table of the means and the answers to four questions: the mean
log-loss relative to logistic regression's, the number of zero probabilities, the tables on which the Brier score is
larger than that of the shares of leaves, and the gain of ``CalibratedClassifierCV``. A fit has ``--limit`` seconds;
after ``--total`` seconds no further table is started.

The tables are those of docs/breadth.md, in the folder ``MARGOTREE_DATA``/breadth, and tables of scikit-learn.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from breadth import read_table
from margotree import MargotClassifier
from margotree.tree.probabilities import LeafShares, SmoothedShares

TABLES = (
    "australian", "breast_cancer", "contraceptive", "german", "heart", "iris", "mammographic", "pima", "titanic",
    "vehicle", "wine", "wisconsin",
)  # fmt: skip
METHODS = ("margin", "smoothed", "leaf", "logistic", "calibrated")


def load(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    if name == "breast_cancer":
        return load_breast_cancer(return_X_y=True)
    return read_table(folder / f"{name}.csv")


def brier(shares: np.ndarray, code: np.ndarray) -> float:
    return float(((shares - np.eye(shares.shape[1])[code]) ** 2).sum(axis=1).mean())


def run(X: np.ndarray, y: np.ndarray, seed: int, args: argparse.Namespace) -> dict[str, tuple[float, float, int]]:
    """Log-loss, Brier score and number of zeros of each method on one split."""
    X, X_test, y, y_test = train_test_split(X, y, random_state=seed, stratify=y, train_size=0.75)
    model = MargotClassifier(depth=args.depth, C=args.C, time_limit=args.limit)
    fitted = model.fit(X, y)
    shares = {"margin": fitted.predict_proba(X_test)}
    for rule in (SmoothedShares(), LeafShares()):
        shares[rule.kind] = replace(fitted.tree_, probabilities=rule).predict_proba(X_test)
    linear: Any = make_pipeline(StandardScaler(), LogisticRegression(max_iter=3000)).fit(X, y)
    shares["logistic"] = linear.predict_proba(X_test)
    if args.calibrated:
        shares["calibrated"] = CalibratedClassifierCV(model).fit(X, y).predict_proba(X_test)
    code = np.searchsorted(fitted.classes_, y_test)
    labels = range(len(fitted.classes_))
    return {name: (log_loss(code, p, labels=labels), brier(p, code), int((p == 0).sum())) for name, p in shares.items()}


def show(found: dict[str, dict[str, np.ndarray]], seeds: int) -> None:
    methods = [m for m in METHODS if all(m in row for row in found.values())]
    print(f"| table, {seeds} splits | " + " | ".join(methods) + " |\n|" + " --- |" + " ---: |" * len(methods))
    for name, row in found.items():
        print(f"| {name} | " + " | ".join(f"{row[m][0]:.3f} / {row[m][1]:.3f}" for m in methods) + " |")
    mean = {m: np.mean([row[m] for row in found.values()], axis=0) for m in methods}
    print("| mean | " + " | ".join(f"{mean[m][0]:.3f} / {mean[m][1]:.3f}" for m in methods) + " |")
    print(f"\nlog-loss relative to logistic regression: {mean['margin'][0] / mean['logistic'][0]:.3f}")
    print(f"zeros: {sum(row['margin'][2] for row in found.values()) * seeds:.0f}")
    worse = [name for name, row in found.items() if row["margin"][1] > row["leaf"][1]]
    print(f"Brier score larger than that of the shares of leaves: {', '.join(worse) or 'nowhere'}")
    if "calibrated" in methods:
        gain = 1 - mean["calibrated"][:2] / mean["margin"][:2]
        print(f"CalibratedClassifierCV: log-loss {gain[0]:.1%} smaller, Brier score {gain[1]:.1%} smaller")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MARGOTREE_DATA", ".")) / "breadth")
    parser.add_argument("--only", nargs="+", default=TABLES, metavar="TABLE")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="number of splits (5)")
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=2.0, help="seconds of each fit (2)")
    parser.add_argument("--total", type=float, default=1200.0, help="seconds for all (1200)")
    parser.add_argument("--calibrated", action="store_true", help="also CalibratedClassifierCV, five more fits each")
    args = parser.parse_args()
    began, found = time.monotonic(), {}
    warnings.simplefilter("ignore")
    for name in args.only:
        if time.monotonic() - began > args.total:
            print(f"the time is over before {name}")
            break
        X, y = load(name, args.data)
        rows = [run(X, y, seed, args) for seed in range(args.seeds)]
        found[name] = {m: np.mean([row[m] for row in rows], axis=0) for m in rows[0]}
        print(name, {m: found[name][m].round(3).tolist() for m in found[name]}, flush=True)
    show(found, args.seeds)


if __name__ == "__main__":
    main()
