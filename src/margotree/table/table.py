"""Tables of text cells, as they are read from files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches


class TableError(ValueError):
    """Raised if a table cannot be used; the message names the column or line and what to do."""


class MissingCells(TableError):
    """Raised if required cells are missing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Columns of text cells without surrounding blanks; a missing cell is the empty string.

    ``source`` is the name of the file.  ``lines`` are the line numbers of the rows in the file, for messages.
    ``notes`` are assumptions of the reader, for the user.  ``decimal`` is how fractions may be written: ".", "," or
    "any".
    """

    source: str
    names: tuple[str, ...]
    columns: tuple[list[str], ...]
    lines: list[int]
    decimal: str = "."
    notes: tuple[str, ...] = field(default=())

    @property
    def n_rows(self) -> int:
        return len(self.lines)

    def column(self, name: str) -> list[str]:
        """The cells of a column; if there is none of this name, the error suggests similar names."""
        return self.columns[self.names.index(self.find(name))]

    def find(self, name: str) -> str:
        """The header ``name``, or the only header that differs from it in case alone."""
        stripped = name.strip()
        if stripped in self.names:
            return stripped
        same_but_case = [other for other in self.names if other.casefold() == stripped.casefold()]
        if len(same_but_case) == 1:
            return same_but_case[0]
        raise TableError(f"{self.source} has no column {name!r}; {suggestion(stripped, self.names)}")

    def rows(self, keep: Iterable[int]) -> Table:
        """The table with only these rows."""
        chosen = list(keep)
        return Table(
            source=self.source,
            names=self.names,
            columns=tuple([column[i] for i in chosen] for column in self.columns),
            lines=[self.lines[i] for i in chosen],
            decimal=self.decimal,
            notes=self.notes,
        )


def suggestion(name: str, names: Iterable[str], what: str = "its columns") -> str:
    """A hint for a name that is not among ``names``: similar names, or the first 12 names; ``what`` they are."""
    names = list(names)
    close = get_close_matches(name, names, n=3, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(map(repr, close)) + "?"
    shown = ", ".join(map(repr, names[:12]))
    return f"{what} are {shown}" + (f" and {len(names) - 12} more" if len(names) > 12 else "")
