"""How long kernels take to compile: ``python benchmarks/compiling.py [FOLDER ...]``.

Processor seconds, on one core and with an empty cache, until a first MARGOT fit is done and until everything is
compiled (``margotree.engines.warm``); then a first fit that finds its cache, and how much of that is importing.
Sources of other versions are measured in turn with these, so that a busy machine troubles all alike.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1] / "src"
FIT = """
import numpy as np
from margotree import MargotClassifier
X = np.random.default_rng(0).normal(size=(40, 3))
MargotClassifier(depth=2, C=1.0, time_limit=5).fit(X, X[:, 0] * X[:, 1] > 0)
"""
IMPORT = "import numpy\nfrom margotree import MargotClassifier"
TASKS = {
    "first fit": ["-c", FIT],
    "first fit, cached": ["-c", FIT],
    "importing": ["-c", IMPORT],
    "everything": ["-m", "margotree.engines.warm"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="sources of other versions, to be compared with")
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    folders = [*args.folders, HERE]
    print("| sources | " + " | ".join(TASKS) + " |\n| --- |" + " ---: |" * len(TASKS))
    best = {folder: dict.fromkeys(TASKS, float("inf")) for folder in folders}
    for _ in range(args.rounds):
        for folder in folders:
            for task, seconds in measured(folder).items():
                best[folder][task] = min(best[folder][task], seconds)
    for folder in folders:
        print(f"| {folder} | " + " | ".join(f"{seconds:.1f}" for seconds in best[folder].values()) + " |", flush=True)


def measured(folder: Path) -> dict[str, float]:
    """Processor seconds of all tasks, the first and the last with an empty cache."""
    with tempfile.TemporaryDirectory() as full, tempfile.TemporaryDirectory() as other:
        caches = {"everything": other}
        return {task: seconds(folder, command, caches.get(task, full)) for task, command in TASKS.items()}


def seconds(folder: Path, command: list[str], cache: str) -> float:
    """Processor seconds of one process and its children, on one core."""
    env = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    pin = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    before = used()
    subprocess.run([*pin, sys.executable, *command], env=env, check=True, stderr=subprocess.DEVNULL)
    return used() - before


def used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


if __name__ == "__main__":
    main()
