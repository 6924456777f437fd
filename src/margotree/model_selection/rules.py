"""What a setting is judged by, and the paper's two rules for choosing one; they serve any ``GridSearchCV``.

GridSearchCV(tree, grid, scoring=scoring(), refit=FewestFeatures(), cv=stratified_folds())
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Means of accuracies over folds agree to this if they are the same in exact arithmetic.
_SAME = 1e-9


def n_features_used(estimator: Any, X: Any = None, y: Any = None) -> float:
    """A scorer: how many different features the splits of a fitted tree use (small is sparse)."""
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    return float(len(last.selected_features_))


def scoring() -> dict[str, str | Callable[..., float]]:
    """Accuracy and number of features used, as ``GridSearchCV`` takes them."""
    return {"accuracy": "accuracy", "n_features": n_features_used}


def stratified_folds(n_splits: int = 4, random_state: int = 0) -> Any:
    """Stratified, shuffled folds; four by default, as in the paper."""
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(n_splits, shuffle=True, random_state=random_state)


def best_accuracy(results: Mapping[str, Any]) -> int:
    """The first rule: the setting with the best mean validation accuracy; of equals the first in the grid."""
    accuracy = _column(results, "mean_test_accuracy")
    return int(np.flatnonzero(accuracy >= np.nanmax(accuracy) - _SAME)[0])


@dataclass(frozen=True)
class FewestFeatures:
    """The second rule: of the settings within ``[share * g, g]`` of the best mean accuracy ``g``, the one with the
    fewest features on average, and of those the most accurate (of equals the first in the grid)."""

    share: float = 0.975

    def __call__(self, results: Mapping[str, Any]) -> int:
        accuracy, features = _column(results, "mean_test_accuracy"), _column(results, "mean_test_n_features")
        good = accuracy >= self.share * np.nanmax(accuracy) - _SAME
        sparse = good & (features <= np.min(features[good]) + _SAME)
        return int(np.flatnonzero(sparse & (accuracy >= np.max(accuracy[sparse]) - _SAME))[0])


#: The rules by the names the command line gives them.
RULES: dict[str, Callable[[Mapping[str, Any]], int]] = {"accuracy": best_accuracy, "features": FewestFeatures()}


def _column(results: Mapping[str, Any], name: str) -> NDArray[np.float64]:
    if name not in results:
        raise ValueError(f"the rule needs {name}; search with scoring=margotree.model_selection.scoring()")
    column = np.asarray(results[name], dtype=np.float64)
    if np.all(np.isnan(column)):
        raise ValueError(
            f"no setting was fitted on all folds, so {name} is unknown everywhere: give the search more time"
        )
    return column
