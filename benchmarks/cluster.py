"""One hard fit on a cluster: ``python benchmarks/cluster.py --help``.

``speed``: search nodes per second, and processor seconds per search node, of two threads and of two processes with one
thread each, alternately, from the same tree.  ``killed``: a worker is killed during the fit, three times, optionally
with a proof.  ``gone``: the scheduler is killed.  ``slow``: eight workers whose tasks arrive and return late.  Compare
ratios within one run, not times of different machines.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from engine import PAPER_EPS, problem_of

#: Fits of every model and branching rule that search for minutes.
HARD = {
    "margot": {"data": "cleveland", "depth": 2, "C": [100.0, 1000.0]},
    "hfs": {"data": "climate_model", "depth": 2, "C": "hfs tuned"},
    "sfs": {"data": "sonar", "depth": 2, "C": "sfs tuned"},
}


def _searched(model: str) -> tuple[Any, Any, Any]:
    """The preprocessed problem, its branching rule, and a good first tree."""
    from margotree.engines import Limits, solve
    from margotree.engines.exact.penalty_branching import PenaltyBrancher
    from margotree.engines.exact.sample_branching import MargotBrancher
    from margotree.engines.exact.support_branching import SupportBrancher
    from margotree.engines.presolve import merge_duplicates, standard_scale
    from margotree.engines.trivial_trees import allowed_value

    problem = problem_of(HARD[model])
    start = solve(problem, engine="alternating", limits=Limits(time=10.0)).splits
    scaled, way = standard_scale(problem)
    merged, _ = merge_duplicates(scaled)
    first = way.into(start)
    kind = {"margot": MargotBrancher, "hfs": SupportBrancher, "sfs": PenaltyBrancher}[model]
    return merged, kind(merged, limit=allowed_value(merged, first)), first


def _cpu() -> float:
    times = os.times()
    return times.user + times.system


def speed(args: argparse.Namespace) -> list[dict[str, Any]]:
    from margotree.engines.branch_and_bound.portfolio import new_search
    from margotree.engines.distributed.search import ClusterSearch, TaskSizes
    from margotree.engines.distributed.workers import WorkerPool
    from margotree.engines.run_control import Limits, RunControl
    from margotree.engines.trivial_trees import allowed_value

    problem, brancher, first = _searched(args.model)
    worker_pool = WorkerPool("processes", args.workers)
    worker_pool.warm_up(problem.model, with_penalties=False)
    rows = []
    limits = Limits(time=args.seconds, n_jobs=args.workers)
    for _ in range(args.rounds):
        for who in ("threads", "processes"):
            control = RunControl(limits)
            traffic = worker_pool.traffic
            before = (traffic.tasks, traffic.sent, traffic.received, traffic.cpu, traffic.steps)
            if who == "threads":
                search = new_search(problem, brancher, first, control)
            else:
                value = partial(allowed_value, problem)
                search = ClusterSearch(worker_pool, TaskSizes(alone=0.0), brancher, value, control, first, math.inf)
            began, cpu = time.perf_counter(), _cpu()
            search.run()
            seconds, cpu = time.perf_counter() - began, _cpu() - cpu
            row = {"who": who, "model": args.model, "nodes": search.steps, "seconds": seconds, "bound": search.bound}
            if who == "processes":
                tasks, sent, received, there, steps = (
                    now - then
                    for now, then in zip(
                        (traffic.tasks, traffic.sent, traffic.received, traffic.cpu, traffic.steps), before, strict=True
                    )
                )
                row |= {"tasks": tasks, "sent": sent / tasks, "received": received / tasks, "driver_cpu": cpu}
                cpu = there
                assert steps == search.steps
            row |= {"nodes_per_second": search.steps / seconds, "cpu_ms_per_node": 1000 * cpu / search.steps}
            row |= {"best": search.best, "open": search.open_nodes}
            rows.append(row)
            print(json.dumps(row), flush=True)
    worker_pool.close()
    return rows


def knotty(samples: int = 160) -> Any:
    """A checkerboard of two classes with some noise: a fit that is solved within about a minute."""
    import numpy as np

    from margotree.problem import Problem

    rng = np.random.default_rng(3)
    X = rng.random((samples, 3))
    y = np.where((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5) ^ (rng.random(samples) < 0.15), 1.0, -1.0)
    return Problem.make(X, y, depth=2, C=[10.0, 100.0], eps=PAPER_EPS)


def _told(engine: Any, certificate: Any, **more: Any) -> dict[str, Any]:
    traffic = engine.traffic
    per = max(1, traffic.tasks)
    row = {
        "objective": certificate.objective, "bound": certificate.bound, "proved": str(certificate.proved),
        "stopped": str(certificate.stopped), "nodes": certificate.nodes, "seconds": certificate.search_seconds,
        "tasks": traffic.tasks, "again": traffic.again, "sent": traffic.sent / per, "received": traffic.received / per,
        "problem": traffic.problem, "warnings": list(certificate.warnings), **more,
    }  # fmt: skip
    print(json.dumps(row), flush=True)
    return row


def killed(args: argparse.Namespace) -> list[dict[str, Any]]:
    """The same fit in one process, by undisturbed workers, and by workers of which one is killed at three moments."""
    from margotree.engines.branch_and_bound.engine import BranchAndBound
    from margotree.engines.distributed.engine import ClusterBranchAndBound
    from margotree.engines.distributed.search import TaskSizes
    from margotree.engines.run_control import Limits, RunControl
    from margotree.proof import check
    from margotree.proof.write import ProofWriter

    problem = knotty(args.samples)
    BranchAndBound().prepare(problem)
    limits = Limits(time=args.seconds, n_jobs=args.workers)
    plain = BranchAndBound().solve(problem, RunControl(limits)).certificate
    print(json.dumps({"one process": plain.to_dict()}), flush=True)
    rows, folder = [], tempfile.TemporaryDirectory()
    for kills in (0, 3):
        engine = ClusterBranchAndBound("processes", args.workers, task_sizes=TaskSizes(seconds=1.0))
        engine.prepare(problem)
        assert engine.worker_pool is not None
        workers, dead = engine.worker_pool._cluster.workers, []

        def kill(
            event: Any, kills: int = kills, workers: Any = workers, dead: Any = dead, engine: Any = engine
        ) -> None:
            if len(dead) < kills and engine.traffic.tasks >= 3 * (len(dead) + 1):
                dead.append(workers[sorted(workers)[len(dead) % len(workers)]].pid)
                os.kill(dead[-1], signal.SIGKILL)

        if not args.proof:
            certificate = engine.solve(problem, RunControl(limits, kill)).certificate
            rows.append(_told(engine, certificate, killed=len(dead)))
            continue
        engine.prepare_proof(problem)
        path = Path(folder.name) / f"{kills}.proof"
        certificate = engine.solve_with_proof(problem, ProofWriter(path), RunControl(limits, kill)).certificate
        found = check.check(str(path), (problem.X, problem.y, problem.weight))
        more = {"checked_bound": found.bound, "leaves": found.leaves, "bytes": path.stat().st_size}
        rows.append(_told(engine, certificate, killed=len(dead), **more))
    return rows


def _dask(*words: str) -> subprocess.Popen[bytes]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-m", "dask", *words], **quiet)  # type: ignore[call-overload]


def gone(args: argparse.Namespace) -> list[dict[str, Any]]:
    """A scheduler and two workers as three processes; the scheduler is killed during a fit."""
    from margotree.engines.distributed.engine import ClusterBranchAndBound
    from margotree.engines.run_control import Limits, RunControl

    port = str(random.Random(os.getpid()).randrange(20000, 40000))
    address = f"tcp://127.0.0.1:{port}"
    started = [_dask("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")]
    started += [_dask("worker", address, "--nthreads", "1", "--no-dashboard") for _ in range(args.workers)]
    try:
        problem = problem_of(HARD["margot"])
        engine = ClusterBranchAndBound(address)
        engine.prepare(problem)

        def kill(event: Any) -> None:
            if engine.traffic.tasks >= 4:
                started[0].kill()

        certificate = engine.solve(problem, RunControl(Limits(time=args.seconds), kill)).certificate
        return [_told(engine, certificate)]
    finally:
        for process in started:
            process.terminate()


def _late(most: float) -> Any:
    """A plugin that delays the start and the return of tasks by up to ``most`` seconds, more on some workers."""
    from distributed import WorkerPlugin

    class Late(WorkerPlugin):
        def setup(self, worker: Any) -> None:
            import random
            import time

            from margotree.engines.distributed import task, workers

            rng, prompt = random.Random(worker.address), task.search_below
            mine = most * rng.random()

            def search_below(key: str, data: bytes) -> bytes:
                time.sleep(2 * mine * rng.random())
                outcome = prompt(key, data)
                time.sleep(2 * mine * rng.random())
                return outcome

            task.search_below = workers.search_below = search_below

    return Late()


def slow(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Eight workers on one machine, whose tasks are delayed before the start and after the end."""
    from margotree.engines.branch_and_bound.engine import BranchAndBound
    from margotree.engines.distributed.engine import ClusterBranchAndBound
    from margotree.engines.run_control import Limits, RunControl

    problem = knotty(args.samples)
    limits = Limits(time=args.seconds, n_jobs=2)
    BranchAndBound().prepare(problem)
    plain = BranchAndBound().solve(problem, RunControl(limits)).certificate
    print(json.dumps({"one process": plain.to_dict()}), flush=True)
    engine = ClusterBranchAndBound("processes", args.workers)
    engine.prepare(problem)
    assert engine.worker_pool is not None
    engine.worker_pool._client.register_plugin(_late(args.delay))
    sent, waited = [], []
    send, outcome_of = engine.worker_pool.send, engine.worker_pool._outcome
    at: dict[str, float] = {}

    def count(number: int, key: str, orders: Any) -> None:
        sent.append(len(orders.records))
        at[f"{key}-{number}"] = time.perf_counter()
        send(number, key, orders)

    def clock(future: Any) -> Any:
        outcome = outcome_of(future)
        waited.append(time.perf_counter() - at[future.key] - outcome.seconds)
        return outcome

    engine.worker_pool.send, engine.worker_pool._outcome = count, clock  # type: ignore[method-assign]
    certificate = engine.solve(problem, RunControl(limits)).certificate
    on_the_way = sum(waited) / len(waited)
    return [
        _told(
            engine, certificate, tasks_sent=len(sent), nodes_sent=sum(sent) / len(sent), seconds_on_the_way=on_the_way
        )
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "killed", "gone", "slow"))
    parser.add_argument(
        "--model", choices=tuple(HARD), default="margot", help="model of the fit whose speed is measured"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=40.0, help="seconds per search")
    parser.add_argument("--rounds", type=int, default=2, help="number of rounds of both")
    parser.add_argument("--proof", action="store_true", help="killed: also write a proof and check it")
    parser.add_argument("--samples", type=int, default=160, help="samples of the fit that is solved")
    parser.add_argument(
        "--delay", type=float, default=0.3, help="approximate delay of a task in seconds, at start and at return"
    )
    parser.add_argument("--out", type=Path, help="a file to which the rows are appended, one line of JSON each")
    args = parser.parse_args()
    rows = {"speed": speed, "killed": killed, "gone": gone, "slow": slow}[args.what](args)
    if args.out:
        with args.out.open("a") as file:
            file.writelines(json.dumps({"what": args.what, **row}) + "\n" for row in rows)


if __name__ == "__main__":
    main()
