"""Are the claims of the engines correct where budgets count groups of features?

Tiny problems (``tests/oracle/grouped.py``): two classes on two levels, three classes or numeric targets on one, hard
budgets and feature penalties.  Each is solved by the exact engine, by the exact engine with a proof that both checkers
read, by the local search and, with ``--mip``, by a mixed-integer solver, and compared with brute force over all
routings and all sets of groups.

    python benchmarks/group_claims.py --count 500
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT / "tests"), str(_ROOT)]

import numpy as np  # noqa: E402
from tests.proofs.spoil import both  # noqa: E402

from margotree.engines import Limits, RunControl, solve  # noqa: E402
from margotree.engines.branch_and_bound.engine import BranchAndBound  # noqa: E402
from margotree.engines.local_search.search import Effort  # noqa: E402
from margotree.engines.local_search_engine import Alternating  # noqa: E402
from margotree.problem import BINARY, Problem  # noqa: E402
from margotree.proof.write import ProofWriter  # noqa: E402
from oracle.grouped import faults, instance  # noqa: E402
from oracles import best_value  # noqa: E402


def claims(problem: Problem, best: float, folder: Path, mip: str | None) -> dict[str, list[str]]:
    """What is wrong, by the engine that claims it."""
    found = {}
    exact = BranchAndBound().solve(problem, RunControl(Limits(nodes=20_000))).certificate
    found["exact"] = faults(problem, best, exact.objective, exact.bound)
    writer = ProofWriter(folder / "a.proof")
    BranchAndBound().solve_with_proof(problem, writer, RunControl(Limits(nodes=20_000)))
    claim = both(folder / "a.proof", (problem.X, np.asarray(problem.y, np.float64), problem.weight))
    found["proof"] = ["not accepted"] if claim is None else faults(problem, best, *claim)
    if claim is not None and not (problem.task == BINARY and problem.model == "hfs"):
        found["proof"] = [fault for fault in found["proof"] if "far below" not in fault]  # such proofs may be weak
    local = Alternating(Effort(least=6, most=6)).solve(problem, RunControl(Limits(nodes=6))).certificate.objective
    found["local search"] = ["below the optimum"] if local < best * (1.0 - 1e-6) - 1e-9 else []
    if mip is not None:
        solved = solve(problem, engine=mip, start=None, limits=Limits(time=60.0, gap=1e-6)).certificate
        found[mip] = faults(problem, best, solved.objective, solved.bound)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="seed of the first instance")
    parser.add_argument("--mip", metavar="ENGINE", help="a mixed-integer engine, such as scip")
    args = parser.parse_args()
    bad, kinds, began = 0, Counter[str](), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.first, args.first + args.count):
            problem = instance(seed, numeric=seed % 2 == 1)
            kinds[f"{problem.task.name} {problem.model}"] += 1
            found = claims(problem, best_value(problem), Path(folder), args.mip)
            wrong = {name: words for name, words in found.items() if words}
            bad += bool(wrong)
            for name, words in wrong.items():
                print(f"seed {seed}, {problem.task.name}, {problem.model}, {name}: {'; '.join(words)}", flush=True)
            if (seed - args.first) % 100 == 99:
                print(
                    f"{seed - args.first + 1} instances, {bad} wrong, {time.perf_counter() - began:.0f} s", flush=True
                )
    print(f"{args.count} instances, {bad} wrong: {', '.join(f'{n} {kind}' for kind, n in sorted(kinds.items()))}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
