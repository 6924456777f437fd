"""The rivals on the paper's ten sets, beside what the paper prints: ``python benchmarks/baselines.py --help``.

A row is one fit with the paper's split, depth 2 and hyperparameters; it is written to a JSON-lines file as soon as it
is there, and a run that was stopped goes on where it was.  A job is a model, or a model on an engine of choice:
``oct_1``, ``oct_1@highs``, ``oct_h``, ``mm_svm_oct``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

TEN = (
    "Breast Cancer D.", "Breast Cancer W.", "Climate Model", "Heart Disease C.", "Ionosphere",
    "Parkinsons", "Sonar", "SPECTF H.", "Tic-Tac-Toe", "Wholesale",
)  # fmt: skip

#: The paper's tables for a model: train and test accuracy, time and gap, features.
TABLES = {
    "oct_1": ("train_accuracy_fs", "test_accuracy_fs", "time_gap_fs", "features_fs"),
    "oct_h": ("train_accuracy", "test_accuracy", "time_gap", "features"),
    "mm_svm_oct": ("train_accuracy", "test_accuracy", "time_gap", "features"),
}


def main() -> None:
    asked = _arguments()
    out = Path(asked.out)
    done = {_key(row): row for row in _read(out)}
    for job in asked.jobs if not asked.table else []:
        for data in asked.data:
            case = {"job": job, "data": data, "time_limit": asked.time_limit}
            if _key(case) not in done:
                row = {**case, **fit(job, data, asked.time_limit)}
                done[_key(row)] = row
                _append(out, row)
                print(_said(row), flush=True)
    print(table([row for row in done.values() if row["job"] in asked.jobs]))


def fit(job: str, data: str, time_limit: float) -> dict[str, Any]:
    """Train one rival on one set and describe what came out."""
    from sklearn.metrics import accuracy_score, balanced_accuracy_score

    from margotree import MMSVMOCTClassifier, OCT1Classifier, OCTHClassifier
    from margotree.data import load, paper_hyperparameters, paper_split

    model, _, engine = job.partition("@")
    rivals = {"oct_1": OCT1Classifier, "oct_h": OCTHClassifier, "mm_svm_oct": MMSVMOCTClassifier}
    split = paper_split(load(data))
    terms = paper_hyperparameters(model, data)
    fitted = rivals[model](depth=2, time_limit=time_limit, engine=engine or "auto", **terms)
    fitted.fit(split.X_train, split.y_train)
    fitted.verify(split.X_train, split.y_train)
    row: dict[str, Any] = {**terms, **fitted.certificate_.to_dict(), "seconds": fitted.certificate_.seconds}
    for part, X, y in (("train", split.X_train, split.y_train), ("test", split.X_test, split.y_test)):
        predicted = fitted.predict(X)
        row[f"{part}_acc"] = 100 * accuracy_score(y, predicted)
        row[f"{part}_bacc"] = 100 * balanced_accuracy_score(y, predicted)
    row["F_t"] = fitted.tree_.selected().sum(axis=1).tolist()
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """Ours beside the paper's, as Markdown; accuracies, times and gaps as the paper prints them."""
    lines = []
    for job in dict.fromkeys(row["job"] for row in rows):
        lines += [
            f"\n### {job}\n",
            "| data set | proved | train ACC: ours | paper | test ACC: ours | paper | test BACC: ours | paper "
            "| seconds: ours | paper | gap %: ours | paper | features a node: ours | paper |",
            "| --- | --- |" + " ---: |" * 10 + " --- | --- |",
        ]
        lines += [_line(row) for row in sorted(rows, key=lambda r: TEN.index(r["data"])) if row["job"] == job]
    return "\n".join(lines)


def _line(row: dict[str, Any]) -> str:
    ours, paper = _ours(row), _papers(row)
    pairs = " | ".join(f"{a} | {b}" for a, b in zip(ours, paper, strict=True))
    return f"| {row['data']} | {row['proved']} | {pairs} |"


def _ours(row: dict[str, Any]) -> list[str]:
    gap = float(row["gap"])
    numbers = [f"{row[name]:.1f}" for name in ("train_acc", "test_acc", "test_bacc", "seconds")]
    return [*numbers, f"{100 * gap:.1f}", ", ".join(map(str, row["F_t"]))]


def _papers(row: dict[str, Any]) -> list[str]:
    from margotree.data import paper_table

    model = row["job"].partition("@")[0]
    train, test, times, features = (
        next(line for line in paper_table(name) if line["dataset"] == row["data"]) for name in TABLES[model]
    )
    numbers = [train[f"{model}_acc"], test[f"{model}_acc"], test[f"{model}_bacc"]]
    numbers += [times[f"{model}_time"], times[f"{model}_gap"]]
    return [*(f"{number:.1f}" for number in numbers), ", ".join(map(str, features[f"{model}_F_t"]))]


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
    parser.add_argument("--jobs", nargs="+", default=["oct_1", "oct_h", "mm_svm_oct"], help="models, or model@engine")
    parser.add_argument("--data", nargs="+", default=list(TEN), help="data sets (MARGOTREE_DATA names their folder)")
    parser.add_argument("--time-limit", type=float, default=600.0, help="seconds a fit")
    parser.add_argument("--out", default="results/baselines.jsonl", help="where rows go, and are found again")
    parser.add_argument("--table", action="store_true", help="only print the table of what is there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
