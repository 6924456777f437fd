"""Node problems of all tasks as items, and the objective of a tree by hand for each task."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.svm import SVR

from margotree.engines.node.svm import LARGE, solve_large, solve_node
from margotree.engines.polish import polish
from margotree.problem import Multiclass, Problem, Regression, Splits, evaluate, topology
from margotree.problem.tasks import BINARY, Items, one_sided


def solve_items(X, items, cost, **more):
    """The node problem of two-sided losses."""
    sided = one_sided(items, cost)
    return solve_node(X[sided.rows], sided.label, sided.cost, corner=sided.corner, **more)


def value_of(X, items, cost, w, b):
    return 0.5 * w @ w + cost @ items.loss(X @ w + b)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_a_last_level_node_of_a_regression_tree_is_a_support_vector_regression(C, epsilon):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = X @ [1.0, -2.0, 0.0, 0.5] + 0.3 * rng.normal(size=80) + 5.0
    items = Regression(epsilon).items(y, last=True)
    found = solve_items(X, items, np.full(80, C))
    svr = SVR(kernel="linear", C=C, epsilon=epsilon, tol=1e-10).fit(X, y)
    theirs = value_of(X, items, np.full(80, C), svr.coef_[0], float(svr.intercept_[0]))
    assert theirs * (1.0 - 1e-4) <= found.value <= theirs * (1.0 + 1e-6)  # theirs ends at a tolerance of its own
    assert found.value == pytest.approx(value_of(X, items, np.full(80, C), found.w, found.b), rel=1e-9)
    assert found.bound <= found.value and found.bound == pytest.approx(found.value, rel=1e-8)


def test_many_samples_of_a_regression_node_are_solved_by_newtons_method():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(LARGE + 100, 3))
    y = X @ [1.0, 0.0, -1.0] + rng.normal(size=len(X))
    items = Regression(0.2).items(y, last=True)
    sided = one_sided(items, np.ones(len(X)))
    many = solve_large(X[sided.rows], sided.label, sided.cost, corner=sided.corner)
    svr = SVR(kernel="linear", C=1.0, epsilon=0.2, tol=1e-8).fit(X, y)
    theirs = value_of(X, items, np.ones(len(X)), svr.coef_[0], float(svr.intercept_[0]))
    assert many.value == pytest.approx(theirs, rel=1e-5) and many.bound <= theirs * (1 + 1e-9)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_pinball_losses_are_items(q):
    """With a tiny penalty on weights the node problem is quantile regression, a linear program."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    C = 1e4
    items = Items(p=np.full(40, q), m=np.full(40, 1.0 - q), r=y, l=y)
    found = solve_items(X, items, np.full(40, C))
    # variables: w, b (free), residuals above and below
    cost = np.concatenate([np.zeros(3), np.full(40, q), np.full(40, 1.0 - q)])
    rows = np.hstack([X, np.ones((40, 1)), np.eye(40), -np.eye(40)])
    program = linprog(cost, A_eq=rows, b_eq=y, bounds=[(None, None)] * 3 + [(0, None)] * 80)
    assert np.sum(items.loss(X @ found.w + found.b)) == pytest.approx(program.fun, rel=1e-3)


