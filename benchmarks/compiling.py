"""The compilation time of the kernels: ``python benchmarks/compiling.py [FOLDER ...]``, or ``--ways``.

Processor seconds, on one core and with an empty cache, until a first MARGOT fit is done and until all kernels are
compiled (``margotree.engines.warm``); then of a first fit with a filled cache, and of the import alone.  Sources of
other versions are measured alternately with these, so that a busy machine affects all of them.

With ``--ways`` the kernels of a first MARGOT fit are compiled with each optimisation of the compilation switched off
one after the other, and with plain Numba (docs/compiling.md).
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from margotree.engines.numba_backend.choice import WAYS

HERE = Path(__file__).resolve().parents[1] / "src"
FIT = """
import numpy as np
from margotree import MargotClassifier
X = np.random.default_rng(0).normal(size=(40, 3))
MargotClassifier(depth=2, C=1.0, time_limit=5).fit(X, X[:, 0] * X[:, 1] > 0)
"""
IMPORT = "import numpy\nfrom margotree import MargotClassifier"
COMPILE = """
from margotree.engines.exact.warm_up import alternating_search, dive
dive()
alternating_search()
"""
TASKS = {
    "first fit": ["-c", FIT],
    "first fit, cached": ["-c", FIT],
    "importing": ["-c", IMPORT],
    "everything": ["-m", "margotree.engines.warm"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="sources of other versions to compare with")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--ways", action="store_true", help="the time that each optimisation of the compilation saves")
    args = parser.parse_args()
    if args.ways:
        print_ways(args.rounds)
        return
    folders = [*args.folders, HERE]
    print("| sources | " + " | ".join(TASKS) + " |\n| --- |" + " ---: |" * len(TASKS))
    best = {folder: dict.fromkeys(TASKS, float("inf")) for folder in folders}
    for _ in range(args.rounds):
        for folder in folders:
            for task, seconds in measured(folder).items():
                best[folder][task] = min(best[folder][task], seconds)
    for folder in folders:
        print(f"| {folder} | " + " | ".join(f"{seconds:.1f}" for seconds in best[folder].values()) + " |", flush=True)


def print_ways(rounds: int) -> None:
    """Print a table of processor seconds, each the minimum of some rounds."""
    named = ["", *(f"without {way}" for way in WAYS), "plain"]
    best = dict.fromkeys(named, float("inf"))
    for _ in range(rounds):
        for way in named:
            with tempfile.TemporaryDirectory() as cache:
                best[way] = min(best[way], seconds(HERE, ["-c", COMPILE], cache, MARGOTREE_NUMBA=way))
    print("| compiled | CPU seconds | beside all ways |\n| --- | ---: | ---: |")
    for way, took in best.items():
        print(f"| {way or 'all ways'} | {took:.1f} | {100 * (took / best[''] - 1):+.0f} % |", flush=True)


def measured(folder: Path) -> dict[str, float]:
    """The processor seconds of all tasks; the first and the last have an empty cache."""
    with tempfile.TemporaryDirectory() as full, tempfile.TemporaryDirectory() as other:
        caches = {"everything": other}
        return {task: seconds(folder, command, caches.get(task, full)) for task, command in TASKS.items()}


def seconds(folder: Path, command: list[str], cache: str, **settings: str) -> float:
    """The processor seconds of one process and its children, on one core."""
    env = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1", **settings}
    pin = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    before = used()
    subprocess.run([*pin, sys.executable, *command], env=env, check=True, stderr=subprocess.DEVNULL)
    return used() - before


def used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


if __name__ == "__main__":
    main()
