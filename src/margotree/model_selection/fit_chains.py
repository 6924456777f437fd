"""Fits side by side through joblib: in order along each chain, every result in hand the moment it is there.

A chain is a list of jobs of which each waits for the one before.  joblib decides where jobs run: threads by default
(the kernels release the GIL), processes or a Dask cluster inside ``joblib.parallel_config(...)``.
"""

from __future__ import annotations

import heapq
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from margotree.engines.run_control import loop_is_over, loop_of_fits
from margotree.estimators.fit_loops import NestedFitInterrupted

#: How often in a row a pool may lose a worker without having finished anything.
RETRIES = 3


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A job that raised, wherever it ran."""

    reason: str
    details: str = ""


def run_chains(
    chains: Sequence[Sequence[Hashable]],
    arguments: Callable[[Any], tuple | None],
    work: Callable[..., Any],
    arrived: Callable[[Any, Any], None],
    *,
    n_jobs: int | None = None,
) -> bool:
    """Run ``work(*arguments(job))`` for every job and hand each result to ``arrived(job, result)``.

    ``arguments`` and ``arrived`` are called here, in this process; ``arguments`` returns None for a job that is not
    to be run.  A result is whatever ``work`` returns or the :class:`Failure` it ended in.  Jobs that were lost with
    their worker are run again.

    The first Ctrl-C ends it, and True is returned: fits under way in threads are cut and handed to ``arrived`` as such,
    those in other processes are given up.
    """
    if not _in_this_process(n_jobs):
        with warnings.catch_warnings():
            # joblib's remark on work that is given up says nothing that our callers do not.
            warnings.filterwarnings("ignore", message=".*tasks have been successfully executed *but not used")
            try:
                _run(chains, arguments, work, arrived, n_jobs, threading.Event())
            except KeyboardInterrupt:
                return True
        return False
    with loop_of_fits() as over:
        _run(chains, arguments, work, arrived, n_jobs, over)
        return over.is_set()


def _in_this_process(n_jobs: int | None) -> bool:
    """Whether fits run where our flag can be seen."""
    backend, _ = get_active_backend(prefer="threads")
    return getattr(backend, "supports_sharedmem", False) or effective_n_jobs(n_jobs) == 1


def _run(
    chains: Sequence[Sequence[Hashable]],
    arguments: Callable[[Any], tuple | None],
    work: Callable[..., Any],
    arrived: Callable[[Any, Any], None],
    n_jobs: int | None,
    over: threading.Event,
) -> None:
    ready, lost = _Ready(chains, arguments, over), 0
    while ready.unfinished:
        # One argument, a tuple: Dask would move larger ones to one worker ahead of time, and they would die with it.
        tasks = (delayed(_guarded)((work, job, given)) for job, given in ready)
        try:
            for job, result in Parallel(n_jobs=n_jobs, prefer="threads", batch_size=1, return_as="generator_unordered")(
                tasks
            ):
                # A fit that was cut before it had a tree has failed only because it was cut.
                if not (over.is_set() and isinstance(result, Failure)):
                    arrived(job, result)
                ready.finished(job)
                lost = 0
        except BrokenProcessPool:
            lost += 1
            if lost > RETRIES:
                raise
            ready.again()


def _guarded(task: tuple[Callable[..., Any], Any, tuple]) -> tuple[Any, Any]:
    work, job, given = task
    if loop_is_over():
        return job, Failure(reason="interrupted before it began")
    try:
        return job, work(*given)
    except (Exception, NestedFitInterrupted) as error:
        # Whoever asked decides what a failed fit means; a back-end may lose exceptions on the way.
        return job, Failure(reason=f"{type(error).__name__}: {error}", details=traceback.format_exc())


class _Ready:
    """The jobs that may run now, longest chain first.  It ends when nothing may run until something has arrived."""

    def __init__(
        self, chains: Sequence[Sequence[Hashable]], arguments: Callable[[Any], tuple | None], over: threading.Event
    ) -> None:
        self._over = over
        self._chains = [deque(chain) for chain in chains]
        self._arguments = arguments
        self._running: dict[Hashable, int] = {}
        self._queue: list[tuple[int, int]] = []
        self._lock = threading.RLock()  # joblib asks for jobs from a thread of its own
        for k in range(len(self._chains)):
            self._offer(k)

    @property
    def unfinished(self) -> bool:
        return bool((self._queue and not self._over.is_set()) or self._running)

    def __iter__(self) -> Iterator[tuple[Any, tuple]]:
        while (taken := self._take()) is not None:
            yield taken

    def finished(self, job: Hashable) -> None:
        with self._lock:
            self._offer(self._running.pop(job))

    def again(self) -> None:
        with self._lock:
            for job, k in self._running.items():
                self._chains[k].appendleft(job)
                self._offer(k)
            self._running.clear()

    def _take(self) -> tuple[Any, tuple] | None:
        with self._lock:
            while self._queue and not self._over.is_set():
                k = heapq.heappop(self._queue)[1]
                job = self._chains[k].popleft()
                given = self._arguments(job)
                if given is not None:
                    self._running[job] = k
                    return job, given
                self._offer(k)
        return None

    def _offer(self, k: int) -> None:
        if self._chains[k]:
            heapq.heappush(self._queue, (-len(self._chains[k]), k))
