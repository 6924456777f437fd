"""The grids over which the paper tuned its models."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from margotree.model_selection.models import model_names

#: C of every level for MARGOT and HFS-MARGOT, and the coarser ones of SFS-MARGOT.
C_VALUES = tuple(10.0**i for i in range(-5, 6))
C_COARSE = tuple(10.0**i for i in range(-4, 5, 2))

#: Most features a split may use and still be read.
MOST_FEATURES = 3

_PRICES = tuple(2.0**i for i in range(11))
_COMPLEXITY = (0.0, *(2.0**i for i in range(-8, 3)))
_MM_SVM_C1 = tuple(10.0**i for i in range(-5, 6))
_MM_SVM_C3 = tuple(10.0**i for i in range(-2, 3))


def paper_grid(model: str, depth: int = 2, *, most_features: int = MOST_FEATURES) -> dict[str, list[Any]]:
    """The paper's grid for a model, as ``GridSearchCV`` takes it.

    C is one value for the root and one for all levels below; budgets are tied likewise with the root's never larger.
    ``most_features`` caps the budgets where a set has fewer features than the paper's three.
    """
    if model in {"margot", "local_svm"}:
        return {"C": per_level(C_VALUES, depth)}
    if model == "hfs":
        return {"C": per_level(C_VALUES, depth), "budget": tied_budgets(min(most_features, MOST_FEATURES), depth)}
    if model == "sfs":
        return {"C": per_level(C_COARSE, depth), "budget": [1], "alpha": list(_PRICES)}
    if model in {"oct_1", "oct_h"}:
        return {"alpha": list(_COMPLEXITY)}
    if model == "mm_svm_oct":
        return {"c1": list(_MM_SVM_C1), "c3": list(_MM_SVM_C3)}
    raise ValueError(f"no grid for the model {model!r}; there are: {', '.join(model_names())}")


def per_level(values: Sequence[float], depth: int = 2) -> list[Any]:
    """All pairs (root, levels below), spelled out for every level."""
    if depth == 1:
        return list(values)
    return [(first, *(below,) * (depth - 1)) for first, below in product(values, repeat=2)]


def tied_budgets(most: int = MOST_FEATURES, depth: int = 2) -> list[Any]:
    """Budgets 1 to ``most``, one per level: all levels below the root share one that is not below the root's."""
    if depth == 1:
        return list(range(1, most + 1))
    return [(B, *(below,) * (depth - 1)) for B in range(1, most + 1) for below in range(B, most + 1)]
