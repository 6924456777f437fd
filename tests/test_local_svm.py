"""The greedy heuristic: the paper's start values, and trees that are allowed whatever the data."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margotree.engines import Limits, RunControl, get_engine, solve
from margotree.engines.band import in_band, leave_band, right_of
from margotree.engines.node.best_subset import best_subset
from margotree.engines.node.svm import solve_node
from margotree.problem import Problem, evaluate, topology
from margotree.solution import Proved, Stopped, verify

MODELS = ("margot", "hfs", "sfs")


def make(X, y, model, **more):
    extra = {"margot": {}, "hfs": {"budget": 1}, "sfs": {"budget": 1, "alpha": 0.5}}[model]
    return Problem.make(X, y, **{"depth": 2, **extra, **more})


def local_svm(problem, **limits):
    return get_engine("local_svm").solve(problem, RunControl(Limits(**limits)))


@st.composite
def problems(draw):
    """Few samples with repeats, constant columns, one class, weights of 0, and bands wide enough to catch samples."""
    m, n = draw(st.integers(1, 14)), draw(st.integers(1, 4))
    grid = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.55, 1.0])
    X = np.array(draw(st.lists(st.lists(grid, min_size=n, max_size=n), min_size=m, max_size=m)))
    y = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=m, max_size=m)))
    if draw(st.booleans()):
        X[:, 0] = 0.3
    return make(
        X,
        y,
        draw(st.sampled_from(MODELS)),
        depth=draw(st.integers(1, 4)),
        C=10.0 ** draw(st.integers(-3, 4)),
        eps=draw(st.sampled_from([1e-3, 0.1, 0.7, 3.0])),
        weight=draw(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=m, max_size=m)),
        max_weight=draw(st.sampled_from([None, None, 0.4, 5.0])),
    )


@settings(max_examples=50)
@given(problems())
def test_its_tree_is_always_allowed(problem):
    solution = local_svm(problem)
    found = verify(problem, solution)
    assert found.feasible and found.band == 0.0 and found.over_budget == 0 and found.over_weight == 0.0
    assert solution.certificate.bound == -math.inf
    assert solution.certificate.warnings == ()


@settings(max_examples=25)
@given(problems())
def test_nodes_without_samples_or_with_one_class_do_nothing(problem):
    splits = local_svm(problem).splits
    at = _paths(problem, splits)
    for t in range(problem.n_nodes):
        labels = set(problem.y[(at[:, topology.level(t)] == t) & (problem.weight > 0)])
        if len(labels) < 2:
            assert not np.any(splits.w[t])
            wanted = (labels or {1.0}).pop()
            # A band wider than the usual offset pushes it further out.
            assert splits.b[t] == (
                wanted if wanted > 0 or t in topology.last(problem.depth) else -max(1.0, problem.eps)
            )


def _paths(problem, splits):
    """Node of every sample at every level."""
    last = evaluate(problem, splits).node
    levels = [last]
    for _ in range(problem.depth - 1):
        levels.append((levels[-1] - 1) // 2)
    return np.stack(levels[::-1], axis=1)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_without_a_sample_in_the_band_it_is_the_plain_recursion(model, depth):
    compared = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.random((60, 4))
        X[0], X[1] = 0.0, 1.0  # one unit wide: as engines see it, so that offsets that do not matter come out the same
        y = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=60) > 0.8, 1.0, -1.0)
        problem = make(X, y, model, depth=depth, C=5.0, eps=1e-6)
        w, b, met_band = _recursion(problem)
        if met_band:
            continue
        found = local_svm(problem).splits
        np.testing.assert_allclose(found.w, w, atol=1e-7)
        np.testing.assert_allclose(found.b, b, atol=1e-7)
        compared += 1
    assert compared >= 8


def _recursion(problem):
    """The paper's algorithm in its plainest form."""
    w, b = np.zeros((problem.n_nodes, problem.n_features)), np.ones(problem.n_nodes)
    samples = {0: np.arange(problem.n_samples)}
    met_band = False
    for t in range(problem.n_nodes):
        rows = samples[t]
        X, y, cost = problem.X[rows], problem.y[rows], np.full(len(rows), problem.C[t])
        if problem.budget is None:
            found = solve_node(X, y, cost)
        else:
            alpha = None if problem.alpha is None else float(problem.alpha[t])
            found = best_subset(X, y, cost, budget=int(problem.budget[t]), alpha=alpha)
        if len(set(y)) == 2:
            w[t], b[t] = found.w, found.b
        elif len(y):
            b[t] = y[0]
        h = X @ w[t] + b[t]
        met_band = met_band or bool(np.any((h < -1e-9) & (h > -problem.eps)))
        samples[2 * t + 1], samples[2 * t + 2] = rows[h < -1e-9], rows[h >= -1e-9]
    return w, b, met_band


