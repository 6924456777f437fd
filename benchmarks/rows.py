"""Fits with thousands to a million rows, beside fast heuristics: ``python benchmarks/rows.py --help``.

Every row of the output is one fit in its own process: of a mixture with a known structure (a root split on three
columns, a split on three other columns on each side, one label in ten flipped; ``--columns`` in total), or of a table
in a folder (``--tables``; label last, text columns are one-hot encoded, three quarters for training).  Our tree is
compared with the Local SVM tree (without a time limit, and within the time of our fit), with CART of the same depth as
an allowed tree of the same problem (each threshold is a hyperplane with the best norm), and with the majority class:
objectives, and accuracy on new rows.  ``pass_us`` is the processor time per row of one sweep of the local search over
all nodes, in microseconds (the mean of three after the greedy tree and a first sweep).

With ``--regression`` the rows have a numeric target: four linear formulas below three splits (of ``--columns``
columns), and noise.  Our tree is compared with ridge regression and with CART of depth 3 by R2 on new rows, and
``cpu`` is the processor time of our fit; ``process_mb`` is the memory of the process (libraries and compiled kernels)
before it has data, and ``times_data`` the growth from there to the peak, the data included, over the data; with
``--clock cpu`` the limit is processor time, too, with one thread.

``--limits`` are the seconds of our fit; ``worse_than`` lists the better methods.  Rows are appended to a CSV file; an
interrupted run continues with the next row.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

COLUMNS = (
    "data", "rows", "columns", "depth", "C", "limit", "seconds", "objective", "accuracy", "local_svm", "local_svm_acc",
    "local_svm_in_time", "cart", "cart_acc", "cart_seconds", "majority", "worse_than", "pass_us", "peak_mb", "data_mb",
    "stopped",
)  # fmt: skip
COLUMNS_OF_NUMBERS = (
    "data", "rows", "columns", "depth", "limit", "seconds", "cpu", "objective", "r2", "best_r2", "ridge_r2", "cart_r2",
    "cart_seconds", "peak_mb", "process_mb", "data_mb", "times_data", "stopped",
)  # fmt: skip
FRESH = 100_000  # new rows of a mixture

Row = dict[str, Any]


def mixture(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    first, left, right = X[:, :3] @ [1.0, -1.0, 0.5], X[:, 3:6] @ [1.0, -1.0, 1.0], X[:, 6:9] @ [1.0, 1.0, 1.0]
    y = np.where(first > 0, right > 0.3, left > 0)
    return X, np.where(rng.random(rows) < 0.1, ~y, y).astype(int)


def planes(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, their targets, and the targets without noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    first, left, right = X[:, :3] @ [1.0, -1.0, 0.5], X[:, 3:6] @ [1.0, -1.0, 1.0], X[:, 6:9] @ [1.0, 1.0, 1.0]
    formulas = np.random.default_rng(7).standard_normal((4, columns)) * (np.arange(columns) < 12)
    leaf = np.where(first > 0, 2 + (right > 0.3), left > 0)
    exact = np.einsum("ij,ij->i", X, formulas[leaf]) + 2.0 * leaf
    return X, exact + rng.standard_normal(rows), exact


def run_planes(case: Row) -> Row:
    from sklearn.linear_model import Ridge
    from sklearn.tree import DecisionTreeRegressor

    from margotree import MargotRegressor

    warnings.simplefilter("ignore")
    depth = case["depth"]
    MargotRegressor(depth=depth, time_limit=60, node_limit=50).fit(*planes(60, 9, 2)[:2])
    MargotRegressor(depth=depth, time_limit=5).fit(*planes(20_000, 9, 2)[:2])  # compiled before the clock starts
    if case["clock"] == "cpu":
        from breadth import count_processor_time

        count_processor_time()
    process = memory_in_use()
    X, y, _ = planes(case["rows"], case["columns"], 0)
    new, new_y, exact = planes(FRESH, case["columns"], 1)
    began, cpu = time.perf_counter(), time.process_time()
    ours = MargotRegressor(depth=depth, time_limit=case["limit"], n_jobs=case["threads"]).fit(X, y)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = time.perf_counter()
    cart = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    data = X.nbytes / 2**20
    return {
        **case, "rows": len(X), "columns": X.shape[1], "seconds": seconds, "cpu": cpu,
        "objective": ours.certificate_.objective, "r2": ours.score(new, new_y),
        "best_r2": 1.0 - float(np.var(new_y - exact) / np.var(new_y)), "ridge_r2": Ridge().fit(X, y).score(new, new_y),
        "cart_r2": cart.score(new, new_y), "cart_seconds": time.perf_counter() - began, "peak_mb": peak,
        "process_mb": process, "data_mb": data, "times_data": (peak - process) / data,
        "stopped": str(ours.certificate_.stopped),
    }  # fmt: skip


def memory_in_use() -> float:
    """The memory that the process holds in RAM now, in megabytes; NaN where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
    except OSError:
        return float("nan")


