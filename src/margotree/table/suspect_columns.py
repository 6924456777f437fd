"""Columns that may not belong among the features: identifiers, dates, codes, and those that give the target away.

Nothing is refused here.  Every suspicion names the column and the reason, and all of them come in one note that ends
with the options that leave those columns out.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.table.normalised_words import fold

#: Fewer rows say nothing about how a column is made.
_FEWEST = 20
#: Share of the cells that must look like dates.
_MOSTLY = 0.95
#: Fewer rows may well have another whole number each by chance.
_FEWEST_IDS = 50
#: A column that errs on fewer of the rarer class than this share gives the target away.
_LEAK = 0.02

_ID_NAME = re.compile(
    r"(^|[\W_])(id|ids|nr|key|uuid|guid|mrn|ssn)($|[\W_])|^(patient|person|customer|client|user|sample|row|case|p)(id|nr|no)$"
)
_MAYBE_ID_NAME = re.compile(r"(^|[\W_])(no|num|number|idx|case|record)($|[\W_])")
_CODE_NAME = re.compile(r"post.?(code|al)|postleitzahl|^plz|[\W_]plz|zip|phone|(^|[\W_])(tel|fax|iban)($|[\W_])")
_DATE_FORMS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%b %Y", "%b-%y",
               "%d %b %Y", "%B %Y", "%Y-%m")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Cells:
    """A column as it is judged: its cells, their values (None for words), and the label of each row."""

    name: str
    cells: Sequence[str]
    values: NDArray[np.float64] | None
    labels: Sequence[str]

    @property
    def known(self) -> list[str]:
        return [cell for cell in self.cells if cell]

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers and nothing else."""
        return self.values is not None and bool(np.all(self._finite == np.round(self._finite)))

    @property
    def _finite(self) -> NDArray[np.float64]:
        assert self.values is not None
        found: NDArray[np.float64] = self.values[np.isfinite(self.values)]
        return found


def suspicion(column: Cells) -> str:
    """The first reason not to take the column as it is; empty if there is none."""
    if len(column.known) < _FEWEST:
        return ""
    checks: tuple[Callable[[Cells], str], ...] = (_leak, _dates, _codes, _identifier)
    return next(filter(None, (check(column) for check in checks)), "")


def in_one_note(found: dict[str, str]) -> list[str]:
    """All suspicions as one note, with the options that leave the columns out."""
    if not found:
        return []
    if len(found) == 1:
        (name, reason), *_ = found.items()
        return [f"column {name!r} {reason}; to leave it out, say {drops(found)}"]
    lines = [f"\n  {name!r} {reason}" for name, reason in found.items()]
    return [
        f"{len(found)} columns may not belong among the features:{''.join(lines)}\n  to leave them all out, say "
        f"{drops(found)}"
    ]


def drops(names: dict[str, str] | Sequence[str]) -> str:
    """The options that leave these columns out, ready to be pasted."""
    return " ".join(f"--drop {quoted(name)}" for name in names)


def quoted(name: str) -> str:
    """A header as a shell takes it."""
    return f'"{name}"' if not name.replace("_", "").isalnum() else name


def look_like_dates(cells: Sequence[str]) -> bool:
    """Whether the words of a column are dates in some common form."""
    sample = [cell for cell in dict.fromkeys(cells) if cell][:200]
    days = [cell.replace("T", " ").split(" ")[0] if re.match(r"\d{1,4}[-/.]\d", cell) else cell for cell in sample]
    return bool(days) and any(sum(_is(form, day) for day in days) >= _MOSTLY * len(days) for form in _DATE_FORMS)


def _is(form: str, text: str) -> bool:
    try:
        datetime.datetime.strptime(text, form)
    except ValueError:
        return False
    return True


# -- what gives the target away ----------------------------------------------------------------------------------


