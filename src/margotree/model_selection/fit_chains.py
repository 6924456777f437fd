"""Run fits in parallel, in order along chains, and receive every result as soon as it is there.

A chain is a list of jobs, each of which starts after the one before has finished.  Jobs run in threads by default (the
kernels release the GIL), and through joblib in processes or on a Dask cluster inside ``joblib.parallel_config(...)``.
"""

from __future__ import annotations

import heapq
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from margotree.engines.run_control import NestedFitInterrupted, loop_is_over, loop_of_fits

#: Seconds between two looks at the results: a signal does not interrupt waiting for a thread.
_POLL = 0.01

#: How often in a row a pool of processes may lose a worker before a job finishes.
RETRIES = 3


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The result of a job that raised: a one-line reason, and the traceback."""

    reason: str
    details: str = ""


def run_chains(
    chains: Sequence[Sequence[Hashable]],
    arguments: Callable[[Any], tuple | None],
    function: Callable[..., Any],
    on_result: Callable[[Any, Any], None],
    *,
    n_jobs: int | None = None,
) -> bool:
    """Call ``function(*arguments(job))`` for every job and ``on_result(job, result)`` for every result.

    ``arguments`` and ``on_result`` are called in this process; ``arguments`` returns None for a job to be skipped.  A
    result is the returned value of ``function``, or a :class:`Failure` if it raised.  Jobs that were lost with their
    worker are run again.

    Returns
    -------
    bool
        Whether Ctrl-C ended the run: fits in threads stop early and their results are passed to ``on_result``, fits in
        other processes are abandoned.
    """
    if _in_this_process(n_jobs):
        with loop_of_fits() as interrupted:
            ready = _ReadyJobs(chains, arguments, interrupted)
            _run_in_threads(ready, function, on_result, effective_n_jobs(n_jobs))
            return interrupted.is_set()
    with warnings.catch_warnings():
        # The callers report abandoned jobs themselves; joblib's warning is redundant.
        warnings.filterwarnings("ignore", message=".*tasks have been successfully executed *but not used")
        try:
            _run_elsewhere(_ReadyJobs(chains, arguments, threading.Event()), function, on_result, n_jobs)
        except KeyboardInterrupt:
            return True
    return False


def _in_this_process(n_jobs: int | None) -> bool:
    """Whether fits run in this process, where they can read the flag of an interruption."""
    backend, _ = get_active_backend(prefer="threads")
    return getattr(backend, "supports_sharedmem", False) or effective_n_jobs(n_jobs) == 1


def _run_in_threads(
    ready: _ReadyJobs, function: Callable[..., Any], on_result: Callable[[Any, Any], None], n_threads: int
) -> None:
    running: set[Future] = set()
    with ThreadPoolExecutor(n_threads) as pool:
        while True:
            while len(running) < n_threads and (job_and_values := ready.next_job()) is not None:
                running.add(pool.submit(copy_context().run, _guarded, (function, *job_and_values)))
            if not running:
                return
            done, running = wait(running, timeout=_POLL, return_when=FIRST_COMPLETED)
            for job, result in (future.result() for future in done):
                # After an interruption, a fit without a tree is a Failure; it is not reported.
                if not (ready.interrupted and isinstance(result, Failure)):
                    on_result(job, result)
                ready.finished(job)


def _run_elsewhere(
    ready: _ReadyJobs, function: Callable[..., Any], on_result: Callable[[Any, Any], None], n_jobs: int | None
) -> None:
    n_lost = 0
    while ready.unfinished:
        # A single tuple as the argument: Dask would send larger arguments to one worker ahead of time, and they would
        # be lost with that worker.
        tasks = (delayed(_guarded)((function, *job_and_values)) for job_and_values in ready)
        try:
            for job, result in Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")(tasks):
                on_result(job, result)
                ready.finished(job)
                n_lost = 0
        except BrokenProcessPool:
            n_lost += 1
            if n_lost > RETRIES:
                raise
            ready.requeue_running()


def _guarded(task: tuple[Callable[..., Any], Any, tuple]) -> tuple[Any, Any]:
    """Run one job; an exception becomes a :class:`Failure`."""
    function, job, values = task
    if loop_is_over():
        return job, Failure(reason="interrupted before it began")
    try:
        return job, function(*values)
    except (Exception, NestedFitInterrupted) as error:
        # The caller decides what a failed fit means; a back end may lose exceptions.
        return job, Failure(reason=f"{type(error).__name__}: {error}", details=traceback.format_exc())


class _ReadyJobs:
    """An iterator over the jobs that can start now, longest chain first.

    It ends when no job can start before another one has finished.
    """

    def __init__(
        self,
        chains: Sequence[Sequence[Hashable]],
        arguments: Callable[[Any], tuple | None],
        interrupted: threading.Event,
    ) -> None:
        self._over = interrupted
        self._chains = [deque(chain) for chain in chains]
        self._arguments = arguments
        self._running: dict[Hashable, int] = {}
        self._queue: list[tuple[int, int]] = []
        self._lock = threading.RLock()  # joblib iterates in its own thread
        for k in range(len(self._chains)):
            self._enqueue(k)

    @property
    def interrupted(self) -> bool:
        return self._over.is_set()

    @property
    def unfinished(self) -> bool:
        return bool((self._queue and not self.interrupted) or self._running)

    def __iter__(self) -> Iterator[tuple[Any, tuple]]:
        while (job_and_values := self.next_job()) is not None:
            yield job_and_values

    def finished(self, job: Hashable) -> None:
        """Enqueue the next job of the chain of a finished job."""
        with self._lock:
            self._enqueue(self._running.pop(job))

    def requeue_running(self) -> None:
        """Enqueue the running jobs again, after their workers were lost."""
        with self._lock:
            for job, k in self._running.items():
                self._chains[k].appendleft(job)
                self._enqueue(k)
            self._running.clear()

    def next_job(self) -> tuple[Any, tuple] | None:
        """Take the next job that is not skipped, with its arguments; None if there is none."""
        with self._lock:
            while self._queue and not self.interrupted:
                k = heapq.heappop(self._queue)[1]
                job = self._chains[k].popleft()
                values = self._arguments(job)
                if values is not None:
                    self._running[job] = k
                    return job, values
                self._enqueue(k)
        return None

    def _enqueue(self, k: int) -> None:
        if self._chains[k]:
            heapq.heappush(self._queue, (-len(self._chains[k]), k))
