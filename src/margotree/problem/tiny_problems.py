"""Problems of a few points; solving them compiles the kernels before the clock of a fit starts."""

from __future__ import annotations

from typing import Any

from margotree.problem.problem import Problem
from margotree.problem.tasks import Multiclass

_TERMS: dict[str, dict[str, Any]] = {"margot": {}, "hfs": {"budget": 1}, "sfs": {"budget": 1, "alpha": 0.1}}


def tiny_problem(model: str) -> Problem:
    """Five points of two classes that no single split separates."""
    X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.4, 0.6]]
    return Problem.make(X, [1.0, -1.0, -1.0, 1.0, 1.0], depth=2, C=1.0, **_TERMS[model])


def tiny_multiclass(model: str) -> Problem:
    """Six points of three classes that no single split separates."""
    X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.4, 0.6], [0.5, 0.2]]
    return Problem.make(X, [0, 1, 2, 0, 1, 2], task=Multiclass(3), depth=2, **_TERMS[model])
