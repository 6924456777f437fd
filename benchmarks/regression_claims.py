"""Are the claims of the exact engine about regression trees correct?

Small random problems (``tests/oracle/numbers.py``): depths 1 to 3, weights, budgets, penalties, constant leaves, any
epsilon, targets from 1e-6 to 1e9. Each is solved by the engine and by brute force: all routings and supports, with a
quadratic program of Clarabel for every node (``pip install "margotree[test]"``). An objective is wrong if it differs by
more than 1e-6 of the optimum, or of 1e-9 of the largest loss that the targets allow; a bound is wrong if it is above
the optimum by more than 1e-8 of it, or by 1e-9 of that loss. With squared losses, which the engine does not solve to
optimality, bounds must not be above the optimum, and the optimum not above objectives; it counts how many are equal.

    python benchmarks/regression_claims.py --count 1000
    python benchmarks/regression_claims.py --count 200 --squared
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from margotree.engines import Limits, solve
from margotree.problem import Regression, SquaredRegression
from oracle.numbers import faults, instance, one_sided, optimum


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first instance")
    parser.add_argument("--squared", action="store_true", help="squared losses")
    args = parser.parse_args()
    bad = skipped = n_optimal = n_closed = 0
    began = time.perf_counter()
    for seed in range(args.first, args.first + args.count):
        problem = instance(seed, SquaredRegression if args.squared else Regression)
        try:
            best = optimum(problem)
        except ArithmeticError as error:
            skipped += 1
            print(f"seed {seed}: {error}", flush=True)
            continue
        certificate = solve(problem, engine="bnb", start=None, limits=Limits(gap=1e-8)).certificate
        wrong = faults(problem, best, certificate.objective, certificate.bound)
        if args.squared:
            n_optimal += not any("objective" in text for text in wrong)
            n_closed += not any("bound" in text for text in wrong)
            wrong = one_sided(wrong, best, certificate.objective)
        if wrong:
            bad += 1
            print(f"seed {seed}, {problem.model}, depth {problem.depth}: {'; '.join(wrong)}", flush=True)
        if (seed - args.first) % 100 == 99:
            print(f"{seed - args.first + 1} instances, {bad} wrong, {time.perf_counter() - began:.0f} s", flush=True)
    print(f"{args.count} instances, {bad} wrong, {skipped} without an answer of Clarabel")
    if args.squared:
        print(f"{n_optimal} objectives equal to the optimum, {n_closed} bounds equal to it")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
