"""What every kind of training problem offers, so that engines, certificates and estimators can serve them all."""

from __future__ import annotations

from typing import Protocol

from margotree.problem.value import Splits


class Finding(Protocol):
    """What a problem's own plain value function says about a tree."""

    @property
    def objective(self) -> float: ...

    @property
    def feasible(self) -> bool: ...

    @property
    def violations(self) -> list[str]:
        """Why the tree is not allowed, in words; empty if it is."""
        ...


class TrainingProblem(Protocol):
    """A tree to be trained: the margin trees of :class:`~margotree.problem.Problem` or one of their rivals."""

    @property
    def model(self) -> str: ...

    @property
    def depth(self) -> int: ...

    @property
    def n_nodes(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def eps(self) -> float: ...

    def evaluate(self, splits: Splits) -> Finding: ...
