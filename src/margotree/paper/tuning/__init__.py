"""The grids and the procedure by which the paper tunes its models.

    from margotree.paper.tuning import tune
    search = tune(X, y, "hfs", rule="features", n_jobs=2, fit_time_limit=10, resume="search.sqlite", verbose=1)
    search.best_params_, search.best_estimator_

``tune.py`` contains :func:`tune`, one call of :class:`margotree.model_selection.TreeSearchCV`; ``grids.py`` contains
the grids, and ``models.py`` the classifiers by their short names.
"""

from margotree.model_selection import stratified_folds as paper_folds
from margotree.paper.tuning.grids import paper_grid, per_level, tied_budgets
from margotree.paper.tuning.models import TITLES, make_model, model_names
from margotree.paper.tuning.tune import tune

__all__ = ["TITLES", "make_model", "model_names", "paper_folds", "paper_grid", "per_level", "tied_budgets", "tune"]
