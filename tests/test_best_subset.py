"""The best-subset SVM against brute force over all supports, and the laws its bounds obey."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margotree.engines.node.best_subset import best_subset
from margotree.engines.node.best_subset.bounds import subset_bound
from margotree.engines.node.best_subset.relaxation import first_penalty, relax, solve_relaxation
from margotree.engines.node.best_subset.samples import Grouping, merge_equal
from margotree.engines.node.best_subset.search import fix_features
from margotree.engines.node.best_subset.task import MAY, MUST, NEVER, Task
from margotree.engines.node.kernels.workspace import KINK
from margotree.engines.node.svm import solve_node
from margotree.problem import Regression
from margotree.problem.tasks import Items, one_sided
from oracles import node_value

EPS = 1e-3


def brute_force(
    X, y, cost, *, budget, corner=None, alpha=None, side=None, max_weight=None, groups=None, must=(), never=(), svm=None
):
    """Every support in turn; an empty support is one constant column."""
    svm = svm or (lambda *a, **k: solve_node(*a, eps=EPS, **k).value)
    groups = np.arange(X.shape[1]) if groups is None else groups
    n, best = int(np.max(groups)) + 1, math.inf
    for size in range(n + 1 if alpha is not None else budget + 1):
        penalty = 0.0 if alpha is None else alpha * max(0, size - budget)
        for support in itertools.combinations(range(n), size):
            if set(must) <= set(support) and not set(never) & set(support):
                columns = np.ascontiguousarray(X[:, np.isin(groups, support)]) if size else np.zeros((len(y), 1))
                best = min(best, svm(columns, y, cost, corner=corner, side=side, max_weight=max_weight) + penalty)
    return best


def random_problem(seed, n_max=6, m_max=24):
    """Continuous, binary or rounded features, some constant, some rows repeated; labels with and without a pattern."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, m_max)), int(rng.integers(1, n_max + 1))
    X = [rng.random((m, n)), rng.integers(0, 2, (m, n)).astype(float), np.round(rng.random((m, n)), 1)][seed % 3]
    if rng.random() < 0.2:
        X[:, rng.integers(n)] = 0.5
    if rng.random() < 0.3:
        X[m // 2 :] = X[: m - m // 2]
    slope = rng.normal(size=n)
    y = np.where(X @ slope + 0.2 * rng.normal(size=m) > np.median(X @ slope), 1.0, -1.0)
    C = 10.0 ** rng.integers(-5, 6)
    cost = C * (rng.integers(0, 4, m) if rng.random() < 0.4 else np.ones(m))
    options = {"budget": int(rng.integers(1, n + 1))}
    if rng.random() < 0.5:
        options["alpha"] = float(C * 10 ** rng.uniform(-2, 1.5))
    if rng.random() < 0.4:
        side = np.zeros(m, int)
        side[rng.choice(m, min(3, m), replace=False)] = rng.choice([-1, 1], min(3, m))
        options["side"] = side
    if rng.random() < 0.3:
        options["max_weight"] = float(10 ** rng.uniform(-1, 1.5))
    return rng, X, y, cost, options


def close(a, b, rel=1e-7):
    return abs(a - b) <= rel * max(abs(a), abs(b)) + 1e-9 or a == b


def random_items(seed):
    """Losses on one side or both with any corners, some samples repeated, some with a prescribed side."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 12)), int(rng.integers(1, 5))
    X = rng.normal(size=(m, n)).round(int(rng.integers(0, 4)))
    scale = 10.0 ** rng.integers(-2, 3)
    r = scale * (X @ rng.normal(size=n) + rng.normal(size=m)).round(2)
    l = r + scale * rng.choice([-0.5, 0.0, 0.2], m)  # noqa: E741
    items = Items(p=rng.choice([0.0, 1.0, 0.3], m), m=rng.choice([0.0, 1.0, 2.0], m), r=r, l=l)
    found = one_sided(items, 10.0 ** rng.uniform(-2, 2) * rng.integers(0, 3, m))
    X, y, cost, corner = X[found.rows], found.label, found.cost, found.corner
    side = np.zeros(len(y), int)
    if len(y) and rng.random() < 0.3:
        # A row's corner must be larger than minus the distance of its hard row.
        k = rng.integers(len(y))
        corner[k], side[k] = abs(corner[k]), rng.choice([-1, 1])
    options = {"budget": int(rng.integers(1, n + 1)), "corner": corner, "side": side}
    if rng.random() < 0.5:
        options["alpha"] = float(np.max(cost, initial=0.1) * 10.0 ** rng.uniform(-2, 1))
    if rng.random() < 0.2:
        options["max_weight"] = float(scale * 10 ** rng.uniform(-1, 0.5))
    return X, y, cost, options


def with_groups(seed, X):
    """The samples with some more features, and the groups of all: at least two of them in one group."""
    rng = np.random.default_rng([seed, 1])
    X = np.hstack([X, rng.normal(size=(len(X), int(rng.integers(1, 4)))).round(1)])
    groups = np.concatenate([[0, 0], rng.integers(0, 4, X.shape[1] - 2)]) if X.shape[1] > 1 else np.zeros(1, int)
    return X, np.unique(rng.permutation(groups), return_inverse=True)[1]


@pytest.mark.parametrize("block", range(4))
def test_agrees_with_brute_force_on_items_of_any_task_and_groups(block):
    for seed in range(50 * block, 50 * block + 50):
        X, y, cost, options = random_items(seed)
        if seed % 2:
            X, options["groups"] = with_groups(seed, X)
            options["budget"] = min(options["budget"], int(np.max(options["groups"])) + 1)
        best, found = brute_force(X, y, cost, **options), best_subset(X, y, cost, **options)
        slack = 1e-9 * (1.0 + float(cost @ np.abs(options["corner"])))
        assert found.exact and found.feasible == math.isfinite(best), seed
        assert found.value == best or abs(found.value - best) <= 1e-7 * best + slack, (seed, found.value, best)
        assert found.bound <= best + slack, seed
        if found.feasible:
            loss = cost @ np.maximum(0.0, options["corner"] - y * (X @ found.w + found.b))
            groups = options.get("groups", np.arange(X.shape[1]))
            size = len(set(groups[found.w != 0]))
            penalty = options.get("alpha", 0.0) * max(0, size - options["budget"])
            assert found.value == pytest.approx(0.5 * found.w @ found.w + loss + penalty, rel=1e-9, abs=slack)
            assert_allowed(X, found, **options)


@pytest.mark.parametrize("alpha", [None, 0.5])
def test_agrees_with_an_independent_solver_on_a_regression(alpha):
    rng = np.random.default_rng(1)
    X = rng.random((12, 4))
    target = 30.0 + 5.0 * X[:, 1] - 3.0 * X[:, 3] + 0.2 * rng.normal(size=12)
    rows, y, corner, cost = one_sided(Regression(0.1).items(target, last=True), np.full(12, 4.0))
    best = brute_force(X[rows], y, cost, corner=corner, budget=2, alpha=alpha, svm=node_value)
    found = best_subset(X[rows], y, cost, corner=corner, budget=2, alpha=alpha)
    assert close(found.value, best, 1e-6) and found.exact


def assert_allowed(X, found, *, budget, alpha=None, side=None, max_weight=None, groups=None, **_):
    h = X @ found.w + found.b
    slack = 1e-9 * (1 + abs(found.b) + np.sum(np.abs(found.w)))
    if side is not None:
        assert np.all(h[side > 0] >= -slack) and np.all(h[side < 0] <= slack - EPS)
    if max_weight is not None:
        assert np.max(np.abs(found.w)) <= max_weight * (1 + 1e-9)
    if alpha is None:
        used = np.flatnonzero(found.w)
        assert len(set(used if groups is None else groups[used])) <= budget


@pytest.mark.parametrize("block", range(12))
def test_agrees_with_brute_force(block):
    for seed in range(30 * block, 30 * block + 30):
        rng, X, y, cost, options = random_problem(seed)
        n = X.shape[1]
        if rng.random() < 0.2:
            options["must"] = [int(rng.integers(n))]
        if rng.random() < 0.2:
            options["never"] = [j for j in [int(rng.integers(n))] if j not in options.get("must", ())]
        best = brute_force(X, y, cost, **options)
        found = best_subset(X, y, cost, **options)
        assert found.exact, seed
        assert close(found.value, best), (seed, found.value, best)
        assert found.bound <= best + 1e-9 * max(1.0, abs(best)) or math.isinf(best), seed
        assert found.feasible == math.isfinite(best), seed
        if found.feasible:
            assert_allowed(X, found, **options)


def test_a_support_that_rounding_leaves_unfinished_counts_if_it_obeys_all_rows():
    """One in 28,000 random instances: pivots run out at the best hyperplane, and nothing else is allowed."""
    _, X, y, cost, options = random_problem(23566, 7, 40)
    found = best_subset(X, y, cost, **options)
    assert found.feasible and close(found.value, brute_force(X, y, cost, **options))
    assert_allowed(X, found, **options)


@pytest.mark.parametrize("budget", [1, 2, 3])
@pytest.mark.parametrize("alpha", [None, 0.05, 0.5, 5.0])
@pytest.mark.parametrize("routed", [False, True])
def test_agrees_with_an_independent_svm(budget, alpha, routed):
    rng = np.random.default_rng(7 * budget)
    X = rng.random((14, 4))
    y = np.where(X[:, 0] - X[:, 2] + 0.3 * rng.normal(size=14) > 0, 1.0, -1.0)
    cost = 3.0 * rng.integers(1, 4, 14).astype(float)
    side = None
    if routed:
        side = np.zeros(14, int)
        side[[0, 5, 9]] = np.where(X[[0, 5, 9], 1] > np.median(X[:, 1]), 1, -1)
    best = brute_force(X, y, cost, budget=budget, alpha=alpha, side=side, svm=node_value)
    found = best_subset(X, y, cost, budget=budget, alpha=alpha, side=side)
    assert close(found.value, best, 1e-6) and found.exact


def task_of(X, y, cost, *, side=None, budget=1, alpha=None, limit=math.inf, groups=None):
    """The problem with every group undecided."""
    n_groups = X.shape[1] if groups is None else int(np.max(groups)) + 1
    sides = np.zeros(len(y), np.int8) if side is None else np.asarray(side, np.int8)
    return Task(
        samples=merge_equal(X, y, cost, np.ones(len(y)), sides), kind=np.full(n_groups, MAY, np.int8), budget=budget,
        alpha=math.inf if alpha is None else alpha, limit=limit, stop=lambda: False, eps=EPS, group=groups,
    )  # fmt: skip


def test_every_dual_point_on_the_way_bounds_the_optimum():
    """Weak duality wherever the work is broken off, for the penalised and the hard budget, from the point alone."""
    for seed in range(60):
        _, X, y, cost, options = random_problem(seed, 4 if seed % 2 else 6)
        if seed % 2:
            X, options["groups"] = with_groups(seed, X)
            options["budget"] = 1
        best = {alpha: brute_force(X, y, cost, **{**options, "alpha": alpha}) for alpha in (None, options.get("alpha"))}
        limit = options.get("max_weight", math.inf)
        task = task_of(X, y, cost, side=options.get("side"), limit=limit, groups=options.get("groups"))
        point = u = None
        for lam in (1e-3, 0.3, 30.0):
            for cutoff in np.geomspace(1e-6, 1e6, 13):
                dual = solve_relaxation(task, task.kind, point, lam, cutoff, u)
                point, u = dual.point, dual.u
                for alpha, value in best.items():
                    penalty = math.inf if alpha is None else alpha
                    bound = min(
                        task.valid_below, subset_bound(dual.total, dual.values, task.kind, options["budget"], penalty)
                    )
                    assert bound <= value + 1e-9 * max(1.0, abs(value)), (seed, lam, cutoff, alpha)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(0.05, 0.95), st.sampled_from([None, 0.5, 20.0]))
def test_a_cutoff_only_hides_what_lies_above_it(seed, share, alpha):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((15, 4)), 2)
    y = np.where(rng.random(15) < 0.5, 1.0, -1.0)
    cost = np.full(15, 10.0)
    full = best_subset(X, y, cost, budget=2, alpha=alpha)
    above = best_subset(X, y, cost, budget=2, alpha=alpha, cutoff=full.value / share + 1.0)
    below = best_subset(X, y, cost, budget=2, alpha=alpha, cutoff=share * full.value)
    assert close(above.value, full.value)
    assert not below.feasible and below.exact
    assert share * full.value * (1 - 1e-8) <= below.bound <= full.value + 1e-9 or full.value == 0.0


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.booleans())
def test_fewer_constraints_or_samples_never_raise_the_value(seed, penalised):
    rng = np.random.default_rng(seed)
    X, y = rng.random((20, 5)), np.where(rng.random(20) < 0.5, 1.0, -1.0)
    cost, alpha = np.full(20, 5.0), 2.0 if penalised else None

    def value(rows, **more):
        return best_subset(X[rows], y[rows], cost[rows], alpha=alpha, **{"budget": 2, **more}).value

    every = np.arange(20)
    here = value(every)
    slack = 1e-7 * (1 + here)
    assert value(every, budget=3) <= here + slack
    assert value(every, never=[1]) >= here - slack
    assert value(every, must=[1]) >= here - slack
    assert value(every, max_weight=1.0) >= here - slack
    assert value(every[:12]) <= here + slack


def test_weights_count_like_copies():
    rng = np.random.default_rng(3)
    X, y = rng.random((12, 4)), np.where(rng.random(12) < 0.5, 1.0, -1.0)
    times = rng.integers(0, 4, 12)
    weighted = best_subset(X, y, 2.0 * times, budget=2)
    copied = best_subset(np.repeat(X, times, axis=0), np.repeat(y, times), np.full(times.sum(), 2.0), budget=2)
    assert close(weighted.value, copied.value)


def test_a_feature_that_must_be_used_has_its_penalty():
    X, y = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([-1.0, 1.0])
    free = best_subset(X, y, np.ones(2), budget=1, alpha=0.5)
    forced = best_subset(X, y, np.ones(2), budget=1, alpha=0.5, must=[0, 1])
    assert close(forced.value, free.value + 0.5)


def test_a_zero_penalty_removes_the_budget():
    rng = np.random.default_rng(4)
    X, y = rng.random((20, 4)), np.where(rng.random(20) < 0.5, 1.0, -1.0)
    assert close(best_subset(X, y, np.ones(20), budget=1, alpha=0.0).value, solve_node(X, y, np.ones(20)).value)


def test_a_full_memory_ends_the_search_with_a_valid_bound(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.random((120, 25))
    y = np.where(X[:, :6].sum(axis=1) + rng.normal(size=120) > 3, 1.0, -1.0)
    full = best_subset(X, y, np.full(120, 10.0), budget=1, alpha=5.0)
    monkeypatch.setattr("margotree.engines.node.best_subset.search._MEMORY", 10_000)
    cut = best_subset(X, y, np.full(120, 10.0), budget=1, alpha=5.0)
    assert full.exact and not cut.exact
    assert cut.bound <= full.value * (1 + 1e-9) <= cut.value * (1 + 2e-9)


def test_time_runs_out_but_the_bound_holds():
    rng = np.random.default_rng(0)
    X = rng.random((120, 25))
    y = np.where(X[:, :6].sum(axis=1) + rng.normal(size=120) > 3, 1.0, -1.0)
    options = {"budget": 1, "alpha": 5.0}
    full = best_subset(X, y, np.full(120, 10.0), **options)
    assert full.exact and full.nodes > 3
    looks = itertools.count()
    cut = best_subset(X, y, np.full(120, 10.0), **options, stop=lambda: next(looks) > 60)
    assert not cut.exact and cut.feasible
    assert cut.bound <= full.value * (1 + 1e-9) and cut.value >= full.value * (1 - 1e-9)
    at_once = best_subset(X, y, np.full(120, 10.0), **options, time_limit=0.0)
    assert at_once.feasible and not at_once.exact and at_once.bound <= full.value


def test_groups_of_indicators_are_searched_by_their_bounds():
    """Categories as groups of indicators: far fewer search nodes than supports, and the same value."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, (80, 12))
    X = np.hstack([(codes[:, [k]] == np.arange(4)).astype(float) for k in range(12)])
    y = np.where(X[:, :12].sum(axis=1) + 2 * (codes[:, 3] > 1) + rng.normal(size=80) > 3.5, 1.0, -1.0)
    options = {"budget": 3, "groups": np.repeat(np.arange(12), 4)}
    found = best_subset(X, y, np.full(80, 0.5), **options)
    assert found.exact and close(found.value, brute_force(X, y, np.full(80, 0.5), **options))
    assert found.nodes < math.comb(12, 3) / 10
    penalised = best_subset(X, y, np.full(80, 0.5), alpha=1.0, **options)
    assert penalised.exact and penalised.value <= found.value * (1 + 1e-9)


def test_groups_of_one_feature_change_nothing():
    rng = np.random.default_rng(6)
    X, y = rng.random((40, 6)), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    one, other = (best_subset(X, y, np.full(40, 3.0), budget=2, groups=g) for g in (None, np.arange(6)))
    assert close(one.value, other.value) and np.allclose(one.w, other.w, atol=1e-6)


def test_no_samples_one_class_and_contradictions():
    nothing = best_subset(np.zeros((0, 3)), np.zeros(0), np.zeros(0), budget=1)
    assert nothing.value == 0.0 and nothing.feasible and not np.any(nothing.w)
    X = np.random.default_rng(1).random((5, 3))
    for sign in (-1.0, 1.0):
        one = best_subset(X, np.full(5, sign), np.ones(5), budget=1, alpha=1.0)
        assert one.value == 0.0 and not np.any(one.w) and one.b * sign >= 1.0
    same = np.ones((4, 2))
    split = best_subset(same, np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4), budget=1, side=[1, -1, 0, 0])
    assert split.value == math.inf and not split.feasible and split.exact and split.bound == math.inf


