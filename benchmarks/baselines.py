"""The baselines on the paper's ten sets, beside the paper's results: ``python benchmarks/baselines.py --help``.

A row is one fit with the paper's split, depth 2 and hyperparameters.  Rows are appended to a JSON-lines file; an
interrupted run continues with the next row.  A job is a model, or a model with an engine: ``oct_1``, ``oct_1@highs``,
``oct_h``, ``mm_svm_oct``.  ``--table docs/baselines.md`` writes the table of the rows into the documentation.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from itertools import product
from pathlib import Path
from typing import Any

TABLE_SETS = (
    "Breast Cancer D.", "Breast Cancer W.", "Climate Model", "Heart Disease C.", "Ionosphere",
    "Parkinsons", "Sonar", "SPECTF H.", "Tic-Tac-Toe", "Wholesale",
)  # fmt: skip

#: The paper's tables for a model: train and test accuracy, time and gap, features.
TABLES = {
    "oct_1": ("train_accuracy_fs", "test_accuracy_fs", "time_gap_fs", "features_fs"),
    "oct_h": ("train_accuracy", "test_accuracy", "time_gap", "features"),
    "mm_svm_oct": ("train_accuracy", "test_accuracy", "time_gap", "features"),
}


TITLES = {"oct_1": "OCT-1", "oct_h": "OCT-H", "mm_svm_oct": "MM-SVM-OCT"}
JOBS = tuple(TITLES)

#: The table is written between these lines of a document.
BEGIN, END = "<!-- table: benchmarks/baselines.py --table -->", "<!-- end of table -->"


def main() -> None:
    asked = _arguments()
    out = Path(asked.out)
    done = {_key(row): row for row in _read(out)}
    for data, job in product(asked.data, asked.jobs) if asked.table is None else ():
        case = {"job": job, "data": data, "time_limit": asked.time_limit}
        if _key(case) not in done or _starved(done[_key(case)], asked.least_cpu):
            _wait(asked.max_load)
            row = {**case, **fit(job, data, asked.time_limit)}
            done[_key(row)] = row
            _append(out, row)
            print(_said(row), flush=True)
    rows = [row for row in done.values() if row["time_limit"] == asked.time_limit]
    if asked.table in (None, "-"):
        print(table(rows))
    else:
        _put(Path(asked.table), table(rows))


def _starved(row: dict[str, Any], least: float) -> bool:
    """Whether a fit that reached its limit had less than this share of a core."""
    return row["stopped"] == "time limit" and row.get("cpu_seconds", 0.0) < least * row["time_limit"]


def _wait(load: float) -> None:
    """Wait until the load of the machine is below ``load``."""
    while os.getloadavg()[0] > load:
        time.sleep(10)


def _put(path: Path, text: str) -> None:
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")


def fit(job: str, data: str, time_limit: float) -> dict[str, Any]:
    """Train one baseline on one set and return its row."""
    from sklearn.metrics import accuracy_score, balanced_accuracy_score

    from margotree import MMSVMOCTClassifier, OCT1Classifier, OCTHClassifier
    from margotree.paper.data import load, paper_hyperparameters, paper_split

    model, engine = _model(job), job.partition("@")[2]
    classifiers = {"oct_1": OCT1Classifier, "oct_h": OCTHClassifier, "mm_svm_oct": MMSVMOCTClassifier}
    split = paper_split(load(data))
    terms = paper_hyperparameters(model, data)
    fitted = classifiers[model](depth=2, time_limit=time_limit, engine=engine or "auto", **terms)
    began = time.process_time()
    fitted.fit(split.X_train, split.y_train)
    spent = time.process_time() - began
    fitted.verify(split.X_train, split.y_train)
    row: dict[str, Any] = {**terms, **fitted.certificate_.to_dict(), "seconds": fitted.certificate_.seconds}
    for part, X, y in (("train", split.X_train, split.y_train), ("test", split.X_test, split.y_test)):
        predicted = fitted.predict(X)
        row[f"{part}_acc"] = 100 * accuracy_score(y, predicted)
        row[f"{part}_bacc"] = 100 * balanced_accuracy_score(y, predicted)
    row["cpu_seconds"] = spent
    row["F_t"] = fitted.tree_.selected().sum(axis=1).tolist()
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """Our results beside the paper's, as Markdown; accuracies, times and gaps in the units of the paper."""
    lines = []
    for job in sorted({*JOBS, *(row["job"] for row in rows)}, key=lambda job: (JOBS.index(_model(job)), job)):
        found = {row["data"]: row for row in rows if row["job"] == job}
        sets = TABLE_SETS if job in JOBS else [data for data in TABLE_SETS if data in found]
        lines += [
            f"\n### {TITLES[_model(job)]}{', ' + job.partition('@')[2] if '@' in job else ''}\n",
            "| data set | train ACC: ours | paper | test ACC: ours | paper | test BACC: ours | paper "
            "| seconds: ours (of CPU) | paper | gap %: ours | paper | features per node: ours | paper |",
            "| --- |" + " ---: |" * 10 + " --- | --- |",
        ]
        lines += [_line(job, data, found.get(data)) for data in sets]
    return "\n".join(lines).strip("\n") + "\n"


