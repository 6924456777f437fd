"""Parse text with delimited columns (CSV) into a table."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator

from margotree.table.cells import stripped_cells
from margotree.table.headers import column_names
from margotree.table.table import Table, TableError

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
#: The number of rows from which the delimiter is detected.
_SNIFFED_ROWS = 60
#: The line of Excel files that declares the delimiter.
_SEP_LINE = re.compile(r'\s*"?sep=(.)"?\s*?(?=\r|\n)', re.IGNORECASE)


def from_text(
    text: str,
    source: str,
    *,
    notes: tuple[str, ...] = (),
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    missing: frozenset[str],
) -> Table:
    """Parse delimited text: detect the delimiter, read the header, check that all rows have the same length.

    ``source`` is the name of the file in messages, ``notes`` precede the notes of the returned table.
    """
    if declared := _SEP_LINE.match(text):
        # An empty line replaces the declaration, so that the line numbers stay the same.
        delimiter, text = delimiter or declared[1], "\n" * declared[0].count("\n") + text[declared.end() :]
    delimiter = _delimiter_character(delimiter) if delimiter else sniff(text, source)
    rows = list(_rows(text, delimiter, source))
    first = rows[0][1]
    names = first if header else [""] * len(first)
    body = rows[1:] if header else rows
    _check_row_lengths(source, len(names), body, delimiter)
    if not body:
        raise TableError(f"{source} has a header but no rows")
    unique, renamed = column_names(names, source)
    cells: list[list[str]] = [stripped_cells(column, missing) for column in zip(*(r for _, r in body))]  # noqa: B905
    return Table(
        source=source,
        names=unique,
        columns=tuple(cells),
        lines=[line for line, _ in body],
        decimal=decimal or ("." if delimiter == "," else "any"),
        notes=(*notes, *renamed, *_numeric_header_note(source, names if header else [])),
    )


def sniff(text: str, source: str) -> str:
    """Detect the delimiter: with it, most of the first rows have the same number of columns, at least two."""
    best, best_score = "", (0, 0)
    for delimiter in _DELIMITERS:
        try:
            lengths = Counter(len(row) for _, row in _first_rows(text, delimiter, source))
        except TableError:
            continue
        length, times = max(lengths.items(), key=lambda item: (item[0] > 1, item[1], item[0]))
        score = (times, length) if length > 1 else (0, 0)
        if score > best_score:
            best, best_score = delimiter, score
    if not best:
        raise TableError(
            f"{source} seems to have only one column; if the delimiter between its columns is not a comma, semicolon, "
            "tab or bar, name it with --delimiter"
        )
    return best


def _first_rows(text: str, delimiter: str, source: str) -> Iterator[tuple[int, list[str]]]:
    for k, row in enumerate(_rows(text, delimiter, source)):
        if k >= _SNIFFED_ROWS:
            return
        yield row


def _rows(text: str, delimiter: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, with the number of the line in which they end."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error as error:
        raise TableError(
            f"{source}, line {reader.line_num}: {error}; check for a quotation mark that is not closed"
        ) from None


def _delimiter_character(delimiter: str) -> str:
    words = {word: char for char, word in _DELIMITERS.items()} | {"\\t": "\t", "space": " "}
    found = words.get(delimiter.lower(), delimiter)
    if len(found) != 1:
        raise TableError(f"--delimiter must be one character or one of {', '.join(words)}; got {delimiter!r}")
    return found


def _check_row_lengths(source: str, n_columns: int, body: list[tuple[int, list[str]]], delimiter: str) -> None:
    """Raise an error if a row has not exactly ``n_columns`` cells; ``body`` are pairs of line number and cells."""
    odd = [(line, len(row)) for line, row in body if len(row) != n_columns]
    if not odd:
        return
    line, length = odd[0]
    more = f" (and {len(odd) - 1} more such lines)" if len(odd) > 1 else ""
    raise TableError(
        f"{source}, line {line}: {length} cells for {n_columns} column names{more}, with the delimiter "
        f"{_DELIMITERS.get(delimiter, repr(delimiter))}; correct the line, put cells that contain the delimiter in "
        "quotation marks, or name another delimiter with --delimiter"
    )


def _numeric_header_note(source: str, names: list[str]) -> tuple[str, ...]:
    """A note for the user if all names are numbers, since the first line is then perhaps not a header."""
    if not names or not all(_is_number(name) for name in names):
        return ()
    return (f"the first line of {source} holds numbers only; if it is not a header, add --no-header",)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True
