"""Download of sets from UCI, OpenML and the LIBSVM collection; every table is checked."""

from __future__ import annotations

import hashlib
import http.client
import socket
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from margotree.paper.data.catalogue import Entry
from margotree.paper.data.dataset import DataError, Dataset
from margotree.paper.data.read import build, parse

#: Seconds to wait for a server.
TIMEOUT = 20.0

#: The largest number of bytes read, more than any of the sets has.
_MOST_BYTES = 10_000_000

_UCI = "https://archive.ics.uci.edu/static/public/{id}/data.csv"
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/{stem}_scale"


def fetch(entry: Entry) -> tuple[Dataset | None, list[str]]:
    """The set from the first source that delivers it (or None), and one line for every source that failed."""
    failures: list[str] = []
    for source, get in _sources(entry):
        try:
            return get(), failures
        except DataError as error:
            failures.append(str(error))
        except (OSError, http.client.HTTPException, ValueError, LookupError) as error:
            failures.append(f"{source}: {_reason(error)}")
    return None, failures


def _sources(entry: Entry) -> Iterator[tuple[str, Callable[[], Dataset]]]:
    """The sources of a set in the order in which they are tried: their names and download functions."""
    if entry.uci is not None:
        yield f"UCI {entry.uci}", lambda: _from_uci(entry)
    for number in entry.openml:
        yield f"OpenML {number}", lambda number=number: _from_openml(entry, number)  # type: ignore[misc]
    if entry.uci is None:
        yield "LIBSVM", lambda: _from_libsvm(entry)


def _from_uci(entry: Entry) -> Dataset:
    return parse(entry, _read(_UCI.format(id=entry.uci)), f"UCI {entry.uci}")


def _from_openml(entry: Entry, number: int) -> Dataset:
    """Download from OpenML through scikit-learn, as arrays with codes of categories, which needs no pandas."""
    from sklearn.datasets import fetch_openml

    with _timeout_without_warnings():
        bunch = fetch_openml(data_id=number, as_frame=False, parser="liac-arff", cache=False)
    categories: dict[str, list[str]] = bunch.get("categories") or {}
    keep = [j for j, name in enumerate(bunch.feature_names) if name.lower() not in entry.ids]
    rows = [[_cell_text(row[j], categories.get(bunch.feature_names[j])) for j in keep] for row in bunch.data.tolist()]
    labels = [_cell_text(label, None) for label in bunch.target.tolist()]
    digest = hashlib.sha256(repr((rows, labels)).encode()).hexdigest()
    return build(entry, rows, labels, source=f"OpenML {number}", checksum=digest)


def _from_libsvm(entry: Entry) -> Dataset:
    raw = _read(_LIBSVM.format(stem=entry.stem))
    rows, labels = [], []
    for line in raw.decode("utf-8", errors="replace").splitlines():
        label, *pairs = line.split()
        cells = dict(pair.split(":", 1) for pair in pairs)
        rows.append([cells.get(str(j), "0") for j in range(1, entry.n_features + 1)])
        labels.append(label.lstrip("+"))
    return build(entry, rows, labels, source="LIBSVM", checksum=hashlib.sha256(raw).hexdigest())


@contextmanager
def _timeout_without_warnings() -> Iterator[None]:
    """A context with a time limit for sockets, and without warnings about retries."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        socket.setdefaulttimeout(before)


def _read(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": "margotree"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        raw: bytes = answer.read(_MOST_BYTES)
    return raw


def _cell_text(value: Any, categories: list[str] | None) -> str:
    """A cell as a string; ``categories`` are the names of the codes of a nominal column."""
    if categories is not None and value == value:
        return str(categories[int(value)])
    return repr(value) if isinstance(value, float) else str(value)


def _reason(error: Exception) -> str:
    """The first line of the message of an error."""
    reason = getattr(error, "reason", None) or error
    lines = str(reason).strip().splitlines()
    return lines[0] if lines else type(error).__name__
