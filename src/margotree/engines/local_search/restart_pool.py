"""A pool of good trees that are compared with each other only.

New starts are poor compared with a tree that has been improved for long, and would never be developed further. In a
pool of their own they are, until its starts give no improvement any more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from margotree.engines.local_search.training_data import TrainedTree

#: The number of trees that are kept, and the smallest relative difference of their values.
_MAX_TREES, _MIN_DIFFERENCE = 5, 1e-6
#: The smallest relative decrease that counts as an improvement.
MIN_GAIN = 1e-4


@dataclass(kw_only=True, eq=False)
class RestartPool:
    """The best trees of a pool, best first, and the state of its search."""

    trees: list[TrainedTree] = field(default_factory=list)
    results: list[TrainedTree] = field(default_factory=list)  # the results of all descents
    starts: int = 0  # number of starts so far
    idle_starts: float = 0.0  # starts since the last improvement
    results_at_visit: int = 0  # number of results at the last visit to the finisher
    failed_visits: int = 0  # visits to it in a row without improvement

    @property
    def best_value(self) -> float:
        """The objective of its best tree."""
        return self.trees[0].value if self.trees else math.inf

    def improves(self, value: float) -> bool:
        """Whether a value improves on the best tree by more than rounding."""
        return value < self.best_value * (1.0 - MIN_GAIN)

    def keep(self, found: TrainedTree, parent: TrainedTree | None = None) -> None:
        """Add a tree; it replaces the tree ``parent`` from which it was derived if it is better.

        So the best trees are results of different descents.
        """
        if self.improves(found.value):
            self.idle_starts = 0.0
        improved = found.value < self.best_value
        if parent is not None and found.value < parent.value:
            self.trees = [tree for tree in self.trees if tree is not parent]
        if improved or not is_near(found.value, [other.value for other in self.trees]):
            self.trees = sorted([*self.trees, found], key=lambda tree: tree.value)[:_MAX_TREES]


def is_near(value: float, others: list[float], share: float = _MIN_DIFFERENCE) -> bool:
    """Whether a value equals one of the others up to a relative difference."""
    return any(abs(value - other) <= share * other for other in others)
