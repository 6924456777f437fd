"""Classifiers that choose depth, C and budget by cross-validation, as ``LogisticRegressionCV`` does."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margotree.estimators.automatic_band import DEPRECATED, band_of
from margotree.estimators.classifiers import MarginTreeClassifier
from margotree.estimators.cv_base import FINAL_EFFORT, PRELIMINARY_EFFORT, CrossValidatedTree, ShortSearch
from margotree.estimators.cv_settings import Setting, settings
from margotree.estimators.fit_warnings import RareClassWarning, rare_class_warning
from margotree.estimators.input_data import ClassSamples, merge_duplicates
from margotree.estimators.margot import MargotClassifier
from margotree.estimators.parameters import CV_CONSTRAINTS, threads, with_defaults
from margotree.model_selection import rows_right, stratified_folds
from margotree.tree import Scaling, Tree


class _FoldSearch(ShortSearch[ClassSamples, Tree], MargotClassifier):
    """The classifier of a fit on a fold."""


class _PreliminarySearch(_FoldSearch):
    """The classifier of a fit on the preliminary fold: a few descents."""

    _effort = PRELIMINARY_EFFORT


class _FinalSearch(_FoldSearch):
    """The local search of the final fit."""

    _effort = FINAL_EFFORT


class MargotClassifierCV(CrossValidatedTree[ClassSamples, Tree], MarginTreeClassifier):
    """A MARGOT tree whose depth and C are chosen by cross-validation.

    The local search fits every setting on folds of at most 4,000 samples, starting from the tree of a neighbouring
    setting.  A setting is abandoned when its mean score is two standard errors below the best (three on a preliminary
    fold of at most 1,000 samples), when further folds are expected to gain hardly anything by it, when it has the same
    score on every test row as one with fewer numbers to read, and when half of the settings are better after the first
    fold, a quarter after the second, and so on.  The choice ends when one setting remains.
    The setting with the fewest numbers to read within one standard error of the best, and at most 0.02 below it, is
    then trained on all samples, with a certificate.

    Parameters
    ----------
    depths : "auto", int or list, default "auto"
        Depths to try.  "auto": 1, 2 and 3; with more than two classes the smallest depth with a leaf for each class,
        and one more.
    Cs : "auto" or list, default "auto"
        Values of C to try: numbers, or tuples with one per level (root first) or per node.  "auto": for the last
        level 0.1 to 1000; for the levels above the same C, or a thousandth of it at the root, or at all of them.  With
        more than two classes: for the last level 1 to 1000; above it the same C, or a tenth of that of the next level.
        With less than 0.65 s of the time limit per setting (10 s with budgets; about 0.3 s per setting and thread on
        a few hundred samples): 10 on all levels, or 100 for the last level with a smaller C above it.
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
        search after 20 % of the seconds before it.  Train :class:`MargotClassifier` with the chosen values for longer
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
    prune : "auto", float or None, default "auto"
        The penalty with which the final tree is pruned, as in :class:`~margotree.MargotClassifier`.  "auto": with
        ``budgets`` and the default ``scoring``, none or one of eight penalties from 0.0005 to 0.015, by the trees of
        the chosen setting on the folds: the one with the fewest numbers to read within one standard error of the best,
        and at most 0.02 below it.
    band, scale, class_weight, proba, gap, eps, categorical_features, dates, handle_unknown
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
        Of the settings within one standard error of the best, and at most 0.02 below it, the one with the fewest
        numbers to read is chosen; of equal ones the simplest: small depth, few features, the same C on all levels,
        small C. The standard error is that of the difference of two settings on the same test rows; with ``scoring``
        that of a share of the test rows. NaN, with a warning, if every fit was cut off; then the setting in the middle
        of the shallowest ones is used.
    frontier_ : Frontier
        Score, standard error and numbers to read of each setting that has a score; prints as a table, and
        :func:`margotree.plots.plot_frontier` draws it.  The trees are not pruned.
    prune_ : float or None
        The penalty with which the final tree was pruned.
    pruning_frontier_ : Frontier
        The same for the penalties of pruning, with the trees of the chosen setting; empty if there was no choice.
    interrupted_ : bool
        Whether Ctrl-C ended the choice, which was then made among the complete fits.
    tree_, certificate_, classes_, n_features_in_, feature_names_in_, selected_features_, encoding_
        As in :class:`~margotree.MargotClassifier`.
    """

    _constraints = CV_CONSTRAINTS
    _exact = MargotClassifier
    _preliminary_search, _fold_search, _final_search = _PreliminarySearch, _FoldSearch, _FinalSearch

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
        prune: Any = "auto",
        eps: Any = DEPRECATED,
        categorical_features: Any = "from_dtype",
        dates: str = "error",
        handle_unknown: str = "ignore",
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
        self.prune = prune
        self.eps = eps
        self.categorical_features = categorical_features
        self.dates = dates
        self.handle_unknown = handle_unknown

    def _candidates(self, samples: ClassSamples, seconds: float) -> list[Setting]:
        return settings(
            *self._grid(), n_features=self._n_columns(samples), n_classes=len(samples.classes),
            n_samples=len(samples.y), seconds=seconds, n_threads=threads(self.n_jobs),
        )  # fmt: skip

    def _grid(self) -> tuple[Any, ...]:
        """The depths, Cs, budgets and alphas to try."""
        if self.alphas is not None and self.budgets is None:
            raise ValueError("alphas are penalties of features beyond a budget; give budgets, too, such as budgets=[1]")
        only_one = self.alphas is not None and isinstance(self.budgets, str) and self.budgets == "auto"
        return self.depths, self.Cs, [1] if only_one else self.budgets, self.alphas

    def _row_scorer(self, samples: ClassSamples) -> Callable[..., NDArray[np.float64]]:
        return rows_right

    def _merged(self, samples: ClassSamples) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[np.float64]]:
        X, code, weight = merge_duplicates(
            samples.X, samples.y.astype(np.float64), samples.weight, Scaling.identity(samples.X.shape[1])
        )
        return X, samples.classes[code.astype(np.int64)], weight

    def _splits(self, X: NDArray[np.float64], y: NDArray[Any], seed: int) -> Iterable[tuple[Any, Any]]:
        # Every fold must be trained on at least two classes; a further class with fewer rows is absent from some folds.
        code = np.unique(y, return_inverse=True)[1]
        n_folds = min(int(self.cv), int(np.sort(np.bincount(code))[-2]))
        if n_folds < 2:
            return []
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            return list(stratified_folds(n_folds, seed).split(X, code))

    def _strata(self, y: NDArray[Any]) -> NDArray[Any]:
        return y

    def _fold_options(self) -> dict[str, Any]:
        # Accuracy does not use probabilities.
        return {"proba": "leaf" if self.scoring is None else self.proba}

    def _last_options(self) -> dict[str, Any]:
        return {"round": self.round, "prune": self.prune_}

    def _chooses_pruning(self) -> bool:
        return isinstance(self.prune, str) and self.budgets is not None and self.scoring is None

    def _data_warnings(self, samples: ClassSamples) -> list[tuple[str, type[UserWarning]]]:
        return [(rare_class_warning(samples), RareClassWarning)]

    def _new(self, cls: type[Any], params: Mapping[str, Any], seed: int) -> Any:
        return cls(
            **params, band=band_of(self), scale=self.scale, class_weight=self.class_weight, proba=self.proba,
            random_state=seed, time_limit=None, categorical_features=self.categorical_features,
        )  # fmt: skip


class HFSMargotClassifierCV(MargotClassifierCV):
    """:class:`MargotClassifierCV` with hard feature selection: ``budgets="auto"`` by default."""

    __init__ = with_defaults(MargotClassifierCV.__init__, budgets="auto")


class SFSMargotClassifierCV(MargotClassifierCV):
    """:class:`MargotClassifierCV` with soft feature selection: ``budgets`` and ``alphas`` "auto" by default."""

    __init__ = with_defaults(MargotClassifierCV.__init__, budgets="auto", alphas="auto")
