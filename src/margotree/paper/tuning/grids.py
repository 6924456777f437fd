"""The hyperparameter grids of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from margotree.paper.tuning.models import model_names

#: The values of C at every level for MARGOT and HFS-MARGOT, and the coarser ones of SFS-MARGOT.
C_VALUES = tuple(10.0**i for i in range(-5, 6))
C_COARSE = tuple(10.0**i for i in range(-4, 5, 2))

#: The largest budget of a split.
MAX_BUDGET = 3

#: Feature penalties of SFS-MARGOT, complexity parameters of OCT-1 and OCT-H, and the parameters of MM-SVM-OCT.
_ALPHA_VALUES = tuple(2.0**i for i in range(11))
_COMPLEXITY_VALUES = (0.0, *(2.0**i for i in range(-8, 3)))
_MM_SVM_C1 = tuple(10.0**i for i in range(-5, 6))
_MM_SVM_C3 = tuple(10.0**i for i in range(-2, 3))


def paper_grid(model: str, depth: int = 2, *, most_features: int = MAX_BUDGET) -> dict[str, list[Any]]:
    """The grid of the paper for a model, as the argument ``param_grid`` of ``GridSearchCV``.

    C has one value for the root and one for all levels below; so have budgets, of which that of the root is never the
    larger one.  ``most_features`` is the largest budget, for sets with fewer than three features.
    """
    if model in {"margot", "local_svm"}:
        return {"C": per_level(C_VALUES, depth)}
    if model == "hfs":
        return {"C": per_level(C_VALUES, depth), "budget": tied_budgets(min(most_features, MAX_BUDGET), depth)}
    if model == "sfs":
        return {"C": per_level(C_COARSE, depth), "budget": [1], "alpha": list(_ALPHA_VALUES)}
    if model in {"oct_1", "oct_h"}:
        return {"alpha": list(_COMPLEXITY_VALUES)}
    if model == "mm_svm_oct":
        return {"c1": list(_MM_SVM_C1), "c3": list(_MM_SVM_C3)}
    raise ValueError(f"no grid for the model {model!r}; there are: {', '.join(model_names())}")


def per_level(values: Sequence[float], depth: int = 2) -> list[Any]:
    """All combinations of a value for the root and one for all levels below, as a tuple with one entry per level."""
    if depth == 1:
        return list(values)
    return [(first, *(below,) * (depth - 1)) for first, below in product(values, repeat=2)]


def tied_budgets(most: int = MAX_BUDGET, depth: int = 2) -> list[Any]:
    """All budgets from 1 to ``most``, one per level: the levels below the root have the same, at least the root's."""
    if depth == 1:
        return list(range(1, most + 1))
    return [(B, *(below,) * (depth - 1)) for B in range(1, most + 1) for below in range(B, most + 1)]
