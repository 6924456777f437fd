"""Find columns that may be unsuitable as features: identifiers, dates, codes and leakage of the target.

No column is rejected.  One note lists the columns with the reasons, and the options that leave them out.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.table.normalised_words import fold

#: With fewer rows a column is not checked.
_MIN_ROWS = 20
#: The share of cells that must look like dates.
_MIN_DATE_SHARE = 0.95
#: With fewer rows, different whole numbers in all rows are not unusual.
_MIN_ROWS_FOR_IDS = 50
#: Leakage: a column alone predicts the target with errors in at most this share of the rows outside the largest class.
_MAX_LEAK_ERROR = 0.02

_ID_NAME = re.compile(
    r"(^|[\W_])(id|ids|nr|key|uuid|guid|mrn|ssn)($|[\W_])|^(patient|person|customer|client|user|sample|row|case|p)(id|nr|no)$"
)
_MAYBE_ID_NAME = re.compile(r"(^|[\W_])(no|num|number|idx|case|record)($|[\W_])")
_CODE_NAME = re.compile(r"post.?(code|al)|postleitzahl|^plz|[\W_]plz|zip|phone|(^|[\W_])(tel|fax|iban)($|[\W_])")
_DATE_FORMS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%b %Y", "%b-%y",
               "%d %b %Y", "%B %Y", "%Y-%m")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ColumnCells:
    """A column to be checked: its cells, their values (None for words), and the label of each row."""

    name: str
    cells: Sequence[str]
    values: NDArray[np.float64] | None
    labels: Sequence[str]

    @property
    def present(self) -> list[str]:
        """The cells that are not missing."""
        return [cell for cell in self.cells if cell]

    @property
    def is_whole_numbers(self) -> bool:
        """Whether all values are whole numbers."""
        return self.values is not None and bool(np.all(self._finite == np.round(self._finite)))

    @property
    def _finite(self) -> NDArray[np.float64]:
        assert self.values is not None
        found: NDArray[np.float64] = self.values[np.isfinite(self.values)]
        return found


def first_suspicion(column: ColumnCells) -> str:
    """The first reason why the column may be unsuitable as a feature; empty if there is none."""
    if len(column.present) < _MIN_ROWS:
        return ""
    checks: tuple[Callable[[ColumnCells], str], ...] = (_leak, _dates, _codes, _identifier)
    return next(filter(None, (check(column) for check in checks)), "")


def combined_note(found: dict[str, str]) -> list[str]:
    """One note about all columns in ``found`` (name to reason), with the options that leave them out."""
    if not found:
        return []
    if len(found) == 1:
        (name, reason), *_ = found.items()
        return [f"column {name!r} {reason}; to leave it out, add {drop_options(found)}"]
    lines = [f"\n  {name!r} {reason}" for name, reason in found.items()]
    return [
        f"{len(found)} columns may be unsuitable as features:{''.join(lines)}\n  to leave out all of them, add "
        f"{drop_options(found)}"
    ]


def drop_options(names: dict[str, str] | Sequence[str]) -> str:
    """The command-line options that leave out these columns."""
    return " ".join(f"--drop {shell_quoted(name)}" for name in names)


def shell_quoted(name: str) -> str:
    """A header with the quotation marks that a shell needs."""
    return f'"{name}"' if not name.replace("_", "").isalnum() else name


def look_like_dates(cells: Sequence[str]) -> bool:
    """Whether the words of a column are dates in a common format."""
    sample = [cell for cell in dict.fromkeys(cells) if cell][:200]
    days = [cell.replace("T", " ").split(" ")[0] if re.match(r"\d{1,4}[-/.]\d", cell) else cell for cell in sample]
    return bool(days) and any(
        sum(_has_date_format(form, day) for day in days) >= _MIN_DATE_SHARE * len(days) for form in _DATE_FORMS
    )


def _has_date_format(form: str, text: str) -> bool:
    try:
        datetime.datetime.strptime(text, form)
    except ValueError:
        return False
    return True


# -- leakage -----------------------------------------------------------------------------------------------------


def _leak(column: ColumnCells) -> str:
    rows = [k for k, label in enumerate(column.labels) if label]
    labels = np.array([column.labels[k] for k in rows])
    classes, codes = np.unique(labels, return_inverse=True)
    counts = np.bincount(codes)
    if len(classes) < 2 or counts.min() < 5:
        return ""
    allowed = _MAX_LEAK_ERROR * (len(rows) - counts.max())
    missing = np.array([not column.cells[k] for k in rows])
    if missing.any() and _majority_errors(missing.astype(np.int64), codes) <= allowed:
        empty = classes[np.bincount(codes[missing]).argmax()]
        return f"is empty exactly where the target is {str(empty)!r}: it reveals the target (leakage)"
    present = ~missing
    if present.sum() < _MIN_ROWS or len(np.unique(codes[present])) < 2:
        return ""
    if _fewest_errors(column, np.array(rows)[present], codes[present]) > allowed:
        return ""
    return (
        "alone predicts the target in (nearly) every row: if its value is known only after the outcome, this is leakage"
    )


def _fewest_errors(column: ColumnCells, rows: NDArray[np.int64], codes: NDArray[np.int64]) -> float:
    """The smallest number of errors of a rule on this column: one threshold for numbers, a label for each word."""
    if column.values is not None:
        return _threshold_errors(column.values[rows], codes)
    _, words = np.unique([fold(column.cells[k]) for k in rows.tolist()], return_inverse=True)
    return _majority_errors(words, codes) if words.max() + 1 <= len(rows) / 5 else np.inf


def _majority_errors(groups: NDArray[np.int64], codes: NDArray[np.int64]) -> float:
    """The number of rows that do not have the most frequent label of their group."""
    table = np.zeros((groups.max() + 1, codes.max() + 1))
    np.add.at(table, (groups, codes), 1)
    return float(len(codes) - table.max(axis=1).sum())


def _threshold_errors(values: NDArray[np.float64], codes: NDArray[np.int64]) -> float:
    """The smallest number of errors of one threshold whose two sides have the label of most of their rows."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(np.eye(codes.max() + 1)[codes[order]], axis=0)
    cut = np.flatnonzero(np.diff(values[order]) > 0)
    if not len(cut):
        return np.inf
    correct = below[cut].max(axis=1) + (below[-1] - below[cut]).max(axis=1)
    return float(len(codes) - correct.max())


