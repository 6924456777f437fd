"""From bytes to text: byte-order marks, and files that are older than UTF-8."""

from __future__ import annotations

import codecs

from margotree.table.table import TableError

_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_BINARY = {b"PK\x03\x04": "an Excel or zip file", b"PAR1": "a Parquet file", b"\xd0\xcf\x11\xe0": "an old Excel file"}


def to_text(raw: bytes, source: str, encoding: str | None = None) -> tuple[str, tuple[str, ...]]:
    """The text, and a note if its encoding had to be guessed."""
    for magic, kind in _BINARY.items():
        if raw.startswith(magic):
            hint = {b"PAR1": "name it .parquet", b"PK\x03\x04": "name it .xlsx if it is one, or save it as CSV"}.get(
                magic, "save it as .xlsx or CSV first"
            )
            raise TableError(f"{source} is {kind}, not CSV; {hint}")
    name = encoding or next((name for mark, name in _MARKS.items() if raw.startswith(mark)), "utf-8")
    try:
        return _checked(raw.decode(name), source), ()
    except LookupError:
        raise TableError(f"there is no encoding {name!r}; try utf-8, cp1252 or utf-16") from None
    except UnicodeDecodeError as error:
        if encoding is not None:
            raise TableError(f"{source} is not {encoding}: byte {error.start} does not fit; try another") from None
    note = f"{source} is not UTF-8; read as Windows-1252 (say --encoding NAME if letters look wrong)"
    return _checked(raw.decode("cp1252", errors="replace"), source), (note,)


def _checked(text: str, source: str) -> str:
    if "\0" in text:
        raise TableError(f"{source} is no text: it holds NUL characters (is it UTF-16? then say --encoding utf-16)")
    text = text.removeprefix("\ufeff")  # a mark that an encoding named by the user leaves in
    if not text.strip():
        raise TableError(f"{source} is empty; expected a line of column names and one line per sample")
    return text
