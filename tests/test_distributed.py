"""One fit in many processes: the same results as in one process, also where tasks or workers are lost."""

import json
import os
import re
import signal
import time
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from easy import easy_rows, write_rows
from margotree import MargotClassifier
from margotree.cli import main
from margotree.engines import EngineError, Limits, Refused, RunControl, solve
from margotree.engines.branch_and_bound.engine import BranchAndBound
from margotree.engines.distributed import connection, workers
from margotree.engines.distributed.engine import ClusterBranchAndBound
from margotree.engines.distributed.search import ClusterSearch, TaskSizes
from margotree.engines.distributed.serialization import SearchSpec
from margotree.engines.distributed.task import HeldSearch, Outcome, TaskInput, packed, unpacked, work
from margotree.engines.distributed.transfer_volume import Traffic
from margotree.engines.distributed.workers import ClusterLost, WorkerPool
from margotree.engines.exact.penalty_branching import PenaltyBrancher
from margotree.engines.exact.sample_branching import MargotBrancher, Tactics
from margotree.engines.exact.search import CUTOFF
from margotree.engines.exact.support_branching import SupportBrancher, SupportTactics
from margotree.engines.trivial_trees import allowed_value, trivial_tree
from margotree.problem import Multiclass, Problem
from margotree.proof import check
from margotree.proof.write import ProofWriter
from margotree.solution import Proved, Stopped, verify
from oracles import best_value

#: All nodes are sent, in small tasks.
EAGER = TaskSizes(alone=0.0, short=0.0, nodes=3, batch=2)
TIGHT = Limits(gap=1e-7, time=600)
SLOW = Tactics(improve=False, steps=2)


class FakeWorkers:
    """Workers without Dask: tasks run at once in this process, from bytes; tasks may be lost, and the cluster, too."""

    def __init__(self, *, slots=3, lose=None, gone=None, answer=work):
        self.slots, self.traffic, self.lost, self.scheduler = slots, Traffic(), "", "here"
        self.lose, self.gone, self.answer = lose or (lambda number: False), gone, answer
        self.task_input, self.waiting, self.events = [], [], []

    @contextmanager
    def published(self, spec):
        self.held = HeldSearch(unpacked(packed(spec)))
        yield "key"
        self.waiting.clear()

    def send(self, number, key, task_input):
        self.task_input.append(task_input)
        self.waiting.append((number, packed(task_input)))

    def next_done(self, seconds):
        if not self.waiting:
            time.sleep(0.01)
            return None
        number, data = self.waiting.pop(0)
        if self.gone is not None and self.traffic.tasks >= self.gone:
            raise ClusterLost("the cluster is gone")
        if self.lose(number):
            self.traffic.again += 1
            return number, None
        outcome = unpacked(packed(self.answer(self.held, unpacked(data))))
        self.traffic.count_result(1, outcome)
        return number, outcome

    def close(self):
        pass


def random_problem(seed, m=7, n=2, depth=2, model="margot"):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (m, n)) / 2.0 if seed % 3 == 0 else rng.random((m, n))
    features = {} if model == "margot" else {"budget": 1} | ({"alpha": 0.3} if model == "sfs" else {})
    return Problem.make(X, rng.choice([-1.0, 1.0], m), depth=depth, C=10.0 ** rng.integers(-1, 4, depth), **features)


def knotty(m=50):
    """Squares of either class with some noise: at 50 samples some seconds of work."""
    rng = np.random.default_rng(3)
    X = rng.random((m, 3))
    y = np.where((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5) ^ (rng.random(m) < 0.15), 1.0, -1.0)
    return Problem.make(X, y, depth=2, C=[10.0, 100.0])


def three_classes(m=20):
    """A problem with three classes that takes some hundred search nodes."""
    rng = np.random.default_rng(0)
    X = rng.random((m, 2))
    y = ((X[:, 0] > 0.5) + 2 * (X[:, 1] > 0.5) + (rng.random(m) < 0.2)) % 3
    return Problem.make(X, y, task=Multiclass(3), depth=2, C=[10.0, 100.0])


def at(workers_here, problem, limits=TIGHT, task_sizes=EAGER, start=None):
    engine = ClusterBranchAndBound("here", task_sizes=task_sizes, tactics=SLOW, sparse=SupportTactics(steps=2))
    engine.worker_pool = workers_here
    solution = engine.solve(problem, RunControl(limits, lambda event: workers_here.events.append(event)), start)
    verify(problem, solution)
    return solution.certificate


