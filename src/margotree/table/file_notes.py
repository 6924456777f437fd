"""What the user should know about a new file that a tree is used on."""

from __future__ import annotations

from collections import Counter

from margotree.table.amounts import MONTH_NAMES, carries
from margotree.table.encoding import Category, Column, Encoding
from margotree.table.table import Table


def notes_about(encoding: Encoding, table: Table) -> list[str]:
    """Words that training did not see, cells that were filled in, units that were left off: counted by column."""
    there = [column for column in encoding.columns if column.name in table.names]
    found = [_strangers(column, table) for column in there]
    found += [_filled(column, table) for column in there]
    found += [_units(column, table) for column in there]
    return [note for note in found if note]


def _strangers(column: Column, table: Table) -> str:
    if not isinstance(column, Category):
        return ""
    cells = table.column(column.name)
    counts = Counter(cells[k] for k in column.strangers(cells))
    if not counts:
        return ""
    shown = ", ".join(f"{word!r} ({times})" for word, times in counts.most_common(6))
    more = f" and {len(counts) - 6} more" if len(counts) > 6 else ""
    # Two words are one feature, 1 for the second: neither of them looks like the first.
    two = len(column.values) == 2
    taken = f"as {column.values[0]!r}, the first of two" if two else "as none of the known words"
    words = f"{counts.total()} rows have words under {column.name!r} that training did not see"
    return f"{words}, taken {taken}: {shown}{more}"


def _filled(column: Column, table: Table) -> str:
    holes = sum(not cell for cell in table.column(column.name))
    if not holes or column.fill is None:
        return ""
    fill = repr(column.fill) if isinstance(column.fill, str) else f"{column.fill:g}"
    return f"{holes} of {table.n_rows} rows have no {column.name!r}: {fill} was put in, as in training"


def _units(column: Column, table: Table) -> str:
    unit = None if isinstance(column, Category) else column.unit
    cells = table.column(column.name)
    if unit in (None, MONTH_NAMES) or not any(cells) or carries(cells, unit):
        return ""
    return f"{column.name!r} was written with {unit!r} in training and is written without it here: taken as the same"
