"""The classifiers that choose depth, C and budget themselves."""

import pickle
import signal
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

import margotree
from cutting import cutting
from margotree import (
    HFSMargotClassifier,
    HFSMargotClassifierCV,
    LocalSVMTreeClassifier,
    MargotClassifier,
    MargotClassifierCV,
    SFSMargotClassifierCV,
)
from margotree.estimators import CutOffWarning
from margotree.estimators.cv_settings import neighbour_paths, schedules, settings
from margotree.model_selection import Race, ScoreTable, cross_validation
from patience import slowness, three_tries

QUICK = {"engine": "alternating", "time_limit": 20, "cv": 3}


def corners(n=120, seed=0):
    """Exclusive or of two features, and a third that says nothing: no single split parts it."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, np.where((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5), "odd", "even")


def test_depth_and_C_are_chosen_where_one_split_is_not_enough():
    X, y = corners()
    model = MargotClassifierCV(depths=[1, 2], Cs=[(0.01, 10.0), 10.0], **QUICK).fit(X, y)
    assert model.depth_ == 2 and model.C_ in {(0.01, 10.0), 10.0}
    assert model.score(*corners(seed=1)) > 0.85 > 0.75 > MargotClassifier(depth=1, C=10.0).fit(X, y).score(X, y)
    assert model.scores_.shape == (len(model.settings_), 3) == (3, 3)  # the pair fits depth 2 only
    best = model.settings_.index({"depth": 2, "C": model.C_})
    assert model.best_score_ == pytest.approx(np.nanmean(model.scores_[best]))
    assert model.best_score_ >= np.nanmax(model.scores_) - 0.2
    assert model.certificate_.objective == pytest.approx(model.verify(X, y).objective)
    assert not model.interrupted_


def test_the_last_fit_is_certified():
    X, y = corners(40)
    model = MargotClassifierCV(depths=2, Cs=[1.0, 10.0], cv=2, time_limit=10).fit(X, y)
    assert model.certificate_.engine == "bnb" and np.isfinite(model.certificate_.bound)


def test_the_budget_is_chosen_and_kept_to():
    X, y = corners(60)
    hfs = HFSMargotClassifierCV(depths=[2], Cs=[(0.01, 10.0)], budgets=[1, 2], **QUICK).fit(X, y)
    assert hfs.budget_ in {1, 2} and hfs.tree_.selected().sum(axis=1).max() <= hfs.budget_
    sfs = SFSMargotClassifierCV(depths=[2], Cs=[(0.01, 10.0)], alphas=[1.0, 5.0], **QUICK).fit(X, y)
    assert sfs.budget_ == 1 and sfs.alpha_ in {1.0, 5.0}


def test_repeating_samples_is_weighting_them():
    X, y = corners(60)
    weight = np.random.default_rng(2).integers(1, 4, len(y))
    model = MargotClassifierCV(depths=[1], Cs=[0.1, 1.0, 10.0], **QUICK)
    one = clone(model).fit(X, y, sample_weight=weight)
    other = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert one.C_ == other.C_ and np.array_equal(one.scores_, other.scores_, equal_nan=True)


def test_the_same_data_choose_the_same_and_pickle():
    X, y = corners(60)
    model = MargotClassifierCV(depths=[1, 2], Cs=[1.0, 10.0], random_state=3, **QUICK).set_params(time_limit=None)
    one, other = clone(model).fit(X, y), pickle.loads(pickle.dumps(clone(model).fit(X, y)))
    assert np.array_equal(one.scores_, other.scores_, equal_nan=True)
    assert np.array_equal(one.predict(X), other.predict(X))


def test_splitters_and_scorers_of_scikit_learn_are_taken():
    X, y = corners(60)
    model = MargotClassifierCV(depths=[1], Cs=[1.0, 10.0], scoring="roc_auc", n_jobs=2, engine="alternating",
                               cv=KFold(4, shuffle=True, random_state=0)).fit(X, y == "odd")  # fmt: skip
    assert model.scores_.shape == (2, 4) and np.nanmax(model.scores_) <= 1


def test_a_class_too_small_for_folds_gets_a_tree_of_the_middle():
    X = np.array([[0.0], [0.1], [0.2], [1.0]])
    with pytest.warns(margotree.estimators.RareClassWarning):
        model = MargotClassifierCV(depths=[1], Cs=[1.0, 10.0, 100.0], engine="alternating").fit(X, [0, 0, 0, 1])
    assert model.C_ == 10.0 and model.scores_.shape == (3, 0) and np.isnan(model.best_score_)


@three_tries
def test_little_time_is_kept_to():
    X, y = corners(400)
    MargotClassifierCV(depths=[1], Cs=[1.0], engine="alternating").fit(X, y)  # compiled before the clock starts
    slow = slowness()
    began = time.monotonic()
    model = MargotClassifierCV(time_limit=2, engine="alternating").fit(X, y)
    assert time.monotonic() - began < 12 * slow and model.tree_.depth == model.depth_
    assert np.isnan(model.scores_).any()


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"Cs": 1.0}, "Cs must be 'auto' or a list"),
        ({"Cs": []}, "Cs must have at least one"),
        ({"Cs": [(1.0, 2.0)], "depths": [3]}, "no setting matches a depth"),
        ({"depths": [0]}, "depth must be a whole number from 1 to 10"),
        ({"cv": 1}, "at least 2 folds"),
        ({"Cs": [-1.0]}, "C must be finite and > 0"),
        ({"time_limit": -1}, "'time_limit' parameter of MargotClassifierCV"),
    ],
)
def test_what_makes_no_sense_is_said(params, words):
    with pytest.raises(ValueError, match=words):
        MargotClassifierCV(**params).fit(*corners(30))


def test_ctrl_c_ends_with_what_is_complete():
    X, y = corners(600)
    model = MargotClassifierCV(time_limit=600, engine="alternating")
    MargotClassifierCV(depths=[1], Cs=[1.0], engine="alternating").fit(X, y)  # compiled before
    timer = threading.Timer(4.0, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    began = time.monotonic()
    try:
        model.fit(X, y)
    except KeyboardInterrupt:  # a machine so busy that nothing was complete
        return
    finally:
        timer.cancel()
    assert model.interrupted_ and time.monotonic() - began < 60
    assert np.isnan(model.scores_).any() and model.predict(X).shape == y.shape


class Hurried:
    """A clock on which every look takes a second: fits of less are over before they have begun."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr("margotree.engines.run_control.time.perf_counter", Hurried())


