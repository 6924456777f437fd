"""The interface of training problems that engines, certificates and estimators use."""

from __future__ import annotations

from typing import Protocol

from margotree.problem.value import Splits


class Finding(Protocol):
    """The result of a problem's ``evaluate``: objective and feasibility of a tree."""

    @property
    def objective(self) -> float: ...

    @property
    def feasible(self) -> bool: ...

    @property
    def violations(self) -> list[str]:
        """Reasons why the tree is not feasible, in words; empty if it is."""
        ...


class TrainingProblem(Protocol):
    """A training problem: of a margin tree (:class:`~margotree.problem.Problem`) or of a baseline."""

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