@pytest.mark.parametrize(("model", "seeds"), [("margot", 6), ("hfs", 3), ("sfs", 2)])
def test_agrees_with_brute_force_where_tasks_are_lost(model, seeds):
    """Every third task is lost."""
    tasks = 0
    for seed in range(seeds):
        problem = random_problem(seed, m=6, depth=2, model=model)
        workers_here = FakeWorkers(lose=lambda number: number % 3 == 0)
        certificate = at(workers_here, problem)
        assert certificate.proved is Proved.OPTIMAL
        assert certificate.objective == pytest.approx(best_value(problem), rel=1e-6, abs=1e-6)
        tasks += workers_here.traffic.tasks
    assert tasks > 2 * seeds


@pytest.mark.parametrize("model", ["margot", "hfs", "sfs"])
def test_weights_are_limited(model):
    """The rows of a limit are part of every record that is sent; the limit binds."""
    for seed in (1, 2):
        free = random_problem(seed, m=6, depth=2, model=model)
        problem = replace(free, max_weight=0.7)
        best = best_value(problem)
        assert best > best_value(free) * (1 + 1e-6)
        certificate = at(FakeWorkers(), problem)
        assert certificate.proved is Proved.OPTIMAL
        assert certificate.objective == pytest.approx(best, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("model", "seeds"), [("margot", 16), ("hfs", 4), ("sfs", 4)])
def test_no_bound_above_the_optimum_wherever_the_search_stops(model, seeds):
    """The cluster is lost after a few tasks, or the node limit is reached: the bound is valid."""
    for seed in range(seeds):
        problem = random_problem(seed, m=5, depth=1 + seed % 2, model=model)
        best = best_value(problem)
        gone = FakeWorkers(gone=seed % 4)
        early = at(gone, problem)
        assert early.stopped in (Stopped.LOST, Stopped.SOLVED, Stopped.PRECISION)
        few = FakeWorkers(lose=lambda number: number % 2 == 0)
        fewer = at(few, problem, Limits(gap=1e-7, nodes=1 + seed % 5))
        for workers_here, certificate in ((gone, early), (few, fewer)):
            assert certificate.bound <= best + 1e-6 * (1 + best)
            assert certificate.objective >= best - 1e-6 * (1 + best)
            assert all(event.bound <= best + 1e-6 * (1 + best) for event in workers_here.events)


def test_a_lost_cluster_is_a_warning():
    certificate = at(FakeWorkers(gone=1), knotty(20))
    assert certificate.stopped is Stopped.LOST and certificate.proved is not Proved.OPTIMAL
    assert 0.0 <= certificate.bound < certificate.objective
    assert any("lost: the cluster is gone; the tree is the best" in words for words in certificate.warnings)


def search_by(workers_here, problem, task_sizes=EAGER, first=None):
    brancher = MargotBrancher(problem, SLOW)
    first = trivial_tree(problem) if first is None else first
    return ClusterSearch(
        workers_here, task_sizes, brancher, lambda tree: allowed_value(problem, tree), RunControl(TIGHT), first
    )


def test_new_tasks_have_the_new_cutoff():
    """The third task returns a good tree: only tasks sent after it have the lower cutoff."""
    problem = knotty(20)
    best = BranchAndBound().solve(problem, RunControl(TIGHT))
    told = []

    def find(held, task_input):
        outcome = work(held, task_input)
        told.append(task_input.cutoff)
        return replace(outcome, trees=[best.splits]) if len(told) == 3 else outcome

    workers_here = FakeWorkers(slots=1, answer=find)
    search = search_by(workers_here, problem)
    first = search.shared[CUTOFF]
    assert search.run() is Stopped.SOLVED
    low = best.certificate.objective * (1 - 1e-7)
    assert told[:4] == [first] * 4  # the fourth was already sent
    assert len(told) > 6 and told[4:] == pytest.approx([low] * (len(told) - 4), rel=1e-6)
    # Nodes closed by a better tree are not sent.
    assert all(
        record.bound < task_input.cutoff for task_input in workers_here.task_input for record in task_input.records
    )
    assert search.best == best.certificate.objective


def test_the_bound_is_at_most_the_cutoff_of_a_worker():
    """A worker that closes all nodes at a cutoff for which it returns no tree."""
    problem = knotty(20)

    def boast(held, task_input):
        return Outcome(left=[], steps=1, cutoff=0.5 * task_input.cutoff)

    search = search_by(FakeWorkers(answer=boast), problem)
    search.run()
    assert search.bound == pytest.approx(0.5 * search.shared[CUTOFF])


