"""Are all claims of the exact engine correct?  ``python benchmarks/claims.py --help``.

Thousands of small and numerically difficult problems (``tests/oracle/instances.py``), each solved by the engine and by
brute force over all routings in exact arithmetic (``tests/oracle``; needs ``pip install "margotree[test]"``).  Rows are
appended to a CSV file; an interrupted run continues, unless the sources have changed.  The table at the end counts the
faults per generator; the exit status is 1 if there is any.

    python benchmarks/claims.py --count 10000 --jobs 2
    python benchmarks/claims.py --only units near_duplicates --count 500
    python benchmarks/claims.py --several --count 1400 --jobs 2   # three and four classes (docs/multiclass.md)
    python benchmarks/claims.py --show near_duplicates 17     # one instance, all its numbers
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # matrices of ten rows gain nothing from threads
    os.environ.setdefault(_name, "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import margotree  # noqa: E402
from oracle.instances import GENERATORS, SEVERAL, make  # noqa: E402
from oracle.judge import FAULTS, judge  # noqa: E402

ALL = GENERATORS | SEVERAL

Task = tuple[str, int]
Row = dict[str, Any]

COLUMNS = (
    "generator", "number", "model", "depth", "samples", "features", "gap", "lower", "upper", "objective", "bound",
    "proved", "stopped", "excess", "faults", "open", "unsure", "note", "sources", "engine_seconds", "oracle_seconds",
)  # fmt: skip


@cache
def sources() -> str:
    """A digest of the source files, which identifies the version of the package."""
    digest = hashlib.sha256()
    for path in sorted(Path(margotree.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def run(task: Task) -> Row:
    """Solve and judge one instance."""
    generator, number = task
    instance = make(generator, number)
    verdict = judge(instance)
    row = {name: getattr(verdict, name) for name in COLUMNS if hasattr(verdict, name)}
    row |= {"engine_seconds": f"{verdict.engine_seconds:.4f}", "oracle_seconds": f"{verdict.oracle_seconds:.4f}"}
    row |= {"faults": " ".join(verdict.faults), "open": int(verdict.open), "unsure": int(verdict.unsure)}
    m, n = instance.X.shape
    return row | {
        "generator": generator, "number": number, "model": instance.model, "depth": instance.depth,
        "samples": m, "features": n, "gap": instance.limits["gap"], "sources": sources(),
    }  # fmt: skip


def tasks(names: list[str], count: int) -> list[Task]:
    """``count`` instances in total, from the generators in rotation."""
    return [(names[i % len(names)], i // len(names)) for i in range(count)]


def read(path: Path) -> list[Row]:
    """The rows of an earlier run without an incomplete last line; rows of other sources are an error."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row.get("oracle_seconds")]
    if any(row.get("sources") != sources() for row in rows):
        raise SystemExit(f"{path} holds rows of another version of the sources: name another file (--out)")
    return rows


def work(todo: list[Task], path: Path, jobs: int, known: list[Row]) -> Iterator[Row]:
    """Judge the tasks and write each row as soon as it is done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:  # written again, without an incomplete last line
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(known)
        for row in _rows(todo, jobs):
            writer.writerow(row)
            file.flush()
            yield row


def _rows(todo: list[Task], jobs: int) -> Iterable[Row]:
    if jobs <= 1:
        yield from map(run, todo)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(run, todo, chunksize=4)


def table(rows: list[Row]) -> str:
    """Counts per generator, as Markdown."""
    head = ["generator", "instances", *FAULTS, "worst bound", "not proved", "oracle unsure", "seconds"]
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    names = [name for name in ALL if any(r["generator"] == name for r in rows)]
    for name in [*names, "all"]:
        group = [r for r in rows if name in ("all", r["generator"])]
        worst = max((float(r["excess"]) for r in group), default=0.0)
        seconds = sum(float(r["engine_seconds"]) + float(r["oracle_seconds"]) for r in group)
        counts = [sum(fault in r["faults"].split() for r in group) for fault in FAULTS]
        cells = [name, len(group), *counts, f"+{worst:.1e}" if worst else "0"]
        cells += [sum(int(r["open"]) for r in group), sum(int(r["unsure"]) for r in group), f"{seconds:.0f}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def worst_cases(rows: list[Row], many: int = 3) -> str:
    """The worst instances of every fault, by the error of the bound if it is known."""
    lines = []
    for fault, words in FAULTS.items():
        found = [r for r in rows if fault in r["faults"].split()]
        if not found:
            continue
        found.sort(key=lambda r: -float(r["excess"]))
        lines.append(f"{fault}: {words} ({len(found)})")
        for r in found[:many]:
            facts = ", ".join(
                f"{name} {float(r[name]):.10g}" for name in ("objective", "bound", "lower", "upper", "gap")
            )
            claim = r["note"] or f"{facts}, {r['proved']}"
            lines.append(f"    {r['generator']} {r['number']} ({r['model']}, depth {r['depth']}): {claim}")
    return "\n".join(lines)


def show(generator: str, number: int) -> None:
    """Print one instance and its complete verdict."""
    instance = make(generator, number)
    for facts in (instance, judge(instance)):
        for key, value in vars(facts).items():
            print(f"{key}: {value.tolist() if hasattr(value, 'tolist') else value}")
        print()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="number of instances (default 10000)")
    parser.add_argument("--only", nargs="+", choices=list(ALL), metavar="GENERATOR", help="these generators only")
    parser.add_argument("--several", action="store_true", help="the generators of more than two classes")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--out", type=Path, default=Path("claims.csv"), help="file of rows (default claims.csv)")
    parser.add_argument("--show", nargs=2, metavar=("GENERATOR", "NUMBER"), help="print one instance and its verdict")
    given = parser.parse_args()
    if given.show:
        if given.show[0] not in ALL:
            parser.error(f"unknown generator {given.show[0]!r}; there are: {', '.join(ALL)}")
        show(given.show[0], int(given.show[1]))
        return 0
    wanted = tasks(given.only or list(SEVERAL if given.several else GENERATORS), given.count)
    known = read(given.out)
    done = {(r["generator"], int(r["number"])) for r in known}
    todo, began = [t for t in wanted if t not in done], time.perf_counter()
    rows: list[Row] = list(known)
    for i, row in enumerate(work(todo, given.out, given.jobs, known), 1):
        rows.append(row)
        if i % 500 == 0 or i == len(todo):
            bad, speed = sum(bool(r["faults"]) for r in rows), i / (time.perf_counter() - began)
            print(f"{len(rows)} instances, {bad} with a fault, {speed:.1f} per second", file=sys.stderr, flush=True)
    asked = set(wanted)
    rows = [r for r in rows if (r["generator"], int(r["number"])) in asked]
    print(table(rows), worst_cases(rows), sep="\n\n")
    return 1 if any(r["faults"] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
