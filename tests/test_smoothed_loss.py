"""The smoothed SVM of few features: against the exact node solver, and its bounds against everything."""

import numpy as np
import pytest

from margotree.engines.exact.kernels import listed_supports, partial_supports
from margotree.engines.node.best_subset import best_subset
from margotree.engines.node.svm import solve_large, solve_node

QUIET = np.zeros((2, 2))


def samples_of(X, y, cost, code=None, levels=None):
    n, m = X.T.shape
    code = np.zeros((n, m), np.int64) if code is None else code
    levels = np.full(n, 1 << 20) if levels is None else levels
    return listed_supports.Samples(np.ascontiguousarray(X.T), y, cost[None, :], code, levels, 1e3, np.zeros(n, np.int8))


def table_of(n, theta=None):
    cols = np.arange(n)[None, :]
    start = np.zeros((1, n + 1)) if theta is None else theta[None, :]
    known = np.array([theta is not None], np.int8)
    return listed_supports.Table(cols, np.array([n]), np.zeros(1), start, known)


def least_value(X, y, cost, side, *, target=np.inf, theta=None, code=None, levels=None):
    lb = np.zeros(1)
    members = np.arange(len(y))
    _, done = listed_supports.search(
        samples_of(X, y, cost, code, levels), np.int64(0), members, side, 1e-3, table_of(X.shape[1], theta),
        np.arange(1), lb, target, 1e-7, np.int64(10), QUIET,
    )  # fmt: skip
    return lb[0], done


def case(seed):
    """One to four features, points on a grid or not, costs over eight decades, some members with a side."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 25)), int(rng.integers(1, 5))
    X = rng.integers(0, 2, (m, n)) - 0.3 if seed % 2 else rng.normal(size=(m, n))
    y = rng.choice([-1.0, 1.0], m)
    cost = 10.0 ** rng.uniform(-3, 5) * rng.choice([1.0, 2.0, 7.0], m)
    h = X @ rng.normal(size=n) + 0.1
    side = np.where(rng.random(m) < 0.3, np.where(h >= 0, 1.0, -1.0), 0.0) if seed % 3 == 0 else np.zeros(m)
    theta = rng.normal(size=n + 1) * 10.0 ** rng.uniform(-2, 3) if seed % 5 else None
    return X, y, cost, side, theta


@pytest.mark.parametrize("block", range(4))
def test_value_is_that_of_the_exact_node_solver(block):
    for seed in range(100 * block, 100 * block + 100):
        X, y, cost, side, theta = case(seed)
        exact = solve_node(X, y, cost, side=side)
        value, done = least_value(X, y, cost, side, theta=theta)
        if not exact.feasible:
            continue
        assert value <= exact.value * (1 + 1e-7) + 1e-9, seed
        assert done >= 0, seed
        assert value >= exact.value * (1 - 1e-5) - 1e-6 * cost.sum() * 1e-3, seed


@pytest.mark.parametrize("seed", range(12))
def test_equal_members_may_be_merged(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (60, 3)).astype(float)
    y, cost = rng.choice([-1.0, 1.0], 60), 10.0 ** rng.uniform(-2, 4) * np.ones(60)
    side = np.where(X[:, 0] > 0, 1.0, -1.0) * (rng.random(60) < 0.5)
    apart, _ = least_value(X, y, cost, side)
    merged, _ = least_value(X, y, cost, side, code=X.T.astype(np.int64), levels=np.full(3, 2))
    assert merged == pytest.approx(apart, rel=1e-5, abs=1e-9)


def test_work_ends_at_the_target():
    X, y, cost, _, _ = case(7)
    exact = solve_node(X, y, cost).value
    value, _ = least_value(X, y, cost, np.zeros(len(y)), target=0.5 * exact)
    assert 0.5 * exact <= value <= exact * (1 + 1e-7)


@pytest.mark.parametrize("seed", range(30))
def test_grown_supports_end_at_the_best_subset(seed):
    rng = np.random.default_rng(seed)
    m, n, budget = 30, 6, int(rng.integers(1, 4))
    X, y = rng.normal(size=(m, n)), rng.choice([-1.0, 1.0], m)
    cost, alpha = 10.0 ** rng.uniform(-2, 2) * np.ones(m), 10.0 ** rng.uniform(-1, 1)
    kinds, lb, thetas = np.full((400, n), partial_supports.MAY, np.int8), np.zeros(400), np.zeros((400, n + 1))
    _, at, exact = partial_supports.search(
        samples_of(X, y, cost), np.int64(0), np.arange(m), np.zeros(m), 1e-3, kinds, lb, thetas, np.int64(1),
        np.int64(budget), alpha, np.inf, 1e-8, np.int64(399), QUIET,
    )  # fmt: skip
    best = best_subset(X, y, cost, budget=budget, alpha=alpha)
    assert exact
    assert lb[at] == pytest.approx(best.value, rel=1e-5)


def test_many_samples_are_solved_as_few_are():
    rng = np.random.default_rng(0)
    X = rng.random((600, 5))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=600) > 0.5, 1.0, -1.0)
    cost = np.full(600, 2.0)
    one, other = solve_node(X, y, cost), solve_large(X, y, cost)
    assert other.value == pytest.approx(one.value, rel=1e-6)
    assert other.bound <= one.value * (1 + 1e-9)
    assert other.bound == pytest.approx(one.value, rel=1e-6)
