"""The speedup of a grid search on two cores, and its overhead over its fits: ``python benchmarks/tuning.py``.

The paper's grid for MARGOT on four folds: 484 small fits, all proved optimal, with one and two parallel fits
alternately.  The overhead is the time of the search with one fit at a time minus the sum of the times of its fits.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from margotree import MargotClassifier
from margotree.model_selection import Rows, TreeSearchCV
from margotree.paper.data import make_partitions
from margotree.paper.tuning import paper_folds, paper_grid


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    data = make_partitions(4, n_samples=asked.samples).dataset
    MargotClassifier().fit(data.X, data.y)  # compiled before any clock starts
    best: dict[int, float] = {}
    for _ in range(asked.rounds):
        for n_jobs in (1, 2):
            wall, fits, proved, cpu = search(data.X, data.y, n_jobs)
            best[n_jobs] = min(wall, best.get(n_jobs, np.inf))
            print(
                f"n_jobs {n_jobs}: {wall:.2f} s for 484 fits of {1000 * fits / 484:.1f} ms ({proved} proved optimal), "
                f"{cpu / wall:.2f} cores busy" + (f", overhead {100 * (wall / fits - 1):.1f} %" if n_jobs == 1 else ""),
                flush=True,
            )
    print(f"best of {asked.rounds}: {best[1]:.2f} s and {best[2]:.2f} s, {best[1] / best[2]:.2f} times faster")


def search(X: np.ndarray, y: np.ndarray, n_jobs: int) -> tuple[float, float, int, float]:
    """Wall time, sum of the times of the fits, number of fits proved optimal, CPU time."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.sqlite"
        began, cpu = time.perf_counter(), sum(os.times()[:2])
        TreeSearchCV(
            MargotClassifier(band=1e-3, time_limit=60, gap=0.05), paper_grid("margot"), cv=paper_folds(), n_jobs=n_jobs,
            resume=file, refit=False,
        ).fit(X, y)  # fmt: skip
        wall, cpu = time.perf_counter() - began, sum(os.times()[:2]) - cpu
        with Rows(file) as rows:
            fits = [(row["seconds"], row["proved"] == "optimal") for row in rows]
    assert len(fits) == 484
    return wall, sum(seconds for seconds, _ in fits), sum(proved for _, proved in fits), cpu


if __name__ == "__main__":
    main()