def test_contradictory_arguments_are_refused():
    X, y = np.eye(3), np.array([1.0, -1.0, 1.0])
    with pytest.raises(ValueError, match="budget is 1"):
        best_subset(X, y, np.ones(3), budget=1, must=[0, 1])
    with pytest.raises(ValueError, match="never"):
        best_subset(X, y, np.ones(3), budget=2, must=[0], never=[0])


def test_relaxation_meets_its_own_primal():
    """Primal and dual values of the relaxation agree, with or without weight limits, wherever it began."""
    for seed in range(40):
        _, X, y, cost, _ = random_problem(seed)
        for limit in (math.inf, 0.7):
            task = task_of(X, y, cost, limit=limit)
            task.kind[0] = MUST
            centred, y_, cost_ = task.ws.X[: len(task.samples.y)], task.samples.y, task.samples.cost
            point = None
            for turn, lam in enumerate((0.01, 1.0, 50.0, 0.01, 0.01, 0.03)):
                if turn >= 4:  # the same penalty, and another: a feature that was used in part, if any
                    j = next(iter(np.flatnonzero((point.use == KINK) & (task.kind == MAY))), -1)
                    task.kind[j] = NEVER
                may = task.kind == MAY
                dual = solve_relaxation(task, task.kind, point, lam, math.inf)
                point = dual.point
                loss = cost_ @ np.maximum(0.0, 1.0 - y_ * (centred @ point.w + point.b))
                assert not np.any(point.w[task.kind == NEVER])
                share = np.where(may, np.clip(np.abs(point.w) / math.sqrt(2 * lam), 0.0, 1.0), task.kind == MUST)
                used = share > 0
                primal = loss + lam * np.sum(share[may]) + np.sum(0.5 * point.w[used] ** 2 / share[used])
                proved = (
                    dual.total - dual.values[task.kind == MUST].sum() - np.sum(np.maximum(0.0, dual.values[may] - lam))
                )
                assert abs(primal - proved) <= 1e-6 * primal + 1e-8 * cost.sum(), (seed, lam, limit)
                assert np.all(np.abs(point.w) <= limit + 1e-6)


