"""The workers of a Dask cluster: who they are, what they hold, what they are doing, and whether they are still there.

Dask schedules, retries what a dead worker was doing and restarts processes; this file only asks it to.
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
from margotree.engines.distributed.connection import PROCESSES, connect, end_processes, start_processes
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

#: Seconds within which the first worker has to come, and a result to arrive once it is there.
_FIRST, _ARRIVE = 60.0, 60.0
#: Seconds without any worker after which nobody is waited for any longer.
_WITHOUT_WORKERS = 60.0
#: Seconds for which the number of workers is not asked for again.
_FRESH = 1.0
#: Tasks in a row that may come to nothing; each has been tried by several workers before.
_FAILURES = 8


class ClusterLost(RuntimeError):
    """The cluster is gone; the message says what is known."""


class Crew:
    """The workers that serve one fit; close it to send them home."""

    def __init__(self, scheduler: str, processes: int = 1) -> None:
        """Join the scheduler at this address, or start ``processes`` of one thread each on this machine."""
        self.scheduler, self.traffic = scheduler, Traffic()
        self.lost = ""  # why it is no longer there
        self._cluster: Any = start_processes(processes) if scheduler == PROCESSES else None
        try:
            self._client = connect(scheduler if self._cluster is None else self._cluster.scheduler_address)
        except EngineError:
            end_processes(self._cluster)
            raise
        self._futures: dict[int, Any] = {}
        self._done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._failures = 0
        self._slots, self._asked, self._seen = 0, -_FRESH, time.monotonic()

    # -- before the clock starts ---------------------------------------------------------------------------------

    def warm_up(self, model: str, with_penalties: bool) -> None:
        """Have every worker import and compile what such a problem needs; they must be of our version."""
        from margotree import __version__

        versions = {worker: self._version(worker) for worker in self._first_workers()}
        others = {worker: version for worker, version in versions.items() if version != __version__}
        if others:
            worker, version = next(iter(others.items()))
            has = "no margotree" if version is None else f"margotree {version}"
            raise EngineError(
                f"{len(others)} of {len(versions)} workers cannot help: {worker} has {has}, and this process "
                f"{__version__}; install the same version on all machines"
            )
        tasks = [self._client.submit(warm, model, with_penalties, workers=[w], pure=False) for w in versions]
        self._client.gather(tasks, errors="skip")  # a worker that fails here will say so in a task

    def warm_up_for_proofs(self, routings: bool, supports: bool) -> None:
        """The same for what only proofs need."""
        workers = self._first_workers()
        tasks = [self._client.submit(warm_for_proofs, routings, supports, workers=[w], pure=False) for w in workers]
        self._client.gather(tasks, errors="skip")

    def _first_workers(self) -> list[str]:
        try:
            self._client.wait_for_workers(1, timeout=_FIRST)
        except TimeoutError:
            raise EngineError(
                f"the Dask scheduler at {self.scheduler} has no workers; start some: dask worker {self.scheduler}"
            ) from None
        return list(self._client.nthreads())

    def _version(self, worker: str) -> str | None:
        def look() -> str | None:
            # Sent as it is, not by its name: a worker without margotree shall be able to say so.
            try:
                from margotree import __version__
            except ImportError:
                return None
            return __version__

        return str(found) if (found := self._client.run(look, workers=[worker])[worker]) is not None else None

    # -- while it runs -------------------------------------------------------------------------------------------

    @property
    def slots(self) -> int:
        """Tasks that can run at the same time just now."""
        now = time.monotonic()
        if now - self._asked >= _FRESH:
            self._must_be_there()
            with _told():
                self._slots = sum(self._client.nthreads().values())
            self._asked = now
            if self._slots:
                self._seen = now
            elif now - self._seen > _WITHOUT_WORKERS:
                raise ClusterLost(f"no worker has been seen for {_WITHOUT_WORKERS:.0f} s")
        return self._slots

    @contextmanager
    def holding(self, spec: SearchSpec) -> Iterator[str]:
        """While inside, every worker holds this problem, also those that come later; yields the key to it."""
        key, data = f"margotree-{uuid.uuid4().hex}", packed(spec)
        self.traffic.problem = max(self.traffic.problem, len(data))
        self._must_be_there()
        with _told():
            self._client.register_plugin(_holder(key, data), name=key)
        try:
            yield key
        finally:
            self.forget_all()
            if self.is_there:
                with suppress(Exception):  # nobody is to lose a tree because a goodbye was not heard
                    self._client.unregister_worker_plugin(key)

    def send(self, number: int, key: str, task_input: TaskInput) -> None:
        """Have a task done under this number."""
        data = packed(task_input)
        self.traffic.sent += len(data)
        self._must_be_there()
        with _told():
            future = self._client.submit(search_below, key, data, key=f"{key}-{number}", pure=False)
        self._futures[number] = future
        future.add_done_callback(lambda done: self._done.put((number, done)))

    def next_done(self, seconds: float) -> tuple[int, Outcome | None] | None:
        """The number of a task that is done, with its outcome or None if it was lost; None if there is none yet."""
        try:
            number, future = self._done.get(timeout=seconds)
        except queue.Empty:
            self._must_be_there()
            return None
        wanted = self._futures.get(number)
        if wanted is None or wanted.key != future.key:
            return None  # of a search that is over
        del self._futures[number]
        outcome = self._outcome(future)
        self._failures = 0 if outcome is not None else self._failures + 1
        if self._failures >= _FAILURES:
            raise ClusterLost(f"{_FAILURES} tasks in a row were lost, each tried by several workers")
        return number, outcome

    def _outcome(self, future: Any) -> Outcome | None:
        if future.status == "finished":
            with _told():
                data = future.result(timeout=_ARRIVE)
            found: Outcome = unpacked(data)
            self.traffic.came_back(len(data), found)
            return found
        self._must_be_there()
        if future.status == "error" and not _is_loss(error := future.exception()):
            raise error
        self.traffic.again += 1
        return None

    def forget_all(self) -> None:
        """Want nothing of the tasks under way."""
        futures, self._futures = list(self._futures.values()), {}
        if futures and self.is_there:
            with suppress(Exception):
                self._client.cancel(futures)

    @property
    def is_there(self) -> bool:
        return self._client.status == "running"

    def _must_be_there(self) -> None:
        if not self.is_there:
            raise ClusterLost("the connection to the scheduler is gone")

    def close(self) -> None:
        """Leave; processes that were started for this fit are ended."""
        with suppress(Exception), _quiet(not self.is_there):
            self._client.close(timeout=2)
        end_processes(self._cluster)


def _holder(key: str, data: bytes) -> Any:
    """What keeps a problem on every worker, and brings it to new ones."""
    from distributed import WorkerPlugin

    class Holder(WorkerPlugin):
        def setup(self, worker: Any) -> None:
            hold(key, data)

        def teardown(self, worker: Any) -> None:
            drop(key)

    return Holder()


@contextmanager
def _quiet(is_lost: bool) -> Iterator[None]:
    """Where a scheduler is known to be gone, spare the user Dask's own account of it."""
    log = logging.getLogger("distributed.client")
    level = log.level
    if is_lost:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


@contextmanager
def _told() -> Iterator[None]:
    """Make what Dask raises when a scheduler has gone our own word for it."""
    from concurrent.futures import CancelledError

    try:
        yield
    except (OSError, TimeoutError, CancelledError) as error:
        raise ClusterLost(
            f"the scheduler does not answer ({type(error).__name__}: {error})".rstrip(": )") + ")"
        ) from None


def _is_loss(error: BaseException) -> bool:
    """Whether a task failed because of where it ran and not by itself."""
    from distributed import KilledWorker

    return isinstance(error, (KilledWorker, SearchNotHeld))
