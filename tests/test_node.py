"""The node kernel against its slow twin, and the laws it must keep."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entries import add, add_hard_row, dual_value, refresh, run, update_stale_margins
from margotree.engines.node.kernels import workspace as w
from margotree.engines.node.kernels.ratio_test import OPTIMAL
from margotree.engines.node.kernels.workspace import (
    DELTA,
    ITEMS,
    KIND,
    MARGINS_STALE,
    N_ITEMS,
    NU,
    NUM,
    VALUE,
    WRONG,
    B,
    H,
    O,
    W,
    new_workspace,
)
from margotree.engines.node.svm import solve_large, solve_node
from oracles import node_value

EPS = 1e-3


def new_node(X, y, cost, penalty=None, members=None):
    """A solver for one node problem with a spare slot; samples are members from the beginning unless some are given."""
    penalties = None if penalty is None else np.array([penalty], float)
    ws = w.new_workspace(
        X, np.ones(len(X)), cost[None], penalties, with_penalties=penalty is not None, spares=1, reach=100.0
    )
    for i in range(len(X)) if members is None else members:
        add(ws, 0, i, y[i])
    return ws


def value(ws, s=0):
    return ws.g[s, NUM, VALUE]


def instance(seed, m=None, n=None, grid=False):
    rng = np.random.default_rng(seed)
    m = m or int(rng.integers(2, 14))
    n = n or int(rng.integers(1, 5))
    X = rng.integers(0, 3, (m, n)) / 2.0 if grid else rng.random((m, n))
    y = rng.choice([-1.0, 1.0], m)
    cost = 10.0 ** rng.integers(-5, 6) * rng.choice([0.5, 1.0, 2.0], m)
    side = rng.choice([-1, 0, 0, 1], m).astype(np.int8)
    return X, y, cost, side


@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_value_equals_the_slow_twin(seed, grid):
    X, y, cost, side = instance(seed, grid=grid)
    slow = node_value(X, y, cost, side, eps=EPS)
    found = solve_node(X, y, cost, side=side, eps=EPS)
    assert found.feasible == np.isfinite(slow)
    if found.feasible:
        assert found.value == pytest.approx(slow, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("seed", range(30))
def test_weight_limit_equals_the_slow_twin(seed):
    X, y, cost, _ = instance(seed)
    limit = [0.3, 1.0, 5.0][seed % 3]
    found = solve_node(X, y, cost, max_weight=limit)
    assert np.max(np.abs(found.w)) <= limit * (1 + 1e-9)
    assert found.value == pytest.approx(node_value(X, y, cost, max_weight=limit), rel=1e-6, abs=1e-7)


@given(seed=st.integers(0, 10**6), grid=st.booleans())
@settings(max_examples=50)
def test_value_and_bound_meet_and_rows_hold(seed, grid):
    X, y, cost, side = instance(seed, m=30, n=4, grid=grid)
    side[5:] = 0
    found = solve_node(X, y, cost, side=side, eps=EPS)
    if not found.feasible:
        return
    h = X @ found.w + found.b
    slack = 1e-9 * (1 + abs(found.b) + np.sum(np.abs(found.w)))
    assert np.all(h[side > 0] >= -slack)
    assert np.all(h[side < 0] <= slack - EPS)
    recomputed = 0.5 * found.w @ found.w + cost @ np.maximum(0, 1 - y * h)
    assert found.value == pytest.approx(recomputed, rel=1e-12)
    assert found.bound <= found.value
    assert found.value - found.bound <= 1e-8 * (1 + found.value)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_weak_duality_at_every_pivot(seed):
    """Stopped anywhere, the dual value is below the value of every hyperplane, and it never falls."""
    X, y, cost, _ = instance(seed, m=25, n=3)
    rng = np.random.default_rng(seed)
    node = new_node(X - X.mean(axis=0), y, cost)
    best = solve_node(X, y, cost).value
    before = 0.0
    for _ in range(200):
        outcome = run(node, 0, np.inf, 1, 1e-7)
        assert value(node) >= before - 1e-9 * (1 + abs(before))
        assert value(node) <= best * (1 + 1e-9) + 1e-9
        before = value(node)
        if outcome == OPTIMAL:
            break
    assert before == pytest.approx(best, rel=1e-6, abs=1e-7)
    for _ in range(5):
        w, b = rng.normal(size=3), rng.normal()
        assert before <= 0.5 * w @ w + cost @ np.maximum(0, 1 - y * (X @ w + b)) + 1e-9


@given(seed=st.integers(0, 10**6), wrong=st.booleans())
@settings(max_examples=30)
def test_a_hard_row_never_lowers_the_value(seed, wrong):
    """Warm from the solved parent: the jump at once, and after pivoting the same value as from cold."""
    X, y, cost, _ = instance(seed, m=20, n=3)
    node = new_node(X - X.mean(axis=0), y, cost)
    run(node, 0, np.inf, 10**6, 1e-9)
    parent = value(node)
    i = seed % 20
    side = -y[i] if wrong else y[i]
    add_hard_row(node, 0, 1, i, side, 0.0 if side > 0 else EPS)
    assert value(node) == parent and value(node, 1) >= parent - 1e-12
    run(node, 1, np.inf, 10**6, 1e-9)
    sides = np.zeros(20, np.int8)
    sides[i] = side
    assert value(node, 1) == pytest.approx(solve_node(X, y, cost, side=sides, eps=EPS).value, rel=1e-6, abs=1e-7)
    assert value(node, 1) >= parent - 1e-9 * (1 + parent)


@pytest.mark.parametrize("penalty", [None, (0.5, 1)])
@pytest.mark.parametrize("seed", range(20))
def test_few_members_are_solved_as_if_there_were_no_others(seed, penalty):
    """Members come one by one, the way the search sends them; the others' margins are right after an update."""
    X, y, cost, _ = instance(seed, m=80, n=4)
    X, cost = X - X.mean(axis=0), cost / cost.max()
    members = np.random.default_rng(seed).permutation(80)[:20]
    crowd = new_node(X, y, cost, penalty, members=())
    alone = new_node(X[members], y[members], cost[members], penalty, members=())
    stale = 0
    for k, i in enumerate(members):
        add(crowd, 0, i, y[i])
        add(alone, 0, k, y[i])
        for node in (crowd, alone):
            assert run(node, 0, np.inf, 10**6, 1e-9) == OPTIMAL
        assert value(crowd) == pytest.approx(value(alone), rel=1e-7, abs=1e-9)
        stale += crowd.cnt[0, MARGINS_STALE]
    update_stale_margins(crowd, 0)
    np.testing.assert_allclose(crowd.f[0, H], X @ crowd.g[0, W, :4] + crowd.g[0, NUM, B], atol=1e-9)
    assert stale == 20 and not crowd.cnt[0, MARGINS_STALE]


