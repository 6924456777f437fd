"""What a file holds before anybody decides what its columns mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches


class TableError(ValueError):
    """A table cannot be used as it is; the message says where the trouble lies and what to do about it."""


class MissingCells(TableError):
    """Cells are missing that are needed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Columns of text cells, stripped; a missing cell is the empty string.

    ``lines`` are the numbers of the rows in the file, for messages; ``notes`` tell what the reader had to assume.
    ``decimal`` is how fractions may be written in it: ".", "," or "any".
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
        """The cells under a header; a slip in spelling is answered with the nearest headers."""
        return self.columns[self.names.index(self.find(name))]

    def find(self, name: str) -> str:
        """The header meant by ``name``: the same text, or the only one that differs in case alone."""
        wanted = name.strip()
        if wanted in self.names:
            return wanted
        alike = [other for other in self.names if other.casefold() == wanted.casefold()]
        if len(alike) == 1:
            return alike[0]
        raise TableError(f"{self.source} has no column {name!r}; {suggestion(wanted, self.names)}")

    def rows(self, keep: Iterable[int]) -> Table:
        """The table of these rows alone."""
        chosen = list(keep)
        return Table(
            source=self.source,
            names=self.names,
            columns=tuple([column[i] for i in chosen] for column in self.columns),
            lines=[self.lines[i] for i in chosen],
            decimal=self.decimal,
            notes=self.notes,
        )


def suggestion(wanted: str, names: Iterable[str], what: str = "its columns") -> str:
    """The names that come nearest, or all of them if they are few."""
    names = list(names)
    close = get_close_matches(wanted, names, n=3, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(map(repr, close)) + "?"
    shown = ", ".join(map(repr, names[:12]))
    return f"{what} are {shown}" + (f" and {len(names) - 12} more" if len(names) > 12 else "")
