"""The back ends on which joblib runs fits: threads or processes of this machine, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from joblib import parallel_config

from margotree.engines.base import EngineError
from margotree.engines.distributed.connection import connect

_JOBLIB = {"threads": "threading", "processes": "loky", "dask": "dask"}


def backend_names() -> tuple[str, ...]:
    """The names of the back ends."""
    return tuple(_JOBLIB)


class BackendError(RuntimeError):
    """The back end cannot be used; the message names the remedy."""


@contextmanager
def joblib_backend(backend: str = "threads", scheduler: str | None = None) -> Iterator[None]:
    """A context in which joblib uses this back end; ``scheduler`` is the address of a Dask scheduler."""
    if backend not in _JOBLIB:
        raise BackendError(f"unknown backend {backend!r}; there are: {', '.join(_JOBLIB)}")
    if backend != "dask":
        if scheduler is not None:
            raise BackendError("a scheduler goes with backend 'dask' only")
        with parallel_config(backend=_JOBLIB[backend]):
            yield
        return
    with _client(scheduler) as client, parallel_config(backend="dask", client=client):
        yield


@contextmanager
def _client(scheduler: str | None) -> Iterator[Any]:
    if scheduler is None:
        raise BackendError("backend 'dask' needs the scheduler's address, such as tcp://10.0.0.1:8786")
    try:
        client = connect(scheduler, default=True)
    except EngineError as error:
        raise BackendError(str(error)) from None
    with client:
        yield client