def test_best_bounds_go_first_and_the_bound_never_falls():
    problem = knotty(20)
    workers_here = FakeWorkers(slots=2)
    search = search_by(workers_here, problem)
    sent, bounds, send = [], [], workers_here.send

    def look(number, key, task_input):
        waiting = [entry[0] for entry in search.queue]
        sent.append(max(r.bound for r in task_input.records) <= min(waiting, default=np.inf))
        bounds.append(search.bound)
        send(number, key, task_input)

    workers_here.send = look
    search.run()
    assert all(sent) and len(sent) > 5
    assert bounds == sorted(bounds)


@pytest.mark.parametrize("brancher_type", [MargotBrancher, PenaltyBrancher, SupportBrancher])
def test_a_search_is_the_same_in_another_process(brancher_type):
    """A task in another process has the same result as here."""
    problem = random_problem(2, m=20, n=4, model="sfs")
    brancher = brancher_type(problem, limit=allowed_value(problem, trivial_tree(problem)))
    spec = unpacked(packed(SearchSpec.of(brancher, 1e-4)))
    assert type(spec.brancher()) is brancher_type and not spec.brancher().problem.X.flags.writeable
    cutoff = allowed_value(problem, trivial_tree(problem))
    task_input = TaskInput(records=[brancher.root()], cutoff=cutoff, seconds=60.0, nodes=25)
    here, there = (work(HeldSearch(r), task_input) for r in (SearchSpec.of(brancher, 1e-4), spec))
    assert here.steps == there.steps > 0
    assert sorted(r.bound for r in here.left) == sorted(r.bound for r in there.left)
    # A second task of the same process is not stopped by the flag that ended the first.
    held = HeldSearch(spec)
    held.thread_worker()[1].stop()
    assert work(held, task_input).steps == here.steps


def proved(workers_here, problem, path, **task_sizes):
    """Fit with a proof; return the certificate and the result of the checker."""
    limits = Limits(gap=1e-5, time=600)  # a claimed bound is slightly below the proved one
    task_sizes = replace(EAGER, **task_sizes)
    engine = ClusterBranchAndBound("here", task_sizes=task_sizes, tactics=SLOW, sparse=SupportTactics(steps=2))
    engine.worker_pool = workers_here
    solution = engine.solve_with_proof(problem, ProofWriter(path), RunControl(limits))
    verify(problem, solution)
    return solution.certificate, check.check(str(path), (problem.X, problem.y, problem.weight))


@pytest.mark.parametrize("alone", [0.0, 0.02])
@pytest.mark.parametrize(("model", "seeds"), [("margot", 6), ("hfs", 4), ("sfs", 6)])
def test_tasks_return_their_part_of_a_proof(model, seeds, alone, tmp_path):
    """Every third task is lost; with ``alone`` the search begins in this process, and its steps count, too."""
    tasks = 0
    for seed in range(seeds):
        problem = random_problem(seed, m=8, depth=2, model=model)
        workers_here = FakeWorkers(lose=lambda number: number % 3 == 0)
        certificate, found = proved(workers_here, problem, tmp_path / f"{seed}.proof", alone=alone)
        assert certificate.proved is Proved.OPTIMAL
        assert found.gap <= 1e-5
        assert found.bound == certificate.bound
        tasks += workers_here.traffic.tasks
    assert tasks > 2 * seeds or alone > 0.0


@pytest.mark.parametrize("model", ["margot", "hfs", "sfs"])
def test_a_lost_cluster_leaves_a_valid_proof(model, tmp_path):
    for seed in range(4):
        problem = random_problem(seed, m=6, depth=2, model=model)
        workers_here = FakeWorkers(gone=seed % 4)
        certificate, found = proved(workers_here, problem, tmp_path / f"{seed}.proof")
        assert certificate.stopped in (Stopped.LOST, Stopped.SOLVED, Stopped.PRECISION)
        assert found.bound == certificate.bound <= best_value(problem) + 1e-9


def test_unsupported_problems_are_refused():
    problem = random_problem(1)
    with pytest.raises(Refused, match="only the engine 'bnb' searches on a cluster, not 'scip'"):
        solve(problem, engine="scip", scheduler="processes")
    with pytest.raises(ValueError, match="address of a Dask scheduler such as 'tcp://"):
        MargotClassifier(scheduler="somewhere").fit([[0.0], [1.0]], [0, 1])


