"""Newton steps of the SVMs of the local search: an updated Hessian against plain NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entries import newton_steps, nonzero
from margotree.engines.local_search.kernels.curvature import DENSE


def plain_step(Z, q, delta, ridge, grad):
    """The same from scratch."""
    rows = np.column_stack([Z, np.ones(len(Z))])
    H = (rows.T * (q / delta)) @ rows + np.diag(np.append(np.ones(Z.shape[1]), ridge))
    return -np.linalg.solve(H, grad)


def random_weights(rng, m, count):
    """Weights of which sometimes a few change from step to step, sometimes most."""
    cost = rng.choice([0.5, 1.0, 7.0], m)
    on, found = rng.random(m) < 0.5, []
    for _ in range(count):
        on = on ^ (rng.random(m) < rng.choice([0.0, 0.1, 0.9]))
        found.append(np.where(on, cost, 0.0))
    return np.array(found)


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 11))
@settings(max_examples=25)
def test_steps_are_those_of_plain_numpy_for_any_change_of_weights(seed, m, k):
    rng, count = np.random.default_rng(seed), 7
    Z, weights = rng.normal(size=(m, k)), random_weights(rng, m, count)
    deltas, grads = 10.0 ** rng.uniform(-2.0, 0.3, count), rng.normal(size=(count, k + 1))
    steps = np.empty((count, k + 1))
    newton_steps(Z, weights, deltas, 0.01, grads, np.zeros(count, bool), steps)
    for q, delta, grad, step in zip(weights, deltas, grads, steps, strict=True):
        np.testing.assert_allclose(step, plain_step(Z, q, delta, 0.01, grad), rtol=1e-7, atol=1e-9)


def test_a_second_step_with_the_same_curvature_uses_the_same_factor():
    rng = np.random.default_rng(3)
    Z, q, grads = rng.normal(size=(30, 6)), rng.uniform(size=30), rng.normal(size=(3, 7))
    weights, steps = np.array([q, q, np.zeros(30)]), np.empty((3, 7))
    newton_steps(Z, weights, np.full(3, 0.1), 0.5, grads, np.array([False, True, True]), steps)
    for grad, step in zip(grads, steps, strict=True):  # also the last, whose weights are ignored
        np.testing.assert_allclose(step, plain_step(Z, q, 0.1, 0.5, grad), rtol=1e-9)


@pytest.mark.parametrize("k", [DENSE, DENSE + 1])
def test_steps_agree_with_and_without_a_matrix(k):
    rng = np.random.default_rng(k)
    Z, weights = rng.normal(size=(25, k)), random_weights(rng, 25, 2)
    grads, steps = rng.normal(size=(2, k + 1)), np.empty((2, k + 1))
    newton_steps(Z, weights, np.ones(2), 0.5, grads, np.zeros(2, bool), steps)
    for q, grad, step in zip(weights, grads, steps, strict=True):
        expected = plain_step(Z, q, 1.0, 0.5, grad)
        np.testing.assert_allclose(step, expected, atol=1e-2 * np.max(np.abs(expected)))


@pytest.mark.parametrize("k", [3, DENSE + 1])
def test_without_any_rows_a_step_is_the_gradient(k):
    rng = np.random.default_rng(k)
    grads, steps = rng.normal(size=(1, k + 1)), np.empty((1, k + 1))
    newton_steps(rng.normal(size=(5, k)), np.zeros((1, 5)), np.ones(1), 0.5, grads, np.zeros(1, bool), steps)
    np.testing.assert_allclose(steps[0], -grads[0] / np.append(np.ones(k), 0.5))


@pytest.mark.parametrize("seed", range(10))
def test_linearly_dependent_rows_have_a_step(seed):
    """The 1 on the diagonal is lost in rounding, which leaves pivots of either sign."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 6))
    weights, grads, steps = np.full((1, 40), 1e12), rng.normal(size=(1, 7)), np.empty((1, 7))
    newton_steps(Z, weights, np.array([1e-6]), 0.0, grads, np.zeros(1, bool), steps)
    assert np.all(np.isfinite(steps)) and steps[0] @ grads[0] < 0


@given(st.lists(st.sampled_from([0.0, -0.0, 1.5, -2.0]), max_size=13))
@settings(max_examples=25)
def test_non_zero_values_are_padded_with_zeros_to_a_multiple_of_four(numbers):
    a = np.array(numbers, dtype=float)
    who, those = np.full(len(a) + 3, -1), np.full(len(a) + 3, np.nan)
    count = nonzero(a, who, those)
    expected = np.flatnonzero(a)
    full = -(-count // 4) * 4
    assert count == len(expected)
    np.testing.assert_array_equal(who[:count], expected)
    np.testing.assert_array_equal(those[:full], np.append(a[expected], np.zeros(full - count)))
    assert np.all(np.isin(who[count:full], expected))
