"""Whatever is killed, and whenever: the file is intact, no fit is made twice, and the rows end up the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from margotree.experiments.backends import running_on
from margotree.experiments.case import Case, pairs
from margotree.experiments.run import Ran, run_cases
from margotree.tuning import Rows

CASES = [
    Case(data="4-partitions", model="margot", params=pairs({"C": [c0, c1]}), time_limit=120.0)
    for c0 in (1.0, 3.0, 10.0)
    for c1 in (1e2, 1e3, 1e4)
]

#: What differs from run to run by nature.
TIMES = {"start_seconds", "search_seconds", "seconds", "certificate", "tree", "finished", "versions", "machine"}

ALONE = """
import sys
sys.path.insert(0, {here!r})
from test_experiments_killed import CASES, Ran, Rows, run_cases
with Rows({file!r}) as rows:
    run_cases(CASES, rows, 1, 0, Ran())
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


def wait_for_rows(file: Path, n: int, seconds: float = 120.0) -> None:
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
        run_cases(CASES, rows, 1, 0, ran := Ran())
    assert (ran.made, ran.known, ran.failed) == (len(CASES), 0, [])
    return file


def test_kill_9_and_resume(undisturbed, tmp_path):
    file = tmp_path / "rows.sqlite"
    code = ALONE.format(here=str(Path(__file__).parent), file=str(file))
    victim = subprocess.Popen([sys.executable, "-c", code])
    try:
        wait_for_rows(file, 3)
    finally:
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
    before = when_finished(file)
    assert 3 <= len(before) < len(CASES)
    with Rows(file) as rows:
        run_cases(CASES, rows, 1, 0, ran := Ran())
    assert (ran.made, ran.known, ran.failed) == (len(CASES) - len(before), len(before), [])
    after = when_finished(file)
    assert {key: after[key] for key in before} == before
    assert essence(file) == essence(undisturbed)


def test_a_dask_worker_is_killed(undisturbed, tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs margotree[cluster]")
    file = tmp_path / "rows.sqlite"
    killed = []

    def kill_one() -> None:
        wait_for_rows(file, 2)
        worker = next(iter(cluster.workers.values()))
        os.kill(worker.pid, signal.SIGKILL)
        killed.append(len(when_finished(file)))

    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        killer = threading.Thread(target=kill_one, daemon=True)
        killer.start()
        with Rows(file) as rows, running_on("dask", cluster.scheduler_address):
            run_cases(CASES, rows, None, 0, ran := Ran())
        killer.join(10)
    assert killed and killed[0] < len(CASES)
    assert (ran.made, ran.known, ran.failed) == (len(CASES), 0, [])
    assert essence(file) == essence(undisturbed)