@given(st.integers(0, 10_000))
def test_random_items_are_solved_to_their_bounds(seed):
    """Losses with any corners and penalties, zero ones included: value equals bound, and no point nearby is better."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 12)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, p)).round(1) * 10.0 ** rng.integers(-2, 3)
    corners = np.sort(rng.normal(size=(2, n)).round(1) * 10.0 ** rng.integers(-2, 3), axis=0)
    items = Items(p=rng.choice([0.0, 1.0, 3.0], n), m=rng.choice([0.0, 1.0, 2.0], n), r=corners[0], l=corners[1])
    cost = 10.0 ** rng.uniform(-3, 3, n)
    found = solve_items(X, items, cost)
    scale = 1e-9 * (1.0 + np.sum(cost * np.maximum(np.abs(corners[0]), np.abs(corners[1]))))
    assert found.feasible
    assert found.bound <= found.value + scale and found.bound == pytest.approx(found.value, rel=1e-7, abs=scale)
    assert found.value == pytest.approx(value_of(X, items, cost, found.w, found.b), rel=1e-9, abs=scale)
    for _ in range(10):
        w, b = found.w + rng.normal(size=p) * 10.0 ** rng.integers(-6, 1), found.b + rng.normal()
        assert value_of(X, items, cost, w, b) >= found.bound - scale


def by_hand(problem, splits):
    """The objective of a tree of any task by loops over nodes and samples."""
    total, at = 0.0, np.zeros(problem.n_samples, int)
    found = evaluate(problem, splits)
    for t in range(problem.n_nodes):
        w, b, last = splits.w[t], splits.b[t], t >= problem.n_upper
        total += 0.5 * w @ w
        for i in np.flatnonzero(at == t):
            h, y = w @ problem.X[i] + b, problem.y[i]
            if problem.task == BINARY:
                loss = max(0.0, 1.0 - y * h)
            elif isinstance(problem.task, Regression):
                loss = max(0.0, abs(y - h) - problem.task.epsilon) if last else max(0.0, 1.0 - abs(h))
            else:
                k = t - problem.n_upper
                right, left = max(0.0, 1.0 - h), max(0.0, 1.0 + h)
                if last:
                    loss = right * (y != found.choices.labels[k, 0]) + left * (y != found.choices.labels[k, 1])
                else:
                    loss = right if found.choices.sides[t, y] > 0 else left
            total += problem.C[t] * problem.weight[i] * loss
            if not last:
                at[i] = topology.right(t) if h >= 0 else topology.left(t)
    return total


@pytest.mark.parametrize("task", [BINARY, Multiclass(3), Regression(0.3)], ids=repr)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_objective_of_every_task_is_that_of_the_definition(task, depth):
    rng = np.random.default_rng(depth)
    X, weight = rng.normal(size=(30, 3)), rng.integers(1, 4, 30)
    y = {"binary": rng.choice([-1.0, 1.0], 30), "multiclass": rng.integers(0, 3, 30)}.get(
        task.name, rng.normal(size=30)
    )
    problem = Problem.make(X, y, task=task, depth=depth, weight=weight, C=list(range(1, depth + 1)), eps=1e-6)
    for _ in range(5):
        T = problem.n_nodes
        splits = Splits(w=rng.normal(size=(T, 3)), b=rng.normal(size=T))
        assert evaluate(problem, splits).objective == pytest.approx(by_hand(problem, splits), rel=1e-12)


@pytest.mark.parametrize("epsilon", [-0.1, np.nan, np.inf])
def test_a_tube_must_have_a_width(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        Regression(epsilon)


def test_targets_must_be_finite():
    with pytest.raises(ValueError, match="targets"):
        Problem.make([[0.0], [1.0]], [0.0, np.inf], task=Regression(), depth=1)


@pytest.mark.parametrize("alpha", [None, 0.3])
@pytest.mark.parametrize("task", [BINARY, Multiclass(3), Regression(0.2)], ids=repr)
def test_polishing_finds_the_best_features_of_every_node(task, alpha):
    """Compared with all supports of one node at a time, for a fixed routing and fixed choices."""
    rng = np.random.default_rng(5)
    X = rng.random((25, 3))
    y = {"binary": rng.choice([-1.0, 1.0], 25), "multiclass": rng.integers(0, 3, 25)}.get(
        task.name, 5.0 + rng.normal(size=25)
    )
    problem = Problem.make(X, y, task=task, depth=2, C=2.0, budget=1, alpha=alpha, eps=1e-4)
    w = np.zeros((3, 3))
    w[[0, 1, 2], [1, 0, 2]] = 4.0
    before = evaluate(problem, Splits(w=w, b=np.array([-2.1, -1.8, -2.0])))
    best = polish(problem, before.node, choices=before.choices, search_supports=True)
    fixed = problem.with_choices(before.choices)
    found = evaluate(fixed, best)
    assert found.feasible and np.array_equal(found.node, before.node)
    sizes = (1,) if alpha is None else (1, 2, 3)
    for t in range(3):
        values = []
        for support in (s for size in sizes for s in combinations(range(3), size)):
            mask = w != 0
            mask[t] = np.isin(np.arange(3), support)
            tree = polish(problem, before.node, mask, choices=before.choices)
            if tree is not None:
                values.append(evaluate(fixed, tree).node_values[t])
        assert found.node_values[t] == pytest.approx(min(values), rel=1e-7)
