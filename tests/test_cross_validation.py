"""The fits of all settings on all folds, with an estimator whose score is known."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from margotree.model_selection import CrossValidation, Fold, Race, Samples, ScoreTable, SearchError, rows_right
from margotree.model_selection.frontier import make_frontier
from margotree.model_selection.race import _expected_gain
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


def cross_validate(result, n_settings=3, n_folds=2, *, rows=100, race=True, preliminary=0, **options):
    """A cross-validation of C = 1, 2, ... whose fits score ``result(model)``; None if the fit is cut off."""
    Scripted.fits = []
    X = np.repeat(np.arange(n_folds), rows)[:, None].astype(float)
    everything = np.arange(len(X))
    folds = [
        Fold(train=everything[X[:, 0] == f], test=everything[X[:, 0] == f], preliminary=f < preliminary)
        for f in range(n_folds)
    ]
    settings = [{"C": float(k + 1)} for k in range(n_settings)]
    return CrossValidation(
        lambda setting, fold: Scripted(result=result, **setting), settings, Samples(X=X, y=X[:, 0]), folds,
        lambda model, X, y: model.score_ or 0.0, paths=[list(range(n_settings))],
        race=Race([(k,) for k in range(n_settings)]) if race else None,
        **{"time_limit": 60.0, **options},
    )  # fmt: skip


def fitted():
    return {(C, fold) for C, fold, *_ in Scripted.fits}


def best(fits):
    return fits.choose()


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

    fits = cross_validate(result, 2, 4, rows=60)
    fits.run()
    assert fitted() == {(1, 0), (2, 0), (1, 1)} and best(fits) == 1


def test_without_time_or_after_an_error_there_is_no_result():
    with pytest.raises(SearchError, match="no time for any fit"):
        cross_validate(lambda model: 1.0, time_limit=0.0).run()
    with pytest.raises(SearchError, match=r"fit of {'C': 1.0} on fold 0 failed: ZeroDivisionError"):
        cross_validate(lambda model: 1 / 0).run()


def test_a_score_of_a_fit_that_was_cut_off_does_not_count():
    """Setting 1 is cut off on the second fold, 3 on the first: neither is chosen, whatever else it scored."""
    fits = cross_validate(lambda m: None if (m.C, m.fold_) in {(1, 1), (3, 0)} else {1: 0.9, 2: 0.88}[m.C]).run()
    assert best(fits) == 1
    assert fits.cut_off == {(0, 1), (2, 0)}
    np.testing.assert_array_equal(fits.scores(), [[0.9, np.nan], [0.88, 0.88], [np.nan, np.nan]])
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


def test_a_preliminary_fold_only_abandons_settings():
    """Setting 1 is far behind on it; 2 and 3 change places afterwards."""
    fits = cross_validate(lambda m: {1: 0.2, 2: 0.9, 3: 0.85}[m.C] if m.fold_ == 0 else m.C / 4, 3, 3, preliminary=1)
    fits.run()
    assert fitted() == {(1, 0), (2, 0), (3, 0), (2, 1), (3, 1)}  # then one setting remains
    np.testing.assert_array_equal(fits.scores(), [[np.nan] * 2, [0.5, np.nan], [0.75, np.nan]])
    assert best(fits) == 2 and not fits.frontier(2)  # there are no trees


def test_without_time_for_the_first_fold_the_preliminary_one_decides():
    def result(model):
        if model.fold_ == 1:
            fits.deadline = 0.0
            return 0.99
        return {1: 0.9, 2: 0.95}[model.C]

    fits = cross_validate(result, 2, 3, rows=50, preliminary=1)
    fits.run()
    assert fitted() == {(1, 0), (2, 0), (1, 1)} and best(fits) == 1


def test_a_race_ends_when_further_folds_would_not_change_the_choice():
    cross_validate(lambda m: 0.9 if m.C == 1 else 0.5, 3, 5).run()
    assert {fold for _, fold in fitted()} == {0}  # one setting remains
    race, numbers = Race([(0,), (1,)]), np.ones(2)
    alike, unlike = two_settings(n=40_000, n_different=40), two_settings(n=400, n_different=40, gain=0.5)
    assert len(race.surviving(alike, numbers, 3)) == 1 and race.surviving(unlike, numbers, 3) == [0, 1]
    assert race.surviving(ScoreTable(np.full((2, 2), np.nan), {}, []), numbers, 2) == [0, 1]
    below, error = unlike.difference(0, 1)
    draws = np.random.default_rng(0).normal(below, error * np.sqrt(0.6), 10**6)
    assert _expected_gain(below, error, 0.6) == pytest.approx(np.maximum(draws, 0).mean(), rel=0.02)


def test_a_subsample_has_the_weight_of_all_rows():
    rows = np.arange(300)
    fold = Fold(train=rows, test=rows).subsampled(100, rows % 3, seed=0)
    samples = Samples(X=rows[:, None], y=rows % 3)
    X, y, weight = samples.part(fold.train, fold.factor)
    assert len(X) == len(y) == 100 and weight.sum() == pytest.approx(300)
    assert np.bincount(y).tolist() in ([34, 33, 33], [33, 34, 33], [33, 33, 34])
    assert Fold(train=rows, test=rows).subsampled(300, None, seed=0).factor == 1.0


def two_settings(n=400, n_different=40, gain=0.75, n_folds=2, weight=1.0):
    """Scores of rows of two settings that agree on most rows; the second is right on ``gain`` of the others."""
    rng = np.random.default_rng(0)
    table, rows = np.full((2, n_folds), np.nan), {}
    for f in range(n_folds):
        first = (rng.random(n) < 0.8).astype(float)
        second, different = first.copy(), rng.choice(n, n_different, replace=False)
        second[different] = rng.random(n_different) < gain
        first[different] = 1 - second[different]
        rows[0, f], rows[1, f] = first, second
        table[:, f] = first.mean(), second.mean()
    return ScoreTable(table, rows, [np.full(n, weight)] * n_folds)


def test_settings_are_compared_on_the_same_rows():
    """The standard error of the difference depends on the rows on which they differ, and not on the weights' scale."""
    table = two_settings()
    below, error = table.difference(0, 1)
    means = table.means()
    assert below == pytest.approx(means[0] - means[1]) and below < 0
    assert error == pytest.approx(np.sqrt(80) / 800, rel=0.2) and error < table.standard_error(0)
    assert table.standard_error(1) == pytest.approx(np.sqrt(means[1] * (1 - means[1]) / 800), rel=0.02)
    assert two_settings(weight=3.0).difference(0, 1)[1] == pytest.approx(error)
    assert table.difference(1, 0)[0] == -below and table.difference(0, 0)[0] == 0.0


