"""Best-first search over records, by as many threads as there are cores.

Nothing here knows which model is being solved.  A *brancher* makes the first record and the workers; a worker turns a
record into the records below it, without holding the GIL.  The calling thread supervises: it keeps the clock, reports
progress and hears Ctrl-C, which a thread inside compiled code could not.
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

#: Trees that are better by less than this share are not looked for: double precision could not tell.
PRECISION = 1e-9

#: A record in the queue: bound, a number that no other has, data, size.  A plain tuple of arrays and numbers is nothing
#: that Python's garbage collector looks at; among a million records that took seconds, in which nobody heard the clock.
Waiting = tuple[float, int, tuple[Any, ...], int]


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """A search node at rest: a valid bound on everything below it, and what a worker needs to go on."""

    bound: float
    data: tuple[Any, ...]
    size: int  # bytes


@dataclass(frozen=True, kw_only=True, eq=False)
class Dive:
    """What came of one record: records left over, steps done, trees found, and the bound of what is not gone into."""

    left: list[Record]
    steps: int
    trees: list[Splits] = field(default_factory=list)
    unresolved: float = math.inf


class Worker(Protocol):
    def dive(self, record: Record, shared: FloatArray, most: float = ...) -> Dive: ...

    def stop(self) -> None: ...


class Brancher(Protocol):
    problem: Problem

    def root(self) -> Record: ...

    def worker(self) -> Worker: ...


class Search:
    """One run: the queue, the incumbent and the bookkeeping that several threads share under one lock."""

    def __init__(
        self,
        brancher: Brancher,
        value: Callable[[Splits], float],
        control: RunControl,
        incumbent: Splits,
        ceiling: float = math.inf,
    ) -> None:
        self.brancher, self.value, self.control = brancher, value, control
        self.ceiling = ceiling  # trees of this value or more are of no interest
        self.best, self.incumbent = value(incumbent), incumbent
        self.shared = np.array([self._cutoff(), 0.0])
        self.steps = 0
        self.memory = 0
        self.unresolved = math.inf
        self.floor = -math.inf  # a bound known by other means
        self.f1 = math.nan
        self.reason: Stopped | None = None
        self.failure: BaseException | None = None
        self._queue: list[Waiting] = []
        self._stack: list[Waiting] = []
        self._in_flight: dict[int, float] = {}
        self._pushed = 0
        self._begun = False
        self._lock = threading.Condition()

    def run(self, control: RunControl | None = None) -> Stopped:
        """Search until the gap is closed or a limit is reached; the answer is in the attributes.

        A search that was stopped goes on where it was, with another watch.
        """
        self.control = control or self.control
        self.reason, self.shared[STOP] = None, 0.0
        if not self._begun:
            self._push([self.brancher.root()])
            self._begun = True
        workers = [self.brancher.worker() for _ in range(max(1, self.control.limits.n_jobs))]
        threads = [threading.Thread(target=self._work, args=(k, w), daemon=True) for k, w in enumerate(workers)]
        for thread in threads:
            thread.start()
        self._supervise(threads, workers)
        if self.failure is not None:
            raise self.failure
        self._report()  # a short search may be over before anybody has looked
        return self.reason or Stopped.SOLVED

    @property
    def bound(self) -> float:
        """A lower bound on the optimum: the least of what is open, in flight, or given up on, and the cut-off."""
        with self._lock:
            return self._bound()

    def offer(self, tree: Splits) -> None:
        """A tree that was found elsewhere."""
        value = self.value(tree)
        with self._lock:
            self._offer(value, tree)

    def close_open(self) -> None:
        """Have the proof end here: what is still open is closed by the bounds at hand."""
        with self._lock:
            for bound, _, data, _ in [*self._queue, *self._stack]:
                self._close(data, bound)
            self._queue.clear()
            self._stack.clear()

    def _proof_needs_time(self) -> Stopped | None:
        """Whether the time that is left is needed to write down what is open, where a proof is written."""
        log = getattr(self.brancher, "log", None)
        late = log is not None and log.seconds_to_close(self._nodes_to_close()) >= self.control.remaining
        return Stopped.TIME if late else None

    def _nodes_to_close(self) -> int:
        """Search nodes that a proof would have to close if the search ended now."""
        return self.open_nodes

    def _close(self, data: tuple[Any, ...], bound: float) -> None:
        log = getattr(self.brancher, "log", None)
        if log is not None:
            log.close(data, bound)

    @property
    def open_nodes(self) -> int:
        return len(self._queue) + len(self._stack)

    @property
    def own_bound(self) -> float:
        """The same without what was known beforehand."""
        with self._lock:
            return self._own_bound()

    def _bound(self) -> float:
        return min(max(self.floor, self._own_bound()), float(self.shared[CUTOFF]))

    def _own_bound(self) -> float:
        if not self._begun:
            return -math.inf
        queued = self._queue[0][0] if self._queue else math.inf
        stacked = min((waiting[0] for waiting in self._stack), default=math.inf)
        in_flight = min(self._in_flight.values(), default=math.inf)
        return min(queued, stacked, in_flight, self.unresolved, float(self.shared[CUTOFF]))

    def _cutoff(self) -> float:
        # A shade inside the target, so that closing everything at the cut-off meets it in spite of rounding.
        return min(self.best * (1.0 - max(0.999 * self.control.limits.gap, PRECISION)), self.ceiling)

    def _supervise(self, threads: list[threading.Thread], workers: list[Worker]) -> None:
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
        with self._lock:
            self._halt(reason)

    def _report(self) -> None:
        self.control.report(
            "search", incumbent=self.best, bound=self.bound, nodes=self.steps, open_nodes=self.open_nodes
        )

    def _work(self, k: int, worker: Worker) -> None:
        try:
            while (record := self._take(k)) is not None:
                dive = worker.dive(record, self.shared, self.control.limits.nodes - self.steps)
                self._absorb(k, record, dive)
        except BaseException as failure:  # handed to the supervising thread, which raises it
            self.failure = failure
            self._stop(Stopped.STALLED)

    def _take(self, k: int) -> Record | None:
        with self._lock:
            while True:
                if self.steps >= self.control.limits.nodes and (self._queue or self._stack):
                    self._halt(Stopped.NODES)
                if self.shared[STOP] or self.floor >= self.shared[CUTOFF]:
                    self._lock.notify_all()
                    return None
                if self._queue or self._stack:
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
        bound, _, data, size = self._stack.pop() if self._stack else heapq.heappop(self._queue)
        self.memory -= size
        return Record(bound=bound, data=data, size=size)

    def _halt(self, reason: Stopped) -> None:
        self.reason = self.reason or reason
        self.shared[STOP] = 1.0
        self._lock.notify_all()

    def _absorb(self, k: int, record: Record, dive: Dive) -> None:
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
            self._push(dive.left)
            del self._in_flight[k]
            if math.isnan(self.f1):
                self.f1 = self.best
            if self.memory > 1.5 * self.control.limits.memory:
                self._halt(Stopped.MEMORY)
            self._lock.notify_all()

    def _offer(self, value: float, tree: Splits) -> None:
        if value < self.best:
            self.best, self.incumbent = value, tree
            self.shared[CUTOFF] = self._cutoff()

    def _push(self, records: list[Record]) -> None:
        worth_keeping = [
            (r.bound, self._pushed + k, r.data, r.size) for k, r in enumerate(records) if r.bound < self.shared[CUTOFF]
        ]
        self._pushed += len(records)
        for r in records:
            if r.bound >= self.shared[CUTOFF]:
                self._close(r.data, r.bound)
        if self.memory > self.control.limits.memory:
            # Short of memory, go deep: the highest bounds first, they close soonest.
            self._stack += sorted(worth_keeping)
        else:
            for waiting in worth_keeping:
                heapq.heappush(self._queue, waiting)
        self.memory += sum(waiting[3] for waiting in worth_keeping)
