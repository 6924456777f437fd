"""The search of one fit by the workers of a cluster; this process has the open nodes, the best tree and the bound.

A task has some open nodes, those with the best bounds, and returns its open descendants. Until then its nodes count as
open, so that the bound is valid at every moment; the nodes of a lost task return to the queue.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

from margotree.engines.branch_and_bound.portfolio import is_over
from margotree.engines.distributed.serialization import SearchSpec
from margotree.engines.distributed.task import Outcome, TaskInput
from margotree.engines.distributed.workers import ClusterLost, WorkerPool
from margotree.engines.exact.proof_log_base import ProofLogBase
from margotree.engines.exact.search import CUTOFF, STOP, Dive, Record, Search
from margotree.engines.run_control import RunControl
from margotree.solution import Stopped


@dataclass(frozen=True, kw_only=True)
class TaskSizes:
    """The size of tasks, and which searches are not distributed.

    Parameters
    ----------
    alone
        The seconds that a search runs in this process first.
    short
        Phases with less time than this many seconds are not distributed.
    seconds
        The length of a task.
    first
        The length of a task while there are fewer open nodes than workers.
    apart
        Tasks are at least this number of seconds times the number of worker threads long, as this process handles one
        task at a time.
    batch
        The largest number of open nodes in a task.
    nodes
        The largest number of search nodes in a task.
    """

    alone: float = 0.5
    short: float = 2.0
    seconds: float = 2.0
    first: float = 0.5
    apart: float = 0.05
    batch: int = 64
    nodes: float = math.inf

    def task(self, slots: int) -> float:
        """The length of a task with this number of worker threads."""
        return max(self.seconds, self.apart * slots)


#: A task ends within this share of the remaining time, and this many seconds before its end.
_IN_TIME, _POST = 0.95, 0.1
#: With less remaining time than this, in seconds, no task is sent.
_LAST = 0.3
#: The open nodes of a task as a multiple of those that recent tasks have searched; weight of the newest task in that
#: mean.
_SPARE, _LEARN = 1.5, 0.25
#: The search nodes done in this process first, where work is measured in nodes.
_ALONE_NODES = 200


class ClusterSearch(Search):
    """A search whose open nodes are searched by the workers of a cluster."""

    def __init__(self, worker_pool: WorkerPool, task_sizes: TaskSizes, *search: Any) -> None:
        super().__init__(*search)
        self.worker_pool, self.task_sizes = worker_pool, task_sizes
        self._running: dict[int, list[Record]] = {}
        self._reserved: dict[int, float] = {}
        self._numbers = itertools.count()
        self._dives = 2.0  # the mean number of dives in a task

    def run(self, control: RunControl | None = None) -> Stopped:
        """Search until the gap is closed or a limit is reached; see :meth:`Search.run`."""
        control = control or self.control
        if control.remaining < self.task_sizes.short:
            return super().run(control)
        if not self._begun and not self._begin(control):
            return self.reason or Stopped.SOLVED
        self.control = control
        self.reason, self.shared[STOP] = None, 0.0
        try:
            with self.worker_pool.published(SearchSpec.of(self.brancher, control.limits.gap)) as key:
                self._spread(key)
        except ClusterLost as lost:
            self.worker_pool.lost = str(lost)
            self._stop(Stopped.LOST)
        finally:
            self._take_back(*self._running)
        self._report()
        return self.reason or Stopped.SOLVED

    def _begin(self, control: RunControl) -> bool:
        """Search in this process until there are open nodes to distribute; return whether there are."""
        if self.task_sizes.alone <= 0.0:
            self.push([self.brancher.root()])
            self._begun = True
            return True
        nodes = min(control.limits.nodes, self.steps + _ALONE_NODES)
        super().run(control.share(seconds=self.task_sizes.alone, nodes=nodes))
        return not is_over(self, control)

    def _spread(self, key: str) -> None:
        """Send tasks and receive their results until the search is over."""
        next_report = 0.0
        while True:
            if (reason := self.control.must_stop() or self._proof_needs_time()) is not None:
                self._stop(reason)
            if self.shared[STOP]:
                return
            self._send(key)
            if not self._running:
                if self._is_open():
                    self.worker_pool.next_done(0.05)  # no worker: wait
                elif not self.shared[STOP]:
                    return
            elif (done := self.worker_pool.next_done(0.05)) is not None:
                self._receive(*done)
            if self.control.elapsed >= next_report:
                self._report()
                next_report = self.control.elapsed + 0.5

    # -- sending -------------------------------------------------------------------------------------------------

    def _send(self, key: str) -> None:
        """Give every worker thread a task, and a second one that waits, so that no thread is idle while results are
        sent."""
        slots = self.worker_pool.slots
        seconds = self.task_sizes.task(slots)
        most = slots if self.control.remaining < 2.0 * seconds else 2 * slots
        while len(self._running) < most and self._is_open() and self.control.remaining > _LAST:
            if (nodes := self._allowance(slots)) < 1:
                if not self._running:
                    self._stop(Stopped.NODES)
                return
            scarce = self.open_nodes < slots
            records = self._best(1 if scarce else self._batch(slots))
            if not records:
                return
            number = next(self._numbers)
            self._running[number], self._reserved[number] = records, nodes
            self._in_flight[number] = min(record.bound for record in records)
            task_input = TaskInput(
                records=records,
                cutoff=float(self.shared[CUTOFF]),
                seconds=min(self.task_sizes.first if scarce else seconds, _IN_TIME * self.control.remaining - _POST),
                nodes=nodes,
            )
            self.worker_pool.send(number, key, task_input)

    def _batch(self, slots: int) -> int:
        """The number of open nodes for one task: slightly more than recent tasks searched."""
        wanted = math.ceil(_SPARE * self._dives)
        return max(1, min(self.task_sizes.batch, wanted, self.open_nodes // (2 * slots)))

    def _is_open(self) -> bool:
        """Whether there are open nodes, and bounds do not close them."""
        return bool(self.queue or self.stack) and self.floor < self.shared[CUTOFF]

    def _allowance(self, slots: int) -> float:
        """The largest number of search nodes of the next task."""
        if not self.control.by_nodes:
            return self.task_sizes.nodes
        left = self.control.limits.nodes - self.steps - sum(self._reserved.values())
        return min(self.task_sizes.nodes, math.ceil(left / (2 * slots)))

    def _best(self, count: int) -> list[Record]:
        """The open nodes with the least bounds; those above the cutoff are closed."""
        found: list[Record] = []
        while len(found) < count and self._is_open():
            record = self._pop()
            if record.bound < self.shared[CUTOFF]:
                found.append(record)
            else:
                self._close(record.data, record.bound)
        return found

    # -- receiving -----------------------------------------------------------------------------------------------

    def _receive(self, number: int, outcome: Outcome | None) -> None:
        """Add the result of a task; None if it was lost."""
        if outcome is None:
            self._take_back(number)
            return
        self._dives += _LEARN * (max(1, outcome.dives) - self._dives)
        del self._running[number], self._reserved[number]
        record = Record(bound=self._in_flight[number], data=(), size=0)
        left = outcome.left
        if outcome.proof_part is not None:
            assert isinstance(self.brancher.log, ProofLogBase)
            left = self.brancher.log.take_over(outcome.proof_part, left)
        dive = Dive(left=left, steps=outcome.steps, trees=outcome.trees, unresolved=outcome.unresolved)
        self._absorb(number, record, dive)
        if outcome.cutoff < self.shared[CUTOFF]:
            # The tree's value here is above its value at the worker, so the worker's cutoff is only a bound.
            self.unresolved = min(self.unresolved, outcome.cutoff)

    def _nodes_to_close(self) -> int:
        """The number of search nodes that a proof would have to close if the search ended now."""
        return self.open_nodes + sum(map(len, self._running.values()))

    def _take_back(self, *numbers: int) -> None:
        """Put the nodes of these tasks back into the queue."""
        for number in numbers:
            self.push(self._running.pop(number))
            del self._reserved[number], self._in_flight[number]

    def _report(self) -> None:
        self.control.report(
            "search", incumbent=self.best, bound=self.bound, nodes=self.steps, open_nodes=self.open_nodes,
            message=str(self.worker_pool.traffic) if self.worker_pool.traffic.tasks else "",
        )  # fmt: skip
