"""Choosing hyperparameters by cross-validation, of any estimator.

- ``cross_validation``: :class:`CrossValidation`, the fits of all settings on all folds; start reading here
- ``race``: :class:`Race`, which settings are fitted on further folds, and which one is chosen
- ``pruning_choice``: the choice of the penalty of pruning, on the trees of the folds
- ``scores``, ``frontier``: scores with standard errors, and the settings by score and numbers to read
- ``folds``: folds and subsamples of their training rows
- ``fit_chains``: run fits in parallel
- ``search``: :class:`TreeSearchCV`, a ``GridSearchCV`` with a time limit for the whole search, whose fits start from
  the trees of neighbouring settings and are saved one by one
- ``rules``: scorers and selection rules, which a plain ``GridSearchCV`` can use as well
- ``stability``: :func:`tree_stability`, refits on bootstrap samples
- ``grid_paths``: the order of the settings of a grid
- ``saved_fits``, ``result_rows``, ``fit_record``: the file of results, and the columns that describe a fitted tree
- ``progress_line``: the line of progress
"""

from margotree.model_selection.cross_validation import CrossValidation, Samples, SearchError
from margotree.model_selection.folds import Fold, stratified_folds
from margotree.model_selection.frontier import Frontier, FrontierPoint
from margotree.model_selection.pruning_choice import PruningChoice, choose_penalty
from margotree.model_selection.race import Race
from margotree.model_selection.result_rows import Rows, RowsError
from margotree.model_selection.rules import RULES, FewestFeatures, best_accuracy, n_features_used, scoring
from margotree.model_selection.scores import RowsExplained, ScoreTable, rows_right
from margotree.model_selection.search import TreeSearchCV
from margotree.model_selection.stability import SplitStability, Stability, tree_stability

__all__ = [
    "RULES",
    "CrossValidation",
    "FewestFeatures",
    "Fold",
    "Frontier",
    "FrontierPoint",
    "PruningChoice",
    "Race",
    "Rows",
    "RowsError",
    "RowsExplained",
    "Samples",
    "ScoreTable",
    "SearchError",
    "SplitStability",
    "Stability",
    "TreeSearchCV",
    "best_accuracy",
    "choose_penalty",
    "n_features_used",
    "rows_right",
    "scoring",
    "stratified_folds",
    "tree_stability",
]
