"""What a worker does with a task: search below some open nodes for some seconds, and return the open nodes and trees.

This module does not use Dask: a task receives bytes and returns bytes.
"""

from __future__ import annotations

import math
import pickle
import threading
import time
import zlib
from dataclasses import dataclass, field
from typing import Any

from margotree.engines import compiled_parts
from margotree.engines.distributed.serialization import OurBrancher, SearchSpec, set_control, set_log
from margotree.engines.exact.penalty_branching import PenaltyWorker
from margotree.engines.exact.proof_log_base import ProofLogBase, ProofPart
from margotree.engines.exact.sample_branching import MargotWorker
from margotree.engines.exact.search import CUTOFF, Dive, Record, Search
from margotree.engines.exact.support_branching import SupportWorker
from margotree.engines.numba_backend import compile_ahead
from margotree.engines.run_control import Limits, RunControl
from margotree.engines.trivial_trees import allowed_value, trivial_tree
from margotree.problem import Splits
from margotree.problem.problem import FloatArray
from margotree.problem.tiny_problems import tiny_problem

OurWorker = MargotWorker | PenaltyWorker | SupportWorker


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskInput:
    """The open nodes of a task, the cutoff, and the limits."""

    records: list[Record]
    cutoff: float
    seconds: float
    nodes: float = math.inf
    memory: float = 16e6


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """The result of a task.

    ``left`` are the open nodes. All other descendants of the task's nodes are closed by a bound of at least ``cutoff``,
    or unresolved with the bound ``unresolved``. ``dives`` is the number of nodes searched, ``cpu`` the processor time
    in seconds, and ``proof_part`` its part of the proof.
    """

    left: list[Record]
    steps: int
    trees: list[Splits] = field(default_factory=list)
    unresolved: float = math.inf
    cutoff: float = math.inf
    dives: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    proof_part: ProofPart | None = None


class SearchNotHeld(RuntimeError):
    """A task came to a process that does not have its problem."""


def packed(what: Any) -> bytes:
    """An object as compressed bytes; records of one search are similar, so they compress well."""
    return zlib.compress(pickle.dumps(what, protocol=5), 1)


def unpacked(data: bytes) -> Any:
    """The object from its bytes."""
    return pickle.loads(zlib.decompress(data))


class HeldSearch:
    """A problem in this process, with a brancher and a worker for every thread that searches it."""

    def __init__(self, spec: SearchSpec) -> None:
        self.spec = spec
        self.controls: set[RunControl] = set()  # of running tasks
        self._own = threading.local()

    def thread_worker(self) -> tuple[OurBrancher, OurWorker]:
        """The brancher and the worker of this thread."""
        if not hasattr(self._own, "brancher"):
            self._own.brancher = self.spec.brancher()
            self._own.worker = self._own.brancher.worker()
        return self._own.brancher, self._own.worker


_held: dict[str, HeldSearch] = {}


def hold(key: str, spec: bytes) -> None:
    """Keep a problem in this process until it is dropped."""
    if key not in _held:
        _held[key] = HeldSearch(unpacked(spec))


def drop(key: str) -> None:
    """Forget a problem and end its tasks."""
    held = _held.pop(key, None)
    for control in () if held is None else tuple(held.controls):
        control.interrupt()


def warm(model: str, with_penalties: bool) -> None:
    """Compile or load what such a problem needs, before the first task."""
    compile_ahead(compiled_parts.of_search(tiny_problem(model), with_penalties=with_penalties, alternates=False))


def warm_for_proofs(routings: bool, supports: bool) -> None:
    """Compile or load what only proofs call."""
    compile_ahead(compiled_parts.of_proofs(routings, supports))


def search_below(key: str, data: bytes) -> bytes:
    """A task: :class:`TaskInput` to :class:`Outcome`, both as bytes."""
    if key not in _held:
        raise SearchNotHeld(key)
    return packed(work(_held[key], unpacked(data)))


def work(held: HeldSearch, task_input: TaskInput) -> Outcome:
    """Search below the given nodes, best bound first, until none is open or a limit is reached."""
    limits = Limits(time=task_input.seconds, gap=held.spec.gap, nodes=task_input.nodes, memory=task_input.memory)
    control = RunControl(limits)
    brancher, worker = held.thread_worker()
    log = held.spec.log()
    set_control(brancher, control)
    set_log(brancher, log)
    _clear_stop_flag(worker)
    search = _TaskSearch(brancher, worker, task_input, control, log)
    held.controls.add(control)
    try:
        search.run()
    finally:
        held.controls.discard(control)
        proof_part = None if log is None else log.proof_part()
    return search.outcome(control.elapsed, proof_part)


def _clear_stop_flag(worker: OurWorker) -> None:
    """Reset the flag that ended the last task."""
    flag = worker.work[1, 1:2] if isinstance(worker, SupportWorker) else worker.stop_flag()
    flag[0] = 0.0


class _SingleWorkerBrancher:
    """A brancher with one worker, which is kept from task to task with what it has learned."""

    def __init__(self, brancher: OurBrancher, worker: OurWorker, log: ProofLogBase | None) -> None:
        self.problem, self.log = brancher.problem, log
        self.root = brancher.root
        self._worker = _TimedWorker(worker)

    def worker(self) -> _TimedWorker:
        return self._worker


class _TimedWorker:
    """A worker that counts its dives and their processor time."""

    def __init__(self, worker: OurWorker) -> None:
        self._worker, self.cpu, self.dives = worker, 0.0, 0

    def dive(self, record: Record, shared: FloatArray, most: float = math.inf) -> Dive:
        self.dives += 1
        began = time.thread_time()
        try:
            return self._worker.dive(record, shared, most)
        finally:
            self.cpu += time.thread_time() - began

    def stop(self) -> None:
        self._worker.stop()


class _TaskSearch(Search):
    """The search of one thread below given nodes."""

    def __init__(
        self,
        brancher: OurBrancher,
        worker: OurWorker,
        task_input: TaskInput,
        control: RunControl,
        log: ProofLogBase | None,
    ) -> None:
        problem = brancher.problem
        self._lent = _SingleWorkerBrancher(brancher, worker, log)
        super().__init__(
            self._lent, lambda tree: allowed_value(problem, tree), control, trivial_tree(problem), task_input.cutoff
        )
        self._given = task_input.cutoff
        self._begun = True
        self.push(task_input.records)

    def _proof_needs_time(self) -> None:
        """None: nodes that are open at the end of a task are not closed, but returned."""

    def outcome(self, seconds: float, proof_part: ProofPart | None) -> Outcome:
        """The result of the task."""
        left = [Record(bound=bound, data=data, size=size) for bound, _, data, size in [*self.queue, *self.stack]]
        cutoff = float(self.shared[CUTOFF])
        return Outcome(
            left=left,
            steps=self.steps,
            trees=[self.incumbent] if cutoff < self._given else [],
            unresolved=self.unresolved,
            cutoff=cutoff,
            seconds=seconds,
            dives=self._lent.worker().dives,
            cpu=self._lent.worker().cpu,
            proof_part=proof_part,
        )
