"""Classifiers that choose depth, C and budget by cross-validation, as ``LogisticRegressionCV`` does."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from margotree.engines import Limits
from margotree.engines.local_search.search import Effort
from margotree.engines.local_search_engine import Alternating
from margotree.engines.registry import train
from margotree.engines.run_control import Listener
from margotree.estimators.automatic_band import DEPRECATED, band_of
from margotree.estimators.classifiers import MarginTreeClassifier
from margotree.estimators.cv_settings import Setting, neighbour_paths, settings
from margotree.estimators.encoded_input import FROM_DTYPE, training_input
from margotree.estimators.fit_warnings import (
    CutOffWarning,
    RareClassWarning,
    cut_off_fits_warning,
    rare_class_warning,
)
from margotree.estimators.input_data import (
    ClassSamples,
    check_targets,
    merge_duplicates,
)
from margotree.estimators.margot import MargotClassifier
from margotree.estimators.parameters import check_parameters, with_defaults
from margotree.model_selection import CrossValidation, Fold, Frontier, Race, rows_right, stratified_folds
from margotree.model_selection import Samples as FoldSamples
from margotree.model_selection.cross_validation import fit_from
from margotree.notices import warn_from_fit, without_fit_warnings
from margotree.problem import Problem, Splits
from margotree.solution import Solution, Stopped
from margotree.tree import Scaling, Tree

#: Shares of the time: of the limit for the choice, and of the remaining time for the initial tree of the final fit.
_CHOICE_SHARE, _START_SHARE = 0.6, 0.6
#: The largest numbers of training samples on a preliminary fold and on a fold; of more a subsample is used.
_MAX_PRELIMINARY_ROWS, _MAX_FOLD_ROWS = 1000, 4000
#: The exact search of the final fit gets this share of the seconds of the fit before it, and at least these seconds.
_EXACT_SHARE, _MIN_EXACT_SECONDS = 0.3, 1.0
#: The number of settings from which on there is a preliminary fold.
_MIN_SETTINGS_PRELIMINARY = 8
#: The smallest time of the final fit in seconds, and the largest after Ctrl-C.
_MIN_SECONDS, _MAX_SECONDS_AFTER_CTRL_C = 0.2, 5.0


class MargotClassifierCV(MarginTreeClassifier):
    """A MARGOT tree whose depth and C are chosen by cross-validation.

    The local search fits every setting on folds of at most 4,000 samples, starting from the tree of a neighbouring
    setting.  A setting is abandoned when its mean score is two standard errors below the best,
    or three on a preliminary fold of at most 1,000 samples.  The choice ends when further folds would hardly change it.
    The setting with the fewest numbers to read within one standard error of the best is then trained on all samples,
    with a certificate.

    Parameters
    ----------
    depths : "auto", int or list, default "auto"
        Depths to try.  "auto": 1, 2 and 3; with more than two classes the smallest depth with a leaf for each class,
        and one more.
    Cs : "auto" or list, default "auto"
        Values of C to try: numbers, or tuples with one per level (root first) or per node.  "auto": for the last
        level 0.1 to 1000; for the levels above the same C, or a thousandth of it at the root, or at all of them.  With
        more than two classes: for the last level 1 to 1000; above it the same C, or a tenth of that of the next level.
        With less than 0.3 s of the time limit per setting (10 s with budgets): 10 on all levels, or 100 for the last
        level with a smaller C above it.
    budgets : "auto", list or None, default None
        Budgets of features per split to try: numbers, or tuples with one per level or per node.  "auto": 1, 2 and 3, or
        1 with ``alphas``.  None: splits may use all features.
    alphas : "auto", list or None, default None
        Penalties of features beyond the budget to try.  "auto": 1 and 10.  None: budgets are hard.
    cv : int, splitter or iterable, default 5
        The folds.  A number means stratified folds, shuffled with ``random_state``; duplicates are in the same fold.
    scoring : str, callable or None, default None
        The score that is maximised, as in scikit-learn; None is accuracy.
    time_limit : float or None, default 60
        The largest number of seconds for the choice and the final fit together.  Most fits end earlier: the choice ends
        when further folds would hardly change it, the local search when starts give no improvement, and the exact
        search after 30 % of the seconds before it.  Train :class:`MargotClassifier` with the chosen values for longer
        proofs.
    engine : str, default "auto"
        The engine of the final fit; ``"alternating"`` (the local search) is fast and proves no bound.
    n_jobs : int or None, default None
        The number of simultaneous fits during the choice, and of threads in the final fit.
    random_state : int, RandomState or None, default 0
        The seed of folds and searches.
    verbose : int, default 0
        1: a line per fold; 2: also a line per fit.
    round : None, "auto", "points" or int, default "auto"
        Short numbers of the final tree, as in :class:`~margotree.MargotClassifier`.  Fits on folds are not rounded.
    band, scale, class_weight, proba, gap, eps, categorical_features
        As in :class:`~margotree.MargotClassifier`.

    Attributes
    ----------
    depth_, C_, budget_, alpha_
        The chosen values; ``budget_`` and ``alpha_`` are None without ``budgets`` and ``alphas``.
    settings_ : list of dict
        The settings that were tried.
    scores_ : array (settings, folds)
        The score of each setting on each fold; NaN if the setting was abandoned, if there was no time, or if the time
        limit cut off the fit.
    cut_off_ : array (settings, folds) of bool
        Whether the time limit cut off a fit before all splits of a first tree were trained.  Such a fit has no score,
        its setting is not chosen, and a warning states the number of such fits.
    best_score_ : float
        The mean score of the chosen setting over the folds that were complete; it is optimistic, as the best of many.
        Of the settings within one standard error of the best, the one with the fewest numbers to read is chosen; of
        equal ones the simplest: small depth, few features, the same C on all levels, small C.  The standard error is
        that of the difference of two settings on the same test rows; with ``scoring`` that of a share of the test rows.
        NaN, with a warning, if every fit was cut off; then the setting in the middle of the shallowest ones is used.
    frontier_ : Frontier
        Score, standard error and numbers to read of each setting that has a score; prints as a table, and
        :func:`margotree.plots.plot_frontier` draws it.
    interrupted_ : bool
        Whether Ctrl-C ended the choice, which was then made among the complete fits.
    tree_, certificate_, classes_, n_features_in_, feature_names_in_, selected_features_, encoding_
        As in :class:`~margotree.MargotClassifier`.
    """

    def __init__(
        self,
        depths: Any = "auto",
        Cs: Any = "auto",
        budgets: Any = None,
        alphas: Any = None,
        *,
        cv: Any = 5,
        scoring: Any = None,
        band: float | str = "auto",
        scale: str | None = "minmax",
        class_weight: Any = None,
        proba: str = "margin",
        engine: str = "auto",
        time_limit: float | None = 60,
        gap: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        round: Any = "auto",
        eps: Any = DEPRECATED,
        categorical_features: Any = "from_dtype",
    ) -> None:
        self.depths = depths
        self.Cs = Cs
        self.budgets = budgets
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.band = band
        self.scale = scale
        self.class_weight = class_weight
        self.proba = proba
        self.engine = engine
        self.time_limit = time_limit
        self.gap = gap
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.round = round
        self.eps = eps
        self.categorical_features = categorical_features

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MargotClassifierCV:
        """Choose a setting by cross-validation and train it on all samples.

        After Ctrl-C during the choice, it is made among the complete fits, and the tree is trained for a few seconds.
        After Ctrl-C during the final fit, ``fit`` returns with the best tree so far.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`margotree.MargotClassifier.fit`.

        Returns
        -------
        self
        """
        began = time.monotonic()
        check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)
        given_X = X
        check_targets(y)
        X, y, self.encoding_ = training_input(self, X, y, sample_weight, numeric_targets=False)
        samples = self._read(X, y, sample_weight)
        self.classes_ = samples.classes
        n_columns = X.shape[1] if self.encoding_ is None else len(self.encoding_.columns)
        limit = math.inf if self.time_limit is None else float(self.time_limit)
        n_classes = len(samples.classes)
        candidates = settings(*self._grid(), n_features=n_columns, n_classes=n_classes, seconds=limit)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        chosen, start = self._choose(samples, candidates, (X, y, sample_weight), _CHOICE_SHARE * limit, seed)
        self._store_choice(chosen)
        left = max(_MIN_SECONDS, limit - (time.monotonic() - began))
        seconds = min(left, _MAX_SECONDS_AFTER_CTRL_C) if self.interrupted_ else left
        self._train_final(chosen, start, (given_X, y, sample_weight), began, seconds, seed)
        warn_from_fit(rare_class_warning(samples), RareClassWarning)
        return self

    def _grid(self) -> tuple[Any, ...]:
        """The depths, Cs, budgets and alphas to try."""
        if self.alphas is not None and self.budgets is None:
            raise ValueError("alphas are penalties of features beyond a budget; give budgets, too, such as budgets=[1]")
        only_one = self.alphas is not None and isinstance(self.budgets, str) and self.budgets == "auto"
        return self.depths, self.Cs, [1] if only_one else self.budgets, self.alphas

    def _problem(self, samples: ClassSamples, scaling: Scaling) -> Problem:
        raise NotImplementedError("the fits of the choice and the final fit make the problem")

    # -- the choice ---------------------------------------------------------------------------------------------

    def _choose(
        self, samples: ClassSamples, candidates: list[Setting], data: tuple[Any, Any, Any], seconds: float, seed: int
    ) -> tuple[Setting, Tree | None]:
        """The chosen setting, and its tree on a fold."""
        fold_samples, folds = self._folds(samples, data, seed)
        self.settings_ = [setting.params for setting in candidates]
        self.interrupted_, self.cut_off_ = False, np.zeros((len(candidates), len(folds)), dtype=bool)
        if len(candidates) == 1 or not folds:
            self.scores_ = np.full((len(candidates), len(folds)), np.nan)
            self.best_score_, self.frontier_ = math.nan, Frontier([])
            # There is no choice without a second setting or without folds.
            return candidates[len(candidates) // 2], None
        first = folds[0].subsampled(_MAX_PRELIMINARY_ROWS, fold_samples.y, seed)
        if len(first.train) < len(folds[0].train) and len(candidates) >= _MIN_SETTINGS_PRELIMINARY:
            folds = [replace(first, preliminary=True), *folds]
        scorer = rows_right if self.scoring is None else check_scoring(MargotClassifier(), scoring=self.scoring)
        fold_proba = "leaf" if self.scoring is None else self.proba  # accuracy does not use probabilities
        fits = CrossValidation(
            lambda params, fold: self._model(
                _PreliminarySearch if fold.preliminary else _FoldSearch, params, seed
            ).set_params(proba=fold_proba, categorical_features=FROM_DTYPE),
            self.settings_, fold_samples, folds, scorer, paths=neighbour_paths(candidates),
            race=Race([setting.simplicity for setting in candidates]), time_limit=seconds, n_jobs=self.n_jobs,
            weigh_scores=True, verbose=int(self.verbose),
        ).run()  # fmt: skip
        self.scores_, self.interrupted_ = fits.scores(), fits.interrupted
        for k, f in fits.cut_off:
            self.cut_off_[k, max(0, f - fits.n_preliminary)] = True
        warn_from_fit(cut_off_fits_warning(self.cut_off_, self.scores_), CutOffWarning)
        best = fits.choose()
        self.frontier_ = fits.frontier(best)
        self.best_score_ = math.nan if best is None else float(fits.score_table().means()[best])
        return (_default_setting(candidates), None) if best is None else (candidates[best], fits.tree(best))

    def _folds(self, samples: ClassSamples, data: tuple[Any, Any, Any], seed: int) -> tuple[FoldSamples, list[Fold]]:
        """The samples, and the folds; no folds if a class has too few samples."""
        if not isinstance(self.cv, (int, np.integer)) or isinstance(self.cv, bool):
            X, y, weight = data
            rows = FoldSamples(X=X, y=y, weight=None if weight is None else np.broadcast_to(weight, len(y)))
            return rows, _subsampled(check_cv(self.cv, y, classifier=True).split(X, y), y, seed)
        if self.cv < 2:
            raise ValueError(f"cv must be at least 2 folds, a splitter or an iterable of splits, got {self.cv!r}")
        # Duplicates are merged, so that none is both in training and in test, and a weight equals repetition.
        X, code, weight = merge_duplicates(
            samples.X, samples.y.astype(np.float64), samples.weight, Scaling.identity(samples.X.shape[1])
        )
        y = samples.classes[code.astype(np.int64)]
        rows = FoldSamples(X=X, y=y, weight=None if np.all(weight == 1.0) else weight)
        # Every fold must be trained on at least two classes; a further class with fewer rows is absent from some folds.
        n_folds = min(int(self.cv), int(np.sort(np.bincount(code.astype(np.int64)))[-2]))
        if n_folds < 2:
            return rows, []
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            return rows, _subsampled(stratified_folds(n_folds, seed).split(X, code), y, seed)

    # -- the final fit -----------------------------------------------------------------------------------------------

    def _store_choice(self, chosen: Setting) -> None:
        self.depth_, self.C_, self.budget_, self.alpha_ = chosen.depth, chosen.C, chosen.budget, chosen.alpha

    def _train_final(
        self, chosen: Setting, start: Tree | None, data: tuple[Any, Any, Any], began: float, seconds: float, seed: int
    ) -> None:
        """Train the chosen setting on all samples: local search from the tree on a fold, then the exact search.

        The exact search seldom changes predictions and may run for hours; it gets a share of the time before it.
        """
        deadline = time.monotonic() + seconds
        model = self._model(_FinalSearch, chosen.params, seed)
        is_last = self.engine == "alternating"
        model.set_params(
            n_jobs=self.n_jobs, verbose=self.verbose, time_limit=_finite(seconds * (1.0 if is_last else _START_SHARE)),
            round=self.round if is_last else None,
        )  # fmt: skip
        with without_fit_warnings():  # their suggestions have been tried already
            fit_from(model, start, *data)
            if not is_last and model.certificate_.stopped != Stopped.INTERRUPTED:
                now = time.monotonic()
                exact_seconds = min(
                    max(_MIN_SECONDS, deadline - now), max(_MIN_EXACT_SECONDS, _EXACT_SHARE * (now - began))
                )
                tree, model = model.tree_, self._model(MargotClassifier, chosen.params, seed)
                model.set_params(engine=self.engine, gap=self.gap, time_limit=exact_seconds, round=self.round)
                fit_from(model.set_params(n_jobs=self.n_jobs, verbose=self.verbose), tree, *data)
        self.tree_, self.certificate_ = model.tree_, model.certificate_

    def _model(self, cls: type[MargotClassifier], params: Mapping[str, Any], seed: int) -> MargotClassifier:
        model = cls(
            **params, band=band_of(self), scale=self.scale, class_weight=self.class_weight, proba=self.proba,
            random_state=seed, time_limit=None, categorical_features=self.categorical_features,
        )  # fmt: skip
        groups = self._groups()  # the samples of folds are encoded already
        return model if groups is None else model.count_columns(groups)


class HFSMargotClassifierCV(MargotClassifierCV):
    """:class:`MargotClassifierCV` with hard feature selection: ``budgets="auto"`` by default."""

    __init__ = with_defaults(MargotClassifierCV.__init__, budgets="auto")


class SFSMargotClassifierCV(MargotClassifierCV):
    """:class:`MargotClassifierCV` with soft feature selection: ``budgets`` and ``alphas`` "auto" by default."""

    __init__ = with_defaults(MargotClassifierCV.__init__, budgets="auto", alphas="auto")


class _FoldSearch(MargotClassifier):
    """The classifier of a fit on a fold: a short local search, with enough descents to rank the settings."""

    _effort = Effort(least=3, most=12, patience=3)

    def _solve(
        self, problem: Problem, start: Splits | str | None, limits: Limits, listener: Listener | None
    ) -> Solution:
        first = start if isinstance(start, Splits) else None
        engine = Alternating(self._effort, neighbours=False, greedy=True)
        return train(problem, engine, limits=limits, start=first, listener=listener)


class _PreliminarySearch(_FoldSearch):
    """The classifier of a fit on the preliminary fold: a few descents."""

    _effort = Effort(least=1, most=4, patience=2)


class _FinalSearch(_FoldSearch):
    """The local search of the final fit."""

    _effort = Effort(least=15, most=200, patience=20)


def _subsampled(splits: Iterable[tuple[Any, Any]], y: NDArray[Any], seed: int) -> list[Fold]:
    """The folds, with at most ``_MAX_FOLD_ROWS`` rows to train on."""
    return [Fold(train=train, test=test).subsampled(_MAX_FOLD_ROWS, y, seed) for train, test in splits]


def _default_setting(candidates: list[Setting]) -> Setting:
    """The setting that is used if no setting has a score."""
    least = min(setting.depth for setting in candidates)
    shallow = [setting for setting in candidates if setting.depth == least]
    return shallow[len(shallow) // 2]


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None
