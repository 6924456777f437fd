"""Notes for the user about a new file to which a tree is applied."""

from __future__ import annotations

from collections import Counter

from margotree.table.amounts import MONTH_NAMES, TRUTH, has_unit
from margotree.table.encoding import Category, Column, Encoding, Number
from margotree.table.table import Table


def notes_about(encoding: Encoding, table: Table) -> list[str]:
    """Notes about unknown words, filled cells and missing units, with counts by column."""
    present = [column for column in encoding.columns if column.name in table.names]
    notes = [_unknown_words_note(column, table) for column in present]
    notes += [_filled_note(column, table) for column in present]
    notes += [_units_note(column, table) for column in present]
    return [note for note in notes if note]


def _unknown_words_note(column: Column, table: Table) -> str:
    if not isinstance(column, Category):
        return ""
    cells = table.column(column.name)
    counts = Counter(cells[k] for k in column.unknown_positions(cells))
    if not counts:
        return ""
    shown = ", ".join(f"{word!r} ({times})" for word, times in counts.most_common(6))
    more = f" and {len(counts) - 6} more" if len(counts) > 6 else ""
    # Two words have one feature, which is 1 for the second; an unknown word has the features of the first.
    two = len(column.values) == 2
    treated = f"as {column.values[0]!r}, the first of two words" if two else "as none of the known words"
    words = f"{counts.total()} rows have words in column {column.name!r} that are not in the training file"
    return f"{words}, treated {treated}: {shown}{more}"


def _filled_note(column: Column, table: Table) -> str:
    missing = sum(not cell for cell in table.column(column.name))
    if not missing or column.fill is None:
        return ""
    fill = repr(column.fill) if isinstance(column.fill, str) else f"{column.fill:g}"
    return (
        f"{missing} of {table.n_rows} rows have no value in column {column.name!r}: replaced by {fill}, as in training"
    )


def _units_note(column: Column, table: Table) -> str:
    unit = column.unit if isinstance(column, Number) else None
    cells = table.column(column.name)
    if unit in (None, MONTH_NAMES, TRUTH) or not any(cells) or has_unit(cells, unit):
        return ""
    return f"column {column.name!r} has the unit {unit!r} in the training file and none here: the same unit is assumed"