def samples(case: Row) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training rows and new rows, with their labels."""
    if case["data"] == "mixture":
        X, y = mixture(case["rows"], case["columns"], 0)
        return X, *mixture(FRESH, case["columns"], 1), y
    from incumbents import read_table

    X, y = read_table(Path(case["folder"]) / f"{case['data']}.csv")
    X, new, y, new_y = train_test_split(X, y > 0, random_state=1, stratify=y, train_size=0.75)
    return X, new, new_y.astype(int), y.astype(int)


def run_one(case: Row) -> Row:
    from margotree import LocalSVMTreeClassifier, MargotClassifier
    from margotree.engines.trivial_trees import trivial_tree
    from margotree.problem import evaluate

    warnings.simplefilter("ignore")
    depth, C = case["depth"], case["C"]
    MargotClassifier(depth=depth, time_limit=60).fit(*mixture(60, 9, 2))  # compiled before the clock starts
    X, new, new_y, y = samples(case)
    began = time.perf_counter()
    ours = MargotClassifier(depth=depth, C=C, time_limit=case["limit"], n_jobs=case["threads"]).fit(X, y)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    greedy = LocalSVMTreeClassifier(depth=depth, C=C, time_limit=None).fit(X, y)
    in_time = LocalSVMTreeClassifier(depth=depth, C=C, time_limit=case["limit"]).fit(X, y)
    began = time.perf_counter()
    cart = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y)
    cart_seconds = time.perf_counter() - began
    problem = problem_of(X, y, ours.tree_, depth, C)
    others = {
        "local_svm": greedy.certificate_.objective,
        "local_svm_in_time": in_time.certificate_.objective,
        "cart": cart_value(problem, cart, ours.tree_.scaling),
        "majority": evaluate(problem, trivial_tree(problem)).objective,
    }
    objective = ours.certificate_.objective
    return {
        **case,
        **others,
        "rows": len(X),
        "columns": X.shape[1],
        "seconds": seconds,
        "objective": objective,
        "accuracy": ours.score(new, new_y),
        "local_svm_acc": greedy.score(new, new_y),
        "cart_acc": cart.score(new, new_y),
        "cart_seconds": cart_seconds,
        "worse_than": " ".join(name for name, value in others.items() if objective > value * (1 + 1e-9)),
        "pass_us": seconds_per_pass(problem) / len(X) * 1e6,
        "peak_mb": peak,
        "data_mb": X.nbytes / 2**20,
        "stopped": str(ours.certificate_.stopped),
    }


def problem_of(X: np.ndarray, y: np.ndarray, tree: Any, depth: int, C: Any) -> Any:
    """The training problem of the fitted tree."""
    from margotree.problem import Problem

    return Problem.make(tree.scaling.apply(X), np.where(y == 1, 1.0, -1.0), depth=depth, C=C, eps=tree.eps)


def cart_value(problem: Any, cart: Any, scaling: Any) -> float:
    """The smallest objective of the trees with the routing of CART, over the norms of its splits."""
    from margotree.problem import Splits, evaluate, topology

    tree, n = cart.tree_, problem.n_features
    w, b = np.zeros((problem.n_nodes, n)), np.ones(problem.n_nodes)

    def lay(node: int, t: int) -> None:
        """Write CART's node as node ``t``; the child with the larger share of the positive class is the right one."""
        if t >= problem.n_nodes:
            return
        share = tree.value[node][0]
        if tree.children_left[node] < 0:
            for s in topology.subtree(t, problem.depth):
                b[s] = 1.0 if share[1] >= share[0] else -1.0
            return
        left, right = tree.children_left[node], tree.children_right[node]
        shares = [tree.value[child][0][1] / tree.value[child][0].sum() for child in (left, right)]
        sign = 1.0 if shares[1] >= shares[0] else -1.0
        j = tree.feature[node]
        w[t, j] = sign
        b[t] = -sign * (tree.threshold[node] - scaling.offset[j]) / scaling.scale[j]
        lay(left if sign > 0 else right, 2 * t + 1)
        lay(right if sign > 0 else left, 2 * t + 2)

    lay(0, 0)
    split = np.any(w != 0, axis=1)
    best = np.inf
    for length in np.geomspace(1e-3, 1e3, 25):
        scaled = Splits(w=w * length, b=np.where(split, b * length, b))
        found = evaluate(problem, scaled)
        if found.feasible:
            best = min(best, found.objective)
    return float(best)


