"""Rules on columns of words: which words of each column meet a rule, where the rule is a logical statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

from margotree.table.cell_rules import CellRule
from margotree.tree.rules import NO_BREAK_SPACE

#: The largest number of columns of a split that is shown as logic.
_MOST_COLUMNS = 6
#: Words that a column has besides those listed in its rule.
_OTHER, _MISSING = object(), "missing"


@dataclass(frozen=True, kw_only=True)
class Literal:
    """A statement about the cell of one column, such as "smoker is no".

    ``features`` are the positions of the column's features with a weight, ``values`` the values that they can have, and
    ``accepted`` those with which the statement is true.
    """

    text: str
    features: tuple[int, ...]
    values: frozenset[tuple[float, ...]]
    accepted: frozenset[tuple[float, ...]]

    def __str__(self) -> str:
        return self.text

    def holds(self, x: Sequence[float]) -> bool:
        """Whether the statement is true of a sample, given as its features."""
        return self._of(x) in self.accepted

    def applies(self, x: Sequence[float]) -> bool:
        """Whether a sample has values that the column can have."""
        return self._of(x) in self.values

    def record(self) -> dict[str, Any]:
        """The statement as JSON values."""
        return {
            "text": self.text,
            "features": list(self.features),
            "values": sorted(map(list, self.values)),
            "accepted": sorted(map(list, self.accepted)),
        }

    def _of(self, x: Sequence[float]) -> tuple[float, ...]:
        return tuple(float(x[j]) for j in self.features)


@dataclass(kw_only=True)
class Column:
    """A column of a rule: its cells as states, and what each state adds to the weighted sum of the rule."""

    cell: CellRule
    first: int
    weights: list[Fraction]
    states: dict[object, tuple[float, ...]] = field(default_factory=dict)

    def value(self, state: object) -> Fraction:
        """What the state adds to the sum."""
        return sum((w * Fraction(x) for w, x in zip(self.weights, self.states[state], strict=True)), Fraction(0))

    @property
    def values(self) -> list[Fraction]:
        return [self.value(state) for state in self.states]

    def share(self, x: Sequence[float]) -> tuple[Fraction, str] | None:
        """What a sample, given as its features, adds to the sum, and its cell in words; None for no possible cell.

        The words of a number are the name of its column.
        """
        own = tuple(float(x[self.first + k]) for k in range(len(self.weights)))
        if self.states:
            found = [(self.value(state), self.words(state)) for state, values in self.states.items() if values == own]
            return found[0] if found else None
        total = sum((w * Fraction(value) for w, value in zip(self.weights, own, strict=True)), Fraction(0))
        return total, f"{self.cell.column} is {_MISSING}" if own == self.missing else self.cell.column

    @property
    def missing(self) -> tuple[float, ...] | None:
        """The features of a missing cell of a column of numbers that has an indicator of it."""
        return self.cell.missing if not self.states and len(self.cell.features) > 1 else None

    def words(self, state: object) -> str:
        """A statement that the cell is in this state."""
        return f"{self.cell.column} is {'another word' if state is _OTHER else state}"

    def record(self) -> dict[str, Any]:
        """The column as JSON values."""
        return {
            "name": self.cell.column,
            "first": self.first,
            "weights": [float(weight) for weight in self.weights],
            "missing": None if self.missing is None else list(self.missing),
            "states": [
                {"values": list(values), "adds": float(self.value(state)), "words": self.words(state)}
                for state, values in self.states.items()
            ],
        }


def columns_of(
    cells: Mapping[int, tuple[CellRule, int]], weights: Mapping[int, Fraction], zero_one: bool = False
) -> list[Column]:
    """The columns with a weight, in the order of the features; those of plain numbers have no states.

    With ``zero_one`` all numbers of these columns are 0 or 1.
    """
    found: dict[int, Column] = {}
    for j, weight in weights.items():
        cell, k = cells[j]
        column = found.setdefault(j - k, Column(cell=cell, first=j - k, weights=[Fraction(0)] * len(cell.features)))
        column.weights[k] = weight
    for column in found.values():
        column.states = _states(column.cell, column.weights, zero_one)
    return list(found.values())


def _states(cell: CellRule, weights: Sequence[Fraction], zero_one: bool) -> dict[object, tuple[float, ...]]:
    """The different cells of a column, and their features; empty for a column of plain numbers."""
    present = (0.0,) * (len(cell.features) - 1)
    states: dict[object, tuple[float, ...]] = dict(cell.words)
    if cell.numeric and weights[0] == 0 and not zero_one:
        states = {_OTHER: (0.0, *present)}  # all numbers
    elif cell.numeric and zero_one and not cell.words:
        states = {"0": (0.0, *present), "1": (1.0, *present)}
    elif cell.numeric and len(cell.words) != 2:
        return {}  # numbers, or months that stand for numbers
    if cell.other is not None and len(cell.words) != 2 and cell.other != cell.missing:
        states[_OTHER] = cell.other
    if cell.missing is not None and cell.missing not in states.values() and len(cell.features) > 1:
        states[_MISSING] = cell.missing
    return states


def logic(columns: Sequence[Column], limit: Fraction, tolerance: Fraction) -> tuple[tuple[Literal, ...], int] | None:
    """The statements, and how many of them must be true for a sum of at least ``limit``; None for other rules.

    Sums within ``tolerance`` of the limit are not decided.
    """
    if not 0 < len(columns) <= _MOST_COLUMNS or not all(len(set(column.values)) > 1 for column in columns):
        return None
    for chosen, least in (_all_of(columns, limit), _any_of(columns, limit), _some_of(columns, limit)):
        if chosen and _is_clear(columns, chosen, least, limit, tolerance):
            return tuple(_literal(column, met) for column, met in chosen), least
    return None


#: Columns, and the states of each that meet the statement about it.
_Chosen = list[tuple[Column, set[object]]]


def _all_of(columns: Sequence[Column], limit: Fraction) -> tuple[_Chosen, int]:
    most = sum((max(column.values) for column in columns), Fraction(0))
    chosen = [(c, {s for s in c.states if most - max(c.values) + c.value(s) >= limit}) for c in columns]
    kept = [(column, met) for column, met in chosen if len(met) < len(column.states)]
    if not all(met for _, met in chosen):
        return [], 0
    return (kept, len(kept)) if sum(min(map(c.value, met)) for c, met in chosen) >= limit else ([], 0)


def _any_of(columns: Sequence[Column], limit: Fraction) -> tuple[_Chosen, int]:
    least = sum((min(column.values) for column in columns), Fraction(0))
    chosen = [(c, {s for s in c.states if least - min(c.values) + c.value(s) >= limit}) for c in columns]
    if any(len(met) == len(column.states) for column, met in chosen):
        return [], 0
    worst = sum(max(c.value(s) for s in c.states if s not in met) for c, met in chosen)
    return ([(column, met) for column, met in chosen if met], 1) if worst < limit else ([], 0)


def _some_of(columns: Sequence[Column], limit: Fraction) -> tuple[_Chosen, int]:
    if any(len(set(column.values)) != 2 for column in columns):
        return [], 0
    chosen = [(c, {s for s in c.states if c.value(s) == max(c.values)}) for c in columns]
    by_count: dict[int, set[bool]] = {}
    for case in product((False, True), repeat=len(columns)):
        values = [max(c.values) if true else min(c.values) for c, true in zip(columns, case, strict=True)]
        by_count.setdefault(sum(case), set()).add(sum(values) >= limit)
    if any(len(met) > 1 for met in by_count.values()):
        return [], 0
    enough = [count for count, met in by_count.items() if True in met]
    return (chosen, min(enough)) if enough and min(enough) > 0 else ([], 0)


def _is_clear(columns: Sequence[Column], chosen: _Chosen, least: int, limit: Fraction, tolerance: Fraction) -> bool:
    """Whether no sum lies within ``tolerance`` of the limit; sums are those of the different values of the columns."""
    if tolerance == 0:
        return True
    cases = 1
    for column in columns:
        cases *= len(set(column.values))
    if cases > 100_000:
        return False
    return all(abs(sum(case, Fraction(0)) - limit) > tolerance for case in product(*(set(c.values) for c in columns)))


def _literal(column: Column, met: set[object]) -> Literal:
    used = [k for k, weight in enumerate(column.weights) if weight != 0]
    values = {state: tuple(cell[k] for k in used) for state, cell in column.states.items()}
    return Literal(
        text=_text(column, met),
        features=tuple(column.first + k for k in used),
        values=frozenset(values.values()),
        accepted=frozenset(values[state] for state in met),
    )


def _text(column: Column, met: set[object]) -> str:
    """The statement in words."""
    name = column.cell.column
    if (ordered := _ordered_text(column, met)) is not None:
        return f"{name} {ordered}"
    others = [state for state in column.states if state not in met]
    words = [state for state in column.states if state in met]
    negative = _OTHER in met or (_OTHER not in column.states and len(others) < len(words))
    listed = [str(state) for state in (others if negative else words)]
    if len(listed) == 1:
        return f"{name} is {'not ' if negative else ''}{listed[0]}"
    return f"{name} {'not ' if negative else ''}in {{{', '.join(listed)}}}"


def _ordered_text(column: Column, met: set[object]) -> str | None:
    """The statement about ordered words, such as "is at least mid"; None for other columns and sets of words."""
    cell = column.cell
    if cell.numeric or len(cell.words) < 3 or any(len(values) > 2 for _, values in cell.words):
        return None
    if [values[0] for _, values in cell.words] != [float(k) for k in range(len(cell.words))]:
        return None
    words = [word for word, _ in cell.words]
    true = [word in met for word in words]
    count = sum(true)
    if not 0 < count < len(words):
        return None
    missing = f" or {_MISSING}" if _MISSING in met else ""
    if true == sorted(true):
        return f"is {'' if count == 1 else 'at least '}{words[-count]}{missing}"
    if true == sorted(true, reverse=True):
        return f"is {'' if count == 1 else 'at most '}{words[count - 1]}{missing}"
    return None


def terms_of(columns: Sequence[Column], *, after_constant: bool = False) -> tuple[str, ...]:
    """The terms of a weighted sum, with signs, by columns: "age (missing counts as 54)", "(ward: ICU +2, surgery +1)".

    Lines may be broken after commas, and at no other space of a term.
    """
    terms = [_term(column, is_first=k == 0 and not after_constant) for k, column in enumerate(columns)]
    return tuple(map(without_breaks, terms))


def without_breaks(term: str) -> str:
    """A term with no-break spaces, except after commas."""
    return term.replace(" ", NO_BREAK_SPACE).replace(f",{NO_BREAK_SPACE}", ", ")


def _term(column: Column, *, is_first: bool) -> str:
    cell, weight = column.cell, column.weights[0]
    if column.states:
        shown = [(state, column.value(state)) for state in column.states if column.value(state) != 0]
        words = ", ".join(f"{'other' if state is _OTHER else state} {_signed(value)}" for state, value in shown)
        return f"{'' if is_first else '+ '}({cell.column}: {words})"
    sign = "- " if weight < 0 else "" if is_first else "+ "
    factor = "" if abs(weight) == 1 else f"{_number(abs(weight))} * "
    return f"{sign}{factor}{cell.features[0]}{_missing_text(column)}"


def _missing_text(column: Column) -> str:
    """What a missing cell of a column of numbers counts as, if cells were missing in training."""
    cell = column.cell
    if cell.missing is None or len(cell.features) == 1:
        return ""
    counts_as = sum(w * Fraction(x) for w, x in zip(column.weights, cell.missing, strict=True)) / column.weights[0]
    return f" (missing counts as {float(counts_as):.6g})"


def _signed(value: Fraction) -> str:
    return f"{'-' if value < 0 else '+'}{_number(abs(value))}"


def _number(value: Fraction) -> str:
    return f"{float(value):.12g}"
