"""The workers of a Dask cluster: warm-up, tasks, results, and the loss of the cluster.

Dask schedules tasks, repeats those of a dead worker and restarts processes.
"""

from __future__ import annotations

import logging
import queue
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from margotree.engines.base import EngineError
from margotree.engines.distributed.connection import PROCESSES, address_of, connect, end_processes, start_processes
from margotree.engines.distributed.serialization import SearchSpec
from margotree.engines.distributed.task import (
    Outcome,
    SearchNotHeld,
    TaskInput,
    drop,
    hold,
    packed,
    search_below,
    unpacked,
    warm,
    warm_for_proofs,
)
from margotree.engines.distributed.transfer_volume import Traffic

#: Timeouts in seconds: for the first worker, and for the transfer of a finished result.
_FIRST, _ARRIVE = 60.0, 60.0
#: Seconds without any worker after which the cluster is lost.
_WITHOUT_WORKERS = 60.0
#: Seconds for which the number of workers is cached.
_FRESH = 1.0
#: The number of tasks in a row that may be lost; each has been tried by several workers.
_FAILURES = 8


class ClusterLost(RuntimeError):
    """The cluster is lost; the message gives the reason."""


class WorkerPool:
    """The workers of one fit.

    Parameters
    ----------
    scheduler
        The address of a Dask scheduler or a client of it, or "processes" to start processes on this machine.
    processes
        The number of processes to start, with one thread each.
    """

    def __init__(self, scheduler: Any, processes: int = 1) -> None:
        self.scheduler, self.traffic = address_of(scheduler), Traffic()
        self.lost = ""  # why the cluster was lost
        self._cluster: Any = start_processes(processes) if self.scheduler == PROCESSES else None
        try:
            self._client = connect(scheduler if self._cluster is None else self._cluster.scheduler_address)
        except EngineError:
            end_processes(self._cluster)
            raise
        self._futures: dict[int, Any] = {}
        self._done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._failures = 0
        self._slots, self._asked, self._seen = 0, -_FRESH, time.monotonic()

    # -- warm-up -------------------------------------------------------------------------------------------------

    def warm_up(self, model: str, with_penalties: bool) -> None:
        """Let every worker import and compile what such a problem needs; their version must be that of this process."""
        from margotree import __version__

        versions = {worker: self._version(worker) for worker in self._first_workers()}
        others = {worker: version for worker, version in versions.items() if version != __version__}
        if others:
            worker, version = next(iter(others.items()))
            has = "no margotree" if version is None else f"margotree {version}"
            raise EngineError(
                f"{len(others)} of {len(versions)} workers cannot be used: {worker} has {has}, and this process "
                f"{__version__}; install the same version on all machines"
            )
        tasks = [self._client.submit(warm, model, with_penalties, workers=[w], pure=False) for w in versions]
        self._client.gather(tasks, errors="skip")  # a worker that fails here raises again in a task

    def warm_up_for_proofs(self, routings: bool, supports: bool) -> None:
        """Let every worker compile what only proofs call."""
        workers = self._first_workers()
        tasks = [self._client.submit(warm_for_proofs, routings, supports, workers=[w], pure=False) for w in workers]
        self._client.gather(tasks, errors="skip")

    def _first_workers(self) -> list[str]:
        """The addresses of the workers, after the first one has come."""
        try:
            self._client.wait_for_workers(1, timeout=_FIRST)
        except TimeoutError:
            raise EngineError(
                f"the Dask scheduler at {self.scheduler} has no workers; start some: dask worker {self.scheduler}"
            ) from None
        return list(self._client.nthreads())

    def _version(self, worker: str) -> str | None:
        """The version of margotree on a worker; None if it is not installed."""

        def look() -> str | None:
            # Sent by value and not by name, so that it also runs on a worker without margotree.
            try:
                from margotree import __version__
            except ImportError:
                return None
            return __version__

        return str(found) if (found := self._client.run(look, workers=[worker])[worker]) is not None else None

    # -- tasks ---------------------------------------------------------------------------------------------------

    @property
    def slots(self) -> int:
        """The number of tasks that can run at the same time."""
        now = time.monotonic()
        if now - self._asked >= _FRESH:
            self._require_connection()
            with _as_cluster_lost():
                self._slots = sum(self._client.nthreads().values())
            self._asked = now
            if self._slots:
                self._seen = now
            elif now - self._seen > _WITHOUT_WORKERS:
                raise ClusterLost(f"no worker has been seen for {_WITHOUT_WORKERS:.0f} s")
        return self._slots

    @contextmanager
    def published(self, spec: SearchSpec) -> Iterator[str]:
        """Within this context every worker has this problem, also those that come later; yields its key."""
        key, data = f"margotree-{uuid.uuid4().hex}", packed(spec)
        self.traffic.problem = max(self.traffic.problem, len(data))
        self._require_connection()
        with _as_cluster_lost():
            self._client.register_plugin(_holder(key, data), name=key)
        try:
            yield key
        finally:
            self.cancel_all()
            if self.is_connected:
                with suppress(Exception):  # a failure here must not lose the tree
                    self._client.unregister_worker_plugin(key)

    def send(self, number: int, key: str, task_input: TaskInput) -> None:
        """Submit a task under this number."""
        data = packed(task_input)
        self.traffic.sent += len(data)
        self._require_connection()
        with _as_cluster_lost():
            future = self._client.submit(search_below, key, data, key=f"{key}-{number}", pure=False)
        self._futures[number] = future
        future.add_done_callback(lambda done: self._done.put((number, done)))

    def next_done(self, seconds: float) -> tuple[int, Outcome | None] | None:
        """The number of a finished task, with its result or None if it was lost; None after ``seconds`` without one."""
        try:
            number, future = self._done.get(timeout=seconds)
        except queue.Empty:
            self._require_connection()
            return None
        wanted = self._futures.get(number)
        if wanted is None or wanted.key != future.key:
            return None  # of an earlier search
        del self._futures[number]
        outcome = self._outcome(future)
        self._failures = 0 if outcome is not None else self._failures + 1
        if self._failures >= _FAILURES:
            raise ClusterLost(f"{_FAILURES} tasks in a row were lost, each tried by several workers")
        return number, outcome

    def _outcome(self, future: Any) -> Outcome | None:
        """The result of a finished task; None if it was lost."""
        if future.status == "finished":
            with _as_cluster_lost():
                data = future.result(timeout=_ARRIVE)
            found: Outcome = unpacked(data)
            self.traffic.count_result(len(data), found)
            return found
        self._require_connection()
        if future.status == "error" and not _is_loss(error := future.exception()):
            raise error
        self.traffic.again += 1
        return None

    def cancel_all(self) -> None:
        """Cancel the tasks whose results have not been received."""
        futures, self._futures = list(self._futures.values()), {}
        if futures and self.is_connected:
            with suppress(Exception):
                self._client.cancel(futures)

    @property
    def is_connected(self) -> bool:
        """Whether the scheduler is connected."""
        return self._client.status == "running"

    def _require_connection(self) -> None:
        """Raise :class:`ClusterLost` if the scheduler is not connected."""
        if not self.is_connected:
            raise ClusterLost("the connection to the scheduler is lost")

    def close(self) -> None:
        """Disconnect, and end processes started for this fit."""
        with suppress(Exception), _quiet(not self.is_connected):
            self._client.close(timeout=2)
        end_processes(self._cluster)


def _holder(key: str, data: bytes) -> Any:
    """The Dask plugin that keeps a problem on every worker, including new ones."""
    from distributed import WorkerPlugin

    class Holder(WorkerPlugin):
        def setup(self, worker: Any) -> None:
            hold(key, data)

        def teardown(self, worker: Any) -> None:
            drop(key)

    return Holder()


@contextmanager
def _quiet(is_lost: bool) -> Iterator[None]:
    """Suppress Dask's messages if the scheduler is known to be lost."""
    log = logging.getLogger("distributed.client")
    level = log.level
    if is_lost:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


@contextmanager
def _as_cluster_lost() -> Iterator[None]:
    """Turn the errors that Dask raises after the loss of a scheduler into :class:`ClusterLost`."""
    from concurrent.futures import CancelledError

    try:
        yield
    except (OSError, TimeoutError, CancelledError) as error:
        raise ClusterLost(
            f"the scheduler does not answer ({type(error).__name__}: {error})".rstrip(": )") + ")"
        ) from None


def _is_loss(error: BaseException) -> bool:
    """Whether a task failed because of its worker and not by itself."""
    from distributed import KilledWorker

    return isinstance(error, (KilledWorker, SearchNotHeld))
