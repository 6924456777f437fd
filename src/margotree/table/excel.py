"""Excel files, read by openpyxl if it is installed."""

from __future__ import annotations

import datetime
from importlib.util import find_spec
from typing import Any

from margotree.table.cells import plain
from margotree.table.headers import column_names
from margotree.table.table import Table, TableError, suggestion


def from_excel(
    path: str, missing: frozenset[str], *, sheet: str | None = None, header: bool = True, decimal: str | None = None
) -> Table:
    """The cells of a sheet (the first if not named) as text, under the first row that holds something."""
    if find_spec("openpyxl") is None:
        raise TableError(
            f'{path}: reading Excel files needs openpyxl; pip install "margotree[excel]", or save it as CSV'
        )
    rows, source, notes = _rows(path, sheet)
    width = max((k + 1 for _, row in rows for k, cell in enumerate(row) if cell), default=0)
    rows = [(line, [*row, *[""] * width][:width]) for line, row in rows if any(row)]
    if not rows:
        raise TableError(f"{source} is empty; expected a row of column names and one row per sample")
    names, renamed = column_names(rows[0][1] if header else [""] * width, source)
    body = rows[1:] if header else rows
    if not body:
        raise TableError(f"{source} has a header but no rows below it")
    return Table(
        source=source,
        names=names,
        columns=tuple(plain((row[k] for _, row in body), missing) for k in range(width)),
        lines=[line for line, _ in body],
        decimal=decimal or ".",
        notes=(*notes, *renamed),
    )


def _rows(path: str, sheet: str | None) -> tuple[list[tuple[int, list[str]]], str, tuple[str, ...]]:
    """The rows of the sheet with their numbers, what messages call it, and a note if there are other sheets."""
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
            raise TableError(f"{path} holds no sheet with cells")
        if sheet is not None and sheet not in names:
            raise TableError(f"{path} has no sheet {sheet!r}; {suggestion(sheet, names, 'its sheets')}")
        chosen = names[0] if sheet is None else sheet
        page = book.worksheets[names.index(chosen)]
        page.reset_dimensions()  # what the file says of its size may be wrong
        rows = [(k, [_cell(value) for value in row]) for k, row in enumerate(page.iter_rows(values_only=True), start=1)]
    finally:
        book.close()
    others = ", ".join(repr(name) for name in names if name != chosen)
    note = f"{path}: read the first sheet, {chosen!r}; there are others ({others}): say --sheet NAME to take one"
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
