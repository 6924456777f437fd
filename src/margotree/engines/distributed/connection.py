"""The way to a Dask cluster, or to one of processes on this machine; the one place that opens it."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from margotree.engines.base import EngineError

#: What to say instead of an address to have the workers started on this machine.
PROCESSES = "processes"
#: What installs Dask.
INSTALL = 'pip install "margotree[cluster]"'
#: Seconds within which a scheduler has to answer.
_ANSWER = 20.0


def connect(address: str, *, default: bool = False) -> Any:
    """A client of the Dask scheduler at this address; :class:`EngineError` with what to do if there is none.

    Only if asked for is it the one that Dask takes wherever none is named.
    """
    _must_have_dask()
    from distributed import Client

    try:
        return Client(address, timeout=_ANSWER, set_as_default=default)
    except (OSError, TimeoutError, ValueError) as error:
        raise EngineError(f"no Dask scheduler answers at {address}: {error}") from None


def start_processes(count: int) -> Any:
    """A cluster of so many processes of one thread each on this machine."""
    _must_have_dask()
    from distributed import LocalCluster

    return LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0")


def end_processes(cluster: Any) -> None:
    """End what :func:`start_processes` started, if anything; politely asked, they would take seconds."""
    if cluster is None:
        return
    with suppress(Exception):
        for nanny in cluster.workers.values():
            nanny.auto_restart = False
            os.kill(nanny.pid, signal.SIGTERM)
    with suppress(Exception):
        cluster.close(timeout=5)


def _must_have_dask() -> None:
    if find_spec("distributed") is None:
        raise EngineError(f"a cluster needs Dask: {INSTALL}")