@pytest.mark.parametrize("several", [False, True])
def test_a_choice_whose_fits_were_all_cut_off_has_no_score_and_says_so(several, hurried):
    X, y = three_groups() if several else corners()
    model = MargotClassifierCV(depths=[2], Cs=[1.0, 10.0, 100.0], **QUICK)
    with pytest.warns(CutOffWarning, match=r"cut off every fit .* best_score_ is NaN.* increase time_limit"):
        model.fit(X, y)
    assert np.isnan(model.best_score_) and np.isnan(model.scores_).all()
    assert model.cut_off_.shape == model.scores_.shape and model.cut_off_.any()
    assert model.C_ == 10.0 and model.predict(X).shape == y.shape  # the middle, and a tree all the same


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    "model",
    [MargotClassifier(engine="alternating"), MargotClassifier(), HFSMargotClassifier(), LocalSVMTreeClassifier()],
    ids=["alternating", "bnb", "hfs", "local"],
)
def test_a_fit_that_was_cut_off_says_so(model, several, hurried):
    X, y = three_groups(300) if several else corners(300)
    y = np.random.default_rng(1).permutation(y)  # no search is done between two looks at the clock
    with pytest.warns(CutOffWarning, match="cut the fit off before all splits of a first tree were trained"):
        model.set_params(time_limit=0.5).fit(X, y)
    assert model.certificate_.cut_off and "warning: the time limit cut the fit off" in str(model.certificate_)
    model.set_params(time_limit=1e9, **({"node_limit": 3} if "node_limit" in model.get_params() else {})).fit(X, y)
    assert not model.certificate_.cut_off


