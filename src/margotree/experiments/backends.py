"""Where fits run: threads or processes of this machine, or a Dask cluster; joblib does the rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from joblib import parallel_config

_JOBLIB = {"threads": "threading", "processes": "loky", "dask": "dask"}


def backend_names() -> tuple[str, ...]:
    return tuple(_JOBLIB)


class BackendError(RuntimeError):
    """The back-end cannot be used; the message says what to do."""


@contextmanager
def running_on(backend: str = "threads", scheduler: str | None = None) -> Iterator[None]:
    """Inside, joblib runs on this back-end; ``scheduler`` is the address of a Dask scheduler."""
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
def _client(scheduler: str | None) -> Iterator[object]:
    if find_spec("distributed") is None:
        raise BackendError("backend 'dask' needs Dask: pip install 'margotree[cluster]'")
    if scheduler is None:
        raise BackendError("backend 'dask' needs the scheduler's address, such as tcp://10.0.0.1:8786")
    from distributed import Client

    try:
        client = Client(scheduler, timeout=20)
    except (OSError, TimeoutError, ValueError) as error:
        raise BackendError(f"no Dask scheduler answers at {scheduler}: {error}") from None
    with client:
        yield client