def seconds_per_pass(problem: Any) -> float:
    """The processor time of one sweep over all nodes, the mean of three after the greedy tree and a first sweep."""
    from margotree.engines.local_search.descent import Descent
    from margotree.engines.local_search.initial_splits import Strategy
    from margotree.engines.local_search.training_data import Terms

    nodes = problem.n_nodes
    work = Descent(Terms.of(problem), np.zeros((nodes, problem.n_features)), np.ones(nodes), 0, np.zeros(1))
    work.route(0, np.full(nodes, Strategy.SVM))
    work.sweep()
    began = time.process_time()
    for _ in range(3):
        work.stale[:] = True
        work.sweep()
    return (time.process_time() - began) / 3


# -- rows ---------------------------------------------------------------------------------------------------------


def key(row: Row) -> tuple[str, ...]:
    size = str(row["rows"]) if row["data"] in ("mixture", "planes") else ""
    return (row["data"], size, str(row["depth"]), str(row.get("C", "")), f"{float(row['limit']):g}")


def cases(args: argparse.Namespace) -> list[Row]:
    if args.regression:
        return [
            {"data": "planes", "rows": rows, "columns": args.columns, "depth": depth, "limit": limit,
             "threads": 1 if args.clock == "cpu" else args.threads, "clock": args.clock}
            for rows in args.sizes for depth in args.depths for limit in args.limits
        ]  # fmt: skip
    places = [{"data": "mixture", "rows": rows, "columns": args.columns} for rows in args.sizes]
    places += [{"data": name, "folder": str(args.data)} for name in args.tables]
    return [
        {**place, "depth": depth, "C": [float(c) for c in C.split(",")], "limit": limit, "threads": args.threads}
        for place in places for depth in args.depths for C in args.C for limit in args.limits
        if C.count(",") in (0, depth - 1)
    ]  # fmt: skip


def run_all(args: argparse.Namespace) -> None:
    args.out.parent.mkdir(parents=True, exist_ok=True)
    done = set()
    if args.out.exists():
        with args.out.open(newline="") as file:
            done = {key(row) for row in csv.DictReader(file)}
    todo = cases(args)
    if not todo:
        sys.exit("nothing to run: every C needs one number, or one per level of a depth (--C, --depths)")
    for case in todo:
        if key(case) in done:
            continue
        run = subprocess.run([sys.executable, __file__, "--one", json.dumps(case)], capture_output=True, text=True)
        if run.returncode:
            print(run.stderr[-2000:], file=sys.stderr)
            continue
        write(args.out, json.loads(run.stdout.splitlines()[-1]))


def write(path: Path, row: Row) -> None:
    row = {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()}
    new, columns = not path.exists(), COLUMNS_OF_NUMBERS if row["data"] == "planes" else COLUMNS
    with path.open("a", newline="") as out:
        writer = csv.DictWriter(out, columns, extrasaction="ignore")
        if new:
            writer.writeheader()
        writer.writerow(row)
    print(*(f"{name}={row.get(name, '')}" for name in columns), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--tables", nargs="*", default=[], help="tables of the folder --data")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MARGOTREE_DATA", ".")) / "breadth")
    parser.add_argument("--regression", action="store_true", help="a numeric target")
    parser.add_argument("--depths", nargs="+", type=int, default=[3])
    parser.add_argument("--C", nargs="+", default=["0.01,1,1"], help="one number, or one per level")
    parser.add_argument("--limits", nargs="+", type=float, default=[60.0], metavar="SECONDS")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="the clock of --regression (wall)")
    parser.add_argument("--out", type=Path, help="results/rows.csv, or results/rows_regression.csv")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        case = json.loads(args.one)
        print(json.dumps(run_planes(case) if case["data"] == "planes" else run_one(case)))
    else:
        args.out = args.out or Path("results") / ("rows_regression.csv" if args.regression else "rows.csv")
        run_all(args)


if __name__ == "__main__":
    main()
