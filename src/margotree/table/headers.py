"""Make the names of columns unique."""

from __future__ import annotations

from collections.abc import Sequence

from margotree.table.table import TableError


def column_names(written: Sequence[str], source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names without surrounding blanks, and notes for the user; ``source`` is the file in messages.

    The second "age" becomes "age (2)", a third column without a name "column 3".  Names that differ only in blanks,
    such as "age" and "age ", are an error.
    """
    _check_distinct_without_blanks(written, source)
    names: list[str] = []
    repeated: list[str] = []
    for k, name in enumerate(cell.strip() for cell in written):
        unique, times = name or f"column {k + 1}", 1
        while unique in names:
            times += 1
            unique = f"{name or f'column {k + 1}'} ({times})"
        if name and unique != name:
            repeated.append(unique)
        names.append(unique)
    notes = (f"repeated column names have got a number: {', '.join(repeated)}",) if repeated else ()
    return tuple(names), notes


def _check_distinct_without_blanks(written: Sequence[str], source: str) -> None:
    forms: dict[str, list[int]] = {}
    for k, name in enumerate(written):
        forms.setdefault(name.strip(), []).append(k)
    alike = [some for name, some in forms.items() if name and len({written[k] for k in some}) > 1]
    if not alike:
        return
    shown = "; ".join(" and ".join(f"{written[k]!r} (column {k + 1})" for k in some) for some in alike)
    raise TableError(
        f"{source} has columns whose names differ in blanks only: {shown}; rename one of them in the file, or remove it"
    )