# -- numbers that are not amounts --------------------------------------------------------------------------------


def _dates(column: ColumnCells) -> str:
    if column.values is None:
        if look_like_dates(column.cells):
            return "holds dates, treated as words; add --date days-since for numbers of days"
        return ""
    form = {8: "%Y%m%d", 6: "%Y%m"}.get(len(column.present[0]))
    if not column.is_whole_numbers or form is None or len(set(column.present)) < 3:
        return ""
    days = list(dict.fromkeys(column.present))[:500]
    valid = [
        day for day in days if len(day) == len(days[0]) and "1800" <= day[:4] <= "2199" and _has_date_format(form, day)
    ]
    if len(valid) < _MIN_DATE_SHARE * len(days):
        return ""
    return f"seems to hold dates such as {days[0]}, treated as numbers; add --date days-since for numbers of days"


def _codes(column: ColumnCells) -> str:
    if column.values is None or not column.is_whole_numbers:
        return ""
    zeros = next((cell for cell in column.present if re.fullmatch(r"0\d{2,}", cell)), None)
    if zeros is not None:
        return f"has numbers with leading zeros such as {zeros}: codes, not amounts"
    if _CODE_NAME.search(fold(column.name)):
        return f"seems to hold codes such as postcodes or telephone numbers ({column.present[0]}), not amounts"
    return ""


def _identifier(column: ColumnCells) -> str:
    present = column.present
    share = len(set(present)) / len(present)
    if column.values is None or not column.is_whole_numbers:
        return ""
    steps = np.diff(column.values[np.isfinite(column.values)])
    if share == 1 and bool(np.all(np.abs(steps) == 1)):
        return "numbers the rows: it seems to be an identifier"
    name = fold(column.name)
    if (share > 0.2 and _ID_NAME.search(name)) or (share > 0.8 and _MAYBE_ID_NAME.search(name)):
        return f"has the name of an identifier and holds {len(set(present)):,} different whole numbers"
    digits = {len(cell) for cell in present}
    if len(present) >= _MIN_ROWS_FOR_IDS and (share == 1 or (share > 0.98 and len(digits) == 1 and min(digits) >= 5)):
        return (
            f"has a different whole number in {'' if share == 1 else 'nearly '}every row: it seems to be an identifier"
        )
    return ""
