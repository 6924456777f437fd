"""Prediction intervals of regression trees."""

import math

import numpy as np
import pytest

import margotree
from margotree import MargotRegressor
from margotree.tree import TreeFileError
from margotree.tree.intervals import half_widths


def table(n, seed):
    """A piecewise linear target whose noise is ten times larger where the first feature is large."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    right = X[:, 0] > 0.5
    return X, np.where(right, 3 * X[:, 1], 2 - X[:, 1]) + np.where(right, 0.5, 0.05) * rng.normal(size=n)


@pytest.fixture(scope="module")
def model():
    return MargotRegressor(depth=2, node_limit=5).fit(*table(150, 0))


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
def test_the_share_of_new_samples_in_their_intervals(model, coverage):
    shares = []
    for seed in range(1, 41):
        model.calibrate(*table(100, seed))
        X, y = table(400, 1000 + seed)
        low, high = model.predict_interval(X, coverage=coverage).T
        shares.append(np.mean((low <= y) & (y <= high)))
    assert abs(np.mean(shares) - coverage) < 0.02


def test_widths_follow_the_noise_of_the_leaf(model):
    low, high = model.calibrate(*table(200, 1)).predict_interval([[0.1, 0.5], [0.9, 0.5]]).T
    assert 3 * (high - low)[0] < (high - low)[1]


def test_half_widths_are_order_statistics():
    residuals = (np.arange(1.0, 10.0), np.array([5.0]))
    # Nine residuals and a new one: the ninth covers 90 % of ten. One residual is too few: all ten, rank 10 of 11.
    assert half_widths(residuals, 0.9).tolist() == [9.0, 9.0]
    assert half_widths(residuals, 0.5).tolist() == [5.0, 5.0]
    assert half_widths((np.array([1.0]), np.zeros(0)), 0.9).tolist() == [math.inf, math.inf]
    assert half_widths((np.array([1.0, 2.0, 3.0]),), 0.75).tolist() == [3.0]


def test_a_saved_tree_keeps_its_intervals(model, tmp_path):
    X, y = table(60, 2)
    tree = model.calibrate(X, y).tree_
    tree.save(tmp_path / "tree.json")
    again = margotree.load(tmp_path / "tree.json")
    assert np.array_equal(again.predict_interval(X), tree.predict_interval(X))
    record = tree.to_dict()
    record["tree"]["residuals"] = record["tree"]["residuals"][:-1]
    with pytest.raises(TreeFileError):
        type(tree).from_dict(record)


def test_wrong_calls_have_a_clear_error(model):
    X, y = table(20, 3)
    fresh = MargotRegressor(depth=1, node_limit=1).fit(X, y)
    with pytest.raises(ValueError, match="call calibrate"):
        fresh.predict_interval(X)
    with pytest.raises(ValueError, match="one length"):
        fresh.calibrate(X, y[:-1])
    fresh.calibrate(X, y)
    with pytest.raises(ValueError, match="between 0 and 1"):
        fresh.predict_interval(X, coverage=90)