def test_merging_equal_samples_changes_nothing():
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 2, (60, 5)).astype(float), np.where(rng.random(60) < 0.5, 1.0, -1.0)
    samples = merge_equal(X, y, np.full(60, 2.0), np.ones(60), np.zeros(60, np.int8))
    few = Grouping(samples).restricted(np.array([1, 3]))
    assert len(few.y) <= 8 < len(samples.y) <= 60
    assert np.sum(few.cost) == np.sum(samples.cost) == 120.0

    def loss(part, w):
        return part.cost @ np.maximum(0.0, 1.0 - part.y * (part.X @ w + 0.4))

    assert close(loss(few, np.array([0.3, -1.2])), loss(samples, np.array([0.0, 0.3, 0.0, -1.2, 0.0])))


@pytest.mark.parametrize("rounds", [1, 3, 20])
def test_fixing_keeps_the_best_support(rounds):
    """A feature is only decided by a dual point if the other choice reaches the target: check against brute force."""
    for seed in range(50):
        _, X, y, cost, options = random_problem(seed)
        options = {k: v for k, v in options.items() if k in {"budget", "alpha"}}
        best = brute_force(X, y, cost, **options)
        target = 1.05 * best + 1e-6
        task = task_of(X, y, cost, **options)
        node = relax(task, task.kind, None, first_penalty(task), math.inf, rounds)
        if node.bound >= target:
            continue
        # A better bound from elsewhere must not lend this point more than it proves.
        kind = fix_features(task, replace(node, bound=0.999 * best), target)
        for j in np.flatnonzero(kind != MAY):
            other = {"never": [j]} if kind[j] == MUST else {"must": [j]}
            assert brute_force(X, y, cost, **options, **other) >= target * (1 - 1e-9), (seed, j)
        assert set(np.unique(kind)) <= {NEVER, MUST, MAY}
