"""The side of the search for priced features that places samples first, in two stages.

A search node begins without prices in its node problems, where pivots are few and cheap; what prices are sure to add
goes into its bound all the same.  Once prices could make the difference, or nobody is left to be placed, it is solved
anew with prices, and features are decided along with samples.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from margotree.engines.bnb.kernels.record import save
from margotree.engines.bnb.margot import MargotBrancher, MargotWorker, Tactics, stored
from margotree.engines.bnb.search import Dive, Record
from margotree.engines.kernels.state import AT_HARD, AT_MARGIN, PENDING_HARD, PENDING_MARGIN
from margotree.problem import Problem
from margotree.problem.problem import FloatArray


class PricedBrancher:
    """Makes records and workers for one problem with prices on features."""

    def __init__(self, problem: Problem, tactics: Tactics | None = None, least: float = 0.0) -> None:
        self.problem = problem
        self.early = MargotBrancher(problem, tactics, least, plain=True)
        self.late = MargotBrancher(problem, tactics, least)

    def root(self) -> Record:
        return self.early.root()

    def record(self, place: NDArray[np.int64]) -> Record:
        return self.early.record(place)

    def worker(self) -> PricedWorker:
        return PricedWorker(self)


class PricedWorker:
    """One thread's memory and its dives in either stage."""

    def __init__(self, brancher: PricedBrancher) -> None:
        self.brancher = brancher
        self.early, self.late = MargotWorker(brancher.early), MargotWorker(brancher.late)
        self.late.pool = self.late.pool._replace(work=self.early.pool.work)  # stopped together
        self.pool = self.early.pool
        self.late_size = brancher.late.sizes()[0]

    def stop(self) -> None:
        self.early.stop()

    def dive(self, record: Record, shared: FloatArray, most: float = math.inf) -> Dive:
        if len(record.data[0]) == self.late_size:
            return self.late.dive(record, shared, most)
        dive = self.early.dive(record, shared, most)
        if dive.unresolved == math.inf:
            return dive
        return replace(dive, left=[*dive.left, self._handed(dive.unresolved)], unresolved=math.inf)

    def _handed(self, bound: float) -> Record:
        """The early stage's search node for the late stage: same multipliers, with free items to be solved anew."""
        n_codes, n_floats = self.brancher.early.sizes()
        codes, floats = np.zeros(self.late_size, np.uint8), np.zeros(n_floats)
        used = save(self.pool, codes[:n_codes], floats)
        status = codes[2 * self.brancher.problem.n_samples : n_codes]
        status[status == AT_MARGIN] = PENDING_MARGIN
        status[status == AT_HARD] = PENDING_HARD
        return stored(bound, codes, floats[:used])
