"""Choosing hyperparameters by cross-validation.

Start with :class:`TreeSearchCV`, a ``GridSearchCV`` whose fits start from their neighbours' trees, within a time limit
for all of them, kept on disk one by one.  Its scorers and rules serve a plain ``GridSearchCV`` as well.
"""

from margotree.model_selection.fits import SearchError
from margotree.model_selection.models import TITLES, make_model, model_name, model_names
from margotree.model_selection.result_rows import Rows, RowsError
from margotree.model_selection.rules import (
    RULES,
    FewestFeatures,
    best_accuracy,
    n_features_used,
    scoring,
    stratified_folds,
)
from margotree.model_selection.search import TreeSearchCV

__all__ = [
    "RULES",
    "TITLES",
    "FewestFeatures",
    "Rows",
    "RowsError",
    "SearchError",
    "TreeSearchCV",
    "best_accuracy",
    "make_model",
    "model_name",
    "model_names",
    "n_features_used",
    "scoring",
    "stratified_folds",
]
