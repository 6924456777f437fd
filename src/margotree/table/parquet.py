"""Read Parquet files with pyarrow."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from margotree.table.cells import stripped_cells
from margotree.table.headers import column_names
from margotree.table.table import Table, TableError


def from_parquet(path: str, missing: frozenset[str], *, decimal: str | None = None) -> Table:
    """Read the columns of a Parquet file as text cells, without rounding numbers."""
    if find_spec("pyarrow") is None:
        raise TableError(
            f'{path}: Parquet files need pyarrow; run pip install "margotree[parquet]", or save the file as CSV'
        )
    import pyarrow
    from pyarrow import parquet

    try:
        content = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise TableError(f"{path} cannot be read as a Parquet file: {error}") from None
    if not content.num_rows or not content.num_columns:
        raise TableError(f"{path} has no rows")
    columns = [stripped_cells(map(_cell, content.column(j).to_pylist()), missing) for j in range(content.num_columns)]
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
