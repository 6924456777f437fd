"""The prediction time of trees: ``python benchmarks/prediction.py --help``.

Our trees beside scikit-learn's ``DecisionTreeClassifier`` of the same depth on the same rows, both fitted on a small
part of them.  Both run alternately in one process; the result is the ratio of the best times of some rounds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from margotree import MargotClassifier

TRAINED_ON = 2000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--depths", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    X, y = mixture(args.rows, args.features)
    print("| depth | margotree s | DecisionTreeClassifier s | ratio |\n|" + " ---: |" * 4)
    for depth in args.depths:
        few = slice(TRAINED_ON)
        ours = MargotClassifier(depth=depth, C=1.0, engine="alternating", time_limit=5).fit(X[few], y[few])
        cart = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X[few], y[few])
        seconds = in_turn([lambda m=ours: m.predict(X), lambda m=cart: m.predict(X)], args.rounds)
        print(f"| {depth} | {seconds[0]:.3f} | {seconds[1]:.3f} | {seconds[0] / seconds[1]:.2f} |", flush=True)


def mixture(rows: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Eight clusters of two classes."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=2.0, size=(8, features))
    which = rng.integers(8, size=rows)
    X = rng.normal(size=(rows, features))
    X += centres[which]
    return X, which % 2


def in_turn(runs: list[Callable[[], object]], rounds: int) -> list[float]:
    """The best time of each, measured alternately so that a busy machine affects all of them."""
    best = [np.inf] * len(runs)
    for _ in range(rounds):
        for k, run in enumerate(runs):
            began = time.perf_counter()
            run()
            best[k] = min(best[k], time.perf_counter() - began)
    return best


if __name__ == "__main__":
    main()
