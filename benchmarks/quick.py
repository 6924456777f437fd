"""What a newcomer waits for: ``python benchmarks/quick.py``.

Each line is a program in a process of its own: imports, the start of the command line, the first fit after the
installation (with an empty cache of compiled kernels) and the second one, default fits of every estimator on five
tables, and ``margotree fit`` on a table of 2,000 rows.  Beside them are the same programs with scikit-learn, and with
STree (package ``stree``) and EBM (``interpret-core``) where they are installed.  The columns are seconds on the clock,
processor seconds, and the score on a quarter of the rows that were not used for training (accuracy or R2).  Fits
measure themselves, without the import.

    python benchmarks/quick.py --only import first
    python benchmarks/quick.py --jobs 2 --out quick.csv
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COLUMNS = ("part", "what", "table", "seconds", "processor", "score")

IMPORTS = {
    "margotree": "import margotree; margotree.MargotClassifier",
    "scikit-learn": "from sklearn.tree import DecisionTreeClassifier",
    "STree": "from stree import Stree",
    "EBM": "from interpret.glassbox import ExplainableBoostingClassifier",
}
PACKAGES = {"STree": "stree", "EBM": "interpret"}

TABLES = {
    "breast_cancer": "datasets.load_breast_cancer(return_X_y=True)",
    "wine": "datasets.load_wine(return_X_y=True)",
    "digits": "datasets.load_digits(return_X_y=True)",
    "moons": "datasets.make_moons(1000, noise=0.3, random_state=0)",
    "blobs": "datasets.make_classification(2000, 20, n_informative=8, n_classes=3, random_state=0)",
}
NUMBERS = {
    "diabetes": "datasets.load_diabetes(return_X_y=True)",
    "friedman": "datasets.make_friedman1(1000, noise=1.0, random_state=0)",
}
CLASSIFIERS = {
    "MargotClassifier()": "margotree.MargotClassifier({jobs})",
    "HFSMargotClassifier()": "margotree.HFSMargotClassifier({jobs})",
    "SFSMargotClassifier()": "margotree.SFSMargotClassifier({jobs})",
    "MargotClassifierCV()": "margotree.MargotClassifierCV({jobs})",
    "HFSMargotClassifierCV()": "margotree.HFSMargotClassifierCV({jobs})",
    "LocalSVMTreeClassifier()": "margotree.LocalSVMTreeClassifier({jobs})",
    "DecisionTreeClassifier()": "sklearn.tree.DecisionTreeClassifier(random_state=0)",
    "LogisticRegressionCV()": "sklearn.linear_model.LogisticRegressionCV(max_iter=5000)",
    "STree": "__import__('stree').Stree(random_state=0)",
    "EBM": "__import__('interpret.glassbox').glassbox.ExplainableBoostingClassifier(random_state=0)",
}
REGRESSORS = {
    "MargotRegressor()": "margotree.MargotRegressor({jobs})",
    "MargotRegressorCV()": "margotree.MargotRegressorCV({jobs})",
    "LocalSVRTreeRegressor()": "margotree.LocalSVRTreeRegressor({jobs})",
    "DecisionTreeRegressor()": "sklearn.tree.DecisionTreeRegressor(random_state=0)",
    "RidgeCV()": "sklearn.linear_model.RidgeCV()",
}
FIT = """
import time, warnings
warnings.simplefilter("ignore")
import margotree, sklearn.linear_model, sklearn.tree
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
X, y = {table}
X, X_test, y, y_test = train_test_split(X, y, random_state=0, train_size=0.75)
model = make_pipeline(StandardScaler(), {model})
clock, processor = time.perf_counter(), time.process_time()
model.fit(X, y)
print(time.perf_counter() - clock, time.process_time() - processor, model.score(X_test, y_test))
"""
FIRST_FIT = """
import warnings
warnings.simplefilter("ignore")
from sklearn.datasets import load_iris
from margotree import MargotClassifier
X, y = load_iris(return_X_y=True)
MargotClassifier(time_limit=5).fit(X[50:], y[50:])
"""
CSV_ROWS = """
import numpy, sys
rng = numpy.random.default_rng(0)
X = rng.normal(size=(2000, 20))
y = numpy.where((X[:, 0] + X[:, 1] > 0) ^ (X[:, 2] > 0.5) ^ (rng.random(2000) < 0.1), "yes", "no")
with open(sys.argv[1], "w") as file:
    print(*[f"x{k}" for k in range(20)], "outcome", sep=",", file=file)
    for row, label in zip(X, y):
        print(*numpy.round(row, 4), label, sep=",", file=file)
