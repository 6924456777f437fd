"""The bounds of the branching strategies for SFS-MARGOT: ``python benchmarks/ways.py --help``.

Each strategy starts from the same tree (found by the engine in ``--start`` seconds) and has the same seconds on one
thread; the benchmark compares the bound that each one proves alone.  See docs/engine.md for the three strategies.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

from engine import TABLE_SETS, problem_of
from margotree.engines import Limits, RunControl, solve
from margotree.engines.branch_and_bound.engine import BranchAndBound, allowed_value
from margotree.engines.exact.penalty_branching import PenaltyBrancher
from margotree.engines.exact.sample_branching import FEATURES_FIRST, MargotBrancher, Tactics
from margotree.engines.exact.search import Brancher, Search
from margotree.engines.exact.support_branching import SupportBrancher
from margotree.engines.presolve import merge_duplicates
from margotree.problem import Problem, Splits
from margotree.solution import relative_gap

WAYS: dict[str, Callable[[Problem, float], Brancher]] = {
    "supports first": SupportBrancher,
    "samples first": lambda problem, best: PenaltyBrancher(problem),
    "samples first, one stage": lambda problem, best: MargotBrancher(problem),
    "features first": lambda problem, best: MargotBrancher(problem, Tactics(**FEATURES_FIRST)),
    "features first, more candidates": lambda problem, best: MargotBrancher(problem, Tactics(features_first=True)),
}


def own_bound(problem: Problem, way: str, start: Splits, seconds: float) -> tuple[float, float, int]:
    """The bound of one strategy alone, the objective of its best tree, and its number of steps."""
    brancher = WAYS[way](problem, allowed_value(problem, start))
    search = Search(brancher, lambda tree: allowed_value(problem, tree), RunControl(Limits(time=seconds)), start)
    search.run()
    return search.own_bound, search.best, search.steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", default="tuned", choices=("tuned", "fixed"))
    parser.add_argument("--only", nargs="+", default=list(TABLE_SETS), help="data sets")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--start", type=float, default=30.0, help="seconds for the common first tree")
    parser.add_argument("--seconds", type=float, default=30.0, help="seconds for each strategy")
    args = parser.parse_args()
    print("| data | way | best | own bound | gap % | steps |\n|" + " --- |" * 6)
    for name in args.only:
        problem = problem_of({"data": name, "depth": 2, "C": f"sfs {args.kind}"})
        start = solve(problem, engine="bnb", limits=Limits(time=args.start)).splits
        problem, _ = merge_duplicates(problem)
        BranchAndBound().prepare(problem)
        for way in args.ways:
            bound, best, steps = own_bound(problem, way, start, args.seconds)
            gap = 100 * relative_gap(best, bound)
            print(f"| {name} | {way} | {best:.6g} | {bound:.6g} | {gap:.2f} | {steps} |", flush=True)


if __name__ == "__main__":
    main()
