"""Make the names of columns unique."""

from __future__ import annotations

from collections.abc import Sequence

from margotree.table.table import TableError


def column_names(written: Sequence[str], source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Unique column names, and notes for the user about names that were changed.

    Surrounding blanks are removed.  The second "age" becomes "age (2)"; the third column, if it has no name, becomes
    "column 3".  Names that differ only in blanks, such as "age" and "age ", are an error.

    Parameters
    ----------
    written : sequence of str
        The names as the file contains them; an empty name stands for a column without one.
    source : str
        The name of the file in messages.
    """
    _check_no_difference_in_blanks_only(written, source)
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


def _check_no_difference_in_blanks_only(written: Sequence[str], source: str) -> None:
    """Raise an error if two names are different, but the same without surrounding blanks."""
    columns_by_name: dict[str, list[int]] = {}
    for k, name in enumerate(written):
        columns_by_name.setdefault(name.strip(), []).append(k)
    alike = [group for name, group in columns_by_name.items() if name and len({written[k] for k in group}) > 1]
    if not alike:
        return
    shown = "; ".join(" and ".join(f"{written[k]!r} (column {k + 1})" for k in group) for group in alike)
    raise TableError(
        f"{source} has columns whose names differ in blanks only: {shown}; rename one of them in the file, or remove it"
    )
