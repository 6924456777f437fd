"""The brancher for feature penalties that places samples first, in two stages.

A search node begins without feature penalties in its node problems, where pivots are fewer and faster; its bound
contains a lower bound on the penalties. When the penalties could close it, or all samples are placed, it is solved
again with penalties, and features are decided as well as samples.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.node_record import save
from margotree.engines.exact.proof_log import ProofLog
from margotree.engines.exact.sample_branching import MargotBrancher, MargotWorker, Tactics, make_record
from margotree.engines.exact.search import Dive, Record
from margotree.engines.node.kernels.workspace import AT_HARD, AT_MARGIN, PENDING_HARD, PENDING_MARGIN
from margotree.engines.run_control import RunControl
from margotree.problem import Problem
from margotree.problem.problem import FloatArray


class PenaltyBrancher:
    """The brancher for a problem with feature penalties.

    The parameters are those of :class:`~margotree.engines.exact.sample_branching.MargotBrancher`.
    """

    def __init__(
        self,
        problem: Problem,
        tactics: Tactics | None = None,
        *,
        limit: float | None = None,
        control: RunControl | None = None,
        log: ProofLog | None = None,
    ) -> None:
        self.problem = problem
        self.log = log
        self.first_stage = MargotBrancher(
            problem, tactics, limit=limit, without_penalties=True, control=control, log=log
        )
        self.second_stage = MargotBrancher(problem, tactics, limit=limit, control=control, log=log)

    def root(self) -> Record:
        """The record of the root of the search."""
        return self.first_stage.root()

    def record(self, place: NDArray[np.int64]) -> Record:
        """The record of the search node with these places, without multipliers."""
        return self.first_stage.record(place)

    def worker(self) -> PenaltyWorker:
        """A new worker."""
        return PenaltyWorker(self)


class FirstStageWorker(MargotWorker):
    """The first stage: settled search nodes are continued by the second one."""

    settled_continues = True

    def __init__(self, brancher: PenaltyBrancher) -> None:
        super().__init__(brancher.first_stage)
        self.second_stage_size = brancher.second_stage.sizes()[0]

    def settled(self, dive: Dive, bound: float) -> Dive:
        """The dive with a record of its last search node for the second stage: same multipliers, free items are
        pending."""
        n_codes, n_floats = self.brancher.sizes()
        codes, floats = np.zeros(self.second_stage_size, np.uint8), np.zeros(n_floats)
        used = save(self.ws, self.routing, codes[None, :n_codes], floats[None])
        status = codes[2 * self.problem.n_samples : self.brancher.end_of_statuses()]
        status[status == AT_MARGIN] = PENDING_MARGIN
        status[status == AT_HARD] = PENDING_HARD
        number = None if self.brancher.log is None else self.last_node
        return replace(dive, left=[*dive.left, make_record(bound, codes, floats[:used], number)])


class PenaltyWorker:
    """The memory of one thread, and its dives in both stages."""

    def __init__(self, brancher: PenaltyBrancher) -> None:
        self.first_stage, self.second_stage = FirstStageWorker(brancher), MargotWorker(brancher.second_stage)
        self.first_stage.ws = self.first_stage.ws._replace(work=self.second_stage.ws.work)  # one stop flag

    def stop_flag(self) -> FloatArray:
        """An array of one number, which stops a dive when it is set to 1."""
        return self.first_stage.stop_flag()

    def stop(self) -> None:
        self.first_stage.stop()

    def dive(self, record: Record, shared: FloatArray, most: float = math.inf) -> Dive:
        """Search from ``record`` in the stage that it belongs to."""
        second_stage = len(record.data[0]) == self.first_stage.second_stage_size
        return (self.second_stage if second_stage else self.first_stage).dive(record, shared, most)
