"""The regressor that chooses its hyperparameters by cross-validation."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.metrics import r2_score
from sklearn.utils.estimator_checks import check_estimator

from margotree import MargotRegressorCV
from margotree.estimators.cv_settings import settings_of_numbers
from test_regressors import two_planes

LINEAR = ["epsilon_insensitive"]
QUICK = {"losses": LINEAR, "cv": 2, "engine": "alternating", "time_limit": 60}


def test_the_choice_finds_two_planes():
    X, y = two_planes()
    model = MargotRegressorCV(depths=[1, 2], Cs=[10.0, (0.01, 10.0)], epsilons=[0.0], **QUICK).fit(X, y)
    assert model.score(X, y) > 0.98
    assert model.best_score_ > 0.9 > np.nanmean(model.scores_[0])
    assert model.tree_.target_name == "strength"
    assert "strength = " in model.export_text()
    assert model.frontier_[0].numbers_to_read < model.frontier_[-1].numbers_to_read


def test_scores_are_r2_with_the_variance_of_all_targets():
    X, y = two_planes(60)
    rows = np.arange(60)
    folds = [(rows[rows % 2 == k], rows[rows % 2 != k]) for k in (0, 1)]
    settings = {"depths": [1], "Cs": [1.0, 10.0], "epsilons": [0.0], "losses": LINEAR, "engine": "alternating"}
    own = MargotRegressorCV(cv=folds, **settings).fit(X, y)
    other = MargotRegressorCV(cv=folds, scoring="r2", **settings).fit(X, y)
    total = [np.var(y.iloc[test]) / np.var(y) for _, test in folds]
    expected = 1.0 - (1.0 - other.scores_[0]) * total
    assert own.scores_[0] == pytest.approx(expected, rel=1e-6)
    assert own.score(X, y) == pytest.approx(r2_score(y, own.predict(X)))


def test_budgets_are_numbers_or_pairs():
    X, y = two_planes(60)
    model = MargotRegressorCV(depths=[2], Cs=[(0.01, 10.0)], budgets=[(1, 2)], epsilons=[0.0], **QUICK).fit(X, y)
    assert (model.budget_, model.leaf_budget_) == (1, 2)
    used = (model.tree_.hyperplanes.w != 0).sum(axis=1)
    assert np.all(used <= [1, 2, 2])
    with pytest.raises(ValueError, match="pairs"):
        MargotRegressorCV(budgets=[(1, 2, 3)], **QUICK).fit(X, y)


def test_little_time_means_few_settings():
    many = settings_of_numbers("auto", "auto", "auto", None, "auto", "auto", n_features=5)
    few = settings_of_numbers("auto", "auto", "auto", None, "auto", "auto", n_features=5, seconds=5.0)
    assert len(few) < len(many) / 5
    assert {s.depth for s in few} == {1, 2, 3, 4}


def test_losses_are_chosen_with_their_tubes():
    grid = {"n_features": 5, "depths": [2], "Cs": [1.0], "budgets": None, "alphas": None}
    found = settings_of_numbers(**grid, epsilons="auto", losses="auto")
    linear, squared = "epsilon_insensitive", "squared_epsilon_insensitive"
    assert {(s.loss, s.epsilon) for s in found} == {(linear, 0.0), (linear, 0.1), (squared, 0.0)}
    found = settings_of_numbers(**grid, epsilons=[0.2], losses=[squared])
    assert [(s.loss, s.epsilon) for s in found] == [(squared, 0.2)]


def test_of_equal_settings_one_with_a_squared_loss_is_simpler():
    grid = {"n_features": 5, "depths": [1, 2], "Cs": [1.0], "budgets": None, "alphas": None}
    found = settings_of_numbers(**grid, epsilons=[0.0], losses=["epsilon_insensitive", "squared_epsilon_insensitive"])
    order = [(s.depth, s.loss) for s in sorted(found, key=lambda one: one.simplicity)]
    assert order == [(d, loss) for d in (1, 2) for loss in ("squared_epsilon_insensitive", "epsilon_insensitive")]


def test_odd_targets_give_a_tree():
    X = np.arange(24.0).reshape(12, 2) ** 1.5
    for y in (np.full(12, 3.0), np.r_[np.arange(11.0), 1e12]):
        model = MargotRegressorCV(depths=[1, 2], Cs=[1.0], epsilons=[0.0], **QUICK).fit(X, y)
        assert np.all(np.isfinite(model.predict(X)))
    one = MargotRegressorCV(depths=[1, 2], Cs=[1.0], **QUICK).fit([[1.0], [2.0]], [3.0, 4.0])
    assert np.all(np.isfinite(one.predict([[1.5]])))


def test_scikit_learn_accepts_the_regressor():
    estimator = MargotRegressorCV(depths=[1], Cs=[1.0, 10.0], epsilons=[0.0], **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(estimator, on_fail=None)
    fine = {"passed", "skipped", "xfail"}
    assert {r["check_name"]: r["exception"] for r in results if r["status"] not in fine} == {}
