"""Sides implied by placed samples: all of them are found, and no sample is placed that could go either way."""

import numpy as np
import pytest

from margotree.engines.exact.kernels import lookahead
from margotree.engines.exact.kernels.listed_supports import Samples
from margotree.engines.exact.support_branching import feature_codes
from oracles import separable


def settle(Z, place, min_distance=0.0, groups=None):
    """Run the kernel on one upper node that uses all of Z's rows; returns whether it is possible, and the places."""
    d, m = Z.shape
    code, levels, word = feature_codes(Z.T, np.arange(d) if groups is None else np.asarray(groups))
    samples = Samples(np.ascontiguousarray(Z), np.ones(m), np.ones((3, m)), code, levels, 1e3, word)
    planes = lookahead.Hyperplanes(
        np.tile(np.arange(d), (3, 1)), np.full(3, d), np.zeros((3, d + 1)), np.zeros(3, np.int64), np.ones(3, np.int8)
    )
    after = place.copy()
    return lookahead.settle_sides(samples, planes, after, min_distance), after


def forced(Z, place, i):
    """Where sample ``i`` must go, by separability: 1, 2, or 0 if both sides are possible."""
    left, right = (Z.T[np.flatnonzero(place == side)] for side in (1, 2))
    may_left = separable(np.vstack([left, Z.T[i : i + 1]]), right)
    may_right = separable(left, np.vstack([right, Z.T[i : i + 1]]))
    return 0 if may_left and may_right else (1 if may_left else 2)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("seed", range(25))
def test_agrees_with_separability(seed, d):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(d, 30))
    h = rng.normal(size=d) @ Z + 0.2 * rng.normal()
    place = np.where(rng.random(30) < 0.4, np.where(h >= 0, 2, 1), 0).astype(np.int64)
    possible, after = settle(Z, place)
    assert possible
    for i in np.flatnonzero(place == 0):
        assert after[i] == forced(Z, place, i)


@pytest.mark.parametrize("seed", range(10))
def test_on_a_grid_only_implied_samples_are_placed(seed):
    """Collinear points depend on rounding: they may stay undecided, but are never sent to the wrong side."""
    rng = np.random.default_rng(seed)
    Z = rng.integers(0, 4, (2, 30)).astype(float)
    h = rng.normal(size=2) @ (Z - 1.6)
    place = np.where(rng.random(30) < 0.4, np.where(h >= 0, 2, 1), 0).astype(np.int64)
    possible, after = settle(Z, place)
    assert possible
    for i in np.flatnonzero((place == 0) & (after > 0)):
        assert after[i] == forced(Z, place, i)


def test_sides_that_cannot_be_separated_are_found():
    Z = np.array([[0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]])
    assert not settle(Z, np.array([1, 1, 2, 2]))[0]
    assert not settle(Z[:1], np.array([1, 2, 2, 1]))[0]
    assert settle(Z, np.array([1, 2, 2, 2]))[0]


def test_sides_too_close_for_the_weights_allowed_count_as_touching():
    Z = np.array([[0.0, 1e-6, 1.0]])
    assert settle(Z, np.array([1, 2, 2]))[0]
    assert not settle(Z, np.array([1, 2, 2]), min_distance=1e-3)[0]


def test_without_features_all_go_the_same_way():
    possible, after = settle(np.zeros((0, 4)), np.array([0, 2, 0, 0]))
    assert possible and np.all(after == 2)
    assert not settle(np.zeros((0, 4)), np.array([1, 2, 0, 0]))[0]


def with_words(rng, columns, numbers, m=40):
    """Columns of three or four words as 0/1 features, and numbers, with the sides of a random hyperplane for half of
    the samples; returns features, groups and places."""
    words = [np.eye(int(rng.integers(3, 5)))[:, rng.integers(0, 3, m)] for _ in range(columns)]
    groups = [g for g, rows in enumerate(words) for _ in rows] + list(range(columns, columns + numbers))
    Z = np.vstack([*words, rng.normal(size=(numbers, m))])
    h = rng.normal(size=len(Z)) @ (Z - Z.mean(axis=1, keepdims=True))
    return Z, groups, np.where(rng.random(m) < 0.5, np.where(h >= 0, 2, 1), 0).astype(np.int64)


@pytest.mark.parametrize(("columns", "numbers"), [(1, 0), (2, 0), (1, 1), (1, 2), (3, 0), (2, 1)])
@pytest.mark.parametrize("seed", range(6))
def test_words_agree_with_separability(seed, columns, numbers):
    """All implied sides are found with two columns of words, or one and numbers; with more, none is wrong."""
    Z, groups, place = with_words(np.random.default_rng(seed), columns, numbers)
    possible, after = settle(Z, place, groups=groups)
    assert possible
    for i in np.flatnonzero((place == 0) & ((after > 0) | (columns + (numbers > 0) <= 2))):
        assert after[i] == forced(Z, place, i)
    assert np.any(after[place == 0] > 0)


@pytest.mark.parametrize(("columns", "numbers"), [(1, 0), (2, 0), (1, 1), (1, 2)])
@pytest.mark.parametrize("seed", range(6))
def test_with_words_sides_that_cannot_be_separated_are_found(seed, columns, numbers):
    rng = np.random.default_rng(seed)
    Z, groups, place = with_words(rng, columns, numbers, m=16)
    for _ in range(6):
        place[rng.integers(16)] = rng.integers(1, 3)
        left, right = (Z.T[place == side] for side in (1, 2))
        assert settle(Z, place, groups=groups)[0] == separable(left, right)


def test_samples_of_one_word_too_close_for_the_weights_allowed_count_as_touching():
    Z, groups = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1e-6, 1e-6]]), [0, 0, 1]
    assert settle(Z, np.array([1, 2, 2]), groups=groups)[0]
    assert not settle(Z, np.array([1, 2, 2]), min_distance=1e-3, groups=groups)[0]
    assert settle(Z, np.array([1, 0, 2]), min_distance=1e-3, groups=groups)[1].tolist() == [1, 1, 2]


def test_of_two_columns_of_words_one_orders_the_words_of_the_other():
    """red-small is left and blue-small right, so blue is the larger one, and blue-large goes where red-large goes."""
    red, small = np.array([1.0, 0.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0, 0.0])
    Z, groups = np.array([red, 1.0 - red, small, 1.0 - small]), [0, 0, 1, 1]
    assert settle(Z, np.array([1, 2, 2, 0]), groups=groups)[1].tolist() == [1, 2, 2, 2]
    assert settle(Z, np.array([1, 2, 0, 1]), groups=groups)[1].tolist() == [1, 2, 1, 1]
    assert not settle(Z, np.array([1, 2, 2, 1]), groups=groups)[0]


def test_a_missing_number_is_a_word_beside_it():
    """Numbers with an indicator of missing cells: the missing ones (0.5, as filled in) have a side of their own."""
    Z, groups = np.array([[0.1, 0.3, 0.9, 0.5, 0.5], [0.0, 0.0, 0.0, 1.0, 1.0]]), [0, 0]
    assert settle(Z, np.array([0, 1, 2, 0, 0]), 1e-6, groups)[1].tolist() == [1, 1, 2, 0, 0]
    assert settle(Z, np.array([0, 1, 2, 2, 0]), 1e-6, groups)[1].tolist() == [1, 1, 2, 2, 2]
