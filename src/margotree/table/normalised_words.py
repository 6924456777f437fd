"""Compare words without regard to case and blanks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence


def fold(word: str) -> str:
    """The word in lower case with single blanks; words with the same result are the same word."""
    return " ".join(word.casefold().split())


class Spellings:
    """Map any spelling of a word to the word: ``Spellings(["yes", "no"])("YES ")`` is ``"yes"``; None if unknown."""

    def __init__(self, words: Sequence[str]) -> None:
        self._exact = set(words)
        times = Counter(map(fold, words))
        # Trees of earlier versions may distinguish "Yes" and "yes"; then only the exact spelling is known.
        self._folded = {fold(word): word for word in words if times[fold(word)] == 1}

    def __call__(self, cell: str) -> str | None:
        return cell if cell in self._exact else self._folded.get(fold(cell))


def merged(cells: Iterable[str]) -> tuple[Counter[str], list[list[str]]]:
    """Count words whose spellings differ in case or blanks only.

    Returns the counts by the most frequent spelling, and for each word with several spellings the list of these, most
    frequent first.
    """
    spelled: dict[str, Counter[str]] = {}
    for cell, times in Counter(cell for cell in cells if cell).items():
        spelled.setdefault(fold(cell), Counter())[cell] += times
    counts: Counter[str] = Counter()
    several = []
    for forms in spelled.values():
        order = sorted(forms, key=lambda form: (-forms[form], form))
        counts[order[0]] = forms.total()
        if len(order) > 1:
            several.append(order)
    return counts, several


def merging_note(name: str, several: list[list[str]]) -> list[str]:
    """A note about spellings that are treated as one word; ``name`` is the column."""
    if not several:
        return []
    shown = "; ".join(f"{', '.join(map(repr, forms[1:4]))} as {forms[0]!r}" for forms in several[:4])
    return [f"words in column {name!r} that differ in case or blanks only are treated as one: {shown}"]
