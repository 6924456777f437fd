"""The choice of hyperparameters by cross-validation, and the final fit, for classifiers and regressors."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

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
from margotree.estimators.base import AnySamples, AnyTree
from margotree.estimators.cv_settings import Setting, neighbour_paths
from margotree.estimators.encoded_input import FROM_DTYPE
from margotree.estimators.fit_warnings import CutOffWarning, cut_off_fits_warning
from margotree.estimators.margin import MarginTreeEstimator
from margotree.estimators.parameters import check_parameters
from margotree.model_selection import CrossValidation, Fold, Frontier, Race, choose_penalty
from margotree.model_selection import Samples as FoldSamples
from margotree.model_selection.cross_validation import fit_from
from margotree.model_selection.race import MAX_SCORE_BELOW
from margotree.notices import warn_from_fit, without_fit_warnings
from margotree.problem import Problem, Splits
from margotree.solution import Solution, Stopped
from margotree.tree import HyperplaneTree, Scaling

#: Shares of the time: of the limit for the choice, and of the remaining time for the initial tree of the final fit.
_CHOICE_SHARE, _START_SHARE = 0.6, 0.6
#: The choice of the penalty of pruning may exceed the time of the choice of a setting by this share.
_PRUNING_SHARE = 0.25
#: The largest numbers of training samples on a preliminary fold and on a fold; of more a subsample is used.
_MAX_PRELIMINARY_ROWS, _MAX_FOLD_ROWS = 1000, 4000
#: The exact search of the final fit gets this share of the seconds of the fit before it, and at least these seconds.
_EXACT_SHARE, _MIN_EXACT_SECONDS = 0.2, 1.0
#: The number of settings from which on there is a preliminary fold.
_MIN_SETTINGS_PRELIMINARY = 8
#: The smallest time of the final fit in seconds, and the largest after Ctrl-C.
_MIN_SECONDS, _MAX_SECONDS_AFTER_CTRL_C = 0.2, 5.0


class ShortSearch(MarginTreeEstimator[AnySamples, AnyTree]):
    """The estimator of a fit on a fold: a short local search, with enough descents to rank the settings."""

    _effort: ClassVar[Effort] = Effort(least=3, most=12, patience=3)

    def _solve(
        self, problem: Problem, start: Splits | str | None, limits: Limits, listener: Listener | None
    ) -> Solution:
        first = start if isinstance(start, Splits) else None
        engine = Alternating(self._effort, neighbours=False, greedy=True)
        return train(problem, engine, limits=limits, start=first, listener=listener)


#: The effort of a fit on the preliminary fold, and of the local search of the final fit.
PRELIMINARY_EFFORT = Effort(least=1, most=4, patience=2)
FINAL_EFFORT = Effort(least=15, most=200, patience=15, growth=0.5)


class CrossValidatedTree(MarginTreeEstimator[AnySamples, AnyTree]):
    """Base class of the estimators that choose their hyperparameters by cross-validation.

    A subclass lists the settings (:meth:`_candidates`), makes the folds (:meth:`_merged`, :meth:`_splits`), the scorer
    (:meth:`_row_scorer`) and the estimators of the fits (:meth:`_new`, and the classes below).
    """

    cv: Any
    scoring: Any
    n_jobs: Any
    verbose: Any
    engine: Any
    gap: Any
    time_limit: Any
    random_state: Any

    #: The estimator of the last fit, and those of the local searches: preliminary, on a fold, and before the last fit.
    _exact: ClassVar[type[Any]]
    _preliminary_search: ClassVar[type[Any]]
    _fold_search: ClassVar[type[Any]]
    _final_search: ClassVar[type[Any]]
    #: Settings whose mean score is below the best by more than this are not chosen.
    _max_below: ClassVar[float] = MAX_SCORE_BELOW

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose a setting by cross-validation and train it on all samples.

        After Ctrl-C during the choice, it is made among the complete fits, and the tree is trained for a few seconds.
        After Ctrl-C during the final fit, ``fit`` returns with the best tree so far.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit`` of the estimator without cross-validation.

        Returns
        -------
        self
        """
        began = time.monotonic()
        check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)
        given_X = X
        X, y, samples = self._checked_data(X, y, sample_weight)
        limit = math.inf if self.time_limit is None else float(self.time_limit)
        candidates = self._candidates(samples, limit)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        chosen, start = self._choose(samples, candidates, (X, y, sample_weight), _CHOICE_SHARE * limit, seed)
        self._store_choice(chosen)
        left = max(_MIN_SECONDS, limit - (time.monotonic() - began))
        seconds = min(left, _MAX_SECONDS_AFTER_CTRL_C) if self.interrupted_ else left
        self._train_final(chosen, start, (given_X, y, sample_weight), began, seconds, seed)
        self._store(self.tree_, samples)
        for message, category in self._data_warnings(samples):
            warn_from_fit(message, category)
        return self

    @abstractmethod
    def _candidates(self, samples: AnySamples, seconds: float) -> list[Setting]:
        """The settings to try within ``seconds``."""

    @abstractmethod
    def _row_scorer(self, samples: AnySamples) -> Callable[..., NDArray[np.float64]]:
        """The scorer of rows for ``scoring=None``."""

    @abstractmethod
    def _merged(self, samples: AnySamples) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[np.float64]]:
        """Samples, targets and weights without duplicates.

        Then none is both in training and in test, and a weight equals repetition.
        """

    @abstractmethod
    def _splits(self, X: NDArray[np.float64], y: NDArray[Any], seed: int) -> Iterable[tuple[Any, Any]]:
        """Training and test rows of ``cv`` shuffled folds; none if there are too few rows."""

    @abstractmethod
    def _strata(self, y: NDArray[Any]) -> NDArray[Any] | None:
        """The strata of subsamples of the training rows."""

    @abstractmethod
    def _new(self, cls: type[Any], params: Mapping[str, Any], seed: int) -> Any:
        """An estimator of the given class with one setting."""

    def _model(self, cls: type[Any], params: Mapping[str, Any], seed: int) -> Any:
        model, groups = self._new(cls, params, seed), self._groups()
        return model if groups is None else model.count_columns(groups)  # the samples of folds are encoded already

    def _fold_options(self) -> dict[str, Any]:
        """Parameters of the fits on folds."""
        return {}

    def _last_options(self) -> dict[str, Any]:
        """Parameters of the last fit alone."""
        return {}

    def _chooses_pruning(self) -> bool:
        """Whether the penalty of pruning is chosen on the trees of the folds."""
        return False

    def _data_warnings(self, samples: AnySamples) -> list[tuple[str, type[UserWarning]]]:
        """Messages and categories of possible warnings about the data."""
        return []

    def _problem(self, samples: AnySamples, scaling: Scaling) -> Problem:
        raise NotImplementedError("the fits of the choice and the final fit make the problem")

    # -- the choice ---------------------------------------------------------------------------------------------

    def _choose(
        self, samples: AnySamples, candidates: list[Setting], data: tuple[Any, Any, Any], seconds: float, seed: int
    ) -> tuple[Setting, list[HyperplaneTree]]:
        """The chosen setting, and its trees on a fold: its own, and those of smaller budgets."""
        pruning_ends = time.monotonic() + (1.0 + _PRUNING_SHARE) * seconds
        fold_samples, folds = self._folds(samples, data, seed)
        self.settings_ = [setting.params for setting in candidates]
        given = getattr(self, "prune", None)
        self.prune_, self.pruning_frontier_ = None if isinstance(given, str) else given, Frontier([])
        self.interrupted_, self.cut_off_ = False, np.zeros((len(candidates), len(folds)), dtype=bool)
        if len(candidates) == 1 or not folds:
            self.scores_ = np.full((len(candidates), len(folds)), np.nan)
            self.best_score_, self.frontier_ = math.nan, Frontier([])
            # There is no choice without a second setting or without folds.
            return candidates[len(candidates) // 2], []
        first = folds[0].subsampled(_MAX_PRELIMINARY_ROWS, self._strata(fold_samples.y), seed)
        if len(first.train) < len(folds[0].train) and len(candidates) >= _MIN_SETTINGS_PRELIMINARY:
            folds = [replace(first, preliminary=True), *folds]
        given = self.scoring
        scorer = self._row_scorer(samples) if given is None else check_scoring(self._exact(), scoring=given)
        options = self._fold_options()
        fits = CrossValidation(
            lambda params, fold: self._model(
                self._preliminary_search if fold.preliminary else self._fold_search, params, seed
            ).set_params(categorical_features=FROM_DTYPE, **options),
            self.settings_, fold_samples, folds, scorer, paths=neighbour_paths(candidates),
            race=Race([setting.simplicity for setting in candidates], max_below=self._max_below), time_limit=seconds,
            n_jobs=self.n_jobs, weigh_scores=True, verbose=int(self.verbose),
        ).run()  # fmt: skip
        self.scores_, self.interrupted_ = fits.scores(), fits.interrupted
        for k, f in fits.cut_off:
            self.cut_off_[k, max(0, f - fits.n_preliminary)] = True
        warn_from_fit(cut_off_fits_warning(self.cut_off_, self.scores_), CutOffWarning)
        best = fits.choose()
        self.frontier_ = fits.frontier(best)
        self.best_score_ = math.nan if best is None else float(fits.score_table().means()[best])
        if best is None:
            return _default_setting(candidates), []
        if self._chooses_pruning() and not self.interrupted_:
            pruning = choose_penalty(
                fits, best, max_below=self._max_below, must_stop=lambda: time.monotonic() > pruning_ends
            )
            self.prune_, self.pruning_frontier_ = pruning.penalty, pruning.frontier
        trees = [fits.tree(k) for k in range(len(candidates)) if fits.differ_in_budget(k, best)]
        return candidates[best], [tree for tree in trees if tree is not None]

    def _folds(self, samples: AnySamples, data: tuple[Any, Any, Any], seed: int) -> tuple[FoldSamples, list[Fold]]:
        """The samples, and the folds; no folds if there are too few samples."""
        if not isinstance(self.cv, (int, np.integer)) or isinstance(self.cv, bool):
            X, y, weight = data
            rows = FoldSamples(X=X, y=y, weight=None if weight is None else np.broadcast_to(weight, len(y)))
            return rows, self._subsampled(
                check_cv(self.cv, y, classifier=self._strata(y) is not None).split(X, y), y, seed
            )
        if self.cv < 2:
            raise ValueError(f"cv must be at least 2 folds, a splitter or an iterable of splits, got {self.cv!r}")
        X, y, weight = self._merged(samples)
        rows = FoldSamples(X=X, y=y, weight=None if np.all(weight == 1.0) else weight)
        return rows, self._subsampled(self._splits(X, y, seed), y, seed)

    def _subsampled(self, splits: Iterable[tuple[Any, Any]], y: NDArray[Any], seed: int) -> list[Fold]:
        """The folds, with at most ``_MAX_FOLD_ROWS`` rows to train on."""
        strata = self._strata(y)
        return [Fold(train=train, test=test).subsampled(_MAX_FOLD_ROWS, strata, seed) for train, test in splits]

    # -- the final fit -----------------------------------------------------------------------------------------------

    def _store_choice(self, chosen: Setting) -> None:
        self.depth_, self.C_, self.budget_, self.alpha_ = chosen.depth, chosen.C, chosen.budget, chosen.alpha

    def _train_final(
        self,
        chosen: Setting,
        start: list[HyperplaneTree],
        data: tuple[Any, Any, Any],
        began: float,
        seconds: float,
        seed: int,
    ) -> None:
        """Train the chosen setting on all samples: local search from the tree on a fold, then the exact search.

        The exact search seldom changes predictions and may run for hours; it gets a share of the time before it.
        """
        deadline = time.monotonic() + seconds
        model = self._model(self._final_search, chosen.params, seed)
        is_last = self.engine == "alternating"
        model.set_params(
            n_jobs=self.n_jobs, verbose=self.verbose, time_limit=_finite(seconds * (1.0 if is_last else _START_SHARE)),
            **(self._last_options() if is_last else {}),
        )  # fmt: skip
        with without_fit_warnings():  # their suggestions have been tried already
            fit_from(model, start, *data)
            if not is_last and model.certificate_.stopped != Stopped.INTERRUPTED:
                now = time.monotonic()
                exact_seconds = min(
                    max(_MIN_SECONDS, deadline - now), max(_MIN_EXACT_SECONDS, _EXACT_SHARE * (now - began))
                )
                tree, model = model.tree_, self._model(self._exact, chosen.params, seed)
                model.set_params(engine=self.engine, gap=self.gap, time_limit=exact_seconds, **self._last_options())
                fit_from(model.set_params(n_jobs=self.n_jobs, verbose=self.verbose), [tree], *data)
        self.tree_, self.certificate_ = model.tree_, model.certificate_


def _default_setting(candidates: list[Setting]) -> Setting:
    """The setting that is used if no setting has a score."""
    least = min(setting.depth for setting in candidates)
    shallow = [setting for setting in candidates if setting.depth == least]
    return shallow[len(shallow) // 2]


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None
