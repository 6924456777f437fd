"""Read Excel files with openpyxl."""

from __future__ import annotations

import datetime
from importlib.util import find_spec
from typing import Any

from margotree.table.cells import stripped_cells
from margotree.table.headers import column_names
from margotree.table.table import Table, TableError, suggestion


def from_excel(
    path: str, missing: frozenset[str], *, sheet: str | None = None, header: bool = True, decimal: str | None = None
) -> Table:
    """Read a sheet (by default the first) as text cells; the first row that is not empty is the header.

    ``missing`` are the cells that mean a missing value.
    """
    if find_spec("openpyxl") is None:
        raise TableError(
            f'{path}: Excel files need openpyxl; run pip install "margotree[excel]", or save the file as CSV'
        )
    rows, source, notes = _rows(path, sheet)
    width = max((k + 1 for _, row in rows for k, cell in enumerate(row) if cell), default=0)
    rows = [(line, [*row, *[""] * width][:width]) for line, row in rows if any(row)]
    if not rows:
        raise TableError(f"{source} is empty; expected a row with the column names and one row per sample")
    names, renamed = column_names(rows[0][1] if header else [""] * width, source)
    body = rows[1:] if header else rows
    if not body:
        raise TableError(f"{source} has a header but no rows")
    return Table(
        source=source,
        names=names,
        columns=tuple(stripped_cells((row[k] for _, row in body), missing) for k in range(width)),
        lines=[line for line, _ in body],
        decimal=decimal or ".",
        notes=(*notes, *renamed),
    )


def _rows(path: str, sheet: str | None) -> tuple[list[tuple[int, list[str]]], str, tuple[str, ...]]:
    """The rows of the sheet with their numbers, the name of the sheet for messages, and a note about other sheets."""
    from zipfile import BadZipFile

    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, InvalidFileException, KeyError, OSError, ValueError) as error:
        raise TableError(f"{path} cannot be read as an Excel file: {error}") from None
    try:
        names = [one.title for one in book.worksheets]
        if not names:
            raise TableError(f"{path} has no sheet with cells")
        if sheet is not None and sheet not in names:
            raise TableError(f"{path} has no sheet {sheet!r}; {suggestion(sheet, names, 'its sheets')}")
        chosen = names[0] if sheet is None else sheet
        worksheet = book.worksheets[names.index(chosen)]
        worksheet.reset_dimensions()  # the size that the file states may be wrong
        rows = [
            (k, [_cell(value) for value in row]) for k, row in enumerate(worksheet.iter_rows(values_only=True), start=1)
        ]
    finally:
        book.close()
    others = ", ".join(repr(name) for name in names if name != chosen)
    note = f"{path}: the first sheet, {chosen!r}, is read; to read another one ({others}), add --sheet NAME"
    source = f"{path} (sheet {chosen!r}; others: {others})" if others else path
    return rows, source, (note,) if others and sheet is None else ()


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time() else value.isoformat(" ")
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(value)
