"""Choosing hyperparameters by cross-validation.

- ``search``: :class:`TreeSearchCV`, a ``GridSearchCV`` with a time limit for the whole search, whose fits start from
  the trees of neighbouring settings and are saved one by one; start reading here
- ``fits``: the fits of one search
- ``rules``: scorers and selection rules, which a plain ``GridSearchCV`` can use as well
- ``grid_paths``: the order of the settings
- ``fit_chains``: run fits in parallel through joblib
- ``result_rows``, ``fit_record``: the file of results, and the columns that describe a fitted tree
- ``models``: the classifiers by their short names
- ``progress_line``: the line of progress
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
