"""The fits of all settings on all folds, with an estimator whose score is known."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from margotree.model_selection import CrossValidation, Fold, Race, Samples, SearchError
from margotree.solution import Stopped


class Scripted(BaseEstimator):
    """Its score is a function of its parameter and of the fold, which is the first number of its samples."""

    fits: list = []  # noqa: RUF012
    lock = threading.Lock()

    def __init__(self, C=1.0, time_limit=None, start=None, result=None):
        self.C, self.time_limit, self.start, self.result = C, time_limit, start, result

    def fit(self, X, y, sample_weight=None):
        self.fold_ = int(X[0, 0])
        with self.lock:
            self.fits.append((self.C, self.fold_, self.time_limit, self.start, len(y), sample_weight))
        self.score_ = self.result(self)
        self.certificate_ = SimpleNamespace(stopped=Stopped.HEURISTIC, cut_off=self.score_ is None)
        return self


def cross_validate(result, n_settings=3, n_folds=2, *, rows=100, race=True, **options):
    """A cross-validation of C = 1, 2, ... whose fits score ``result(model)``; None if the fit is cut off."""
    Scripted.fits = []
    X = np.repeat(np.arange(n_folds), rows)[:, None].astype(float)
    everything = np.arange(len(X))
    folds = [Fold(train=everything[X[:, 0] == f], test=everything[X[:, 0] == f]) for f in range(n_folds)]
    settings = [{"C": float(k + 1)} for k in range(n_settings)]
    return CrossValidation(
        lambda setting: Scripted(result=result, **setting), settings, Samples(X=X, y=X[:, 0]), folds,
        lambda model, X, y: model.score_ or 0.0, paths=[list(range(n_settings))],
        race=Race([rows] * n_folds, [(k,) for k in range(n_settings)]) if race else None,
        **{"time_limit": 60.0, **options},
    )  # fmt: skip


def fitted():
    return {(C, fold) for C, fold, *_ in Scripted.fits}


def best(fits):
    return fits.race.best(fits.comparable_scores())


def test_without_a_race_every_setting_is_fitted_on_every_fold():
    fits = cross_validate(lambda model: 0.1 * model.C + 0.01 * model.fold_, race=False, n_jobs=2).run()
    np.testing.assert_allclose(fits.scores(), [[0.1, 0.11], [0.2, 0.21], [0.3, 0.31]])
    assert fits.any_setting_complete() and not fits.cut_off and not fits.interrupted


def test_settings_that_fall_behind_are_given_up():
    fits = cross_validate(lambda model: 0.5 if model.C == 1 else 0.9).run()
    assert best(fits) == 1
    assert fitted() == {(1, 0), (2, 0), (3, 0), (2, 1), (3, 1)}


def test_a_fold_that_was_cut_short_decides_nothing():
    def result(model):
        if model.fold_ == 1:
            fits.deadline = 0.0  # no time is left for the other setting
            return 0.99
        return {1: 0.8, 2: 0.85}[model.C]

    fits = cross_validate(result, 2, rows=50)
    fits.run()
    assert fitted() == {(1, 0), (2, 0), (1, 1)} and best(fits) == 1


def test_without_time_or_after_an_error_there_is_no_result():
    with pytest.raises(SearchError, match="no time for any fit"):
        cross_validate(lambda model: 1.0, time_limit=0.0).run()
    with pytest.raises(SearchError, match=r"fit of {'C': 1.0} on fold 0 failed: ZeroDivisionError"):
        cross_validate(lambda model: 1 / 0).run()


def test_a_score_of_a_fit_that_was_cut_off_does_not_count():
    """Setting 1 is cut off on the second fold, 3 on the first: neither is chosen, whatever else it scored."""
    fits = cross_validate(lambda m: None if (m.C, m.fold_) in {(1, 1), (3, 0)} else {1: 0.9, 2: 0.89}[m.C]).run()
    assert best(fits) == 1
    assert fits.cut_off == {(0, 1), (2, 0)}
    np.testing.assert_array_equal(fits.scores(), [[0.9, np.nan], [0.89, 0.89], [np.nan, np.nan]])
    assert {C for C, fold in fitted() if fold == 1} == {1, 2}


def test_where_fits_are_cut_off_fewer_settings_get_more_time():
    least = []

    def result(model):
        least.append(model.time_limit)
        return 0.8 if model.time_limit > 3.5 * least[0] else None  # what is too short for the first is for all

    fits = cross_validate(result, 16).run()
    first = [seconds for _, fold, seconds, *_ in Scripted.fits if fold == 0]
    assert len(first) < 8 and first[1] > 1.9 * first[0] and first[2] > 3.8 * first[0]
    assert fits.scores()[best(fits), 0] == 0.8 and len([f for _, f in fits.cut_off if f == 0]) in {2, 3}
    assert {C for C, fold in fitted() if fold == 1} == {k + 1 for k in np.flatnonzero(fits.scores()[:, 0] == 0.8)}


def test_without_any_score_there_is_no_choice():
    fits = cross_validate(lambda model: None).run()
    assert best(fits) is None and np.isnan(fits.scores()).all() and fits.cut_off


def test_scores_of_any_range_abandon_nothing():
    fits = cross_validate(lambda model: -model.C).run()
    assert len(fitted()) == 6 and best(fits) == 0


def test_a_subsample_has_the_weight_of_all_rows():
    rows = np.arange(300)
    fold = Fold(train=rows, test=rows).subsampled(100, rows % 3, seed=0)
    samples = Samples(X=rows[:, None], y=rows % 3)
    X, y, weight = samples.part(fold.train, fold.factor)
    assert len(X) == len(y) == 100 and weight.sum() == pytest.approx(300)
    assert np.bincount(y).tolist() in ([34, 33, 33], [33, 34, 33], [33, 33, 34])
    assert Fold(train=rows, test=rows).subsampled(300, None, seed=0).factor == 1.0