def _line(job: str, data: str, row: dict[str, Any] | None) -> str:
    ours, paper = _ours(row), _papers(job, data)
    return f"| {data} | " + " | ".join(f"{a} | {b}" for a, b in zip(ours, paper, strict=True)) + " |"


def _ours(row: dict[str, Any] | None) -> list[str]:
    if row is None:
        return ["not run", *[""] * 5]
    accuracy = [f"{row[name]:.1f}" for name in ("train_acc", "test_acc", "test_bacc")]
    cpu = f" ({row['cpu_seconds']:.0f})" if "cpu_seconds" in row else ""
    seconds = f"{row['seconds']:.{1 if row['seconds'] >= 1 else 2}f}"
    return [*accuracy, f"{seconds}{cpu}", f"{100 * float(row['gap']):.1f}", ", ".join(map(str, row["F_t"]))]


def _papers(job: str, data: str) -> list[str]:
    from margotree.paper.data import paper_table

    model = _model(job)
    train, test, times, features = (
        next(line for line in paper_table(name) if line["dataset"] == data) for name in TABLES[model]
    )
    used = features[f"{model}_F_t"]
    assert isinstance(used, tuple)
    numbers = [train[f"{model}_acc"], test[f"{model}_acc"], test[f"{model}_bacc"]]
    numbers += [times[f"{model}_time"], times[f"{model}_gap"]]
    return [*(f"{number:.1f}" for number in numbers), ", ".join(map(str, used))]


def _model(job: str) -> str:
    return job.partition("@")[0]


def _said(row: dict[str, Any]) -> str:
    return (
        f"{row['job']} {row['data']}: {row['proved']}, train {row['train_acc']:.1f}, test {row['test_acc']:.1f}, "
        f"gap {100 * float(row['gap']):.2f} %, {row['seconds']:.1f} s"
    )


def _key(row: dict[str, Any]) -> str:
    return json.dumps([row["job"], row["data"], float(row["time_limit"])])


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _append(path: Path, row: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(row) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), help="models, or model@engine")
    parser.add_argument(
        "--data", nargs="+", default=list(TABLE_SETS), help="data sets (MARGOTREE_DATA names their folder)"
    )
    parser.add_argument("--time-limit", type=float, default=600.0, help="seconds per fit")
    parser.add_argument("--out", default="results/baselines.jsonl", help="the file of rows")
    parser.add_argument(
        "--least-cpu",
        type=float,
        default=0.0,
        help="repeat fits that reached their limit with less than this share of a core",
    )
    parser.add_argument("--max-load", type=float, default=math.inf, help="start a fit only below this load")
    parser.add_argument(
        "--table", nargs="?", const="-", help="print the table of the rows, or write it into a file, and run nothing"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
