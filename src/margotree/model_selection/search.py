"""A grid search for trees: ``GridSearchCV`` whose fits start from the trees of neighbouring settings and are saved."""

from __future__ import annotations

import math
import time
import warnings
from os import PathLike
from typing import Any

from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, ParameterGrid, check_cv
from sklearn.utils import indexable

from margotree.estimators.fit_loops import NestedFitInterrupted
from margotree.estimators.fit_warnings import without_fit_warnings
from margotree.model_selection.fits import Fits, weight_argument
from margotree.model_selection.rules import best_accuracy, scoring
from margotree.private_names import best_index, cv_results, within_scikit_learn_loop

#: The smallest time limit of the last fit, in seconds, also after the time limit of the search.
_MIN_REFIT_SECONDS = 0.5


class TreeSearchCV(GridSearchCV):
    """Cross-validated search over a grid like ``GridSearchCV``, for trees with long training times.

    ``cv_results_``, ``best_params_``, ``best_estimator_`` and the other attributes are those of ``GridSearchCV``.  The
    differences: a fit starts from the tree of the neighbouring setting on the same fold; the search has a time limit,
    shows its progress and can be resumed.  ``cv_results_["cut_off"]`` says for each setting whether the time limit
    ended one of its fits before all splits of a first tree were trained; such a fit has no score (NaN), its setting is
    not chosen, and a warning is issued.  If no setting is complete, ``best_score_`` is NaN and the setting in the
    middle of the grid is taken.

    Parameters
    ----------
    estimator, param_grid, n_jobs, cv, return_train_score
        As in ``GridSearchCV``.  ``n_jobs`` is the number of parallel fits, in threads or as set by
        ``joblib.parallel_config``; the ``n_jobs`` of the estimator should then be 1.
    scoring : default accuracy and number of features used
        A dict of scorers.
    refit : default :func:`~margotree.model_selection.best_accuracy`
        The choice of the setting: a rule on ``cv_results_``, the name of a scorer, or False.
    time_limit : float or None, default None
        Seconds for the whole search.  Every fit on a fold gets its share of the remaining time, at most its own limit;
        the last fit, on all samples, gets the time that is left.  Settings for which no time is left have NaN scores
        and are not chosen.
    resume : path or None, default None
        A file in which every fit is saved as soon as it is done.  Fits that are in the file are not repeated.
    warm : bool, default True
        Start from the tree of the neighbouring setting.
    name : str, default ""
        The name of the data in that file.
    verbose : int, default 0
        1 shows a line of progress, 2 one line per fit.

    Notes
    -----
    The first Ctrl-C ends the search: fits that it interrupts do not count, the choice is made among the settings that
    are complete, ``interrupted_`` is True, and the chosen setting is trained within the estimator's own time limit (a
    second Ctrl-C ends that with the best tree so far).  If no setting is complete, KeyboardInterrupt is raised; with
    ``resume`` the finished fits are saved.
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = best_accuracy,
        cv: Any = 4,
        verbose: int = 0,
        error_score: Any = "raise",
        return_train_score: bool = False,
        time_limit: float | None = None,
        resume: str | PathLike[str] | None = None,
        warm: bool = True,
        name: str = "",
    ) -> None:
        super().__init__(
            estimator, param_grid, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv, verbose=verbose,
            error_score=error_score, return_train_score=return_train_score,
        )  # fmt: skip
        self.time_limit = time_limit
        self.resume = resume
        self.warm = warm
        self.name = name

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> TreeSearchCV:
        """Fit every setting on every fold, choose one, and train it on all samples."""
        X, y = indexable(X, y)
        settings = list(ParameterGrid(self.param_grid))
        folds = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        splits = list(folds.split(X, y))
        self.n_splits_ = len(splits)
        self.scorer_ = check_scoring(self.estimator, scoring=self.scoring or scoring())
        fits = Fits(self, settings, splits, X, y, sample_weight)
        found = fits.run()
        self.interrupted_ = fits.interrupted
        if self.interrupted_ and within_scikit_learn_loop():
            raise NestedFitInterrupted("a search within a loop of fits was interrupted: it has no result")
        self.multimetric_ = isinstance(found[0]["test_scores"], dict)
        self.cv_results_ = cv_results(self, settings, self.n_splits_, found)
        self.cv_results_["cut_off"] = fits.settings_cut_off()
        if self.refit:
            self._choose_without_scores() if fits.no_setting_complete() else self._choose()
            self._fit_best(X, y, sample_weight, None if self.interrupted_ else fits.seconds_left())
        return self

    def _choose(self) -> None:
        """Set ``best_index_``, ``best_params_`` and ``best_score_`` by the rule or scorer ``refit``."""
        metric = self.refit if isinstance(self.refit, str) else "accuracy" if self.multimetric_ else "score"
        self.best_index_ = best_index(self.refit, metric, self.cv_results_)
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        if f"mean_test_{metric}" in self.cv_results_:
            self.best_score_ = float(self.cv_results_[f"mean_test_{metric}"][self.best_index_])

    def _choose_without_scores(self) -> None:
        """Take the setting in the middle of the grid, because no setting has a score on every fold."""
        warnings.warn(
            "the time limit left no setting with a score on every fold: best_score_ is NaN, and the setting in the "
            "middle of the grid is taken without a choice; give the search more time, or fewer settings",
            stacklevel=3,
        )
        settings = self.cv_results_["params"]
        self.best_index_ = len(settings) // 2
        self.best_params_, self.best_score_ = settings[self.best_index_], math.nan

    def _fit_best(self, X: Any, y: Any, sample_weight: Any, seconds: float | None) -> None:
        """Fit the chosen setting on all samples, within ``seconds`` or (None) the estimator's own time limit."""
        self.best_estimator_ = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        if seconds is not None and "time_limit" in self.best_estimator_.get_params(deep=False):
            self.best_estimator_.set_params(time_limit=max(_MIN_REFIT_SECONDS, seconds))
        began = time.time()
        with without_fit_warnings():  # they suggest other settings, which the search has compared
            self.best_estimator_.fit(X, y, **weight_argument(sample_weight))
        self.refit_time_ = time.time() - began
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_
