"""Best-first search over records of search nodes, with one worker per thread.

The search does not depend on the model. A *brancher* makes the first record and the workers; a worker turns a record
into the records of its open descendants, without the GIL. The calling thread supervises: it checks the limits, reports
progress and receives Ctrl-C, which a thread in compiled code could not.
"""

from __future__ import annotations

import heapq
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from margotree.engines.polish import without_rounded_losses
from margotree.engines.run_control import RunControl
from margotree.problem import Problem, Splits
from margotree.problem.problem import FloatArray
from margotree.solution import Stopped

CUTOFF, STOP = 0, 1

#: Trees that are better by less than this share are not searched for, because of double precision.
PRECISION = 1e-9

#: A record in the queue: bound, unique number, data, size. Python's garbage collector does not track a plain tuple of
#: arrays and numbers; with a million tracked records a collection would take seconds, in which no limit is checked.
Waiting = tuple[float, int, tuple[Any, ...], int]


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """A search node in the queue: a valid bound on its whole subtree, and the data that a worker needs."""

    bound: float
    data: tuple[Any, ...]
    size: int  # bytes


@dataclass(frozen=True, kw_only=True, eq=False)
class Dive:
    """The result of one record: open records, the number of steps, trees, and the bound of what is neither open nor
    closed."""

    left: list[Record]
    steps: int
    trees: list[Splits] = field(default_factory=list)
    unresolved: float = math.inf


class Worker(Protocol):
    """The memory of one thread, and its dives."""

    def dive(self, record: Record, shared: FloatArray, most: float = ...) -> Dive:
        """Search from ``record``, for at most ``most`` steps; ``shared`` has the cutoff and a stop flag."""

    def stop(self) -> None:
        """End the current dive soon."""


class SearchLog(Protocol):
    """What a search tells the proof that is written of it."""

    def close(self, data: tuple[Any, ...], bound: float) -> None:
        """Close an open record, when its bound suffices or the search ends."""

    def seconds_to_close(self, open_nodes: int) -> float:
        """The estimated time to close ``open_nodes`` search nodes."""


class Brancher(Protocol):
    """Defines a search: its first record and its workers."""

    problem: Problem

    @property
    def log(self) -> SearchLog | None:
        """The proof log; None if no proof is written."""

    def root(self) -> Record:
        """The record of the root of the search."""

    def worker(self) -> Worker:
        """A new worker."""


