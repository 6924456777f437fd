"""The regressor that chooses depth, C, epsilon and budget by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from margotree.estimators.automatic_band import band_of
from margotree.estimators.cv_base import FINAL_EFFORT, PRELIMINARY_EFFORT, CrossValidatedTree, ShortSearch
from margotree.estimators.cv_settings import Setting, settings_of_numbers
from margotree.estimators.input_data import merge_duplicates
from margotree.estimators.regressors import MarginTreeRegressor, MargotRegressor, NumberSamples
from margotree.model_selection import RowsExplained
from margotree.tree import RegressionTree, Scaling


class _FoldSearch(ShortSearch[NumberSamples, RegressionTree], MargotRegressor):
    """The regressor of a fit on a fold."""


class _PreliminarySearch(_FoldSearch):
    """The regressor of a fit on the preliminary fold: a few descents."""

    _effort = PRELIMINARY_EFFORT


class _FinalSearch(_FoldSearch):
    """The local search of the final fit."""

    _effort = FINAL_EFFORT


class MargotRegressorCV(CrossValidatedTree[NumberSamples, RegressionTree], MarginTreeRegressor):
    """A MARGOT regression tree whose depth, C, loss and epsilon are chosen by cross-validation.

    The choice works as that of :class:`~margotree.MargotClassifierCV`, with R2 as the score: folds of at most 4,000
    samples, a race of the settings, and the setting with the fewest numbers to read within one standard error of the
    best and at most 0.005 below it, which is then trained on all samples with a certificate.

    Parameters
    ----------
    depths : "auto", int or list, default "auto"
        Depths to try.  "auto": 1 to 4.
    Cs : "auto" or list, default "auto"
        Values of C to try: numbers, or tuples with one per level (root first) or per node.  "auto": 3, 30 and 300 at
        leaves, with 0.01 or 1 at splits.  With less than 0.65 s of the time limit per setting: 30 at leaves and 0.01 at
        splits.
    budgets : "auto", list or None, default None
        Largest numbers of features to try: numbers for splits and formulas, or pairs (splits, formulas).  "auto": 1, 2
        and 3.  None: all features.
    alphas : "auto", list or None, default None
        Penalties of features beyond the budget to try.  "auto": 1 and 10.  None: budgets are hard.
    epsilons : "auto" or list, default "auto"
        Widths of the tube to try, in units of the spread of the targets.  "auto": 0 and 0.1, and 0 for squared losses.
    losses : "auto" or list, default "auto"
        Losses to try, as in :class:`~margotree.MargotRegressor`.  "auto": linear and squared.  Bounds are better for
        ``["epsilon_insensitive"]``.
    cv : int, splitter or iterable, default 5
        The folds.  A number means shuffled folds; duplicates are in the same fold.
    scoring : str, callable or None, default None
        The score that is maximised, as in scikit-learn; None is R2, with the variance of all targets.
    time_limit : float or None, default 60
        The largest number of seconds for the choice and the final fit together.
    engine : str, default "auto"
        The engine of the final fit; ``"alternating"`` (the local search) is fast and proves no bound.
    n_jobs : int or None, default None
        The number of simultaneous fits during the choice, and of threads in the final fit.
    random_state : int, RandomState or None, default 0
        The seed of folds and searches.
    verbose : int, default 0
        1: a line per fold; 2: also a line per fit.
    band, scale, gap, categorical_features, dates, handle_unknown
        As in :class:`~margotree.MargotRegressor`.

    Attributes
    ----------
    depth_, C_, budget_, leaf_budget_, alpha_, epsilon_, loss_
        The chosen values.
    settings_, scores_, cut_off_, best_score_, frontier_, interrupted_
        As in :class:`~margotree.MargotClassifierCV`.
    tree_, certificate_, n_features_in_, feature_names_in_, selected_features_, encoding_
        As in :class:`~margotree.MargotRegressor`.
    """

    _exact = MargotRegressor
    _preliminary_search, _fold_search, _final_search = _PreliminarySearch, _FoldSearch, _FinalSearch
    _max_below = 0.005

    def __init__(
        self,
        depths: Any = "auto",
        Cs: Any = "auto",
        budgets: Any = None,
        alphas: Any = None,
        *,
        epsilons: Any = "auto",
        losses: Any = "auto",
        cv: Any = 5,
        scoring: Any = None,
        band: float | str = "auto",
        scale: str | None = "minmax",
        engine: str = "auto",
        time_limit: float | None = 60,
        gap: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        categorical_features: Any = "from_dtype",
        dates: str = "error",
        handle_unknown: str = "ignore",
    ) -> None:
        self.depths = depths
        self.Cs = Cs
        self.budgets = budgets
        self.alphas = alphas
        self.epsilons = epsilons
        self.losses = losses
        self.cv = cv
        self.scoring = scoring
        self.band = band
        self.scale = scale
        self.engine = engine
        self.time_limit = time_limit
        self.gap = gap
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.categorical_features = categorical_features
        self.dates = dates
        self.handle_unknown = handle_unknown

    def _candidates(self, samples: NumberSamples, seconds: float) -> list[Setting]:
        grid = self.depths, self.Cs, self.budgets, self.alphas, self.epsilons, self.losses
        return settings_of_numbers(*grid, n_features=self._n_columns(samples), seconds=seconds)

    def _row_scorer(self, samples: NumberSamples) -> Callable[..., NDArray[np.float64]]:
        return RowsExplained(samples.y, samples.weight)

    def _merged(self, samples: NumberSamples) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[np.float64]]:
        return merge_duplicates(samples.X, samples.y, samples.weight, Scaling.identity(samples.X.shape[1]))

    def _splits(self, X: NDArray[np.float64], y: NDArray[Any], seed: int) -> Iterable[tuple[Any, Any]]:
        n_folds = min(int(self.cv), len(y))
        return KFold(n_folds, shuffle=True, random_state=seed).split(X) if n_folds > 1 else []

    def _strata(self, y: NDArray[Any]) -> None:
        return None

    def _store_choice(self, chosen: Setting) -> None:
        super()._store_choice(chosen)
        self.leaf_budget_, self.epsilon_, self.loss_ = chosen.leaf_budget, chosen.epsilon, chosen.loss

    def _store(self, tree: RegressionTree, samples: NumberSamples) -> None:
        super()._store(replace(tree, target_name=samples.target_name), samples)

    def _new(self, cls: type[Any], params: Mapping[str, Any], seed: int) -> Any:
        return cls(
            **params, band=band_of(self), scale=self.scale, random_state=seed, time_limit=None,
            categorical_features=self.categorical_features,
        )  # fmt: skip
