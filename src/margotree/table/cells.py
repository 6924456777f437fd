"""Find missing cells and parse numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from margotree.table.table import Table

#: Cells that mean a missing value, compared without regard to case.
MISSING = frozenset({"", "?", "na", "n/a", "#n/a", "nan", "null"})

_WITH_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")


def stripped_cells(cells: Iterable[str], missing: frozenset[str] = MISSING) -> list[str]:
    """The cells without surrounding space; missing cells become empty."""
    stripped = [cell.strip() for cell in cells]
    longest = max(map(len, missing))
    missing_here = {cell for cell in set(stripped) if len(cell) <= longest and cell.casefold() in missing}
    return ["" if cell in missing_here else cell for cell in stripped] if missing_here else stripped


def parse_numbers(cells: Sequence[str], table: Table) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The cells as numbers (NaN if missing), and the positions of cells that are neither a number nor missing."""
    try:
        values = np.array([float(cell) if cell else math.nan for cell in cells])
    except ValueError:
        values = np.array([_number(cell, table.decimal) if cell else math.nan for cell in cells])
    odd = np.flatnonzero(~np.isfinite(values)).tolist()
    return values, np.array([i for i in odd if cells[i]], dtype=np.int64)


def _number(cell: str, decimal: str) -> float:
    """The cell as a number, NaN if it is not one.  A comma is a decimal comma unless ``decimal`` is "."."""
    if decimal != "." and _WITH_COMMA.fullmatch(cell):
        cell = cell.replace(",", ".")
    try:
        return float(cell)
    except ValueError:
        return math.nan