def test_a_choice_that_lost_some_fits_says_how_many(monkeypatch):
    cutting(monkeypatch, lambda model: model.C == 10.0)
    model = MargotClassifierCV(depths=[1], Cs=[1.0, 10.0], **QUICK)
    with pytest.warns(CutOffWarning, match="cut off 1 fit on folds .* 1 of the 2 settings"):
        model.fit(*corners())
    assert model.C_ == 1.0 and model.cut_off_.tolist() == [[False] * 3, [True, False, False]]
    assert model.best_score_ == pytest.approx(np.nanmean(model.scores_[0]))


def test_fits_with_time_are_not_cut_off():
    model = MargotClassifierCV(depths=[1], Cs=[1.0, 10.0], **QUICK).fit(*corners())
    assert not model.cut_off_.any() and not model.certificate_.cut_off


def test_schedules_have_cheap_upper_levels_and_walks_grow():
    assert schedules(1) == {"equal": (1.0,)}
    assert len(schedules(2)) == 2 and len(schedules(3)) == 3
    candidates = settings("auto", "auto", "auto", n_features=5)
    for path in neighbour_paths(candidates):
        row = [candidates[k] for k in path]
        assert len({(s.depth, s.schedule) for s in row}) == 1
        budgets = [s.budget for s in row]
        assert budgets == sorted(budgets)  # a tree of few features is allowed where more are


def three_groups(n=90, seed=0):
    """Three classes around three corners of the square, and a feature that says nothing."""
    rng = np.random.default_rng(seed)
    code = np.arange(n) % 3
    corner = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[code]
    X = np.column_stack([corner + rng.normal(0, 0.15, (n, 2)), rng.random(n)])
    return X, np.array(["low", "east", "north"])[code]


@pytest.mark.parametrize(
    ("cls", "more"),
    [
        (MargotClassifierCV, {}),
        (HFSMargotClassifierCV, {"budgets": [1, 2]}),
        (SFSMargotClassifierCV, {"alphas": [0.5]}),
    ],
)
def test_three_classes_are_chosen_for_too(cls, more):
    X, y = three_groups()
    model = cls(depths=[2], Cs=[1.0, (1.0, 10.0)], **more, **QUICK).fit(X, y)
    assert model.score(*three_groups(seed=1)) > 0.9
    assert model.best_score_ > 0.9 and model.C_ in {1.0, (1.0, 10.0)}
    assert model.decision_function(X).shape == (90, 3) and model.predict_proba(X).shape == (90, 3)
    assert model.certificate_.objective == pytest.approx(model.verify(X, y).objective)


def test_the_last_fit_of_three_classes_is_certified():
    X, y = three_groups(30)
    model = MargotClassifierCV(depths=2, Cs=[1.0, 10.0], cv=2, time_limit=10).fit(X, y)
    assert model.certificate_.engine == "bnb" and model.certificate_.bound > 0


def test_folds_do_without_a_class_of_one_row():
    X, y = three_groups(40)
    y[3] = "alone"
    with pytest.warns(margotree.estimators.RareClassWarning, match=r"alone \(1\)"):
        model = MargotClassifierCV(depths=[2], Cs=[1.0, 10.0], **QUICK).fit(X, y)
    assert not np.isnan(model.best_score_) and model.predict_proba(X).shape == (40, 4)


def test_several_classes_get_leaves_and_schedules_of_their_own():
    depths = {K: sorted({s.depth for s in settings("auto", "auto", n_features=2, n_classes=K)}) for K in (2, 3, 7, 11)}
    assert depths == {2: [1, 2, 3], 3: [2, 3], 7: [3, 4], 11: [4, 5]}
    assert schedules(3, 3) == {"equal": (1.0, 1.0, 1.0), "growing": (0.01, 0.1, 1.0)}
    assert [s.depth for s in settings("auto", [1.0], n_features=2, n_classes=2000)] == [10]


