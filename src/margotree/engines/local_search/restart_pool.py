"""Good trees that are worked on together, apart from better ones: an island.

What comes from nothing is poor beside a tree that has been worked on for long, and would never be taken further.  On an
island of its own it is, until starts there bring nothing any more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from margotree.engines.local_search.training_data import Found

#: Good trees kept to be worked on, and how different their values must be.
_ELITE, _DIFFERENT = 5, 1e-6
#: What counts as an improvement when starts are asked whether they still pay off.
PAYS = 1e-4


@dataclass(kw_only=True, eq=False)
class Island:
    """Its best trees, best first, and what has been done for it."""

    trees: list[Found] = field(default_factory=list)
    seen: list[Found] = field(default_factory=list)  # all that descents have come to
    made: int = 0  # starts
    idle: float = 0.0  # starts since the last that has brought something
    finished_at: int = 0  # how many trees had been seen at the last visit to the finisher
    in_vain: int = 0  # visits to it in a row that have brought nothing

    @property
    def least(self) -> float:
        """What its best tree costs."""
        return self.trees[0].value if self.trees else math.inf

    def pays(self, value: float) -> bool:
        """Whether this is an improvement worth the name."""
        return value < self.least * (1.0 - PAYS)

    def keep(self, found: Found, of: Found | None = None) -> None:
        """Take in a tree, instead of the one it comes ``of`` if it is better, so that the best are of many descents."""
        if self.pays(found.value):
            self.idle = 0.0
        better = found.value < self.least
        if of is not None and found.value < of.value:
            self.trees = [tree for tree in self.trees if tree is not of]
        if better or not near(found.value, [other.value for other in self.trees]):
            self.trees = sorted([*self.trees, found], key=lambda tree: tree.value)[:_ELITE]


def near(value: float, others: list[float], share: float = _DIFFERENT) -> bool:
    return any(abs(value - other) <= share * other for other in others)
