"""A grid search for trees: ``GridSearchCV`` whose fits start from the trees of neighbouring settings and are saved."""

from __future__ import annotations

import math
import time
import warnings
from contextlib import nullcontext
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, ParameterGrid, check_cv
from sklearn.utils import indexable

from margotree.model_selection.cross_validation import CrossValidation, Job, Samples, weight_argument
from margotree.model_selection.folds import Fold
from margotree.model_selection.grid_paths import grid_paths
from margotree.model_selection.result_rows import Rows
from margotree.model_selection.rules import best_accuracy, scoring
from margotree.model_selection.saved_fits import SavedFits
from margotree.notices import without_fit_warnings
from margotree.private_names import best_index, cv_results

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
    name, model : str, default ""
        The names of the data and of the model in that file; by default the model is the name of the class.
    verbose : int, default 0
        1 shows a line of progress, 2 one line per fit.

    Attributes
    ----------
    frontier_ : Frontier
        Score, standard error and numbers to read of each setting, if the scorers include accuracy; not without
        ``refit``.

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
        model: str = "",
    ) -> None:
        super().__init__(
            estimator, param_grid, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv, verbose=verbose,
            error_score=error_score, return_train_score=return_train_score,
        )  # fmt: skip
        self.time_limit = time_limit
        self.resume = resume
        self.warm = warm
        self.name = name
        self.model = model

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> TreeSearchCV:
        """Fit every setting on every fold, choose one, and train it on all samples."""
        X, y = indexable(X, y)
        settings = list(ParameterGrid(self.param_grid))
        splitter = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        folds = [Fold(train=train, test=test) for train, test in splitter.split(X, y)]
        self.n_splits_ = len(folds)
        self.scorer_ = check_scoring(self.estimator, scoring=self.scoring or scoring())
        fits = self._run_fits(settings, folds, Samples(X=X, y=y, weight=sample_weight))
        self.interrupted_ = fits.interrupted
        self._warn_about_missing_fits(fits)
        found = [_scikit_learn_result(fits, job, self.error_score) for job in np.ndindex(len(settings), len(folds))]
        self.multimetric_ = isinstance(found[0]["test_scores"], dict)
        self.cv_results_ = cv_results(self, settings, self.n_splits_, found)
        cut_off = {k for k, _ in fits.cut_off}
        self.cv_results_["cut_off"] = np.array([k in cut_off for k in range(len(settings))])
        if self.refit:
            left_out = fits.cut_off or len(fits.rows) < len(found)
            self._choose_without_scores() if left_out and not fits.any_setting_complete() else self._choose()
            self.frontier_ = fits.frontier(self.best_index_)
            no_limit = self.time_limit is None or self.interrupted_
            self._fit_best(X, y, sample_weight, None if no_limit else fits.deadline - time.monotonic())
        return self

    def _run_fits(self, settings: list[dict[str, Any]], folds: list[Fold], samples: Samples) -> CrossValidation:
        """Run the fits; with ``resume`` those that are not in the file."""
        estimator, paths = clone(self.estimator), grid_paths(settings)
        with nullcontext() if self.resume is None else Rows(self.resume) as rows:
            saved = None if rows is None else self._saved_fits(rows, estimator, settings, folds, samples, paths)
            return CrossValidation(
                lambda setting, fold: clone(estimator).set_params(**clone(setting, safe=False)),
                settings, samples, folds, self.scorer_, paths=paths, warm=self.warm,
                time_limit=math.inf if self.time_limit is None else self.time_limit,
                n_reserved=bool(self.refit), n_jobs=self.n_jobs, train_scores=self.return_train_score,
                raise_errors=self.error_score == "raise", name=self.name, verbose=self.verbose,
                known=None if saved is None else saved.known(), on_result=None if saved is None else saved.save,
            ).run()  # fmt: skip

    def _saved_fits(
        self, rows: Rows, estimator: Any, settings: list[dict[str, Any]], folds: list[Fold], samples: Samples,
        paths: list[list[int]],
    ) -> SavedFits:  # fmt: skip
        params = estimator.get_params(deep=False)
        warm = self.warm and "start" in params
        starts = {
            (k, f): "neighbour" if warm and position else str(params.get("start"))
            for path in paths
            for position, k in enumerate(path)
            for f in range(len(folds))
        }
        names = {"data": self.name, "model": self.model or type(self.estimator).__name__}
        return SavedFits(rows, estimator, settings, folds, samples, starts=starts, warm=warm, columns=names)

    def _warn_about_missing_fits(self, fits: CrossValidation) -> None:
        """Warn about the fits without a score; raise KeyboardInterrupt if it left no setting complete."""
        n_settings = len(fits.settings)
        n_fits = n_settings * len(fits.folds)
        if self.interrupted_ and not fits.any_setting_complete():
            raise KeyboardInterrupt("interrupted before any setting was fitted on all folds")
        if missing := n_fits - len(fits.rows):
            why = "the interruption" if self.interrupted_ else "the time limit of the search"
            warnings.warn(f"{why} left {missing} of {n_fits} fits undone; their settings have NaN scores", stacklevel=3)
        if fits.cut_off:
            warnings.warn(
                f"the time limit cut off {len(fits.cut_off)} of {n_fits} fits before all splits of a first tree "
                f"were trained: they have no score, and {len({k for k, _ in fits.cut_off})} of {n_settings} settings "
                "are not chosen for it (see cv_results_['cut_off']); give the search more time, or fewer settings",
                stacklevel=3,
            )

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


def _scikit_learn_result(fits: CrossValidation, job: Job, error_score: Any) -> dict[str, Any]:
    """The result of a fit in the form of scikit-learn's ``_fit_and_score``."""
    row = fits.rows.get(job, {"scores": {"failed": "no time"}})
    scores = row["scores"]
    result = {
        "fit_error": scores.get("failed"), "n_test_samples": len(fits.folds[job[1]].test),
        "fit_time": row.get("seconds", 0.0), "score_time": scores.get("seconds", 0.0),
    }  # fmt: skip
    if "failed" not in scores and job not in fits.cut_off:
        return {**result, "test_scores": scores["test"], "train_scores": scores["train"]}
    value = math.nan if "failed" not in scores or error_score == "raise" else float(error_score)
    example = next((row["scores"]["test"] for row in fits.rows.values() if "test" in row["scores"]), None)
    blank = dict.fromkeys(example, value) if isinstance(example, dict) else value
    return {**result, "test_scores": blank, "train_scores": blank}
