"""The value of soft trees in the local search: ``python benchmarks/soft.py --help``.

The fits and their best known values are those of ``incumbents.py``.  For each fit, first, soft trees from zero weights
with random annealing schedules: milliseconds of processor time (training alone), and the distance of the tree from the
best known value before and after a descent (medians, per cent).  Then improvements of good trees, the best trees of two
searches of ``--first`` seconds: a tree re-annealed once, re-annealed as often as the search does it (both followed by a
short descent), or perturbed (followed by a full descent); milliseconds, the share of attempts with a better tree, and
the mean gain (per cent; 0 without improvement).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from breadth import count_processor_time
from incumbents import best_known, drawn, key, problem_of
from margotree.engines import Limits, RunControl, get_engine
from margotree.engines.local_search import starts
from margotree.engines.local_search.annealing import Schedule, SoftTree, n_reannealings
from margotree.engines.local_search.search import Effort, LocalSearch
from margotree.engines.local_search.starts import Start, unchanged_start
from margotree.engines.local_search.training_data import Terms, TrainedTree
from margotree.problem import Problem

GO = np.zeros(1)


def timed(work: Callable[[], TrainedTree]) -> tuple[TrainedTree, float]:
    began = time.process_time()
    found = work()
    return found, 1e3 * (time.process_time() - began)


def good_trees(problem: Problem, seconds: float) -> list[TrainedTree]:
    """The best trees of two searches."""
    trees = []
    for seed in range(2):
        search = LocalSearch(problem, RunControl(Limits(time=seconds, seed=seed)), Effort(patience=10_000))
        search.run([])
        trees.append(search.best[0])
    return trees


class Bench:
    """One problem and the search whose parts are measured."""

    def __init__(self, problem: Problem) -> None:
        self.terms = Terms.of(problem)
        self.search = LocalSearch(problem, RunControl())
        self.depth = problem.depth

    def trained(self, W: np.ndarray, B: np.ndarray, rng: np.random.Generator, schedule: Schedule) -> TrainedTree:
        W, B = SoftTree(self.terms, W, B, rng, schedule).anneal(GO)
        return TrainedTree(W=W, B=B, value=self.search.objective_of(self.terms, W, B))

    def descended(self, start: Start, seed: int, best: float = np.inf, brief: bool = False) -> TrainedTree:
        return self.search.descent(self.terms, start, seed, best, brief)

    def from_nothing(self, goes: int, best: float) -> list[float]:
        """Milliseconds, and the distance from the best known value before and after a descent."""
        W, B, rows = np.zeros((self.terms.n_nodes, self.terms.X.shape[1])), np.ones(self.terms.n_nodes), []
        for seed in range(goes):
            rng = np.random.default_rng(seed)
            tree, spent = timed(lambda rng=rng: self.trained(W, B, rng, Schedule.at_random(rng)))
            after = self.descended(unchanged_start(tree), seed)
            rows.append((spent, *(100 * (found.value / best - 1) for found in (tree, after))))
        return list(np.median(rows, axis=0))

    def again(self, tree: TrainedTree, times: int, seed: int) -> TrainedTree:
        rng, best = np.random.default_rng(seed), tree
        for k in range(times):
            found = self.trained(best.W, best.B, rng, Schedule.for_reannealing(rng))
            best = found if k == 0 or found.value < best.value else best
        return self.descended(unchanged_start(best), seed, tree.value, brief=True)

    def perturbed(self, tree: TrainedTree, seed: int) -> TrainedTree:
        return self.descended(starts.perturbed(tree, self.depth, np.random.default_rng(seed)), seed, tree.value)

    def from_trees(
        self, trees: list[TrainedTree], goes: int, way: Callable[[TrainedTree, int], TrainedTree]
    ) -> list[float]:
        """Milliseconds, the share of attempts with a better tree, and the mean gain."""
        rows = []
        for seed in range(goes):
            tree = trees[seed % len(trees)]
            found, spent = timed(lambda tree=tree, seed=seed: way(tree, seed))
            gain = max(0.0, 1.0 - found.value / tree.value)
            rows.append((spent, 100.0 * (gain > 1e-4), 100.0 * gain))
        return list(np.mean(rows, axis=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MARGOTREE_DATA", ".")) / "breadth")
    parser.add_argument("--suite", default="table", choices=("table", "zoo"))
    parser.add_argument("--sample", type=int, help="the number of fits, chosen at random; all by default")
    parser.add_argument("--only", nargs="+", help="tables")
    parser.add_argument("--goes", type=int, default=24, help="number of attempts of each kind")
    parser.add_argument("--first", type=float, default=3.0, help="seconds of processor time for the good trees")
    args = parser.parse_args()
    count_processor_time()
    print("| set | depth | C | model | soft ms | above | descended | again ms | better | gain ", end="")
    print("| times | ms | better | gain | disturbed ms | better | gain |\n|" + " --- |" * 17)
    for fit in drawn(args.suite, args.sample):
        known = best_known().get(key(fit))
        if (args.only and fit["data"] not in args.only) or known is None:
            continue
        problem = problem_of(fit, args.data)
        get_engine("alternating").prepare(problem)
        bench, trees = Bench(problem), good_trees(problem, args.first)
        times = max(1, n_reannealings(bench.terms))
        cells = [*bench.from_nothing(args.goes, known)]
        cells += bench.from_trees(trees, args.goes, lambda tree, seed, b=bench: b.again(tree, 1, seed))
        cells += [times, *bench.from_trees(trees, args.goes, lambda t, seed, b=bench, n=times: b.again(t, n, seed))]
        cells += bench.from_trees(trees, args.goes, bench.perturbed)
        print("| " + " | ".join([*key(fit), *(f"{cell:.3g}" for cell in cells)]) + " |", flush=True)


if __name__ == "__main__":
    main()
