"""The incumbents of the searches over time: ``python benchmarks/incumbents.py --help``.

Every row is one run: a fit (table, depth, C, model) by one search method.  Rows hold the best value after 1, 3, 6, 10,
20 and 30 s (up to the end of the run) and the primal integral: the mean over the run of the distance of the incumbent
from the best known value, 100 % before the first incumbent.  Best known values of all runs are in ``best_known.csv``
in this folder; a run that finds a better value writes it there.  Rows are appended to a CSV file; an interrupted run
continues with the next row.  ``--table`` prints the rows, the share of runs within 1 % of the best known value, and
the mean distance from it (at most 100 %).  ``--sample 60`` chooses 60 fits at random, ``--runs 2`` runs each twice, the
second time with its samples in another order, and ``--clock cpu`` measures processor time, for busy machines (one
thread).

Tables are CSV files with the label last, in the folder ``--data``.  Text columns are one-hot encoded; the training part
is 75 % (``train_test_split(random_state=1, stratify=y)``), and features are scaled to [0, 1] on it.  ``eps`` is 1e-6 in
all fits, so that the band has no influence.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.model_selection import train_test_split

from breadth import count_processor_time  # type: ignore[import-not-found]
from margotree.engines import Event, Limits, RunControl, get_engine
from margotree.engines.exact.neighbourhood_search import improve
from margotree.engines.exact.sample_branching import MargotBrancher, Tactics
from margotree.engines.local_search_engine import Alternating
from margotree.engines.presolve import merge_duplicates
from margotree.problem import Problem, Splits, evaluate

BEST = Path(__file__).with_name("best_known.csv")
SECONDS = (1, 3, 6, 10, 20, 30)
EPS = 1e-6
FIT = ("data", "depth", "C", "model")
COLUMNS = (*FIT, "way", "run", "threads", "limit", "objective", *(f"after_{s}" for s in SECONDS), "integral")

Row = dict[str, Any]

#: The fits of the table in docs/benchmarks.md: sets and values of C for which the searches differ most.
TABLE = (
    ("banana", 2, "1 100"), ("banana", 3, "0.01 10 10"), ("banana", 3, "1 1 1"), ("german", 2, "0.01 10"),
    ("german", 2, "1 100"), ("australian", 2, "0.01 10"), ("australian", 3, "0.01 10 10"), ("pima", 2, "0.01 10"),
    ("pima", 3, "0.01 10 10"), ("pima", 2, "1 1"), ("australian", 2, "1 1"), ("german", 2, "1 1"),
)  # fmt: skip
ZOO_SETS = (
    "australian", "banana", "german", "heart", "mammographic", "monk-2", "pima", "spambase", "titanic", "wisconsin",
)  # fmt: skip
ZOO_MODELS = ("margot", "hfs 2", "sfs 1 1")


def fits(suite: str) -> Iterator[Row]:
    """The twelve fits of the table, or the zoo: many sets, depths, values of C, and models."""
    if suite == "table":
        yield from ({"data": d, "depth": depth, "C": C, "model": "margot"} for d, depth, C in TABLE)
        return
    for data in ZOO_SETS:
        for depth in (2, 3):
            for C in ((1.0, 1.0), (0.01, 10.0), (1.0, 100.0), (100.0, 100.0)):
                C_values = " ".join(f"{c:g}" for c in (C[0], *(C[1],) * (depth - 1)))
                yield from ({"data": data, "depth": depth, "C": C_values, "model": model} for model in ZOO_MODELS)


def drawn(suite: str, count: int | None) -> list[Row]:
    """All fits of a suite, or ``count`` of them chosen at random with a fixed seed."""
    found = list(fits(suite))
    if count is not None:
        random.Random(7).shuffle(found)
    return found[:count]


def reordered(problem: Problem, run: int) -> Problem:
    """The same problem with its samples in another order, from the second run on."""
    if run == 0:
        return problem
    order = np.random.default_rng(run).permutation(problem.n_samples)
    return replace(problem, X=problem.X[order], y=problem.y[order], weight=problem.weight[order])


def problem_of(fit: Row, folder: Path) -> Problem:
    X, y = read_table(folder / f"{fit['data']}.csv")
    X, _, y, _ = train_test_split(X, y, random_state=1, stratify=y, train_size=0.75)
    low, high = X.min(axis=0), X.max(axis=0)
    X = (X - low) / np.where(high > low, high - low, 1.0)
    kind, *numbers = fit["model"].split()
    terms = dict(zip(("budget", "alpha"), map(float, numbers), strict=False)) if kind != "margot" else {}
    return Problem.make(X, y, depth=int(fit["depth"]), C=[float(c) for c in fit["C"].split()], eps=EPS, **terms)


def read_table(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with path.open(newline="") as file:
        columns = list(zip(*list(csv.reader(file))[1:], strict=True))
    labels = np.array(columns[-1])
    if len(set(labels)) != 2:
        raise SystemExit(f"{path.name} has {len(set(labels))} labels; these fits take two")
    return np.column_stack([part for column in columns[:-1] for part in numbers(column)]), np.where(
        labels == max(labels), 1.0, -1.0
    )


def numbers(column: tuple[str, ...]) -> list[np.ndarray]:
    try:
        return [np.array(column, dtype=float)]
    except ValueError:
        return [np.array([1.0 * (cell == word) for cell in column]) for word in sorted(set(column))]


# -- search methods -----------------------------------------------------------------------------------------------


def alternating(problem: Problem, control: RunControl) -> Splits:
    return Alternating(neighbours=False).search(problem, control, None).splits


def together(problem: Problem, control: RunControl) -> Splits:
    return Alternating().search(problem, control, None).splits


def neighbourhood(problem: Problem, control: RunControl) -> Splits:
    """The neighbourhood search from the Local SVM tree, the first phase of the exact engine."""
    first = get_engine("local_svm").search(problem, control.part(0.25 * control.remaining), None).splits
    if problem.model != "margot":
        return first
    merged, _ = merge_duplicates(problem)
    control.report("start", incumbent=evaluate(problem, first).objective)
    return improve(MargotBrancher(merged, Tactics()), [first], control)


def exact(problem: Problem, control: RunControl) -> Splits:
    first = get_engine("local_svm").search(problem, control.part(0.25 * control.remaining), None).splits
    return get_engine("bnb").search(problem, control, first).splits


WAYS: dict[str, Callable[[Problem, RunControl], Splits]] = {
    "alternating": alternating,
    "neighbourhood": neighbourhood,
    "together": together,
    "bnb": exact,
}


def run(fit: Row, way: str, problem: Problem, limit: float, threads: int) -> Row:
    seen: list[tuple[float, float]] = []

    def note(event: Event) -> None:
        if event.incumbent < min((value for _, value in seen), default=math.inf):
            seen.append((event.elapsed, event.incumbent))

    control = RunControl(Limits(time=limit, n_jobs=threads), note)
    found = evaluate(problem, WAYS[way](problem, control))
    if not found.feasible:
        raise SystemExit(f"{way} returned a tree that is not allowed on {fit}: {found.violations}")
    seen.append((min(limit, control.elapsed), found.objective))
    best = min(found.objective, best_known().get(key(fit), math.inf))
    keep_best(fit, found.objective)
    after = {f"after_{s}": least(seen, s) if s <= limit else "" for s in SECONDS}
    row = {**fit, "way": way, "threads": threads, "limit": limit, "objective": found.objective, **after}
    return {**row, "integral": primal_integral(seen, best, limit)}


def least(seen: list[tuple[float, float]], seconds: float) -> float:
    return min((value for at, value in seen if at <= seconds + 0.2), default=math.inf)


def primal_integral(seen: list[tuple[float, float]], best: float, limit: float) -> float:
    """The mean over the run of the incumbent's distance from the best known value, as a share of the incumbent."""
    times = [0.0, *(min(at, limit) for at, _ in seen), limit]
    gaps = [1.0, *(min(1.0, max(0.0, (value - best) / max(value, 1e-12))) for _, value in seen)]
    return sum(gap * (end - begin) for gap, begin, end in zip(gaps, times, times[1:], strict=False)) / limit


