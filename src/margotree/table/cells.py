"""Single cells: which are missing, which are numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from margotree.table.table import Table

#: How people write "not known"; compared without regard to case.
MISSING = frozenset({"", "?", "na", "n/a", "#n/a", "nan", "null"})

_WITH_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")


def plain(cells: Iterable[str], missing: frozenset[str] = MISSING) -> list[str]:
    """The cells without the space around them, empty where they are missing."""
    stripped = [cell.strip() for cell in cells]
    longest = max(map(len, missing))
    gone = {cell for cell in set(stripped) if len(cell) <= longest and cell.casefold() in missing}
    return ["" if cell in gone else cell for cell in stripped] if gone else stripped


def numbers(cells: Sequence[str], table: Table) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The cells as numbers, NaN where missing; and the positions of those that are neither number nor missing."""
    try:
        values = np.array([float(cell) if cell else math.nan for cell in cells])
    except ValueError:
        values = np.array([_number(cell, table.decimal) if cell else math.nan for cell in cells])
    odd = np.flatnonzero(~np.isfinite(values)).tolist()
    return values, np.array([i for i in odd if cells[i]], dtype=np.int64)


def _number(cell: str, decimal: str) -> float:
    """NaN if the cell is no number.  "1,5" is one where commas may stand for points and do not part thousands."""
    if decimal != "." and _WITH_COMMA.fullmatch(cell):
        cell = cell.replace(",", ".")
    try:
        return float(cell)
    except ValueError:
        return math.nan
