"""Compile the rivals' kernels ahead of the first fit: ``python -m margotree.baselines.warm``."""

from __future__ import annotations

from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.search import Search


def warm_up() -> None:
    """Prepare the one engine of theirs that is compiled."""
    Search().prepare(OctProblem.make([[0.0], [1.0]], [0, 1], depth=1))


if __name__ == "__main__":
    warm_up()