def _leak(column: Cells) -> str:
    rows = [k for k, label in enumerate(column.labels) if label]
    labels = np.array([column.labels[k] for k in rows])
    classes, codes = np.unique(labels, return_inverse=True)
    counts = np.bincount(codes)
    if len(classes) < 2 or counts.min() < 5:
        return ""
    allowed = _LEAK * (len(rows) - counts.max())
    holes = np.array([not column.cells[k] for k in rows])
    if holes.any() and _errors(holes.astype(np.int64), codes) <= allowed:
        empty = classes[np.bincount(codes[holes]).argmax()]
        return f"is empty just where the target is {str(empty)!r}, so it gives the target away"
    known = ~holes
    if known.sum() < _FEWEST or len(np.unique(codes[known])) < 2:
        return ""
    if _best(column, np.array(rows)[known], codes[known]) > allowed:
        return ""
    return "alone tells the target in (nearly) every row; if it is known only afterwards, it gives the target away"


def _best(column: Cells, rows: NDArray[np.int64], codes: NDArray[np.int64]) -> float:
    """Fewest rows that a rule on this column alone gets wrong: one threshold for numbers, a label for each word."""
    if column.values is not None:
        return _threshold_errors(column.values[rows], codes)
    _, words = np.unique([fold(column.cells[k]) for k in rows.tolist()], return_inverse=True)
    return _errors(words, codes) if words.max() + 1 <= len(rows) / 5 else np.inf


def _errors(groups: NDArray[np.int64], codes: NDArray[np.int64]) -> float:
    table = np.zeros((groups.max() + 1, codes.max() + 1))
    np.add.at(table, (groups, codes), 1)
    return float(len(codes) - table.max(axis=1).sum())


def _threshold_errors(values: NDArray[np.float64], codes: NDArray[np.int64]) -> float:
    """Two groups, below and above the best threshold; each has the label of most of its rows."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(np.eye(codes.max() + 1)[codes[order]], axis=0)
    cut = np.flatnonzero(np.diff(values[order]) > 0)
    if not len(cut):
        return np.inf
    right = below[cut].max(axis=1) + (below[-1] - below[cut]).max(axis=1)
    return float(len(codes) - right.max())


# -- what is no amount -------------------------------------------------------------------------------------------


def _dates(column: Cells) -> str:
    if column.values is None:
        if look_like_dates(column.cells):
            return "holds dates, taken as words; turn them into a number of days or years"
        return ""
    form = {8: "%Y%m%d", 6: "%Y%m"}.get(len(column.known[0]))
    if not column.whole or form is None or len(set(column.known)) < 3:
        return ""
    days = list(dict.fromkeys(column.known))[:500]
    right = [day for day in days if len(day) == len(days[0]) and "1800" <= day[:4] <= "2199" and _is(form, day)]
    if len(right) < _MOSTLY * len(days):
        return ""
    return f"looks like dates such as {days[0]}, taken as plain numbers; turn them into a number of days or years"


def _codes(column: Cells) -> str:
    if column.values is None or not column.whole:
        return ""
    zeros = next((cell for cell in column.known if re.fullmatch(r"0\d{2,}", cell)), None)
    if zeros is not None:
        return f"has numbers with leading zeros such as {zeros}: a code, not an amount"
    if _CODE_NAME.search(fold(column.name)):
        return f"looks like a code such as a postcode or a telephone number ({column.known[0]}), not an amount"
    return ""


def _identifier(column: Cells) -> str:
    known = column.known
    share = len(set(known)) / len(known)
    if column.values is None or not column.whole:
        return ""
    steps = np.diff(column.values[np.isfinite(column.values)])
    if share == 1 and bool(np.all(np.abs(steps) == 1)):
        return "counts the rows; it looks like an identifier"
    called = fold(column.name)
    if (share > 0.2 and _ID_NAME.search(called)) or (share > 0.8 and _MAYBE_ID_NAME.search(called)):
        return f"is called like an identifier and holds {len(set(known)):,} different whole numbers"
    digits = {len(cell) for cell in known}
    if len(known) >= _FEWEST_IDS and (share == 1 or (share > 0.98 and len(digits) == 1 and min(digits) >= 5)):
        return f"holds another whole number in {'' if share == 1 else 'nearly '}every row; it looks like an identifier"
    return ""
