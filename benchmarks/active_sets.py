"""Processor time per pivot of the two active-set methods on the same node problems.

    python benchmarks/active_sets.py --data FOLDER [--cost 10] [--rows 200]

Every CSV file of the folder (label last, text columns are one-hot encoded) gives one node problem: an SVM of the first
label against the others, on at most ``--rows`` samples with features in [0, 1], without feature penalties.  ``plain``
is the method for such problems, ``penalised`` the one for problems with feature penalties, all of which are 0 here.
Both start without samples and reach the same value; microseconds per pivot are the smallest of ``--repeats``.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.preprocessing import LabelEncoder, minmax_scale

from breadth import read_table
from margotree.engines.node.kernels import entry_points
from margotree.engines.node.kernels.workspace import FULL, NUM, PIVOTS, REACH, USE, VALUE, new_workspace
from margotree.engines.node.svm import node_items, offset_reach, value_limit

EPS = 1e-6


def pivots(X: np.ndarray, y: np.ndarray, cost: float, penalised: bool, repeats: int) -> tuple[float, int, float]:
    """The value, the number of pivots, and the smallest processor time of a pivot in microseconds."""
    points, items = node_items(
        X - X.mean(axis=0), y, np.full(len(y), cost), np.ones(len(y)), np.zeros(len(y), np.int8), (0.0, EPS), None
    )
    best = math.inf
    for _ in range(repeats):
        ws = new_workspace(points, items.c, items.cost[None], corner=items.corner[None], with_penalties=penalised)
        limit = value_limit(y, items.cost, np.ones(len(y)), np.zeros(len(y), np.int8))
        ws.g[0, NUM, REACH] = offset_reach(X - X.mean(axis=0), limit, EPS, 1.0)
        began = time.process_time()
        if penalised:
            ws.k[0, USE, : X.shape[1]] = FULL
            none = np.zeros(X.shape[1])
            entry_points.relax(ws, items.y, items.side, items.delta, none, math.inf, np.int64(10**6))
        else:
            entry_points.solve(ws, items.y, items.side, items.delta, math.inf, 10**6)
        best = min(best, time.process_time() - began)
    done = int(ws.cnt[0, PIVOTS])
    return float(ws.g[0, NUM, VALUE]), done, 1e6 * best / done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cost", type=float, default=10.0)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    ratios = []
    print(
        "| data | features | pivots | plain, us | penalised, us | ratio |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    )
    for path in sorted(args.data.glob("*.csv")):
        X, labels = read_table(path)
        chosen = np.random.default_rng(0).permutation(len(X))[: args.rows]
        X, y = minmax_scale(X[chosen]), np.where(LabelEncoder().fit_transform(labels[chosen]) == 0, 1.0, -1.0)
        found = [pivots(X, y, args.cost, penalised, args.repeats) for penalised in (False, True)]
        if not math.isclose(found[0][0], found[1][0], rel_tol=1e-9):
            raise SystemExit(f"{path.stem}: the two methods have the values {found[0][0]!r} and {found[1][0]!r}")
        (_, count, plain), (_, _, other) = found
        ratios.append(other / plain)
        print(f"| {path.stem} | {X.shape[1]} | {count} | {plain:.2f} | {other:.2f} | {ratios[-1]:.2f} |", flush=True)
    print(f"\nmedian ratio: {np.median(ratios):.3f}, from {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