def test_without_dask_the_error_has_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr("margotree.engines.distributed.engine.find_spec", lambda name: None)
    with pytest.raises(EngineError, match=r'needs Dask, .*: pip install "margotree\[cluster\]"') as caught:
        solve(random_problem(1), scheduler="processes")
    assert "'bnb' is not installed" not in str(caught.value)


def test_the_command_line_refuses_a_choice(tmp_path, capsys):
    data = write_rows(tmp_path / "easy.csv", easy_rows(40))
    options = ["--target", "died", "--scheduler", "processes"]
    assert main(["fit", data, *options, "--auto", "--out", str(tmp_path / "t")]) == 2
    assert "--scheduler cannot be used if hyperparameters are chosen by cross-validation" in capsys.readouterr().err


# -- with Dask ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address():
    """Two workers in this process, connected by TCP."""
    distributed = pytest.importorskip("distributed", reason="needs margotree[cluster]")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(protocol="tcp", **options) as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize("model", ["margot", "hfs", "sfs"])
def test_dask_workers_agree_with_one_process(address, model, tmp_path):
    problem = random_problem(7, m=14, n=3, model=model)
    plain = BranchAndBound().solve(problem, RunControl(TIGHT)).certificate
    task_sizes = TaskSizes(alone=0.0, short=0.0, nodes=20)
    engine = ClusterBranchAndBound(address, task_sizes=task_sizes, tactics=SLOW, sparse=SupportTactics(steps=2))
    certificate = engine.solve(problem, RunControl(TIGHT)).certificate
    assert certificate.objective == pytest.approx(plain.objective, rel=1e-6)
    assert certificate.bound == pytest.approx(plain.bound, rel=1e-6) and certificate.proved is Proved.OPTIMAL
    traffic = engine.traffic
    assert traffic.tasks > 0 and traffic.again == 0
    assert 0 < traffic.steps <= certificate.nodes
    proving = ClusterBranchAndBound(address, task_sizes=task_sizes, tactics=SLOW, sparse=SupportTactics(steps=2))
    proving.prepare_proof(problem)
    path = tmp_path / "a.proof"
    certificate = proving.solve_with_proof(problem, ProofWriter(path), RunControl(Limits(time=600))).certificate
    assert proving.traffic.tasks > 0 and certificate.proved is Proved.OPTIMAL
    assert check.check(str(path), (problem.X, problem.y, problem.weight)).bound == certificate.bound
    assert min(traffic.sent, traffic.received, traffic.problem) > 0 and "kB back per task" in str(traffic)


def test_late_results_are_ignored(address):
    """A task of an earlier search is not taken for a task of the next one with the same number."""
    brancher = MargotBrancher(knotty(30), SLOW)
    spec, worker_pool = SearchSpec.of(brancher, 1e-4), WorkerPool(address)
    found = None
    for nodes in (3, 7):
        task_input = TaskInput(records=[brancher.root()], cutoff=brancher.limit, seconds=30.0, nodes=nodes)
        with worker_pool.published(spec) as key:
            worker_pool.send(0, key, task_input)
            time.sleep(0.3)
            while nodes == 7 and found is None:
                found = worker_pool.next_done(0.05)
    worker_pool.close()
    assert found is not None and found[0] == 0
    assert found[1].steps == 7


def test_the_classifier_and_the_command_line_reach_the_scheduler(address, tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.random((40, 3))
    y = (X[:, 0] + X[:, 1] > 1.0) ^ (rng.random(40) < 0.1)
    plain, spread = (
        MargotClassifier(C=[1, 10], scheduler=scheduler, time_limit=600).fit(X, y) for scheduler in (None, address)
    )
    assert spread.certificate_.objective == pytest.approx(plain.certificate_.objective, rel=1e-4)
    assert spread.certificate_.proved is Proved.OPTIMAL
    data = write_rows(tmp_path / "easy.csv", easy_rows(40))
    out = str(tmp_path / "t")
    proof = str(tmp_path / "easy.proof")
    options = ["--target", "died", "--scheduler", address, "--proof", proof]
    assert main(["fit", data, *options, "--out", out, "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["certificate"]["engine"] == "bnb"
    assert main(["check", proof, data, "--tree", out]) == 0


def test_workers_exist_and_have_the_same_version(address, monkeypatch):
    monkeypatch.setattr("margotree.__version__", "0.0.0")  # also for workers in this process
    monkeypatch.setattr(WorkerPool, "_version", lambda self, worker: "9.9.9")
    with pytest.raises(EngineError, match=r"2 of 2 workers cannot be used: tcp://.* has margotree 9.9.9, and this"):
        ClusterBranchAndBound(address).prepare(random_problem(1))
    distributed = pytest.importorskip("distributed", reason="needs margotree[cluster]")
    monkeypatch.setattr(workers, "_FIRST", 0.2)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, protocol="tcp", dashboard_address=":0") as empty,
        pytest.raises(EngineError, match="has no workers; start some: dask worker tcp://"),
    ):
        ClusterBranchAndBound(empty.scheduler_address).prepare(random_problem(1))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "tcp://192.0.2.1:8786"])
