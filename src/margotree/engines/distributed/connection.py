"""The connection to a Dask cluster, or to processes started on this machine."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from margotree.engines.base import EngineError

#: The value of ``scheduler`` that starts workers on this machine.
PROCESSES = "processes"
#: The command that installs Dask.
INSTALL = 'pip install "margotree[cluster]"'
#: The timeouts in seconds: until the scheduler's machine accepts a connection, and until the scheduler answers.
_REACH, _ANSWER = 2.0, 20.0


def address_of(scheduler: Any) -> str:
    """The address of a scheduler that is given by its address or by a client of it."""
    return scheduler if isinstance(scheduler, str) else str(scheduler.scheduler.address)


def connect(scheduler: Any, *, default: bool = False) -> Any:
    """A client of a Dask scheduler.

    Parameters
    ----------
    scheduler
        The address of the scheduler, or a client of it, whose security settings are used; that client stays as it is.
    default
        Whether the client becomes Dask's default client.

    Raises
    ------
    EngineError
        If Dask is not installed or no scheduler answers.
    """
    _must_have_dask()
    from distributed import Client

    address = address_of(scheduler)
    security = None if isinstance(scheduler, str) else scheduler.security
    try:
        _reach(address)
        return Client(address, timeout=_ANSWER, set_as_default=default, security=security)
    except (OSError, TimeoutError, ValueError) as error:
        raise EngineError(f"no Dask scheduler answers at {address}: {error}") from None


def _reach(address: str) -> None:
    """Raise OSError if the scheduler's machine does not accept a connection soon; only for tcp and tls addresses."""
    protocol, _, rest = address.rpartition("://")
    host, _, port = rest.rpartition(":")
    if protocol in {"", "tcp", "tls"} and host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH).close()


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
