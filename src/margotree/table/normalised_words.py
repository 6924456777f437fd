"""Words as people write them: case and blanks make no other word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence


def fold(word: str) -> str:
    """What is left of a word when case and blanks do not count; words that agree in it are the same."""
    return " ".join(word.casefold().split())


class Spellings:
    """Knows a few words in any spelling: ``Spellings(["yes", "no"])("YES ")`` is ``"yes"``, None if it is neither."""

    def __init__(self, words: Sequence[str]) -> None:
        self._exact = set(words)
        times = Counter(map(fold, words))
        # Trees of older files may tell "Yes" from "yes"; then the exact spelling decides.
        self._folded = {fold(word): word for word in words if times[fold(word)] == 1}

    def __call__(self, cell: str) -> str | None:
        return cell if cell in self._exact else self._folded.get(fold(cell))


def merged(cells: Iterable[str]) -> tuple[Counter[str], list[list[str]]]:
    """How often each word comes, under its commonest spelling, and the spellings of those that have several."""
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
    """Says which spellings were taken as one word."""
    if not several:
        return []
    shown = "; ".join(f"{', '.join(map(repr, forms[1:4]))} as {forms[0]!r}" for forms in several[:4])
    return [f"under {name!r} words differ in case or blanks only and are taken as one: {shown}"]
