"""Choosing hyperparameters as the paper does: its grids, its folds, its two rules.

    from margotree.tuning import tune
    search = tune(X, y, "hfs", rule="features", n_jobs=2, fit_time_limit=10, resume="search.sqlite", verbose=1)
    search.best_params_, search.best_estimator_

:func:`tune` is one call over :class:`TreeSearchCV`, a ``GridSearchCV`` whose fits start from their neighbours' trees,
within a time limit for all of them, kept on disk one by one.  Grids, scorers and rules serve a plain ``GridSearchCV``
as well.
"""

from margotree.tuning.fits import SearchError
from margotree.tuning.grids import paper_grid, per_level, tied_budgets
from margotree.tuning.models import TITLES, make_model, model_name, model_names
from margotree.tuning.rows import Rows, RowsError
from margotree.tuning.rules import RULES, FewestFeatures, best_accuracy, n_features_used, paper_folds, scoring
from margotree.tuning.search import TreeSearchCV
from margotree.tuning.tune import tune

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
    "paper_folds",
    "paper_grid",
    "per_level",
    "scoring",
    "tied_budgets",
    "tune",
]
