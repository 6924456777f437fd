"""How a file is read: what the reader was told, kept with the tree so that further files are read the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the reader of a file was told; what is None is found out from the file itself.

    ``missing`` are further words for a missing cell, ``header`` says whether the first line holds the column names.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None
    missing: tuple[str, ...] | None = None
    sheet: str | None = None

    def overridden(self, other: Reading) -> Reading:
        """This reading, but for what the other one was told."""
        return replace(self, **other.told())

    def told(self) -> dict[str, Any]:
        """What is not left to be found out."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def to_record(self) -> dict[str, Any]:
        """JSON values from which :meth:`from_record` makes the same reading."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self.told().items()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Reading:
        """Read what :meth:`to_record` wrote; ValueError if it makes no sense.  Other entries are passed over."""
        names = [field.name for field in fields(cls)]
        known: dict[str, Any] = {name: record[name] for name in names if record.get(name) is not None}
        for name, value in known.items():
            if name == "missing":
                fits = isinstance(value, list) and all(isinstance(word, str) for word in value)
            else:
                fits = isinstance(value, bool if name == "header" else str)
            if not fits:
                raise ValueError(f"the reading's {name!r} cannot be {value!r}")
        return cls(**(known | ({"missing": tuple(known["missing"])} if "missing" in known else {})))
