"""From text to a table, whatever parts its columns."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator

from margotree.table.cells import plain
from margotree.table.headers import column_names
from margotree.table.table import Table, TableError

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
#: Rows that decide what the delimiter is.
_SAMPLE = 60
#: The line by which Excel is told the delimiter.
_SEP = re.compile(r'\s*"?sep=(.)"?\s*?(?=\r|\n)', re.IGNORECASE)


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
    """Find the delimiter, take the first row as header, check that all rows are as long."""
    if told := _SEP.match(text):
        # The line stays as an empty one, so that the others keep their numbers.
        delimiter, text = delimiter or told[1], "\n" * told[0].count("\n") + text[told.end() :]
    delimiter = _spelled(delimiter) if delimiter else sniff(text, source)
    rows = list(_rows(text, delimiter, source))
    first = rows[0][1]
    names = first if header else [""] * len(first)
    body = rows[1:] if header else rows
    _check_lengths(source, len(names), body, delimiter)
    if not body:
        raise TableError(f"{source} has a header but no rows below it")
    unique, renamed = column_names(names, source)
    cells: list[list[str]] = [plain(column, missing) for column in zip(*(r for _, r in body))]  # noqa: B905
    return Table(
        source=source,
        names=unique,
        columns=tuple(cells),
        lines=[line for line, _ in body],
        decimal=decimal or ("." if delimiter == "," else "any"),
        notes=(*notes, *renamed, *_headless(source, names if header else [])),
    )


def sniff(text: str, source: str) -> str:
    """The delimiter under which the most first rows have the same number of columns, and more than one."""
    best, best_score = "", (0, 0)
    for delimiter in _DELIMITERS:
        try:
            lengths = Counter(len(row) for _, row in _first(text, delimiter, source))
        except TableError:
            continue
        length, times = max(lengths.items(), key=lambda item: (item[0] > 1, item[1], item[0]))
        score = (times, length) if length > 1 else (0, 0)
        if score > best_score:
            best, best_score = delimiter, score
    if not best:
        raise TableError(
            f"{source} seems to have one column only; if its columns are parted by something else than a comma, "
            "semicolon, tab or bar, say so with --delimiter"
        )
    return best


def _first(text: str, delimiter: str, source: str) -> Iterator[tuple[int, list[str]]]:
    for k, row in enumerate(_rows(text, delimiter, source)):
        if k >= _SAMPLE:
            return
        yield row


def _rows(text: str, delimiter: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that hold something, with the number of the line they end in."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error as error:
        raise TableError(f"{source}, line {reader.line_num}: {error}; is a quotation mark left open?") from None


def _spelled(delimiter: str) -> str:
    words = {word: char for char, word in _DELIMITERS.items()} | {"\\t": "\t", "space": " "}
    found = words.get(delimiter.lower(), delimiter)
    if len(found) != 1:
        raise TableError(f"a delimiter is one character or one of {', '.join(words)}; got {delimiter!r}")
    return found


def _check_lengths(source: str, width: int, body: list[tuple[int, list[str]]], delimiter: str) -> None:
    odd = [(line, len(row)) for line, row in body if len(row) != width]
    if not odd:
        return
    line, length = odd[0]
    more = f" (and {len(odd) - 1} more such lines)" if len(odd) > 1 else ""
    raise TableError(
        f"{source}, line {line}: {length} cells under {width} column names{more}, read with "
        f"{_DELIMITERS.get(delimiter, repr(delimiter))} as delimiter; mend the line, put cells that hold the delimiter "
        "in quotation marks, or say --delimiter"
    )


def _headless(source: str, names: list[str]) -> tuple[str, ...]:
    if not names or not all(_is_number(name) for name in names):
        return ()
    return (f"the first line of {source} holds numbers only; if it is no header, say --no-header",)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True
