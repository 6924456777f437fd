"""What a worker does: search below some open nodes for a few seconds, and hand back what is left and what was found.

Nothing here knows of Dask; a task is bytes in and bytes out.
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
from margotree.engines.tiny_problems import tiny_problem
from margotree.engines.trivial_trees import allowed_value, trivial_tree
from margotree.problem import Splits
from margotree.problem.problem import FloatArray

OurWorker = MargotWorker | PenaltyWorker | SupportWorker


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskInput:
    """The open nodes of a task, the value that a better tree must have, and how long to go on."""

    records: list[Record]
    cutoff: float
    seconds: float
    nodes: float = math.inf
    memory: float = 16e6


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """What came of a task.

    ``left`` is still open.  All else below the task's nodes is closed by a bound of ``cutoff`` or more, or given up on
    with the bound ``unresolved``.  ``dives`` are the nodes gone into, ``cpu`` seconds of the processor, ``proof_part`` is
    what it adds to a proof.
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
    """A task came to a process that does not know its problem (any more)."""


def packed(what: Any) -> bytes:
    """Anything as bytes; records of one search differ little, so that they pack well."""
    return zlib.compress(pickle.dumps(what, protocol=5), 1)


def unpacked(data: bytes) -> Any:
    return pickle.loads(zlib.decompress(data))


class HeldSearch:
    """One problem in this process, with a brancher and a worker's memory for every thread that asks."""

    def __init__(self, spec: SearchSpec) -> None:
        self.spec = spec
        self.controls: set[RunControl] = set()  # of tasks under way
        self._own = threading.local()

    def thread_worker(self) -> tuple[OurBrancher, OurWorker]:
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
    """Nobody wants to know any more: tasks under way are ended."""
    held = _held.pop(key, None)
    for control in () if held is None else tuple(held.controls):
        control.interrupt()


def warm(model: str, with_penalties: bool) -> None:
    """Compile or load what such a problem needs, before the first task comes."""
    compile_ahead(compiled_parts.of_search(tiny_problem(model), with_penalties=with_penalties, alternates=False))


def warm_for_proofs(routings: bool, supports: bool) -> None:
    """The same for what only proofs need."""
    compile_ahead(compiled_parts.of_proofs(routings, supports))


def search_below(key: str, data: bytes) -> bytes:
    """A task: :class:`TaskInput` in, :class:`Outcome` out."""
    if key not in _held:
        raise SearchNotHeld(key)
    return packed(work(_held[key], unpacked(data)))


def work(held: HeldSearch, task_input: TaskInput) -> Outcome:
    """Search below the given nodes, best bound first, until nothing is open or the allowance is used up."""
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
    """Lower the flag that ended the last task."""
    flag = worker.work[1, 1:2] if isinstance(worker, SupportWorker) else worker.stop_flag()
    flag[0] = 0.0


class _SingleWorkerBrancher:
    """A brancher whose one worker remembers what it has learnt in earlier tasks."""

    def __init__(self, brancher: OurBrancher, worker: OurWorker, log: ProofLogBase | None) -> None:
        self.problem, self.log = brancher.problem, log
        self.root = brancher.root
        self._worker = _TimedWorker(worker)

    def worker(self) -> _TimedWorker:
        return self._worker


class _TimedWorker:
    """A worker that counts its dives and the processor's seconds."""

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
        self._push(task_input.records)

    def _proof_needs_time(self) -> None:
        """What is open at the end of a task is not closed, but goes back."""

    def outcome(self, seconds: float, proof_part: ProofPart | None) -> Outcome:
        left = [Record(bound=bound, data=data, size=size) for bound, _, data, size in [*self._queue, *self._stack]]
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
