"""The exact engine with its search in the processes of a cluster."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

from margotree.engines.base import Answer, NotInstalled
from margotree.engines.branch_and_bound.engine import BranchAndBound
from margotree.engines.branch_and_bound.strategies import lists_nothing, provable_searches
from margotree.engines.distributed.connection import INSTALL, address_of
from margotree.engines.distributed.search import ClusterSearch, TaskSizes
from margotree.engines.distributed.transfer_volume import Traffic
from margotree.engines.distributed.workers import WorkerPool
from margotree.engines.exact.proof_search import NoProof, Proof
from margotree.engines.exact.sample_branching import Tactics
from margotree.engines.exact.search import Brancher, Search
from margotree.engines.exact.support_branching import SupportTactics
from margotree.engines.run_control import RunControl
from margotree.engines.trivial_trees import allowed_value
from margotree.problem import Problem, Splits, TrainingProblem
from margotree.solution import Solution


class ClusterBranchAndBound(BranchAndBound):
    """The engine "bnb" with its open nodes searched by the workers of a Dask cluster (docs/cluster.md).

    Parameters
    ----------
    scheduler
        The address of a Dask scheduler or a client of it, or "processes" to start processes on this machine.
    processes
        The number of processes to start.
    task_sizes
        The length of tasks, and which searches are not distributed.
    tactics, sparse
        As for :class:`~margotree.engines.branch_and_bound.engine.BranchAndBound`.
    """

    def __init__(
        self,
        scheduler: Any,
        processes: int = 1,
        *,
        task_sizes: TaskSizes | None = None,
        tactics: Tactics | None = None,
        sparse: SupportTactics | None = None,
    ) -> None:
        super().__init__(tactics, sparse)
        self.scheduler, self.processes, self.task_sizes = scheduler, processes, task_sizes or TaskSizes()
        self.traffic = Traffic()
        self.worker_pool: WorkerPool | None = None

    def missing(self) -> str | None:
        """The command that installs Dask; None if Dask is installed.  Does not import it."""
        return None if find_spec("distributed") is not None else INSTALL

    def must_be_installed(self) -> None:
        """Raise :class:`NotInstalled` if Dask is not installed."""
        if (need := self.missing()) is not None:
            raise NotInstalled(f"scheduler={address_of(self.scheduler)!r} needs Dask, which is not installed: {need}")

    def prepare(self, problem: TrainingProblem) -> None:
        """Connect to the workers, and compile in this process and on them; a time limit does not include that."""
        super().prepare(problem)
        self._worker_pool(problem)

    def prepare_proof(self, problem: TrainingProblem) -> None:
        """Compile here and on the workers what only proofs call."""
        super().prepare_proof(problem)
        assert isinstance(problem, Problem)
        self._worker_pool(problem).warm_up_for_proofs(**provable_searches(problem))

    def audited(
        self,
        problem: Problem,
        control: RunControl | None,
        start: Splits | None,
        search: Callable[[Problem, RunControl, Splits | None], Answer],
    ) -> Solution:
        """Solve the problem, and release the workers afterwards; see :meth:`Engine.audited`."""
        try:
            return super().audited(problem, control, start, search)
        finally:
            if self.worker_pool is not None:
                self.worker_pool.close()
                self.worker_pool = None

    def search_with(
        self, problem: Problem, control: RunControl, start: Splits | None, *, proof: Proof | NoProof
    ) -> Answer:
        """The best tree and its bound, with a warning if the cluster was lost."""
        worker_pool = self._worker_pool(problem)
        self.traffic = worker_pool.traffic
        answer = super().search_with(problem, control, start, proof=proof)
        return (
            answer if not worker_pool.lost else replace(answer, warnings=(*answer.warnings, _loss_warning(worker_pool)))
        )

    def _worker_pool(self, problem: TrainingProblem) -> WorkerPool:
        """The workers, connected and warmed up at the first call."""
        if self.worker_pool is None:
            worker_pool = WorkerPool(self.scheduler, self.processes)
            try:
                with_penalties = isinstance(problem, Problem) and lists_nothing(problem)
                worker_pool.warm_up(getattr(problem, "model", "margot"), with_penalties)
            except BaseException:
                worker_pool.close()
                raise
            self.worker_pool = worker_pool
        return self.worker_pool

    def new_search(
        self, problem: Problem, brancher: Brancher, first: Splits, control: RunControl, ceiling: float = math.inf
    ) -> Search:
        """A search by the workers of the cluster."""
        assert self.worker_pool is not None
        value = partial(allowed_value, problem)
        return ClusterSearch(self.worker_pool, self.task_sizes, brancher, value, control, first, ceiling)


def _loss_warning(worker_pool: WorkerPool) -> str:
    """The warning of a fit that has lost its cluster."""
    return (
        f"the cluster ({worker_pool.scheduler}) was lost: {worker_pool.lost}; the tree is the best found so far and "
        "the bound holds; to continue, fit again with start= this tree"
    )
