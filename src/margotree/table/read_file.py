"""From a file's name to a table."""

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
    """Read a CSV file (``-`` for standard input, ``.gz`` welcome) or, by its ending, an Excel or Parquet file.

    What is not given is found out: the delimiter, whether fractions are written with a comma, the encoding.
    ``missing`` are further words that mean "not known"; ``sheet`` names the sheet of an Excel file.
    """
    words = MISSING | {word.strip().casefold() for word in missing}
    if path.lower().endswith((".parquet", ".pq")):
        from margotree.table.parquet import from_parquet

        return from_parquet(_found(path), frozenset(words), decimal=decimal)
    if is_excel(path):
        from margotree.table.excel import from_excel

        return from_excel(_found(path), frozenset(words), sheet=sheet, header=header, decimal=decimal)
    if sheet is not None:
        raise TableError(f"{path} is no Excel file (.xlsx), so it has no sheet {sheet!r}")
    raw = sys.stdin.buffer.read() if path == "-" else _bytes(_found(path))
    source = "standard input" if path == "-" else path
    text, notes = to_text(raw, source, encoding)
    return from_text(
        text, source, notes=notes, delimiter=delimiter, decimal=decimal, header=header, missing=frozenset(words)
    )


def is_excel(path: str) -> bool:
    """Whether a file of this name is read as an Excel file."""
    return path.lower().endswith((".xlsx", ".xlsm"))


def _found(path: str) -> str:
    if os.path.isdir(path):
        raise TableError(f"{path} is a folder; name a file in it")
    if not os.path.exists(path):
        raise TableError(f"there is no file {path}" + _look_here(path))
    return path


def _look_here(path: str) -> str:
    from difflib import get_close_matches

    folder, name = os.path.split(path)
    if folder and not os.path.isdir(folder):
        return f" (nor a folder {folder})"
    close = get_close_matches(name, os.listdir(folder or "."), n=1)
    return f"; did you mean {os.path.join(folder, close[0])}?" if close else ""


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            raw = stream.read()
        return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (OSError, EOFError) as error:
        raise TableError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
