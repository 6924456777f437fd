"""The names of columns: each its own, and none that only looks it."""

from __future__ import annotations

from collections.abc import Sequence

from margotree.table.table import TableError


def column_names(written: Sequence[str], source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names without the blanks around them, and what the user should know about them.

    The second "age" becomes "age (2)", a nameless third one "column 3"; "age" beside "age " is an error, as nobody can
    tell which is meant.
    """
    _check_blanks(written, source)
    unique: list[str] = []
    repeated: list[str] = []
    for k, name in enumerate(cell.strip() for cell in written):
        own, times = name or f"column {k + 1}", 1
        while own in unique:
            times += 1
            own = f"{name or f'column {k + 1}'} ({times})"
        if name and own != name:
            repeated.append(own)
        unique.append(own)
    notes = (f"column names that were there already got a number: {', '.join(repeated)}",) if repeated else ()
    return tuple(unique), notes


def _check_blanks(written: Sequence[str], source: str) -> None:
    forms: dict[str, list[int]] = {}
    for k, name in enumerate(written):
        forms.setdefault(name.strip(), []).append(k)
    alike = [some for name, some in forms.items() if name and len({written[k] for k in some}) > 1]
    if not alike:
        return
    shown = "; ".join(" and ".join(f"{written[k]!r} (column {k + 1})" for k in some) for some in alike)
    raise TableError(
        f"{source} has columns whose names differ in blanks only: {shown}.  Nobody can tell which is meant: rename one "
        "in the file, or take it out"
    )
