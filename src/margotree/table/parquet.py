"""Parquet files, read by pyarrow if it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from margotree.table.cells import plain
from margotree.table.headers import column_names
from margotree.table.table import Table, TableError


def from_parquet(path: str, missing: frozenset[str], *, decimal: str | None = None) -> Table:
    """The columns of a Parquet file as text cells; numbers keep every bit."""
    if find_spec("pyarrow") is None:
        raise TableError(f'{path}: reading Parquet needs pyarrow; pip install "margotree[parquet]", or save it as CSV')
    import pyarrow
    from pyarrow import parquet

    try:
        content = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise TableError(f"{path} cannot be read as Parquet: {error}") from None
    if not content.num_rows or not content.num_columns:
        raise TableError(f"{path} holds no rows")
    columns = [plain(map(_cell, content.column(j).to_pylist()), missing) for j in range(content.num_columns)]
    names, renamed = column_names(content.column_names, path)
    return Table(
        source=path,
        names=names,
        columns=tuple(columns),
        lines=list(range(1, content.num_rows + 1)),
        decimal=decimal or ".",
        notes=renamed,
    )


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)
