"""The time of the engines to certify the paper's fits: ``make bench``, or ``python benchmarks/engine.py --help``.

Every row is one fit: a case (model, data, depth, hyperparameters) on one engine, in its own process for the peak
memory.  Rows are appended to a JSON-lines file; an interrupted run continues with the next row.  All engines have the
same machine, threads, time limit, gap and start; compare ratios within one table, not times of different machines.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLE_SETS = (
    "breast_cancer_diagnostic", "breast_cancer_wisconsin", "climate_model", "cleveland", "ionosphere",
    "parkinsons", "sonar", "spectf", "tic_tac_toe", "wholesale",
)  # fmt: skip

#: The ``eps`` of the paper.
PAPER_EPS = 1e-3
SUITES = ("tuned", "fixed", "planes", "depth3", "hfs-tuned", "sfs-tuned", "hfs-fixed", "sfs-fixed", "hfs-wide")

Case = dict[str, Any]


def cases(suite: str) -> Iterator[Case]:
    """The fits of one suite: data, depth and hyperparameters."""
    model, _, kind = suite.partition("-")
    if model in ("hfs", "sfs") and kind in ("tuned", "fixed"):
        yield from ({"data": name, "depth": 2, "C": f"{model} {kind}"} for name in TABLE_SETS)
    elif suite == "tuned":
        yield from ({"data": name, "depth": 2, "C": "tuned"} for name in TABLE_SETS)
    elif suite == "fixed":
        yield from ({"data": name, "depth": 2, "C": [100.0, 1000.0]} for name in TABLE_SETS)
    elif suite == "depth3":
        yield from ({"data": name, "depth": 3, "C": "tuned"} for name in TABLE_SETS)
    elif suite == "hfs-wide":  # too many supports to enumerate: five of 30 features, three of 200
        wide = (
            ("breast_cancer_diagnostic", 5),
            ("made 30 0", 5),
            ("made 200 0", 3),
            ("made 200 1", 3),
            ("made 200 2", 3),
        )
        for name, budget in wide:
            yield from ({"data": name, "depth": 2, "C": C, "budget": budget} for C in ([1.0, 1.0], [0.1, 10.0]))
    elif suite == "planes":
        yield {"data": "4-partitions", "depth": 2, "C": [1.0, 1e4]}
        # The paper does not print the C of its 2-D sets; with these the samples are separated, from easy to hard.
        yield {"data": "6-partitions", "depth": 3, "C": [100.0, 1000.0, 1e4]}
        yield {"data": "6-partitions", "depth": 3, "C": [10.0, 100.0, 1e4]}
        yield {"data": "6-partitions", "depth": 3, "C": [1.0, 1.0, 1e4]}
        yield {"data": "fourclass", "depth": 4, "C": [1.0, 10.0, 100.0, 1e4]}
    else:
        raise SystemExit(f"unknown suite {suite!r}; there are: {', '.join(SUITES)}")


def problem_of(case: Case) -> Any:
    from margotree.paper.data import load, make_partitions, paper_hyperparameters, paper_split
    from margotree.problem import Problem

    if case["data"].endswith("-partitions"):
        made = make_partitions(int(case["data"][0]), random_state=0).dataset
        return Problem.make(made.X, made.y_sign, depth=case["depth"], C=case["C"], eps=PAPER_EPS)
    if case["data"].startswith("made "):
        X, y = wide_set(*map(int, case["data"].split()[1:]))
        return Problem.make(X, y, depth=case["depth"], C=case["C"], budget=case["budget"], eps=PAPER_EPS)
    dataset = load(case["data"])
    split = paper_split(dataset)
    terms = {"C": case["C"], **({"budget": case["budget"]} if "budget" in case else {})}
    if isinstance(case["C"], str):
        model, kind = ("margot " + case["C"]).split()[-2:]
        terms = paper_hyperparameters(model, case["data"], depth=case["depth"], fixed=kind == "fixed")
    return Problem.make(split.X_train, split.y_train, depth=case["depth"], eps=PAPER_EPS, **terms)


def wide_set(features: int, seed: int) -> tuple[Any, Any]:
    """Two hundred samples in four clusters; six features determine the label."""
    from sklearn.datasets import make_classification
    from sklearn.preprocessing import minmax_scale

    X, y = make_classification(200, features, n_informative=6, n_clusters_per_class=2, flip_y=0.02, random_state=seed)
    return minmax_scale(X), 2.0 * y - 1.0


def run_one(case: Case) -> dict[str, Any]:
    """Fit one case in this process and return its row.

    ``cpu_seconds`` is processor time, which is meaningful on a busy machine too.
    """
    from margotree.engines import Limits, get_engine, solve
    from margotree.engines.base import EngineError

    problem = problem_of(case)
    limits = Limits(time=case["time_limit"], gap=1e-4, n_jobs=case["threads"])
    for name in (case["engine"], "local_svm"):
        get_engine(name).prepare(problem)  # kernels are loaded before the clock starts
    began = time.process_time()
    try:
        certificate = solve(problem, engine=case["engine"], limits=limits).certificate
    except EngineError as error:
        return {**case, "refused": str(error)}
    facts = {"seconds": certificate.seconds, "cpu_seconds": round(time.process_time() - began, 2)}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**case, **certificate.to_dict(), **facts, "peak_mb": round(peak, 1)}


def key(row: dict[str, Any]) -> str:
    return json.dumps([row[k] for k in ("data", "depth", "C", "engine", "time_limit", "threads")])


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run_all(args: argparse.Namespace) -> None:
    done = {key(row) for row in read_rows(args.out)}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    terms = {"time_limit": args.time_limit, "threads": args.threads}
    for suite in args.suites:
        for case in cases(suite):
            for engine in args.engines:
                full = {**case, "suite": suite, "engine": engine, **terms}
                if (args.only and case["data"] not in args.only) or key(full) in done:
                    continue
                row = in_own_process(full)
                with args.out.open("a") as out:
                    out.write(json.dumps(row) + "\n")
                print(line_of(row), flush=True)


def in_own_process(case: Case) -> dict[str, Any]:
    """Run one fit in its own process: a crash becomes a row and does not end the run."""
    command = [sys.executable, __file__, "--one", json.dumps(case)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {**case, "refused": f"failed: {done.stderr.strip().splitlines()[-1:]}"}
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


COLUMNS = (
    "suite", "data", "depth", "C", "engine",
    "objective", "bound", "gap %", "stopped", "seconds", "nodes", "MB", "x bnb",
)  # fmt: skip


def line_of(row: dict[str, Any], base: float | None = None) -> str:
    C = row["C"] if isinstance(row["C"], str) else ", ".join(f"{c:g}" for c in row["C"])
    lead = [row["suite"], row["data"], str(row["depth"]), C, row["engine"]]
    if "refused" in row:
        return "| " + " | ".join([*lead, row["refused"][:60], *[""] * 7]) + " |"
    ratio = "" if not base or row["engine"] == "bnb" else f"{row['seconds'] / base:.1f}"
    values = [
        f"{row['objective']:.6g}", f"{float(row['bound']):.6g}", f"{100 * float(row['gap']):.2f}", row["stopped"],
        f"{row['seconds']:.1f}", str(row["nodes"]), f"{row['peak_mb']:.0f}", ratio,
    ]  # fmt: skip
    return "| " + " | ".join(lead + values) + " |"


def fit_of(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["suite"], row["data"], json.dumps(row["C"])


def table(rows: list[dict[str, Any]]) -> str:
    """All rows in Markdown; the last column is the time divided by that of our engine on the same fit."""
    ours = {fit_of(r): r["seconds"] for r in rows if r["engine"] == "bnb" and "seconds" in r}
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
    return "\n".join(lines + [line_of(r, ours.get(fit_of(r))) for r in rows])


def versions() -> str:
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for name in ("margotree", "numpy", "numba", "pyscipopt", "highspy", "gurobipy", "cplex", "coptpy"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, " + ", ".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", nargs="+", default=list(SUITES))
    parser.add_argument("--engines", nargs="+", default=["bnb", "scip", "gurobi", "cplex", "copt"])
    parser.add_argument("--only", nargs="+", help="data sets to run; all if left out")
    parser.add_argument("--time-limit", type=float, default=600.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/engine.jsonl"))
    parser.add_argument("--table", action="store_true", help="print the table of the rows in the file, and run nothing")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run_one(json.loads(args.one))))
        return
    if not args.table:
        began = time.perf_counter()
        run_all(args)
        print(f"done in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    print(f"\n{versions()}\n\n{table(read_rows(args.out))}")


if __name__ == "__main__":
    main()