# -- rows ---------------------------------------------------------------------------------------------------------


def key(row: Row) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in FIT)


def best_known() -> dict[tuple[str, ...], float]:
    if not BEST.exists():
        return {}
    with BEST.open(newline="") as file:
        return {key(row): float(row["value"]) for row in csv.DictReader(file)}


def keep_best(fit: Row, value: float) -> None:
    known = best_known()
    if value >= known.get(key(fit), math.inf) * (1.0 - 1e-9):
        return
    known[key(fit)] = value
    with BEST.open("w", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow([*FIT, "value"])
        lines.writerows([*fit_key, f"{best:.10g}"] for fit_key, best in sorted(known.items()))


def read_rows(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def run_all(args: argparse.Namespace) -> None:
    done = {(*key(row), row["way"], row["run"], row["threads"], float(row["limit"])) for row in read_rows(args.out)}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for fit in drawn(args.suite, args.sample):
        if args.only and fit["data"] not in args.only:
            continue
        given = problem_of(fit, args.data)
        for way, number in itertools.product(args.ways, range(args.runs)):
            if (*key(fit), way, str(number), str(args.threads), args.limit) in done:
                continue
            problem = reordered(given, number)
            for engine in (get_engine("local_svm"), get_engine("bnb"), get_engine("alternating")):
                engine.prepare(problem)
            row = {**run(fit, way, problem, args.limit, args.threads), "run": number}
            new = not args.out.exists()
            with args.out.open("a", newline="") as file:
                out = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                if new:
                    out.writeheader()
                out.writerow(row)
            cells = (f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row.values())
            print(", ".join(cells), flush=True)


def show(rows: list[Row]) -> None:
    best = best_known()
    print("| set | depth | C | model | way | objective | best known | above % | integral % |\n|" + " --- |" * 9)
    for row in rows:
        value, least_known = float(row["objective"]), best[key(row)]
        above, integral = 100 * (value / least_known - 1), 100 * float(row["integral"])
        facts = [*key(row), row["way"], f"{value:.6g}", f"{least_known:.6g}", f"{above:.2f}", f"{integral:.1f}"]
        print("| " + " | ".join(facts) + " |")
    for way in dict.fromkeys(row["way"] for row in rows):
        mine = [row for row in rows if row["way"] == way]
        shares = []
        for s in SECONDS:
            values = [(float(row[f"after_{s}"]), best[key(row)]) for row in mine if row[f"after_{s}"]]
            if values:
                share = np.mean([value <= 1.01 * known for value, known in values])
                above = np.mean([min(1.0, value / known - 1.0) for value, known in values])
                shares.append(f"{100 * share:.0f} % after {s} s (mean distance {100 * above:.1f} %)")
        integral = np.mean([float(row["integral"]) for row in mine])
        print(f"\n{way}: within 1 % of the best known: {', '.join(shares)}; primal integral {100 * integral:.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MARGOTREE_DATA", ".")) / "breadth")
    parser.add_argument("--suite", default="table", choices=("table", "zoo"))
    parser.add_argument("--ways", nargs="+", default=["alternating", "neighbourhood", "together"], choices=list(WAYS))
    parser.add_argument("--only", nargs="+", help="tables")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds per run")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sample", type=int, help="the number of fits, chosen at random; all by default")
    parser.add_argument("--runs", type=int, default=1, help="number of runs of each fit")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="the clock that measures seconds (wall)"
    )
    parser.add_argument("--out", type=Path, default=Path("results/incumbents.csv"))
    parser.add_argument("--table", action="store_true", help="print the rows in the file and run nothing")
    args = parser.parse_args()
    if args.clock == "cpu":
        count_processor_time()
    if not args.table:
        run_all(args)
    show(read_rows(args.out))


if __name__ == "__main__":
    main()
