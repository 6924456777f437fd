"""Counts of the data sent to workers and received from them."""

from __future__ import annotations

from dataclasses import dataclass

from margotree.engines.distributed.task import Outcome


@dataclass(kw_only=True)
class Traffic:
    """The data sent to workers and received from them, in bytes (packed, without the messages of Dask).

    A task counts when its result is received; ``again`` is the number of lost tasks, whose nodes are sent again.
    ``problem`` is the size of the data that every worker receives once; ``steps``, ``seconds`` and ``cpu`` are the
    search nodes and the time of the workers.
    """

    tasks: int = 0
    again: int = 0
    sent: int = 0
    received: int = 0
    steps: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    problem: int = 0

    def count_result(self, size: int, outcome: Outcome) -> None:
        """Count the result of a task of this size."""
        self.tasks += 1
        self.received += size
        self.steps += outcome.steps
        self.seconds += outcome.seconds
        self.cpu += outcome.cpu

    def __str__(self) -> str:
        per = max(1, self.tasks)
        again = f", {self.again} sent again" if self.again else ""
        return f"{self.tasks} tasks{again}, {_kilo(self.sent / per)} out and {_kilo(self.received / per)} back per task"


def _kilo(count: float) -> str:
    """A number of bytes in kB."""
    return f"{count / 1000:.3g} kB"
