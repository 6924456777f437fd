"""Do fits keep their time limits?  ``python benchmarks/limits.py --help``.

Every row is one fit of one estimator on random data of a given size with a given time limit, in its own process, so
that its peak memory can be measured and a fit that does not end can be killed.  A tiny fit loads the kernels before;
the whole ``fit`` is measured: checks, scaling, merging equal samples, the first tree, the model, the search and the
audit.  A limit is kept if the fit takes at most 5 % or half a second longer, whichever is more.  ``late_cpu`` is the
processor time after the limit, which is meaningful on a busy machine too.

Rows are appended to a CSV file; an interrupted run continues with the next row.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

#: The estimators with their parameters other than the defaults.
ESTIMATORS: dict[str, dict[str, Any]] = {
    "MargotClassifier": {},
    "HFSMargotClassifier": {"budget": 2},
    "SFSMargotClassifier": {"budget": 2},
    "LocalSVMTreeClassifier": {},
    "OCT1Classifier": {},
    "OCTHClassifier": {},
    "MMSVMOCTClassifier": {},
}

SIZES = ("200x5", "200x500", "2000x50", "20000x50", "200000x5", "20000x500", "200000x50", "200000x500")

COLUMNS = ("estimator", "rows", "columns", "kind", "depth", "limit")
COLUMNS += ("seconds", "kept", "late_cpu", "peak_mb", "data_mb", "stopped")

#: The allowed excess over a time limit: a share of it, or seconds.
SHARE, SECONDS = 0.05, 0.5
#: A fit is killed this number of seconds after its limit.
PATIENCE = 60.0

Case = dict[str, Any]


def samples(rows: int, columns: int, kind: str) -> tuple[Any, Any]:
    """Random samples: numbers, or (``"coded"``) columns with three values, which for few columns have many equal
    samples.  The labels are those of a tree, one in ten of them flipped."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns)) if kind == "numbers" else rng.integers(0, 3, (rows, columns)).astype(float)
    first, second = X[:, 0] - X[:, 1], X[:, 2] + X[:, 3] + X[:, 4]
    y = np.where(first > np.median(first), second > np.median(second), second <= np.median(second))
    return X, np.where(rng.random(rows) < 0.1, ~y, y).astype(int)


def run_one(case: Case) -> Case:
    """One fit in this process."""
    import margotree

    def model(limit: float) -> Any:
        cls = getattr(margotree, case["estimator"])
        return cls(depth=case["depth"], time_limit=limit, **ESTIMATORS[case["estimator"]])

    model(60.0).fit(*samples(30, 5, "coded"))
    X, y = samples(case["rows"], case["columns"], case["kind"])
    cpu_at_limit: list[float] = []
    timer = threading.Timer(case["limit"], lambda: cpu_at_limit.append(time.process_time()))
    timer.daemon = True
    timer.start()
    began = time.perf_counter()
    fitted = model(case["limit"]).fit(X, y)
    seconds = time.perf_counter() - began
    late = time.process_time() - cpu_at_limit[0] if cpu_at_limit else 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    stopped = str(getattr(fitted.certificate_.stopped, "value", fitted.certificate_.stopped))
    return {
        **case,
        "seconds": seconds,
        "late_cpu": late,
        "peak_mb": peak,
        "data_mb": X.nbytes / 2**20,
        "stopped": stopped,
    }


def in_own_process(case: Case) -> Case:
    """Run one fit in its own process: a crash or a fit without end becomes a row and does not end the run."""
    command = [sys.executable, __file__, "--one", json.dumps(case)]
    most = case["limit"] + PATIENCE + 60.0  # plus the time to load and to generate the data
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=most)
    except subprocess.TimeoutExpired:
        return {**case, "stopped": f"ended from outside {PATIENCE:.0f} s after its limit"}
    if done.returncode:
        return {**case, "stopped": f"failed: {' '.join(done.stderr.strip().splitlines()[-1:]) or done.returncode}"}
    row: Case = json.loads(done.stdout.splitlines()[-1])
    return row


def kept(row: Case) -> bool:
    limit = float(row["limit"])
    return bool(row.get("seconds")) and float(row["seconds"]) <= limit + max(SHARE * limit, SECONDS)


def read_rows(path: Path) -> list[Case]:
    if not path.exists():
        return []
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def key(row: Case) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in ("estimator", "rows", "columns", "kind", "depth", "limit"))


def run_all(args: argparse.Namespace) -> None:
    done = {key(row) for row in read_rows(args.out)}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for size in args.sizes:
        rows, columns = map(int, size.split("x"))
        for name in args.estimators:
            for limit in args.limits:
                case = {"estimator": name, "rows": rows, "columns": columns, "kind": args.kind, "depth": args.depth}
                case["limit"] = limit
                if key(case) not in done:
                    write(args.out, in_own_process(case))


def write(path: Path, row: Case) -> None:
    row = {**row, "kept": kept(row)}
    row.update({name: round(row[name], 2) for name in ("seconds", "late_cpu", "peak_mb", "data_mb") if name in row})
    new = not path.exists()
    with path.open("a", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS)
        if new:
            writer.writeheader()
        writer.writerow(row)
    print(*(f"{name}={row.get(name, '')}" for name in COLUMNS), flush=True)


def table(rows: list[Case]) -> str:
    """The rows as Markdown: a line per size, a column per estimator with seconds (processor time after the limit) and
    peak memory; exceeded limits are bold."""
    names = [name for name in ESTIMATORS if any(row["estimator"] == name for row in rows)]
    lines = ["| samples x features | data | limit | " + " | ".join(n.removesuffix("Classifier") for n in names) + " |"]
    lines.append("| ---: | ---: | ---: |" + " ---: |" * len(names))
    groups: dict[tuple[str, ...], dict[str, Case]] = {}
    for row in rows:
        place = tuple(str(row[c]) for c in ("rows", "columns", "kind", "limit"))
        groups.setdefault(place, {})[row["estimator"]] = row
    for (n, p, _, limit), found in groups.items():
        size = next((f"{float(row['data_mb']):.3g} MB" for row in found.values() if row.get("data_mb")), "")
        cells = [cell(found[name]) if name in found else "" for name in names]
        lines.append(f"| {int(n):,} x {p} | {size} | {float(limit):g} s | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(row: Case) -> str:
    if not row.get("seconds"):
        return f"**{row['stopped']}**"
    seconds = f"{float(row['seconds']):.2f}"
    memory = float(row["peak_mb"]) / 1024
    return f"{seconds if kept(row) else f'**{seconds}**'} s ({float(row['late_cpu']):.2f}), {memory:.1f} GB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), metavar="ROWSxCOLUMNS")
    parser.add_argument("--estimators", nargs="+", default=list(ESTIMATORS), choices=list(ESTIMATORS), metavar="NAME")
    parser.add_argument("--limits", nargs="+", type=float, default=[5.0], metavar="SECONDS")
    parser.add_argument("--kind", choices=("numbers", "coded"), default="numbers")
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/limits.csv"))
    parser.add_argument("--table", action="store_true", help="print the rows of --out as a Markdown table and stop")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run_one(json.loads(args.one))))
    elif args.table:
        print(table(read_rows(args.out)))
    else:
        run_all(args)


if __name__ == "__main__":
    main()
