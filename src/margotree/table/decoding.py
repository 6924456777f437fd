"""Decode the bytes of a file: byte-order marks, UTF-8, and Windows-1252 as a fallback."""

from __future__ import annotations

import codecs

from margotree.table.table import TableError

#: The encoding by byte-order mark, and the kind of file that is not text by its first bytes.
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_BINARY = {b"PK\x03\x04": "an Excel or zip file", b"PAR1": "a Parquet file", b"\xd0\xcf\x11\xe0": "an old Excel file"}


def to_text(raw: bytes, source: str, encoding: str | None = None) -> tuple[str, tuple[str, ...]]:
    """The text of a file, and a note if its encoding was guessed.  ``source`` is its name in messages."""
    for magic, kind in _BINARY.items():
        if raw.startswith(magic):
            hint = {
                b"PAR1": "rename it to end in .parquet",
                b"PK\x03\x04": "if it is an Excel file, rename it to end in .xlsx; otherwise save it as CSV",
            }.get(magic, "save it as .xlsx or CSV first")
            raise TableError(f"{source} is {kind}, not CSV; {hint}")
    name = encoding or next((name for mark, name in _MARKS.items() if raw.startswith(mark)), "utf-8")
    try:
        return _check_text(raw.decode(name), source), ()
    except LookupError:
        raise TableError(f"the encoding {name!r} is unknown; try --encoding utf-8, cp1252 or utf-16") from None
    except UnicodeDecodeError as error:
        if encoding is not None:
            raise TableError(
                f"{source} is not encoded in {encoding} (byte {error.start} is invalid); try another --encoding"
            ) from None
    note = (
        f"{source} is not UTF-8 and is read as Windows-1252; if letters look wrong, name the encoding with --encoding"
    )
    return _check_text(raw.decode("cp1252", errors="replace"), source), (note,)


def _check_text(text: str, source: str) -> str:
    """Return the text without a byte-order mark; TableError if it is empty or contains NUL characters."""
    if "\0" in text:
        raise TableError(
            f"{source} is not a text file: it contains NUL characters; if it is UTF-16, add --encoding utf-16"
        )
    text = text.removeprefix("\ufeff")  # a byte-order mark that the encoding given by the user keeps
    if not text.strip():
        raise TableError(f"{source} is empty; expected a line with the column names and one line per sample")
    return text
