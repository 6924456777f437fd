"""The cost of proofs: seconds to search without and with a proof, its size, seconds to check it (docs/proof.md).

    python benchmarks/proofs.py --suites tuned --out results/proofs.jsonl
    python benchmarks/proofs.py --random 1000 --task multiclass

Every fit runs in its own process, its search on one thread.  Seconds are processor time of all threads of the process
(including the one that writes the proof); "longer" is the ratio of the wall-clock times with and without a proof, which
is meaningful if a core is free for the writing thread.  For short fits, ``--runs 5`` takes the minimum of five.
``--random`` writes proofs of small random problems of all models of a task and checks each with both checkers.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HOME), str(HOME / "benchmarks")]


def run_one(case: dict[str, Any]) -> dict[str, Any]:
    """Fit with or without a proof in this process, and check the proof."""
    from engine import problem_of  # type: ignore[import-not-found]
    from margotree.engines import Limits, get_engine, solve
    from margotree.proof import check
    from margotree.proof.write import ProofWriter

    problem = problem_of(case)
    for name in ("bnb", "local_svm"):
        get_engine(name).prepare(problem)
    if case["proof"]:
        get_engine("bnb").prepare_proof(problem)
    limits = Limits(time=case["time_limit"], gap=1e-4)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.proof"
        took = []
        for _ in range(case["runs"]):
            began, clock = time.process_time(), time.perf_counter()
            proof = ProofWriter(path) if case["proof"] else None
            certificate = solve(problem, engine="bnb", limits=limits, proof=proof).certificate
            took.append((time.process_time() - began, time.perf_counter() - clock))
        row = {
            **case, "seconds": min(cpu for cpu, _ in took), "clock": min(clock for _, clock in took),
            "nodes": certificate.nodes, "gap": certificate.gap, "stopped": str(certificate.stopped),
            "objective": certificate.objective,
        }  # fmt: skip
        if not case["proof"]:
            return row
        began = time.process_time()
        try:
            found = check.check(str(path), (problem.X, problem.y, problem.weight))
        except check.Refused as error:
            return {**row, "bytes": path.stat().st_size, "refused": str(error)}
        return {
            **row, "bytes": path.stat().st_size, "check": time.process_time() - began, "steps": found.steps,
            "leaves": found.leaves, "exact": found.exact, "proved_gap": found.gap,
        }  # fmt: skip


def run_all(args: argparse.Namespace) -> None:
    from engine import cases

    args.out.parent.mkdir(parents=True, exist_ok=True)
    done = {(r["suite"], r["data"], str(r["C"]), r["proof"]) for r in read_rows(args.out)}
    for suite in args.suites:
        for case in cases(suite):
            for proof in (False, True):
                full = {**case, "suite": suite, "time_limit": args.time_limit, "runs": args.runs, "proof": proof}
                named = args.only and case["data"] not in args.only
                if named or (suite, case["data"], str(case["C"]), proof) in done:
                    continue
                command = [sys.executable, __file__, "--one", json.dumps(full)]
                found = subprocess.run(command, capture_output=True, text=True, check=False)
                lines = found.stdout.splitlines()
                row = json.loads(lines[-1]) if lines else {**full, "refused": found.stderr[-300:]}
                with args.out.open("a") as out:
                    out.write(json.dumps(row) + "\n")
                print(json.dumps(row), flush=True)


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(rows: list[dict[str, Any]]) -> str:
    heads = ("suite", "data", "nodes", "search s", "with proof s", "ratio", "longer", "leaves", "MB", "bytes per leaf",
             "check s", "proved gap %")  # fmt: skip
    lines = ["| " + " | ".join(heads) + " |", "| --- | --- |" + " ---: |" * (len(heads) - 2)]
    plain = {(r["suite"], r["data"], str(r["C"])): r for r in rows if not r["proof"] and "seconds" in r}
    for row in rows:
        if not row["proof"]:
            continue
        before = plain.get((row["suite"], row["data"], str(row["C"])))
        lead = [row["suite"], row["data"]]
        if "check" not in row or before is None:
            lines.append("| " + " | ".join([*lead, row.get("refused", "not run")[:80], *[""] * 9]) + " |")
            continue
        cells = [
            f"{row['nodes']:,}", f"{before['seconds']:.1f}", f"{row['seconds']:.1f}",
            f"{row['seconds'] / before['seconds']:.2f}", f"{row['clock'] / before['clock']:.2f}", f"{row['leaves']:,}",
            f"{row['bytes'] / 1e6:.2f}",
            f"{row['bytes'] / row['leaves']:.0f}", f"{row['check']:.1f}", f"{100 * row['proved_gap']:.4f}",
        ]  # fmt: skip
        lines.append("| " + " | ".join([*lead, *cells]) + " |")
    return "\n".join(lines)


TASKS = ("binary", "multiclass", "regression")


def random_problem(seed: int, task: str = "binary") -> Any:
    """A small random problem of any model: coarse or fine features of any scale, weights, duplicates, depths 1 to 3."""
    import numpy as np

    from margotree.problem import BINARY, Multiclass, Problem, Regression

    rng = np.random.default_rng(seed)
    model = ("margot", "hfs", "sfs")[seed % 3]
    m, n, depth = int(rng.integers(4, 11)), int(rng.integers(1, 4)), int(rng.integers(1, 4 if model == "margot" else 3))
    X = rng.normal(size=(m, n))
    X = np.round(X, int(rng.integers(0, 3))) if rng.random() < 0.7 else X
    y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    more: dict[str, Any] = {} if model == "margot" else {"budget": int(rng.integers(1, n + 1))}
    if model == "sfs":
        more["alpha"] = float(10.0 ** rng.integers(-2, 2))
    X = X * 10.0 ** rng.integers(-4, 5) + rng.choice([0.0, 100.0])
    of_task: Any = BINARY
    if task == "multiclass":
        n_classes = int(rng.integers(2, min(m, 4 if depth < 3 else 3) + 1))
        of_task, y = Multiclass(n_classes), rng.permutation(np.arange(m) % n_classes)
    elif task == "regression":
        unit = 10.0 ** rng.integers(-2, 3)
        of_task = Regression(float(rng.choice([0.0, 0.1, 1.0])) * unit)
        y = np.round(rng.normal(size=m), int(rng.integers(0, 3))) * unit
    return Problem.make(
        X, y, task=of_task, depth=depth, C=float(10.0 ** rng.integers(-2, 3)), weight=rng.choice([1.0, 0.1, 3.0], m),
        eps=float(rng.choice([1e-3, 1e-5, 0.1])), **more,
    )  # fmt: skip


def random_proofs(count: int, first: int, nodes: float, task: str) -> None:
    """Write and check many proofs; both checkers must compute the certified bound."""
    from tests.proofs import exact

    from margotree.engines.branch_and_bound.engine import BranchAndBound
    from margotree.engines.run_control import Limits, RunControl
    from margotree.proof import check
    from margotree.proof.write import ProofWriter

    bad = wide = leaves = fractions = 0
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.proof"
        for seed in range(first, first + count):
            problem = random_problem(seed, task)
            limits = Limits(gap=1e-4, nodes=nodes)
            certificate = BranchAndBound().solve_with_proof(problem, ProofWriter(path), RunControl(limits)).certificate
            data = (problem.X, problem.y, problem.weight)
            try:
                found = check.check(path, data)
                claim = exact.check(path, *(a.tolist() for a in data))
                fine = claim == (found.objective, found.bound) and found.bound == min(certificate.bound, claim[0])
                leaves, fractions, wide = leaves + found.leaves, fractions + found.exact, wide + (found.gap > 1e-4)
            except (check.Refused, exact.NotProved) as error:
                fine = False
                print(f"seed {seed}, {problem.model}: {error!r}", flush=True)
            bad += not fine
            if (seed - first) % 50 == 49:
                print(f"{seed - first + 1} proofs, {bad} bad", flush=True)
    print(f"{count} proofs, {bad} bad; {leaves} leaves, {fractions} of them by fractions; {wide} at a limit of nodes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", nargs="+", default=["tuned"])
    parser.add_argument("--only", nargs="+", help="data sets to run; all if left out")
    parser.add_argument("--time-limit", type=float, default=600.0)
    parser.add_argument("--runs", type=int, default=1, help="number of runs of each fit, of which the minimum counts")
    parser.add_argument("--out", type=Path, default=Path("results/proofs.jsonl"))
    parser.add_argument("--table", action="store_true", help="print the table of the rows in the file, and run nothing")
    parser.add_argument("--random", type=int, metavar="N", help="write and check proofs of N small random problems")
    parser.add_argument("--task", default="binary", choices=TASKS, help="what the random problems predict")
    parser.add_argument("--first", type=int, default=0, help="seed of the first of them")
    parser.add_argument("--nodes", type=float, default=3000, help="search nodes of each of them")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run_one(json.loads(args.one))))
    elif args.random:
        random_proofs(args.random, args.first, args.nodes, args.task)
    else:
        if not args.table:
            run_all(args)
        print(table(read_rows(args.out)))


if __name__ == "__main__":
    main()
