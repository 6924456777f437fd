"""Dates as numbers of days: the forms in which they are written, and the days since a first one."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from margotree.table.table import TableError

#: The forms that are read: year (Y), month (M) and day (D) with leading zeros. A time may follow after a blank or a T.
FORMS = ("YYYY-MM-DD", "YYYY/MM/DD", "YYYY.MM.DD", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY", "DD-MM-YYYY",
         "MM-DD-YYYY", "YYYYMMDD")  # fmt: skip
#: The value of the options with which columns of dates become numbers of days.
DAYS_SINCE = "days-since"
#: Numbers such as 20240131 are dates if all years are in this range.
_FIRST_YEAR, _LAST_YEAR = 1800, 2199


def date_form(cells: Sequence[str], name: str) -> str | None:
    """The form of all cells that are not empty; None if there is none.

    Raises TableError if it is open which of two numbers is the day.
    """
    present = sorted({cell for cell in cells if cell})
    forms = [form for form in FORMS if present and not any(math.isnan(day_number(cell, form)) for cell in present)]
    if len(forms) > 1:
        raise TableError(
            f"the dates in column {name!r}, such as {present[0]!r}, may be {' or '.join(forms)}; write them as "
            f"{FORMS[0]}"
        )
    if forms == ["YYYYMMDD"] and not all(_FIRST_YEAR <= int(cell[:4]) <= _LAST_YEAR for cell in present):
        return None
    return forms[0] if forms else None


def day_number(cell: str, form: str) -> float:
    """The number of the day (1 is the first of January of the year 1); NaN if the cell is no date of this form."""
    text, rest = cell[: len(form)], cell[len(form) :]
    if len(text) < len(form) or not text.isascii() or (rest and rest[0] not in " Tt"):
        return math.nan
    parts = {letter: "".join(c for c, f in zip(text, form, strict=True) if f == letter) for letter in "YMD"}
    if not all(part.isdigit() for part in parts.values()):
        return math.nan
    if any(c != f for c, f in zip(text, form, strict=True) if f not in "YMD"):
        return math.nan
    try:
        return float(datetime.date(int(parts["Y"]), int(parts["M"]), int(parts["D"])).toordinal())
    except ValueError:
        return math.nan


def days_since(cells: Sequence[str], form: str, since: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The days from ``since`` (YYYY-MM-DD) to each cell, NaN where it is empty; and the positions of other cells."""
    first = day_number(since, FORMS[0])
    known = {cell: day_number(cell, form) - first for cell in set(cells) if cell}
    values = np.array([known.get(cell, math.nan) for cell in cells], dtype=np.float64)
    bad = np.flatnonzero(np.isnan(values) & np.array([bool(cell) for cell in cells], dtype=bool))
    return values, bad


def date_text(days: float, since: str) -> str:
    """The date that number of days after ``since``, as YYYY-MM-DD."""
    return datetime.date.fromordinal(int(day_number(since, FORMS[0]) + round(days))).isoformat()
