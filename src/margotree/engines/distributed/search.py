"""The search of one fit by the workers of a cluster: here are the open nodes, the best tree and the bound.

A task takes some open nodes, best bound first, and brings back what it left open.  While it is away its nodes still
count as open, so that the bound holds at every moment, whatever becomes of the task: a lost one is put back.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

from margotree.engines.distributed.serialization import SearchSpec
from margotree.engines.distributed.task import Outcome, TaskInput
from margotree.engines.distributed.workers import ClusterLost, Crew
from margotree.engines.exact.portfolio import is_over
from margotree.engines.exact.search import CUTOFF, STOP, Dive, Record, Search
from margotree.engines.run_control import RunControl
from margotree.solution import Stopped


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How long tasks are, and what is not worth sending.

    A search begins ``alone`` for so many seconds, and phases shorter than ``short`` stay here.  A task takes
    ``seconds``, longer where workers are many (one task in ``apart`` seconds is enough for whoever keeps the books),
    and less (``first``) until all workers have something to do.  It gets at most ``batch`` open nodes.
    """

    alone: float = 0.5
    short: float = 2.0
    seconds: float = 2.0
    first: float = 0.5
    apart: float = 0.05
    batch: int = 64
    nodes: float = math.inf

    def task(self, slots: int) -> float:
        return max(self.seconds, self.apart * slots)


#: A task is to be back within this share of what is left of the time, and so many seconds before its end.
_IN_TIME, _POST = 0.95, 0.1
#: Below so many seconds no task is sent any more.
_LAST = 0.3
#: A task gets so many times the nodes that tasks lately went into; weight of the newest of these.
_SPARE, _LEARN = 1.5, 0.25
#: Nodes that a search does by itself first, where work is measured in nodes.
_ALONE_NODES = 200


class ClusterSearch(Search):
    """A search whose nodes are gone into by others."""

    def __init__(self, crew: Crew, pace: Pace, *search: Any) -> None:
        super().__init__(*search)
        self.crew, self.pace = crew, pace
        self._away: dict[int, list[Record]] = {}
        self._reserved: dict[int, float] = {}
        self._numbers = itertools.count()
        self._dives = 2.0  # of a task, about

    def run(self, control: RunControl | None = None) -> Stopped:
        control = control or self.control
        if control.remaining < self.pace.short:
            return super().run(control)
        if not self._begun and not self._begin(control):
            return self.reason or Stopped.SOLVED
        self.control = control
        self.reason, self.shared[STOP] = None, 0.0
        try:
            with self.crew.holding(SearchSpec.of(self.brancher, control.limits.gap)) as key:
                self._spread(key)
        except ClusterLost as lost:
            self.crew.lost = str(lost)
            self._stop(Stopped.LOST)
        finally:
            self._take_back(*self._away)
        self._report()
        return self.reason or Stopped.SOLVED

    def _begin(self, control: RunControl) -> bool:
        """Find something to share; returns whether there is."""
        if self.pace.alone <= 0.0:
            self._push([self.brancher.root()])
            self._begun = True
            return True
        nodes = min(control.limits.nodes, self.steps + _ALONE_NODES)
        super().run(control.share(seconds=self.pace.alone, nodes=nodes))
        return not is_over(self, control)

    def _spread(self, key: str) -> None:
        next_report = 0.0
        while True:
            if (reason := self.control.must_stop() or self._proof_needs_time()) is not None:
                self._stop(reason)
            if self.shared[STOP]:
                return
            self._send(key)
            if not self._away:
                if self._is_open():
                    self.crew.next_done(0.05)  # nobody is there to work: wait
                elif not self.shared[STOP]:
                    return
            elif (done := self.crew.next_done(0.05)) is not None:
                self._receive(*done)
            if self.control.elapsed >= next_report:
                self._report()
                next_report = self.control.elapsed + 0.5

    # -- out -----------------------------------------------------------------------------------------------------

    def _send(self, key: str) -> None:
        """Keep every worker busy, with one more task waiting for each, so that nobody waits for the post."""
        slots = self.crew.slots
        seconds = self.pace.task(slots)
        most = slots if self.control.remaining < 2.0 * seconds else 2 * slots
        while len(self._away) < most and self._is_open() and self.control.remaining > _LAST:
            if (nodes := self._allowance(slots)) < 1:
                if not self._away:
                    self._stop(Stopped.NODES)
                return
            scarce = self.open_nodes < slots
            records = self._best(1 if scarce else self._batch(slots))
            if not records:
                return
            number = next(self._numbers)
            self._away[number], self._reserved[number] = records, nodes
            self._in_flight[number] = min(record.bound for record in records)
            task_input = TaskInput(
                records=records,
                cutoff=float(self.shared[CUTOFF]),
                seconds=min(self.pace.first if scarce else seconds, _IN_TIME * self.control.remaining - _POST),
                nodes=nodes,
            )
            self.crew.send(number, key, task_input)

    def _batch(self, slots: int) -> int:
        """Open nodes for one task: as many as one lately went into and a few more; others have the next best."""
        wanted = math.ceil(_SPARE * self._dives)
        return max(1, min(self.pace.batch, wanted, self.open_nodes // (2 * slots)))

    def _is_open(self) -> bool:
        return bool(self._queue or self._stack) and self.floor < self.shared[CUTOFF]

    def _allowance(self, slots: int) -> float:
        """Search nodes that the next task may do."""
        if not self.control.by_nodes:
            return self.pace.nodes
        left = self.control.limits.nodes - self.steps - sum(self._reserved.values())
        return min(self.pace.nodes, math.ceil(left / (2 * slots)))

    def _best(self, count: int) -> list[Record]:
        """The open nodes of least bound; those that a better tree has closed are let go."""
        found: list[Record] = []
        while len(found) < count and self._is_open():
            record = self._pop()
            if record.bound < self.shared[CUTOFF]:
                found.append(record)
            else:
                self._close(record.data, record.bound)
        return found

    # -- and back ------------------------------------------------------------------------------------------------

    def _receive(self, number: int, outcome: Outcome | None) -> None:
        if outcome is None:
            self._take_back(number)
            return
        self._dives += _LEARN * (max(1, outcome.dives) - self._dives)
        del self._away[number], self._reserved[number]
        record = Record(bound=self._in_flight[number], data=(), size=0)
        left = outcome.left
        if outcome.proof_part is not None:
            left = self.brancher.log.take_over(outcome.proof_part, left)  # type: ignore[attr-defined]
        dive = Dive(left=left, steps=outcome.steps, trees=outcome.trees, unresolved=outcome.unresolved)
        self._absorb(number, record, dive)
        if outcome.cutoff < self.shared[CUTOFF]:
            # The worker thought better of its tree than we do; what it closed is closed by no more than this.
            self.unresolved = min(self.unresolved, outcome.cutoff)

    def _nodes_to_close(self) -> int:
        return self.open_nodes + sum(map(len, self._away.values()))

    def _take_back(self, *numbers: int) -> None:
        """What tasks were to go into is as open as before."""
        for number in numbers:
            self._push(self._away.pop(number))
            del self._reserved[number], self._in_flight[number]

    def _report(self) -> None:
        self.control.report(
            "search", incumbent=self.best, bound=self.bound, nodes=self.steps, open_nodes=self.open_nodes,
            message=str(self.crew.traffic) if self.crew.traffic.tasks else "",
        )  # fmt: skip
