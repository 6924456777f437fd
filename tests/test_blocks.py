"""Passes over many samples without a copy of all of them, beside NumPy's functions."""

import numpy as np
import pytest

from margotree.problem.blocks import decision_values, standard_deviation


@pytest.mark.parametrize(("rows", "columns"), [(1, 3), (700, 30), (40_000, 5), (9, 40_000)])
def test_standard_deviation_is_that_of_numpy(rows, columns):
    X = np.random.default_rng(0).normal(1e3, 2.0, (rows, columns))
    X[:, 0] = 7.0
    np.testing.assert_allclose(standard_deviation(X), np.std(X, axis=0), rtol=1e-9, atol=1e-12)
    assert standard_deviation(X)[0] == 0.0


def test_decision_values_are_a_product():
    rng = np.random.default_rng(1)
    X, w = rng.normal(size=(5_000, 20)), rng.normal(size=20)
    for rows in (np.arange(5_000), np.flatnonzero(rng.random(5_000) < 0.5)):
        for weights in (w, np.where(np.arange(20) == 3, w, 0.0), np.zeros(20)):
            np.testing.assert_allclose(decision_values(X, rows, weights, 0.5), X[rows] @ weights + 0.5, atol=1e-12)
