"""Scorers and the two selection rules of the paper, for any ``GridSearchCV``.

GridSearchCV(tree, grid, scoring=scoring(), refit=FewestFeatures(), cv=stratified_folds())
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Mean accuracies that differ by no more than this are equal (rounding).
_SAME = 1e-9


def n_features_used(estimator: Any, X: Any = None, y: Any = None) -> float:
    """Count the different features that the splits of a fitted tree use; a scorer for ``GridSearchCV``."""
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    return float(len(last.selected_features_))


def scoring() -> dict[str, str | Callable[..., float]]:
    """The scorers accuracy and number of features used, as the argument ``scoring`` of ``GridSearchCV``."""
    return {"accuracy": "accuracy", "n_features": n_features_used}


def best_accuracy(results: Mapping[str, Any]) -> int:
    """Choose the setting with the best mean validation accuracy; of equal ones the first in the grid.

    ``results`` is ``cv_results_``; returns the position of the setting, as ``refit`` of ``GridSearchCV`` expects.
    """
    accuracy = _column(results, "mean_test_accuracy")
    return int(np.flatnonzero(accuracy >= np.nanmax(accuracy) - _SAME)[0])


@dataclass(frozen=True)
class FewestFeatures:
    """Choose the sparsest of the settings whose mean accuracy is in ``[share * g, g]``, where ``g`` is the best one.

    Sparsest means the smallest mean number of features; of equal ones the most accurate, then the first in the grid.
    """

    share: float = 0.975

    def __call__(self, results: Mapping[str, Any]) -> int:
        accuracy, features = _column(results, "mean_test_accuracy"), _column(results, "mean_test_n_features")
        good = accuracy >= self.share * np.nanmax(accuracy) - _SAME
        sparse = good & (features <= np.min(features[good]) + _SAME)
        return int(np.flatnonzero(sparse & (accuracy >= np.max(accuracy[sparse]) - _SAME))[0])


#: The rules by their names on the command line.
RULES: dict[str, Callable[[Mapping[str, Any]], int]] = {"accuracy": best_accuracy, "features": FewestFeatures()}


def _column(results: Mapping[str, Any], name: str) -> NDArray[np.float64]:
    if name not in results:
        raise ValueError(f"the rule needs {name}; search with scoring=margotree.model_selection.scoring()")
    column = np.asarray(results[name], dtype=np.float64)
    if np.all(np.isnan(column)):
        raise ValueError(
            f"no setting was fitted on all folds, so {name} is unknown for all settings: give the search more time"
        )
    return column
