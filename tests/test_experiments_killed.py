"""Whatever is killed, and whenever: the file is intact, no fit is made twice, and the rows end up the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from margotree.model_selection import Rows
from margotree.paper.experiments.backends import joblib_backend
from margotree.paper.experiments.case import Case, sorted_pairs
from margotree.paper.experiments.run import RunSummary, run_cases

CASES = [
    Case(data="4-partitions", model="margot", params=sorted_pairs({"C": [c0, c1]}), time_limit=120.0)
    for c0 in (1.0, 3.0, 10.0)
    for c1 in (1e2, 1e3, 1e4)
]

#: What differs from run to run by nature.
TIMES = {"start_seconds", "search_seconds", "seconds", "certificate", "tree", "finished", "versions", "machine"}

#: A run that is in the middle of its fifth fit for as long as it takes to kill it.
ALONE = """
import sys, time
sys.path.insert(0, {here!r})
from importlib import import_module
from test_experiments_killed import CASES, RunSummary, Rows, run_cases
home = import_module("margotree.paper.experiments.run")
train = home.train
def slow(case, X, y):
    trained = train(case, X, y)
    if case == CASES[4]:
        time.sleep(600)
    return trained
home.train = slow
with Rows({file!r}) as rows:
    run_cases(CASES, rows, 1, 0, RunSummary())
"""


def essence(file: Path) -> dict[str, tuple]:
    """The rows without their times; of the tree the weights of its splits."""
    with Rows(file) as rows:
        assert rows.check() == "ok"
        return {
            row["key"]: ({k: v for k, v in row.items() if k not in TIMES}, row["tree"]["tree"]["w"]) for row in rows
        }


def when_finished(file: Path) -> dict[str, tuple]:
    with Rows(file) as rows:
        return {row["key"]: (row["finished"], row["seconds"]) for row in rows}


def wait_for_rows(file: Path, n: int, seconds: float = 300.0) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if file.exists() and len(when_finished(file)) >= n:
            return
        time.sleep(0.02)
    raise TimeoutError(f"{file} did not get {n} rows")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("undisturbed") / "rows.sqlite"
    with Rows(file) as rows:
        run_cases(CASES, rows, 1, 0, summary := RunSummary())
    assert (summary.made, summary.known, summary.failed) == (len(CASES), 0, [])
    return file


def test_kill_9_and_resume(undisturbed, tmp_path):
    file = tmp_path / "rows.sqlite"
    code = ALONE.format(here=str(Path(__file__).parent), file=str(file))
    victim = subprocess.Popen([sys.executable, "-c", code])
    try:
        wait_for_rows(file, 4)
    finally:
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
    before = when_finished(file)
    assert len(before) == 4
    with Rows(file) as rows:
        run_cases(CASES, rows, 1, 0, summary := RunSummary())
    assert (summary.made, summary.known, summary.failed) == (len(CASES) - len(before), len(before), [])
    after = when_finished(file)
    assert {key: after[key] for key in before} == before
    assert essence(file) == essence(undisturbed)


class Murderous(Rows):
    """Kills a worker of the cluster as soon as the second row is in."""

    cluster: Any = None

    def put(self, row: Mapping[str, Any]) -> None:
        super().put(row)
        if len(self) == 2:
            worker = next(iter(self.cluster.workers.values()))
            os.kill(worker.pid, signal.SIGKILL)


def test_a_dask_worker_is_killed(undisturbed, tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs margotree[cluster]")
    file = tmp_path / "rows.sqlite"
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        before = {worker.pid for worker in cluster.workers.values()}
        with Murderous(file) as rows, joblib_backend("dask", cluster.scheduler_address):
            rows.cluster = cluster
            run_cases(CASES, rows, None, 0, summary := RunSummary())
        assert before != {worker.pid for worker in cluster.workers.values()}
    assert (summary.made, summary.known, summary.failed) == (len(CASES), 0, [])
    assert essence(file) == essence(undisturbed)