def caught_problem(seed, eps=0.3, n=3, **more):
    """A root SVM with samples in its band: the node, its samples and its hyperplane."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((25, n)), 2)
    score = X @ rng.normal(size=n) + 0.5 * rng.normal(size=25)
    y = np.where(score > np.median(score), 1.0, -1.0)
    problem = make(X, y, "margot", eps=eps, C=1.0, **more)
    plain = solve_node(problem.X, problem.y, problem.weight * problem.C[0], max_weight=problem.max_weight)
    return problem, np.arange(25), plain


def node_cost(problem, w, b):
    hinge = np.maximum(0.0, 1.0 - problem.y * (problem.X @ w + b))
    return 0.5 * w @ w + problem.C[0] * problem.weight @ hinge


def test_leaving_the_band_costs_no_more_than_shifting_the_offset():
    met = better = 0
    for seed in range(40):
        problem, rows, plain = caught_problem(seed)
        if not np.any(in_band(problem, plain.w, plain.b, rows)):
            continue
        met += 1
        w, b = leave_band(problem, 0, rows, plain.w, plain.b)
        assert not np.any(in_band(problem, w, b, rows))
        shifts = np.linspace(-2, 2, 801)
        shifted = [
            node_cost(problem, plain.w, plain.b + s)
            for s in shifts
            if not np.any(in_band(problem, plain.w, plain.b + s, rows))
        ]
        cost = node_cost(problem, w, b)
        assert plain.value - 1e-9 <= cost <= min(shifted) + 1e-6
        better += cost < min(shifted) - 1e-6
    assert met >= 20 and better >= 5


def test_leaving_the_band_is_the_best_way_when_one_sample_is_caught():
    """One sample in the band can leave on two sides; where neither catches another, the smaller cost is optimal."""
    checked = 0
    for seed in range(200):
        problem, rows, plain = caught_problem(seed, eps=0.05)
        caught = np.flatnonzero(in_band(problem, plain.w, plain.b, rows))
        if len(caught) != 1:
            continue
        values = []
        for side in (1, -1):
            sides = np.zeros(25, int)
            sides[caught] = side
            way = solve_node(problem.X, problem.y, problem.weight * problem.C[0], side=sides, eps=0.05)
            if way.feasible and not np.any(in_band(problem, way.w, way.b, rows)):
                values.append(way.value)
        if len(values) == 2:
            checked += 1
            w, b = leave_band(problem, 0, rows, plain.w, plain.b)
            assert node_cost(problem, w, b) == pytest.approx(min(values), rel=1e-7)
    assert checked >= 10


def test_leaving_the_band_keeps_the_support_and_the_weight_limit():
    for seed in range(30):
        problem, rows, plain = caught_problem(seed, n=4, max_weight=0.8)
        narrow = best_subset(
            problem.X, problem.y, problem.weight * problem.C[0], budget=2, max_weight=0.8, never=[seed % 4]
        )
        w, b = leave_band(problem, 0, rows, narrow.w, narrow.b)
        assert not np.any(w[narrow.w == 0.0]) and np.max(np.abs(w)) <= 0.8 + 1e-9
        assert not np.any(in_band(problem, w, b, rows))
        assert right_of(problem, w, b, rows).dtype == bool
        assert plain.feasible


@pytest.mark.parametrize("model", ["hfs", "sfs"])
def test_a_node_that_is_cut_short_is_named(model):
    rng = np.random.default_rng(0)
    X = rng.random((150, 30))
    y = np.where(X[:, :8].sum(axis=1) + rng.normal(size=150) > 4, 1.0, -1.0)
    extra = {"budget": 6} if model == "hfs" else {"budget": 1, "alpha": 3.0}
    problem = Problem.make(X, y, depth=2, C=10.0, **extra)
    solution = local_svm(problem, time=0.0)
    verify(problem, solution)
    assert solution.certificate.stopped is Stopped.TIME and solution.certificate.cut_off
    assert "node 0" in solution.certificate.warnings[0] and "cut short" in solution.certificate.warnings[0]


def test_certificate_claims_nothing():
    rng = np.random.default_rng(1)
    problem = make(rng.random((20, 2)), np.where(rng.random(20) < 0.5, 1.0, -1.0), "margot")
    solution = solve(problem, engine="local_svm")
    certificate = solution.certificate
    assert certificate.engine == "local_svm" and certificate.stopped is Stopped.HEURISTIC
    assert certificate.proved is Proved.FEASIBLE and certificate.bound == -math.inf


def test_interruption_still_gives_a_tree():
    rng = np.random.default_rng(2)
    problem = make(rng.random((30, 5)), np.where(rng.random(30) < 0.5, 1.0, -1.0), "sfs")
    control = RunControl()
    control.interrupt()
    solution = get_engine("local_svm").solve(problem, control)
    verify(problem, solution)
    assert solution.certificate.stopped is Stopped.INTERRUPTED


needs_data = [
    pytest.mark.paper,
    pytest.mark.skipif(not os.environ.get("MARGOTREE_DATA"), reason="MARGOTREE_DATA is not set"),
]

SETS = (
    "Breast Cancer D.",
    "Breast Cancer W.",
    "Climate Model",
    "Heart Disease C.",
    "Ionosphere",
    "Parkinsons",
    "Sonar",
    "SPECTF H.",
    "Tic-Tac-Toe",
    "Wholesale",
)
#: Where our start is below the printed one; docs/reproduction.md says why.
BELOW = {("sfs", "Parkinsons"), ("sfs", "Sonar"), ("sfs", "SPECTF H."), ("sfs", "Wholesale")}
#: Left out of the tests: half a minute.
LONG = {("sfs", "SPECTF H.")}


def paper_cases():
    for model in MODELS:
        for name in SETS:
            if (model, name) not in LONG:
                yield pytest.param(model, name, marks=needs_data, id=f"{model}-{name}")


def start_on(model, name, **changes):
    """Our start on the paper's split with the paper's hyperparameters, unless they are changed."""
    from margotree.paper.data import load, paper_hyperparameters, paper_split

    split = paper_split(load(name, allow_download=False))
    asked = {**paper_hyperparameters(model, name), **changes}
    solution = local_svm(Problem.make(split.X_train, split.y_train, depth=2, **asked))
    assert solution.certificate.warnings == ()
    return solution.certificate.objective


def printed_start(model, name):
    from margotree.paper.data import paper_table

    for row in paper_table("warm_start"):
        if row["dataset"] == name and str(row["model"]).lower().replace("-margot", "") == model:
            return row["f0_local_svm"]
    raise AssertionError(f"no start value is printed for {model} on {name}")


@pytest.mark.parametrize(("model", "name"), list(paper_cases()))
def test_start_values_of_the_paper(model, name):
    ours, printed = start_on(model, name), printed_start(model, name)
    if (model, name) in BELOW:
        assert ours < printed - 1.0
    else:
        assert f"{ours:.2f}" == f"{printed:.2f}"


@pytest.mark.paper
@pytest.mark.skipif(not os.environ.get("MARGOTREE_DATA"), reason="MARGOTREE_DATA is not set")
@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("Parkinsons", {"max_weight": 50.0}),
        ("Wholesale", {"C": [100.0, 100.0], "alpha": 256.0}),
    ],
)
def test_what_the_printed_value_stands_for_where_ours_is_below(name, changes):
    assert f"{start_on('sfs', name, **changes):.2f}" == f"{printed_start('sfs', name):.2f}"