def test_a_race_abandons_and_chooses_by_the_standard_error_of_the_difference():
    race, numbers = Race([(0,), (1,)]), np.array([1.0, 9.0])
    unlike, alike = two_settings(n_different=80), two_settings(n_different=4)
    assert race.surviving(unlike, numbers, 3) == race.surviving(unlike, numbers, 3, preliminary=True) == [1]
    assert race.surviving(alike, numbers, 3, preliminary=True) == [0, 1]
    assert race.surviving(alike, numbers, 3) == [1]  # the other one is nearly as good: the race ends
    assert race.choose(unlike, np.array([1.0, 9.0])) == 1
    assert race.choose(alike, np.array([1.0, 9.0])) == 0  # fewer numbers
    assert race.choose(alike, np.array([9.0, 1.0])) == 1
    assert race.choose(alike, np.array([np.nan, np.nan])) == 0  # the simpler one
    assert race.choose(ScoreTable(np.full((2, 2), np.nan), {}, []), np.array([1.0, 2.0])) is None


def settings_with(rows, n_folds=1):
    """Scores of settings with these scores of rows on every fold."""
    mean = np.repeat(np.array([one.mean() for one in rows])[:, None], n_folds, axis=1)
    weights = [np.ones(len(rows[0]))] * n_folds
    return ScoreTable(mean, {(k, f): one for k, one in enumerate(rows) for f in range(n_folds)}, weights)


