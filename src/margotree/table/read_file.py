"""Read a file as a table: CSV, Excel or Parquet."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterable

from margotree.table.cells import MISSING
from margotree.table.decoding import to_text
from margotree.table.delimited import from_text
from margotree.table.table import Table, TableError


def read_table(
    path: str,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool = True,
    missing: Iterable[str] = (),
    sheet: str | None = None,
) -> Table:
    """Read a table from a file: by its ending an Excel or Parquet file, otherwise CSV.

    Parameters
    ----------
    path : str
        The file; a CSV file may be compressed with gzip, and ``-`` is standard input.
    delimiter : str, optional
        The character between columns, or "comma", "semicolon", "tab", "bar" or "space"; by default it is detected.
    decimal : str, optional
        "." or ","; by default both are accepted, unless the delimiter is a comma.
    encoding : str, optional
        The text encoding; by default UTF-8, or Windows-1252 if the file is not UTF-8.
    header : bool
        Whether the first line holds the column names.
    missing : iterable of str
        Further words that mean a missing value.
    sheet : str, optional
        The sheet of an Excel file; by default the first.

    Returns
    -------
    Table
        The columns as text.
    """
    words = MISSING | {word.strip().casefold() for word in missing}
    if path.lower().endswith((".parquet", ".pq")):
        from margotree.table.parquet import from_parquet

        return from_parquet(_existing_path(path), frozenset(words), decimal=decimal)
    if is_excel(path):
        from margotree.table.excel import from_excel

        return from_excel(_existing_path(path), frozenset(words), sheet=sheet, header=header, decimal=decimal)
    if sheet is not None:
        raise TableError(f"{path} is not an Excel file (.xlsx) and has no sheet {sheet!r}; leave out --sheet")
    raw = sys.stdin.buffer.read() if path == "-" else _read_bytes(_existing_path(path))
    source = "standard input" if path == "-" else path
    text, notes = to_text(raw, source, encoding)
    return from_text(
        text, source, notes=notes, delimiter=delimiter, decimal=decimal, header=header, missing=frozenset(words)
    )


def is_excel(path: str) -> bool:
    """Whether a file of this name is read as an Excel file."""
    return path.lower().endswith((".xlsx", ".xlsm"))


def _existing_path(path: str) -> str:
    if os.path.isdir(path):
        raise TableError(f"{path} is a folder; name a file")
    if not os.path.exists(path):
        raise TableError(f"there is no file {path}" + _similar_name(path))
    return path


def _similar_name(path: str) -> str:
    from difflib import get_close_matches

    folder, name = os.path.split(path)
    if folder and not os.path.isdir(folder):
        return f"; the folder {folder} does not exist"
    close = get_close_matches(name, os.listdir(folder or "."), n=1)
    return f"; did you mean {os.path.join(folder, close[0])}?" if close else ""


def _read_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            raw = stream.read()
        return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (OSError, EOFError) as error:
        raise TableError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
