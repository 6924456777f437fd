"""The connection to a Dask cluster, or to processes started on this machine."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from margotree.engines.base import EngineError

#: The value of ``scheduler`` that starts workers on this machine.
PROCESSES = "processes"
#: The command that installs Dask.
INSTALL = 'pip install "margotree[cluster]"'
#: The timeout for the answer of a scheduler, in seconds.
_ANSWER = 20.0


def connect(address: str, *, default: bool = False) -> Any:
    """A client of the Dask scheduler at this address.

    Parameters
    ----------
    address
        The address of the scheduler.
    default
        Whether the client becomes Dask's default client.

    Raises
    ------
    EngineError
        If Dask is not installed or no scheduler answers.
    """
    _must_have_dask()
    from distributed import Client

    try:
        return Client(address, timeout=_ANSWER, set_as_default=default)
    except (OSError, TimeoutError, ValueError) as error:
        raise EngineError(f"no Dask scheduler answers at {address}: {error}") from None


def start_processes(count: int) -> Any:
    """A cluster of ``count`` processes with one thread each on this machine."""
    _must_have_dask()
    from distributed import LocalCluster

    return LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0")


def end_processes(cluster: Any) -> None:
    """End what :func:`start_processes` started, if anything, by a signal, as an orderly end takes seconds."""
    if cluster is None:
        return
    with suppress(Exception):
        for nanny in cluster.workers.values():
            nanny.auto_restart = False
            os.kill(nanny.pid, signal.SIGTERM)
    with suppress(Exception):
        cluster.close(timeout=5)


def _must_have_dask() -> None:
    """Raise :class:`EngineError` if Dask is not installed."""
    if find_spec("distributed") is None:
        raise EngineError(f"a cluster needs Dask: {INSTALL}")
