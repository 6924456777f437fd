"""The file of results: an SQLite file with one row per fit, which remains intact if the writing process is killed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any

#: Column -> SQLite type.  Those of type JSON hold text, and lists or dicts on the Python side.
COLUMNS: dict[str, str] = {
    "key": "TEXT PRIMARY KEY",
    # The fit.
    "kind": "TEXT",  # "fit" (train and test part) or "fold" (one fold of a cross-validation)
    "data": "TEXT",
    "model": "TEXT",
    "depth": "INTEGER",
    "params": "JSON",
    "fold": "INTEGER",
    "start": "TEXT",
    "seed": "INTEGER",
    "time_limit": "REAL",
    # Its result, from the certificate.
    "engine": "TEXT",
    "engine_version": "TEXT",
    "objective": "REAL",
    "bound": "REAL",
    "gap": "REAL",
    "proved": "TEXT",
    "stopped": "TEXT",
    "nodes": "INTEGER",
    "start_objective": "REAL",
    "f0": "REAL",
    "f1": "REAL",
    "start_seconds": "REAL",
    "search_seconds": "REAL",
    "seconds": "REAL",
    # Accuracy, features and tree; in a fold "test" is the validation part.
    "train_acc": "REAL",
    "train_bacc": "REAL",
    "test_acc": "REAL",
    "test_bacc": "REAL",
    "n_features": "INTEGER",
    "features": "JSON",
    "scores": "JSON",
    "tree": "JSON",
    "certificate": "JSON",
    # Data, versions, machine and time.
    "data_checksum": "TEXT",
    "data_as_in_paper": "INTEGER",
    "versions": "JSON",
    "machine": "JSON",
    "finished": "TEXT",
}

_JSON = {name for name, kind in COLUMNS.items() if kind == "JSON"}

#: The number of the layout of the table, written into the file.
_LAYOUT = 1


class RowsError(RuntimeError):
    """The file of results cannot be used; the message names the reason and the remedy."""


class Rows:
    """The rows of a file of results, by key.  Every row is one transaction: it is written completely or not at all.

    Use an object from one thread; several processes may read while one writes.

    Parameters
    ----------
    path : path
        The file; it is created if it does not exist.
    must_exist : bool
        Raise :class:`RowsError` if there is no such file or it holds no results.
    """

    def __init__(self, path: str | PathLike[str], *, must_exist: bool = False) -> None:
        self.path = Path(path)
        if must_exist and not self.path.is_file():
            raise RowsError(f"there is no file of results {self.path}; run the experiment first")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            if must_exist and not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'fits'").fetchone():
                raise RowsError(f"{self.path} holds no results; run the experiment first")
            self._open()
        except sqlite3.DatabaseError as error:
            raise RowsError(f"{self.path} is not a file of results ({error}); name another file") from None

    def _open(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        # A killed process loses no committed row; a power failure may lose the last rows, but the file stays intact.
        self._db.execute("PRAGMA synchronous = NORMAL")
        layout = self._db.execute("PRAGMA user_version").fetchone()[0]
        if layout not in {0, _LAYOUT}:
            raise RowsError(f"{self.path} was written by another version of margotree (layout {layout}, not {_LAYOUT})")
        columns = ", ".join(f"{name} {'TEXT' if kind == 'JSON' else kind}" for name, kind in COLUMNS.items())
        self._db.execute(f"CREATE TABLE IF NOT EXISTS fits ({columns})")
        self._db.execute(f"PRAGMA user_version = {_LAYOUT}")

    def put(self, row: Mapping[str, Any]) -> None:
        """Write a row; a row with the same key that is in the file already is not changed."""
        if unknown := set(row) - set(COLUMNS):
            raise ValueError(f"no such columns: {sorted(unknown)}")
        names = list(row)
        marks = ", ".join("?" * len(names))
        values = [_stored(name, row[name]) for name in names]
        self._db.execute(f"INSERT OR IGNORE INTO fits ({', '.join(names)}) VALUES ({marks})", values)

    def keys(self) -> set[str]:
        """The keys of all rows."""
        return {key for (key,) in self._db.execute("SELECT key FROM fits")}

    def where(self, **equal: Any) -> list[dict[str, Any]]:
        """The rows whose columns have these values, oldest first."""
        if unknown := set(equal) - set(COLUMNS):
            raise ValueError(f"no such columns: {sorted(unknown)}")
        test = " AND ".join(f"{name} IS ?" for name in equal) or "1"
        found = self._db.execute(
            f"SELECT {', '.join(COLUMNS)} FROM fits WHERE {test} ORDER BY rowid", [*equal.values()]
        )
        return [_read(values) for values in found]

    def check(self) -> str:
        """The result of SQLite's integrity check: ``"ok"`` if the file is intact."""
        return str(self._db.execute("PRAGMA integrity_check").fetchone()[0])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.where())

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM fits").fetchone()[0])

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.close()


def _stored(name: str, value: Any) -> Any:
    return json.dumps(value, sort_keys=True) if name in _JSON and value is not None else value


def _read(values: tuple) -> dict[str, Any]:
    row = dict(zip(COLUMNS, values, strict=True))
    return {n: json.loads(v) if n in _JSON and v is not None else v for n, v in row.items()}