def test_of_settings_with_the_same_scores_on_all_rows_the_one_that_would_be_chosen_remains():
    first, second = np.repeat([1.0, 0.0], [30, 10]), np.repeat([0.0, 1.0], [10, 30])
    race, scores = Race([(2,), (1,), (0,)]), settings_with([first, first, second])
    assert race.surviving(scores, np.array([5.0, 5.0, 5.0]), 4) == [1, 2]  # the simpler one
    assert race.surviving(scores, np.array([3.0, 5.0, 5.0]), 4) == [0, 2]  # fewer numbers to read
    assert race.surviving(scores, np.array([3.0, 5.0, 5.0]), 4, preliminary=True) == [0, 1, 2]
    scores.row_scores = {}  # equal means are not equal rows
    assert race.surviving(scores, np.array([3.0, 5.0, 5.0]), 4) == [0, 1, 2]


def test_half_of_the_settings_remain_after_every_fold():
    rng = np.random.default_rng(0)
    rows = [rng.permutation(np.repeat([1.0, 0.0], [100 + k % 3, 100 - k % 3])) for k in range(20)]
    race, numbers = Race([(0,)] * 20), np.arange(20.0)
    for n_folds, most in ((1, 10), (2, 5), (3, 4), (4, 4)):
        scores = settings_with(rows, n_folds)
        kept, chosen = race.surviving(scores, numbers, 5), race.choose(scores, numbers)
        assert chosen == 0
        best = sorted(range(20), key=lambda k: (-(k % 3), k))[:most]
        assert kept == sorted({chosen, *best})  # what would be chosen now remains, too
    assert len(race.surviving(settings_with(rows), numbers, 5, preliminary=True)) == 20


def test_a_large_standard_error_does_not_make_a_far_worse_setting_equal():
    """Forty rows, on seventeen of which the settings differ: 0.075 is less than the standard error of about 0.1."""
    race, numbers = Race([(0,), (1,)]), np.array([1.0, 9.0])
    first = np.repeat([1.0, 0.0], [25, 15])
    better = np.concatenate([np.zeros(7), np.ones(28), np.zeros(5)])  # seven rows lost, ten gained
    equal = np.concatenate([np.zeros(8), np.ones(25), np.zeros(7)])  # eight rows lost, eight gained
    for second, chosen in ((better, 1), (equal, 0)):
        mean = np.array([[first.mean()], [second.mean()]])
        table = ScoreTable(mean, {(0, 0): first, (1, 0): second}, [np.ones(40)])
        below, error = table.difference(0, 1)
        assert abs(below) < error
        assert race.choose(table, numbers) == chosen
        assert Race([(0,), (1,)], max_below=0.1).choose(table, numbers) == 0


def test_scores_of_rows_become_a_weighted_mean():
    X = np.array([[0.0], [0.0], [0.0], [1.0]])

    class Model(Scripted):
        def predict(self, X):
            return X[:, 0]

    samples = Samples(X=X, y=np.array([0.0, 1.0, 0.0, 1.0]), weight=np.array([1.0, 2.0, 1.0, 4.0]))
    folds = [Fold(train=np.array([0, 1]), test=np.arange(4))]
    fits = CrossValidation(lambda setting, fold: Model(result=lambda model: 1.0), [{}], samples, folds, rows_right,
                           paths=[[0]], race=Race([(0,)]), weigh_scores=True).run()  # fmt: skip
    assert fits.scores().tolist() == [[6 / 8]] and fits.rows[0, 0]["row_scores"].tolist() == [1, 0, 1, 1]
    deviations = np.array([0.25, -0.75, 0.25, 0.25]) * [1, 2, 1, 4]
    assert fits.score_table().standard_error(0) == pytest.approx(np.linalg.norm(deviations) / 8)


def test_the_frontier_has_the_settings_that_no_smaller_tree_beats():
    settings = [{"C": c} for c in (1, 2, 3, 4, 5)]
    frontier = make_frontier(
        settings, [0.8, 0.9, 0.85, 0.95, np.nan], [0.01] * 5, [1, 3, 7, 15, 2], [5, 5, 1, 5, 0], chosen=1
    )
    assert [point.params["C"] for point in frontier] == [1, 2, 3, 4]
    assert [point.params["C"] for point in frontier.shown()] == [1, 2, 4]
    lines = str(frontier).splitlines()
    assert len(lines) == 4 and lines[2].split() == ["*", "3.0", "0.9000", "0.0100", "C", "2"]
