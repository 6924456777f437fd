"""Numbers that are written with a unit, such as "88%" and "36 months", and months that are written as words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from margotree.table.normalised_words import fold

#: The names of each month in English and German, January first.
_MONTHS = (
    ("jan", "january", "januar", "jän", "jänner"), ("feb", "february", "februar"),
    ("mar", "march", "mär", "märz", "mrz"), ("apr", "april"), ("may", "mai"), ("jun", "june", "juni"),
    ("jul", "july", "juli"), ("aug", "august"),
    ("sep", "sept", "september"), ("oct", "october", "okt", "oktober"), ("nov", "november"),
    ("dec", "december", "dez", "dezember"),
)  # fmt: skip
_MONTH = {name: str(k + 1) for k, names in enumerate(_MONTHS) for name in names}

_AMOUNT = re.compile(r"([+-]?[\d.,]*\d(?:[eE][+-]?\d+)?)\s*(%|[^\W\d_]{1,12})")

#: The "unit" of a column in which months are written as words.
MONTH_NAMES = "month name"

#: The "unit" of a column of truth values, 1 for true and 0 for false.
TRUTH = "true or false"
_TRUTH = {"true": 1.0, "false": 0.0}


def unit_of(cells: Sequence[str]) -> str | None:
    """The unit of all cells that are not bare numbers ("%", "months" or ``MONTH_NAMES``); None if they differ."""
    odd = {cell for cell in cells if cell and not _is_bare_number(cell)}
    if not odd:
        return None
    if len(odd) > 2 and all(_month(cell) for cell in odd):
        return MONTH_NAMES
    found = [_AMOUNT.fullmatch(cell) for cell in odd]
    units = {_singular(match[2]) for match in found if match}
    if not all(found) or len(units) != 1 or len(odd) < 2:
        return None
    return next((match[2] for match in found if match and match[2].endswith("s")), None) or found[0][2]  # type: ignore[index]


def units_of(cells: Sequence[str]) -> list[str]:
    """The different units of a column; empty unless every cell is a number or an amount with a unit."""
    found = [_AMOUNT.fullmatch(cell) for cell in set(cells) if cell and not _is_bare_number(cell)]
    if not found or not all(found):
        return []
    return sorted({_singular(match[2]) for match in found if match})


def without_unit(cells: Sequence[str], unit: str | None) -> list[str]:
    """The cells without the unit, months as their numbers; other cells stay unchanged."""
    if unit is None:
        return list(cells)
    if unit in (MONTH_NAMES, TRUTH):
        words = number_words(unit)
        return [str(words.get(fold(cell), cell)) for cell in cells]
    return [_strip_unit(cell, _singular(unit)) for cell in cells]


def unit_spellings(unit: str | None) -> tuple[str, ...]:
    """The forms of the unit that may follow a number, in lower case: plural and singular."""
    if unit in (None, MONTH_NAMES, TRUTH):
        return ()
    one = _singular(unit)
    return tuple(form for form in (f"{one}s", one) if _singular(form) == one and _AMOUNT.fullmatch(f"1{form}"))


def number_words(unit: str | None) -> dict[str, float]:
    """The words that stand for numbers: names of months (``MONTH_NAMES``), true and false (``TRUTH``)."""
    if unit == TRUTH:
        return dict(_TRUTH)
    if unit != MONTH_NAMES:
        return {}
    return {name + dot: float(number) for name, number in _MONTH.items() for dot in ("", ".")}


def has_unit(cells: Sequence[str], unit: str) -> bool:
    """Whether at least one cell is written with the unit."""
    return any(cell != plain for cell, plain in zip(cells, without_unit(cells, unit), strict=True))


def _strip_unit(cell: str, unit: str) -> str:
    match = _AMOUNT.fullmatch(cell)
    return match[1] if match and _singular(match[2]) == unit else cell


def _singular(unit: str) -> str:
    folded = fold(unit)
    return folded[:-1] if len(folded) > 2 and folded.endswith("s") else folded


def _month(cell: str) -> str | None:
    return _MONTH.get(fold(cell).removesuffix("."))


def _is_bare_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True
