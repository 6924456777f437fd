"""A problem of a few points in three classes, solved to have everything compiled before a clock starts."""

from __future__ import annotations

from functools import cache
from typing import Any

from margotree.engines.alternating.search import Effort
from margotree.engines.local_svm import compiling
from margotree.engines.watch import Watch
from margotree.problem import MulticlassProblem

_TERMS: dict[str, dict[str, Any]] = {"margot": {}, "hfs": {"budget": 1}, "sfs": {"budget": 1, "alpha": 0.1}}


def tiny_problem(model: str) -> MulticlassProblem:
    """Six points in three classes that no single split gets right."""
    X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.4, 0.6], [0.5, 0.2]]
    return MulticlassProblem.make(X, [0, 1, 2, 0, 1, 2], depth=2, **_TERMS[model])


@cache
def compile_for(model: str) -> None:
    """Train a tiny tree, so that everything is compiled or loaded from the cache."""
    from margotree.engines.multiclass.search import Alternating  # it asks for this function

    with compiling():
        Alternating(Effort(least=5, most=5)).search(tiny_problem(model), Watch(), None)
