"""Classifiers that choose depth, C and budget themselves, in the manner of ``LogisticRegressionCV``."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import check_scoring
from sklearn.model_selection import StratifiedKFold, check_cv, train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from margotree.engines import Limits
from margotree.engines.base import Engine
from margotree.engines.local_search.search import Effort
from margotree.engines.local_search_engine import Alternating
from margotree.engines.multiclass import search as multiclass
from margotree.engines.registry import train
from margotree.engines.run_control import Listener
from margotree.estimators.base import MarginTreeClassifier
from margotree.estimators.cv_race import Race
from margotree.estimators.cv_settings import Setting, settings
from margotree.estimators.fit_loops import NestedFitInterrupted
from margotree.estimators.fit_warnings import (
    CutOffWarning,
    RareClassWarning,
    cut_off_fits,
    rare_classes,
    remark,
    without_fit_warnings,
)
from margotree.estimators.input_data import FloatArray, Samples, check_labels, distinct, explained, read_samples
from margotree.estimators.margot import HFSMargotClassifier, MargotClassifier, SFSMargotClassifier
from margotree.estimators.parameters import check_parameters, threads
from margotree.private_names import within_scikit_learn_loop
from margotree.problem import Problem, Splits
from margotree.solution import Solution, Stopped
from margotree.tree import Scaling, Tree

#: Share of the time limit for the choice; the rest is for the certified fit, and of that this share for a good start.
_CHOICE, _START = 0.6, 0.4
#: How many descents a fit on a fold makes: enough to tell settings apart.
_EFFORT = Effort(least=10, most=60, patience=12)
#: Most samples that a fit on a fold is trained on; each then counts for more, so that C keeps its meaning.
_MOST_ROWS = 4000
#: Seconds of the certified fit at least, and at most after a Ctrl-C.
_LEAST, _AFTER_CTRL_C = 0.2, 5.0


class MargotClassifierCV(MarginTreeClassifier):
    """A MARGOT tree whose depth and C are chosen by cross-validation, with a certificate; nothing needs to be set.

    Every setting is fitted on folds by the alternating search, each from its neighbour's tree and on at most 4,000
    samples; settings that fall two standard errors behind the best are given up early.  The one with the best mean
    score is then trained on all samples and certified.

    Parameters
    ----------
    depths : "auto", int or list, default "auto"
        Depths to try; "auto" means 1, 2 and 3, and with more than two classes the depth that gives each a leaf and one
        level more.
    Cs : "auto" or list, default "auto"
        Values of C to try: numbers, or tuples with one per level (root first) or per node.  "auto" tries 0.1 to 1000
        on the last level, with upper levels that cost as much, a root that costs a thousandth, and upper levels that
        all do; with more than two classes 1 to 1000, with upper levels that cost as much or a tenth of the next.
    cv : int, splitter or iterable, default 5
        Folds; a number means stratified ones, drawn by ``random_state``, in which equal samples stay together.
    scoring : str, callable or None, default None
        What is best, as everywhere in scikit-learn; None is accuracy.
    time_limit : float or None, default 120
        Seconds for everything: the choice and the certified fit.
    engine : str, default "auto"
        Who trains the tree in the end; ``"alternating"`` is quick and proves nothing.
    n_jobs : int or None, default None
        Fits side by side during the choice, threads afterwards.
    random_state : int, RandomState or None, default 0
        Seed of the folds and of the searches.
    verbose : int, default 0
        1 tells after every fold, 2 after every fit.
    eps, scale, class_weight, gap
        As in :class:`~margotree.MargotClassifier`.

    Attributes
    ----------
    depth_, C_
        What was chosen.
    settings_ : list of dict
        What was tried.
    scores_ : array (settings, folds)
        The score of each on each fold; NaN where it was given up, no time was left or the fit was cut off.
    cut_off_ : array (settings, folds) of bool
        Whether the time limit cut a fit off before all splits of a first tree were trained.  Such a fit has no score,
        and its setting is not chosen; a warning tells how many there were.
    best_score_ : float
        Mean score of the chosen setting over its folds (a little flattering, being among the best of many); NaN, with
        a warning, if every fit was cut off: the setting in the middle of the shallowest ones is then taken.  Of
        settings within half a standard error of the best the simplest is chosen: shallow, few features, C equal on all
        levels and low.
    interrupted_ : bool
        Whether Ctrl-C ended the choice; it was then made among what was complete.
    tree_, certificate_, classes_, n_features_in_, feature_names_in_, selected_features_
        As in :class:`~margotree.MargotClassifier`.
    """

    _plain: ClassVar[type[MargotClassifier]] = MargotClassifier

    def __init__(
        self,
        depths: Any = "auto",
        Cs: Any = "auto",
        *,
        cv: Any = 5,
        scoring: Any = None,
        eps: float | str = "auto",
        scale: str | None = "minmax",
        class_weight: Any = None,
        engine: str = "auto",
        time_limit: float | None = 120,
        gap: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.depths = depths
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.eps = eps
        self.scale = scale
        self.class_weight = class_weight
        self.engine = engine
        self.time_limit = time_limit
        self.gap = gap
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MargotClassifierCV:
        """Choose a setting by cross-validation and train it on everything.

        Ctrl-C during the choice ends it: it is made among the fits that are complete, and the tree is trained for a few
        seconds.  Ctrl-C during that last fit returns with the best tree so far.
        """
        began = time.monotonic()
        owner = type(self).__name__
        check_parameters(owner, self.get_params(deep=False), self._constraints)
        given = X
        check_labels(y)
        with explained(X):
            X, y = validate_data(self, X, y, dtype=np.float64)
        samples = read_samples(owner, X, y, sample_weight, self.class_weight, multi_class=self._multi_class)
        self.classes_ = samples.classes
        candidates = settings(*self._grid(), n_features=X.shape[1], n_classes=len(samples.classes))
        limit = math.inf if self.time_limit is None else float(self.time_limit)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        chosen = self._choose(samples, candidates, (X, y, sample_weight), _CHOICE * limit, seed)
        self._keep_choice(chosen)
        left = max(_LEAST, limit - (time.monotonic() - began))
        self._finish(chosen, (given, y, sample_weight), min(left, _AFTER_CTRL_C) if self.interrupted_ else left, seed)
        remark(rare_classes(samples), RareClassWarning)
        return self

    def _grid(self) -> tuple[Any, ...]:
        """Depths, Cs, budgets and prices to try."""
        return self.depths, self.Cs

    def _problem(self, samples: Samples, scaling: Scaling) -> Problem:
        raise NotImplementedError("the plain classifier states the problem")

    # -- the choice ---------------------------------------------------------------------------------------------

    def _choose(
        self, samples: Samples, candidates: list[Setting], given: tuple[Any, Any, Any], seconds: float, seed: int
    ) -> Setting:
        rows, folds = self._folds(samples, given, seed)
        self.settings_ = [setting.params for setting in candidates]
        self.interrupted_, self.cut_off_ = False, np.zeros((len(candidates), len(folds)), dtype=bool)
        if len(candidates) == 1 or not folds:
            self.scores_ = np.full((len(candidates), len(folds)), np.nan)
            self.best_score_ = math.nan
            # Nothing to hold fits against: the middle of what was to be tried.
            return candidates[len(candidates) // 2]
        scorer = check_scoring(self._plain(), scoring=self.scoring)
        race = Race(
            candidates,
            [len(test) for _, test in folds],
            partial(self._fit_and_score, rows, folds, scorer, seed),
            seconds=seconds,
            lanes=threads(self.n_jobs),
            verbose=int(self.verbose),
        )
        best = race.run()
        if race.interrupted and within_scikit_learn_loop():
            raise NestedFitInterrupted("a choice within a loop was cut short: it is no result")
        self.scores_, self.interrupted_, self.cut_off_ = race.scores, race.interrupted, race.cut_off
        remark(cut_off_fits(race.cut_off, race.scores), CutOffWarning)
        self.best_score_ = math.nan if best is None else float(np.nanmean(race.scores[best]))
        return _middle_of_the_shallowest(candidates) if best is None else candidates[best]

    def _folds(self, samples: Samples, given: tuple[Any, Any, Any], seed: int) -> tuple[_Rows, list[tuple[Any, Any]]]:
        """The samples to be divided, and the folds: none if a class has too few samples to be divided."""
        if not isinstance(self.cv, (int, np.integer)) or isinstance(self.cv, bool):
            X, y, weight = given
            rows = _Rows(X=X, y=y, weight=None if weight is None else np.broadcast_to(weight, len(y)))
            return rows, list(check_cv(self.cv, y, classifier=True).split(X, y))
        if self.cv < 2:
            raise ValueError(f"cv must be at least 2 folds, a splitter or an iterable of splits, got {self.cv!r}")
        # Equal samples become one with their weight: none is in training and in test, and repeating is weighting.
        X, code, weight = distinct(
            samples.X, samples.y.astype(np.float64), samples.weight, Scaling.identity(samples.X.shape[1])
        )
        y = samples.classes[code.astype(np.int64)]
        rows = _Rows(X=X, y=y, weight=None if np.all(weight == 1.0) else weight)
        # So that every fold is trained on two classes at least; a third with fewer rows than folds is absent from some.
        n_folds = min(int(self.cv), int(np.sort(np.bincount(code.astype(np.int64)))[-2]))
        if n_folds < 2:
            return rows, []
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            return rows, list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(X, code))

    def _fit_and_score(
        self,
        rows: _Rows,
        folds: list[tuple[Any, Any]],
        scorer: Callable[..., float],
        seed: int,
        setting: Setting,
        fold: int,
        seconds: float,
        start: Tree | None,
    ) -> tuple[Tree, float | None] | None:
        train_rows, test_rows = folds[fold]
        model = self._model(setting, seed, engine="alternating", time_limit=_finite(seconds))
        setattr(model, "_solve", _alternate)  # noqa: B010, with the effort of a fold
        X, y, weight = rows.fewer(train_rows, seed)
        with without_fit_warnings():
            try:
                model.set_params(start="local_svm" if start is None else start).fit(X, y, weight)
            except NestedFitInterrupted:
                return None
            except ValueError:
                if start is None:
                    raise
                model.set_params(start="local_svm").fit(X, y, weight)  # the neighbour's tree is not allowed here
        if model.certificate_.stopped == Stopped.INTERRUPTED:
            return None
        if model.certificate_.cut_off:
            return model.tree_, None
        X, y, weight = rows.part(test_rows)
        weighted = {} if weight is None else {"sample_weight": weight}
        return model.tree_, float(scorer(model, X, y, **weighted))

    # -- the tree -----------------------------------------------------------------------------------------------

    def _keep_choice(self, chosen: Setting) -> None:
        self.depth_, self.C_ = chosen.depth, chosen.C

    def _finish(self, chosen: Setting, given: tuple[Any, Any, Any], seconds: float, seed: int) -> None:
        """A good tree first, then the engine from there."""
        first, began = None, time.monotonic()
        if self.engine != "alternating" and chosen.depth > 1:
            quick = self._model(chosen, seed, engine="alternating", time_limit=_finite(_START * seconds))
            with without_fit_warnings():
                first = quick.set_params(n_jobs=self.n_jobs).fit(*given)
            if first.certificate_.stopped == Stopped.INTERRUPTED:
                self._adopt(first)
                return
            seconds = max(_LEAST, seconds - (time.monotonic() - began))
        last = self._model(chosen, seed, engine=self.engine, time_limit=_finite(seconds), gap=self.gap)
        last.set_params(n_jobs=self.n_jobs, verbose=self.verbose)
        if first is not None:
            last.set_params(start=first.tree_)
        with without_fit_warnings():  # what they say to try has been tried
            self._adopt(last.fit(*given))

    def _adopt(self, fitted: Any) -> None:
        self.tree_, self.certificate_ = fitted.tree_, fitted.certificate_

    def _model(self, setting: Setting, seed: int, **more: Any) -> MargotClassifier:
        return self._plain(
            **setting.params,
            eps=self.eps,
            scale=self.scale,
            class_weight=self.class_weight,
            random_state=seed,
            **more,
        )


class HFSMargotClassifierCV(MargotClassifierCV):
    """:class:`MargotClassifierCV` in which every split may use only a few features, and how many is chosen too.

    ``budgets`` are the budgets to try: numbers, or tuples with one per level or per node; "auto" means 1, 2 and 3.
    ``budget_`` is the one chosen.  All other parameters and attributes are those of :class:`MargotClassifierCV`.
    """

    _plain = HFSMargotClassifier

    def __init__(
        self,
        depths: Any = "auto",
        Cs: Any = "auto",
        budgets: Any = "auto",
        *,
        cv: Any = 5,
        scoring: Any = None,
        eps: float | str = "auto",
        scale: str | None = "minmax",
        class_weight: Any = None,
        engine: str = "auto",
        time_limit: float | None = 120,
        gap: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            depths, Cs, cv=cv, scoring=scoring, eps=eps, scale=scale, class_weight=class_weight, engine=engine,
            time_limit=time_limit, gap=gap, n_jobs=n_jobs, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.budgets = budgets

    def _grid(self) -> tuple[Any, ...]:
        return self.depths, self.Cs, self.budgets

    def _keep_choice(self, chosen: Setting) -> None:
        super()._keep_choice(chosen)
        self.budget_ = chosen.budget


class SFSMargotClassifierCV(HFSMargotClassifierCV):
    """:class:`MargotClassifierCV` in which features beyond a budget cost extra; budget and price are chosen too.

    ``budgets`` are the budgets to try ("auto": 1), ``alphas`` the prices of a feature beyond them ("auto": 1 and 10).
    ``budget_`` and ``alpha_`` are those chosen.  All else is as in :class:`MargotClassifierCV`.
    """

    _plain = SFSMargotClassifier

    def __init__(
        self,
        depths: Any = "auto",
        Cs: Any = "auto",
        budgets: Any = "auto",
        alphas: Any = "auto",
        *,
        cv: Any = 5,
        scoring: Any = None,
        eps: float | str = "auto",
        scale: str | None = "minmax",
        class_weight: Any = None,
        engine: str = "auto",
        time_limit: float | None = 120,
        gap: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            depths, Cs, budgets, cv=cv, scoring=scoring, eps=eps, scale=scale, class_weight=class_weight,
            engine=engine, time_limit=time_limit, gap=gap, n_jobs=n_jobs, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.alphas = alphas

    def _grid(self) -> tuple[Any, ...]:
        budgets = [1] if isinstance(self.budgets, str) and self.budgets == "auto" else self.budgets
        return self.depths, self.Cs, budgets, self.alphas

    def _keep_choice(self, chosen: Setting) -> None:
        super()._keep_choice(chosen)
        self.alpha_ = chosen.alpha


class _Rows:
    """The samples that folds divide."""

    def __init__(self, *, X: FloatArray, y: NDArray[Any], weight: FloatArray | None) -> None:
        self.X, self.y, self.weight = X, y, weight

    def part(self, rows: Sequence[int]) -> tuple[FloatArray, NDArray[Any], FloatArray | None]:
        return self.X[rows], self.y[rows], None if self.weight is None else self.weight[rows]

    def fewer(self, rows: Any, seed: int) -> tuple[FloatArray, NDArray[Any], FloatArray | None]:
        """The rows, or as many of them as a fit on a fold takes, the classes in the same shares."""
        if len(rows) <= _MOST_ROWS:
            return self.part(rows)
        try:
            kept, _ = train_test_split(rows, train_size=_MOST_ROWS, random_state=seed, stratify=self.y[rows])
        except ValueError:  # a class with a single sample
            return self.part(rows)
        X, y, weight = self.part(kept)
        factor = len(rows) / len(kept)
        return X, y, np.full(len(kept), factor) if weight is None else weight * factor


def _alternate(problem: Problem, start: Splits | str | None, limits: Limits, listener: Listener | None) -> Solution:
    first, several = start if isinstance(start, Splits) else None, problem.task.n_classes > 2
    engine: Engine = multiclass.Alternating(_EFFORT) if several else Alternating(_EFFORT, neighbours=False, greedy=True)
    return train(problem, engine, limits=limits, start=first, listener=listener)


def _middle_of_the_shallowest(candidates: list[Setting]) -> Setting:
    """What is taken without scores where time is short."""
    least = min(setting.depth for setting in candidates)
    shallow = [setting for setting in candidates if setting.depth == least]
    return shallow[len(shallow) // 2]


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None
