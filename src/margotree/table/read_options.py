"""The options with which a file is read, saved with the tree so that new files are read in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The options of :func:`margotree.table.read_table`; an option that is None is detected from the file.

    Attributes
    ----------
    delimiter : str or None
        The character between two cells, or its name.
    decimal : str or None
        The decimal point of numbers.
    encoding : str or None
        The encoding of a text file.
    header : bool or None
        Whether the first line holds the column names.
    missing : tuple of str or None
        Further words for a missing cell.
    sheet : str or None
        The sheet of an Excel file.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None
    missing: tuple[str, ...] | None = None
    sheet: str | None = None

    def updated_by(self, other: ReadOptions) -> ReadOptions:
        """These options, except that the options of ``other`` that are not None replace them."""
        return replace(self, **other.given())

    def given(self) -> dict[str, Any]:
        """The options that are not None."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def to_record(self) -> dict[str, Any]:
        """The options as JSON values; :meth:`from_record` is the inverse."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self.given().items()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> ReadOptions:
        """The inverse of :meth:`to_record`; ValueError if a value is not valid.  Unknown entries are ignored."""
        names = [field.name for field in fields(cls)]
        known: dict[str, Any] = {name: record[name] for name in names if record.get(name) is not None}
        for name, value in known.items():
            if name == "missing":
                is_valid = isinstance(value, list) and all(isinstance(word, str) for word in value)
            else:
                is_valid = isinstance(value, bool if name == "header" else str)
            if not is_valid:
                raise ValueError(f"the reading option {name!r} cannot be {value!r}")
        return cls(**(known | ({"missing": tuple(known["missing"])} if "missing" in known else {})))