def test_of_settings_that_score_alike_the_simplest_is_chosen():
    """A standard error of 400 rows at 80 % is two points; the fewest numbers to read come first."""
    candidates = settings([2], "auto", n_features=3)
    scores = [0.8 if s.schedule == "decreased at root" else 0.795 if s.C == 10.0 else 0.7 for s in candidates]

    def chosen(rows, numbers=7.0):
        race = Race([setting.simplicity for setting in candidates])
        table = ScoreTable(np.repeat(np.array(scores)[:, None], 4, axis=1), {}, [np.ones(rows)] * 4)
        return candidates[race.choose(table, np.full(len(candidates), numbers))]

    for numbers in (7.0, np.nan):
        assert chosen(100, numbers).C == 10.0  # as good as the best, and C is equal on all levels
        assert chosen(10_000, numbers).schedule == "decreased at root"  # now half a point counts
        assert chosen(10_000, numbers).C[-1] == 0.1  # of five that score the same, that with the widest margins


def test_more_features_per_split_never_have_a_worse_training_objective(monkeypatch):
    """Every fit of a larger budget starts from the tree of the smaller one at the same C, among others."""
    objectives = {}

    def fitted(model, trees, *data):
        fit_from(model, trees, *data)
        found = model.get_params(deep=False)
        key = type(model).__name__, len(data[1]), float(np.sum(data[0])), found["C"]
        objectives.setdefault(key, {})[found["budget"]] = model.certificate_.objective

    fit_from = cross_validation.fit_from
    monkeypatch.setattr(cross_validation, "fit_from", fitted)
    rng = np.random.default_rng(0)
    X = rng.random((200, 6))
    y = (np.sin(6 * X[:, 0]) + X[:, 1] - X[:, 2] + 0.5 * rng.normal(size=200) > 0.5).astype(int)
    HFSMargotClassifierCV(depths=[2], Cs=[1.0, 100.0], budgets=[1, 2, 3, 6], **QUICK).fit(X, y)
    compared = [by_budget for by_budget in objectives.values() if len(by_budget) > 1]
    assert len(compared) >= 2
    for by_budget in compared:
        values = [by_budget[budget] for budget in sorted(by_budget)]
        assert all(b <= a * (1 + 1e-9) for a, b in pairwise(values))


def test_the_frontier_has_scores_errors_and_numbers_to_read():
    X, y = corners()
    model = HFSMargotClassifierCV(depths=[1, 2], Cs=[0.1, 10.0, (0.01, 10.0)], budgets=[1, 2], **QUICK).fit(X, y)
    (chosen,) = (point for point in model.frontier_ if point.chosen)
    assert chosen.params == {"depth": model.depth_, "C": model.C_, "budget": model.budget_}
    assert chosen.score == pytest.approx(model.best_score_) and 0 < chosen.standard_error < 0.1
    best = max(model.frontier_, key=lambda point: point.score)
    assert best.numbers_to_read >= chosen.numbers_to_read and best.efficient
    assert 0 <= chosen.numbers_to_read <= 9 and model.tree_.numbers_to_read <= 9
    assert "numbers" in str(model.frontier_) and str(chosen.params["depth"]) in str(model.frontier_)


def test_little_time_is_for_few_settings():
    from margotree.estimators.cv_settings import settings

    every = settings("auto", "auto", "auto", n_features=5)
    few = settings("auto", "auto", "auto", n_features=5, seconds=10.0)
    assert len(every) == 90 and len(few) == 15
    assert {setting.C for setting in few} == {10.0, (0.1, 100.0), (0.1, 100.0, 100.0)}
    assert settings("auto", "auto", "auto", n_features=5, seconds=30.0) == few
    assert settings("auto", "auto", "auto", n_features=5, seconds=60.0) == every
    assert len(settings("auto", "auto", n_features=5, seconds=20.0)) == 30
    for n_samples, seconds, n_threads, count in (
        (200, 10.0, 1, 30), (200, 6.0, 1, 5), (200, 6.0, 2, 30), (2000, 10.0, 1, 5), (10**6, 20.0, 1, 30),
    ):  # fmt: skip
        found = settings("auto", "auto", n_features=5, n_samples=n_samples, seconds=seconds, n_threads=n_threads)
        assert len(found) == count
    assert settings([2], [1.0, 5.0], "auto", n_features=5, seconds=0.1) == settings(
        [2], [1.0, 5.0], "auto", n_features=5
    )
    assert {setting.C for setting in settings([2], "auto", n_features=5, n_classes=3, seconds=1.0)} == {
        10.0, (10.0, 100.0),
    }  # fmt: skip