def test_refresh_changes_nothing_at_an_optimum():
    X, y, cost, _ = instance(5, m=40, n=4)
    node = new_node(X - X.mean(axis=0), y, cost)
    run(node, 0, np.inf, 10**6, 1e-9)
    weights, before = node.g[0, W].copy(), value(node)
    primal = refresh(node, 0)
    np.testing.assert_allclose(node.g[0, W], weights, rtol=1e-8, atol=1e-10)
    assert value(node) == pytest.approx(before, rel=1e-10)
    assert value(node) == pytest.approx(primal, rel=1e-7)


def test_equal_points_with_opposite_labels_lose_two_per_pair():
    X = np.zeros((6, 2))
    y = np.array([1.0, -1, 1, -1, 1, -1])
    found = solve_node(X, y, np.full(6, 3.0))
    assert found.value == pytest.approx(3.0 * 6)
    np.testing.assert_array_equal(found.w, 0)


def test_points_that_cannot_be_separated_are_infeasible():
    X = np.array([[0.0], [1.0], [0.5]])
    found = solve_node(X, np.array([1.0, 1, -1]), np.ones(3), side=[1, 1, -1])
    assert not found.feasible
    assert found.value == np.inf


def test_one_class_costs_nothing_and_stays_on_its_side():
    found = solve_node(np.random.default_rng(0).random((5, 3)), -np.ones(5), np.ones(5))
    assert found.value == 0.0 and found.b == -1.0 and not found.w.any()


def test_a_cutoff_stops_with_a_bound_at_least_as_high():
    X, y, cost, _ = instance(3, m=40, n=4)
    full = solve_node(X, y, cost).value
    cut = solve_node(X, y, cost, cutoff=full / 2)
    assert full / 2 <= cut.bound <= full * (1 + 1e-9)
    assert not cut.feasible


def test_out_of_time_it_returns_what_it_has_with_a_valid_bound():
    rng = np.random.default_rng(0)
    X, y = rng.random((400, 5)), rng.choice([-1.0, 1.0], 400)
    cost = np.full(400, 10.0)
    full = solve_node(X, y, cost)
    early = solve_node(X, y, cost, time_limit=0.0)
    assert early.feasible
    assert early.bound <= full.value * (1 + 1e-9)
    assert full.value <= early.value * (1 + 1e-9) <= 2 * min(np.sum(cost[y > 0]), np.sum(cost[y < 0])) * (1 + 1e-9)


def test_without_time_for_its_copies_a_large_node_does_not_split_and_claims_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.random((500, 3)), np.where(rng.random(500) < 0.3, 1.0, -1.0)
    none = solve_large(X, y, np.ones(500), time_limit=0.0)
    assert not none.w.any() and none.b == -1.0 and none.feasible
    assert none.bound == 0.0 and none.value == 2.0 * np.sum(y > 0)
    assert solve_large(X, y, np.ones(500), time_limit=60.0).bound > 0.0


def test_rounding_is_taken_off_whatever_the_sign_of_a_row():
    """Rows of a limit on weights have a negative goal: what they take from the dual value is rounded as well."""
    ws = new_workspace(np.eye(2), np.zeros(2), np.zeros((1, 2)))
    ws.cnt[0, N_ITEMS] = 2
    ws.k[0, ITEMS, :2], ws.k[0, KIND, :2] = [0, 1], WRONG
    ws.f[0, O], ws.f[0, NU], ws.f[0, DELTA] = 1.0, [3.0, 7.0], [-5.0, 2.0]
    total, gamma, _ = dual_value(ws, 0)
    assert gamma > 0
    assert total <= -15.0 + 14.0 - 0.99 * gamma * (15.0 + 14.0)