class Search:
    """One search: the queue, the incumbent, and the state that several threads share under one lock.

    Parameters
    ----------
    brancher
        Makes the records and workers.
    value
        The objective of a tree, infinite if the tree is not allowed.
    control
        Limits and progress.
    incumbent
        A tree to start with.
    ceiling
        Only trees below this value are searched for.
    """

    def __init__(
        self,
        brancher: Brancher,
        value: Callable[[Splits], float],
        control: RunControl,
        incumbent: Splits,
        ceiling: float = math.inf,
    ) -> None:
        self.brancher, self.value, self.control = brancher, value, control
        self.ceiling = ceiling  # only trees below this value are searched for
        self.best, self.incumbent = value(incumbent), incumbent
        self.shared = np.array([self._cutoff(), 0.0])
        self.steps = 0
        self.memory = 0
        self.unresolved = math.inf
        self.floor = -math.inf  # a bound known by other means
        self.f1 = math.nan
        self.reason: Stopped | None = None
        self.failure: BaseException | None = None
        self.queue: list[Waiting] = []  # open records, a heap by their bounds
        self.stack: list[Waiting] = []  # open records above the memory limit, the next one last
        self._in_flight: dict[int, float] = {}
        self._pushed = 0
        self._begun = False
        self._lock = threading.Condition()

    def run(self, control: RunControl | None = None) -> Stopped:
        """Search until the gap is closed or a limit is reached; results are in the attributes.

        Returns the reason. A search that was stopped continues where it was, with other limits.
        """
        self.control = control or self.control
        self.reason, self.shared[STOP] = None, 0.0
        if not self._begun:
            self.push([self.brancher.root()])
            self._begun = True
        workers = [self.brancher.worker() for _ in range(max(1, self.control.limits.n_jobs))]
        threads = [threading.Thread(target=self._work, args=(k, w), daemon=True) for k, w in enumerate(workers)]
        for thread in threads:
            thread.start()
        self._supervise(threads, workers)
        if self.failure is not None:
            raise self.failure
        self._report()  # a short search ends before the first regular report
        return self.reason or Stopped.SOLVED

    @property
    def bound(self) -> float:
        """A lower bound on the optimum: the least bound of open and unresolved records, and the cutoff."""
        with self._lock:
            return self._bound()

    def offer(self, tree: Splits) -> None:
        """Make a tree that was found elsewhere the incumbent, if it is better."""
        value = self.value(tree)
        with self._lock:
            self._offer(value, tree)

    def close_open(self) -> None:
        """Close all open records with their bounds: the proof ends here."""
        with self._lock:
            for bound, _, data, _ in [*self.queue, *self.stack]:
                self._close(data, bound)
            self.queue.clear()
            self.stack.clear()

    def _proof_needs_time(self) -> Stopped | None:
        """`Stopped.TIME` if a proof is written and closing the open records takes all of the remaining time."""
        log = self.brancher.log
        late = log is not None and log.seconds_to_close(self._nodes_to_close()) >= self.control.remaining
        return Stopped.TIME if late else None

    def _nodes_to_close(self) -> int:
        """The number of search nodes that a proof would have to close if the search ended now."""
        return self.open_nodes

    def _close(self, data: tuple[Any, ...], bound: float) -> None:
        """Close a record in the proof, if one is written."""
        if self.brancher.log is not None:
            self.brancher.log.close(data, bound)

    @property
    def open_nodes(self) -> int:
        """The number of records in the queue."""
        return len(self.queue) + len(self.stack)

    @property
    def own_bound(self) -> float:
        """The bound without `floor`, which is known by other means."""
        with self._lock:
            return self._own_bound()

    def _bound(self) -> float:
        """`bound`, with the lock held."""
        return min(max(self.floor, self._own_bound()), float(self.shared[CUTOFF]))

    def _own_bound(self) -> float:
        """`own_bound`, with the lock held."""
        if not self._begun:
            return -math.inf
        queued = self.queue[0][0] if self.queue else math.inf
        stacked = min((waiting[0] for waiting in self.stack), default=math.inf)
        in_flight = min(self._in_flight.values(), default=math.inf)
        return min(queued, stacked, in_flight, self.unresolved, float(self.shared[CUTOFF]))

    def _cutoff(self) -> float:
        """The value above which search nodes are closed."""
        # Slightly inside the target gap, so that it is met in spite of rounding when all nodes are closed.
        return min(self.best * (1.0 - max(0.999 * self.control.limits.gap, PRECISION)), self.ceiling)

    def _supervise(self, threads: list[threading.Thread], workers: list[Worker]) -> None:
        """Check the limits and report progress until all threads have ended."""
        next_report = 0.0
        while any(t.is_alive() for t in threads):
            threads[0].join(0.02) if threads[0].is_alive() else threads[-1].join(0.02)
            reason = self.control.must_stop() or self._proof_needs_time()
            if reason is not None and self.reason is None:
                self._stop(reason)
            if self.reason is not None or self.failure is not None:
                for worker in workers:
                    worker.stop()
            if self.control.elapsed >= next_report:
                self._report()
                next_report = self.control.elapsed + 0.5

    def _stop(self, reason: Stopped) -> None:
        """`_halt`, with the lock."""
        with self._lock:
            self._halt(reason)

    def _report(self) -> None:
        """Report progress."""
        self.control.report(
            "search", incumbent=self.best, bound=self.bound, nodes=self.steps, open_nodes=self.open_nodes
        )

    def _work(self, k: int, worker: Worker) -> None:
        """The loop of one thread: take a record, dive, add the results."""
        try:
            while (record := self._take(k)) is not None:
                dive = worker.dive(record, self.shared, self.control.limits.nodes - self.steps)
                self._absorb(k, record, dive)
        except BaseException as failure:  # raised by the supervising thread
            self.failure = failure
            self._stop(Stopped.STALLED)

    def _take(self, k: int) -> Record | None:
        """The next record for thread ``k``; waits while only other threads have records; None if the search is over."""
        with self._lock:
            while True:
                if self.steps >= self.control.limits.nodes and (self.queue or self.stack):
                    self._halt(Stopped.NODES)
                if self.shared[STOP] or self.floor >= self.shared[CUTOFF]:
                    self._lock.notify_all()
                    return None
                if self.queue or self.stack:
                    record = self._pop()
                    if record.bound < self.shared[CUTOFF]:
                        self._in_flight[k] = record.bound
                        return record
                    self._close(record.data, record.bound)
                    continue
                if not self._in_flight:
                    self._lock.notify_all()
                    return None
                self._lock.wait()

    def _pop(self) -> Record:
        """The record with the least bound; short of memory, the last one of the stack."""
        bound, _, data, size = self.stack.pop() if self.stack else heapq.heappop(self.queue)
        self.memory -= size
        return Record(bound=bound, data=data, size=size)

    def _halt(self, reason: Stopped) -> None:
        """Stop all threads for this reason."""
        self.reason = self.reason or reason
        self.shared[STOP] = 1.0
        self._lock.notify_all()

    def _absorb(self, k: int, record: Record, dive: Dive) -> None:
        """Add the results of a dive: trees, steps and open records."""
        values = [(self.value(tree), tree) for tree in dive.trees]
        if dive.unresolved < min([self._cutoff(), *((1.0 - PRECISION) * value for value, _ in values)]):
            trees = [without_rounded_losses(self.brancher.problem, tree) for tree in dive.trees]
            values += [(self.value(tree), tree) for tree in trees]
        with self._lock:
            self.steps += dive.steps
            for value, tree in values:
                self._offer(value, tree)
            if dive.unresolved < self.shared[CUTOFF]:
                self.unresolved = min(self.unresolved, dive.unresolved)
            self.push(dive.left)
            del self._in_flight[k]
            if math.isnan(self.f1):
                self.f1 = self.best
            if self.memory > 1.5 * self.control.limits.memory:
                self._halt(Stopped.MEMORY)
            self._lock.notify_all()

    def _offer(self, value: float, tree: Splits) -> None:
        """Make ``tree`` the incumbent, if its value is less."""
        if value < self.best:
            self.best, self.incumbent = value, tree
            self.shared[CUTOFF] = self._cutoff()

    def push(self, records: list[Record]) -> None:
        """Add records to the queue, or to the stack above the memory limit; close those above the cutoff."""
        worth_keeping = [
            (r.bound, self._pushed + k, r.data, r.size) for k, r in enumerate(records) if r.bound < self.shared[CUTOFF]
        ]
        self._pushed += len(records)
        for r in records:
            if r.bound >= self.shared[CUTOFF]:
                self._close(r.data, r.bound)
        if self.memory > self.control.limits.memory:
            # Above the memory limit, depth first: the highest bounds first, as they close soonest.
            self.stack += sorted(worth_keeping)
        else:
            for waiting in worth_keeping:
                heapq.heappush(self.queue, waiting)
        self.memory += sum(waiting[3] for waiting in worth_keeping)