def test_a_missing_scheduler_is_an_error_within_seconds(address):
    """No port is open, or no machine answers (an address that is reserved for documentation)."""
    pytest.importorskip("distributed", reason="needs margotree[cluster]")
    began = time.monotonic()
    with pytest.raises(EngineError, match=f"no Dask scheduler answers at {re.escape(address)}"):
        connection.connect(address)
    assert time.monotonic() - began < 0.5 * connection._ANSWER  # the check of the port, not Dask's own attempts
    with pytest.raises(EngineError, match="no Dask scheduler answers"):
        solve(random_problem(1), scheduler=address)


def test_a_client_names_its_scheduler(address):
    distributed = pytest.importorskip("distributed", reason="needs margotree[cluster]")
    problem = random_problem(3)
    with distributed.Client(address, set_as_default=False) as client:
        certificate = solve(problem, scheduler=client, limits=TIGHT, start=None).certificate
        assert certificate.proved is Proved.OPTIMAL
        model = MargotClassifier(scheduler=client, time_limit=20).fit(problem.X, problem.y)
        assert model.certificate_.proved is Proved.OPTIMAL
        assert client.status == "running"  # the client is still that of its owner


class AtTask:
    """A listener that calls ``act`` after each multiple of ``tasks`` finished tasks."""

    def __init__(self, tasks, act):
        self.tasks, self.act, self.done = tasks, act, 0
        self.engine = None

    def __call__(self, event):
        if self.engine is not None and self.engine.traffic.tasks >= self.tasks * (self.done + 1):
            self.done += 1
            self.act()


def test_a_lost_scheduler_leaves_the_best_tree():
    distributed = pytest.importorskip("distributed", reason="needs margotree[cluster]")
    problem = knotty()
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(protocol="tcp", **options) as cluster:
        listener = AtTask(1, cluster.close)
        engine = ClusterBranchAndBound(
            cluster.scheduler_address, task_sizes=TaskSizes(alone=0.0, short=0.0, nodes=50), tactics=SLOW
        )
        listener.engine = engine
        solution = engine.solve(problem, RunControl(TIGHT, listener))
    verify(problem, solution)
    certificate = solution.certificate
    assert certificate.stopped is Stopped.LOST
    assert any("was lost" in words for words in certificate.warnings)
    best = BranchAndBound().solve(problem, RunControl(Limits(time=600))).certificate
    assert 0.0 <= certificate.bound <= best.objective <= certificate.objective * (1 + 1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_killed_workers_change_nothing(n_classes, tmp_path):
    """Neither the certificate nor the proof."""
    pytest.importorskip("distributed", reason="needs margotree[cluster]")
    problem = knotty() if n_classes == 2 else three_classes()
    plain = BranchAndBound().solve(problem, RunControl(Limits(time=600))).certificate
    engine = ClusterBranchAndBound("processes", 2, task_sizes=TaskSizes(alone=0.0, short=0.0, nodes=100), tactics=SLOW)
    engine.prepare(problem)
    engine.prepare_proof(problem)
    workers = engine.worker_pool._cluster.workers
    killed, path = [], tmp_path / "a.proof"

    def kill():
        if len(killed) < 3:
            pid = workers[sorted(workers)[len(killed) % 2]].pid
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)

    listener = AtTask(2, kill)
    listener.engine = engine
    certificate = engine.solve_with_proof(
        problem, ProofWriter(path), RunControl(Limits(time=600), listener)
    ).certificate
    assert len(killed) >= 1
    assert certificate.proved is plain.proved is Proved.OPTIMAL
    assert certificate.objective == pytest.approx(plain.objective, rel=1e-9)
    assert certificate.bound == pytest.approx(plain.bound, rel=1e-8)  # a claimed bound is slightly below the proved one
    assert check.check(str(path), (problem.X, problem.y, problem.weight)).bound == certificate.bound