"""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One line of the table."""

    part: str
    what: str
    table: str = ""
    seconds: float
    processor: float
    score: str = ""


def process(arguments: list[str], **environment: str) -> tuple[float, float, str]:
    """Run a command; return its seconds on the clock, its processor seconds and its output."""
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(arguments, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - clock, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(arguments[:3])} ... failed:\n{done.stderr}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def is_installed(name: str) -> bool:
    return name not in PACKAGES or importlib.util.find_spec(PACKAGES[name]) is not None


def python(code: str, *more: str, **environment: str) -> tuple[float, float, str]:
    return process([sys.executable, "-c", code, *more], **environment)


def imports() -> Iterator[Measured]:
    """Imports, and the start of the command line."""
    for name, code in IMPORTS.items():
        if is_installed(name):
            python(code)  # the files are then in memory, as they are for the next one
            seconds, processor, _ = python(code)
            yield Measured(part="import", what=name, seconds=seconds, processor=processor)
    seconds, processor, _ = process([sys.executable, "-m", "margotree", "--help"])
    yield Measured(part="import", what="margotree --help", seconds=seconds, processor=processor)


def first_fits() -> Iterator[Measured]:
    """The first fit with an empty cache of compiled kernels, and the second one."""
    with tempfile.TemporaryDirectory() as cache:
        for what in ("first fit after installation", "second fit, new process"):
            seconds, processor, _ = python(FIRST_FIT, NUMBA_CACHE_DIR=cache)
            yield Measured(part="first", what=what, seconds=seconds, processor=processor)


def default_fits(part: str, jobs: int) -> Iterator[Measured]:
    """Default fits of every estimator."""
    models, tables = (CLASSIFIERS, TABLES) if part == "classes" else (REGRESSORS, NUMBERS)
    for table, load in tables.items():
        for name, model in models.items():
            if is_installed(name):
                code = FIT.format(table=load, model=model.format(jobs=f"n_jobs={jobs}"))
                clock, processor, score = python(code)[2].split()
                yield Measured(
                    part=part, what=name, table=table, seconds=float(clock), processor=float(processor),
                    score=f"{float(score):.3f}",
                )  # fmt: skip


def command_line() -> Iterator[Measured]:
    """``margotree fit`` without options on a CSV file of 2,000 rows."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.csv"
        python(CSV_ROWS, str(file))
        for what, more in (("margotree fit", []), ("margotree fit --auto", ["--auto"])):
            command = [sys.executable, "-m", "margotree", "fit", str(file), "--target", "outcome", "--force", *more]
            command += ["--out", str(Path(folder) / "people.tree.json")]
            seconds, processor, _ = process(command)
            yield Measured(part="shell", what=what, table="2,000 x 20", seconds=seconds, processor=processor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("import", "first", "classes", "numbers", "shell")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts, help="parts to run")
    parser.add_argument("--jobs", type=int, default=2, help="threads of our fits (2)")
    parser.add_argument("--out", type=Path, help="also write the rows to this CSV file")
    args = parser.parse_args()
    runs = {
        "import": imports, "first": first_fits, "classes": lambda: default_fits("classes", args.jobs),
        "numbers": lambda: default_fits("numbers", args.jobs), "shell": command_line,
    }  # fmt: skip
    rows = []
    print("| what | table | seconds | processor | score |\n| --- | --- | ---: | ---: | ---: |")
    for part in parts:
        for row in runs[part]() if part in args.only else ():
            rows.append(row)
            print(f"| {row.what} | {row.table} | {row.seconds:.2f} | {row.processor:.2f} | {row.score} |", flush=True)
    if args.out:
        with open(args.out, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows([getattr(row, name) for name in COLUMNS] for row in rows)


if __name__ == "__main__":
    main()
