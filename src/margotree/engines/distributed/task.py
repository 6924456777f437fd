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
from margotree.engines.distributed.serialization import OurBrancher, Recipe, set_log, set_watch
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
class Orders:
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
    with the bound ``unresolved``.  ``dives`` are the nodes gone into, ``cpu`` seconds of the processor, ``script`` is
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
    script: ProofPart | None = None


class NotHeld(RuntimeError):
    """A task came to a process that does not know its problem (any more)."""


def packed(what: Any) -> bytes:
    """Anything as bytes; records of one search differ little, so that they pack well."""
    return zlib.compress(pickle.dumps(what, protocol=5), 1)


def unpacked(data: bytes) -> Any:
    return pickle.loads(zlib.decompress(data))


class Held:
    """One problem in this process, with a brancher and a worker's memory for every thread that asks."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.watches: set[RunControl] = set()  # of tasks under way
        self._own = threading.local()

    def mine(self) -> tuple[OurBrancher, OurWorker]:
        if not hasattr(self._own, "brancher"):
            self._own.brancher = self.recipe.brancher()
            self._own.worker = self._own.brancher.worker()
        return self._own.brancher, self._own.worker


_held: dict[str, Held] = {}


def hold(key: str, recipe: bytes) -> None:
    """Keep a problem in this process until it is dropped."""
    if key not in _held:
        _held[key] = Held(unpacked(recipe))


def drop(key: str) -> None:
    """Nobody wants to know any more: tasks under way are ended."""
    held = _held.pop(key, None)
    for control in () if held is None else tuple(held.watches):
        control.interrupt()


def warm(model: str, with_penalties: bool) -> None:
    """Compile or load what such a problem needs, before the first task comes."""
    compile_ahead(compiled_parts.of_search(tiny_problem(model), with_penalties=with_penalties, alternates=False))


def warm_for_proofs(routings: bool, supports: bool) -> None:
    """The same for what only proofs need."""
    compile_ahead(compiled_parts.of_proofs(routings, supports))


def search_below(key: str, data: bytes) -> bytes:
    """A task: :class:`Orders` in, :class:`Outcome` out."""
    if key not in _held:
        raise NotHeld(key)
    return packed(work(_held[key], unpacked(data)))


def work(held: Held, orders: Orders) -> Outcome:
    """Search below the given nodes, best bound first, until nothing is open or the allowance is used up."""
    limits = Limits(time=orders.seconds, gap=held.recipe.gap, nodes=orders.nodes, memory=orders.memory)
    control = RunControl(limits)
    brancher, worker = held.mine()
    log = held.recipe.log()
    set_watch(brancher, control)
    set_log(brancher, log)
    _may_go(worker)
    search = _Below(brancher, worker, orders, control, log)
    held.watches.add(control)
    try:
        search.run()
    finally:
        held.watches.discard(control)
        script = None if log is None else log.script()
    return search.outcome(control.elapsed, script)


def _may_go(worker: OurWorker) -> None:
    """Lower the flag that ended the last task."""
    flag = worker.work[1, 1:2] if isinstance(worker, SupportWorker) else worker.stop_flag()
    flag[0] = 0.0


class _Lent:
    """A brancher whose one worker remembers what it has learnt in earlier tasks."""

    def __init__(self, brancher: OurBrancher, worker: OurWorker, log: ProofLogBase | None) -> None:
        self.problem, self.log = brancher.problem, log
        self.root = brancher.root
        self._worker = _Timed(worker)

    def worker(self) -> _Timed:
        return self._worker


class _Timed:
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


class _Below(Search):
    """The search of one thread below given nodes."""

    def __init__(
        self,
        brancher: OurBrancher,
        worker: OurWorker,
        orders: Orders,
        control: RunControl,
        log: ProofLogBase | None,
    ) -> None:
        problem = brancher.problem
        self._lent = _Lent(brancher, worker, log)
        super().__init__(
            self._lent, lambda tree: allowed_value(problem, tree), control, trivial_tree(problem), orders.cutoff
        )
        self._given = orders.cutoff
        self._begun = True
        self._push(orders.records)

    def _must_prune(self) -> None:
        """What is open at the end of a task is not closed, but goes back."""

    def outcome(self, seconds: float, script: ProofPart | None) -> Outcome:
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
            script=script,
        )
