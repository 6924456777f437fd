"""Squared losses: the value function, node problems, bounds of tangents, and regressors with this loss."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import margotree
from margotree import HFSMargotRegressor, LocalSVRTreeRegressor, MargotRegressor
from margotree.engines import EngineError, Limits, solve
from margotree.engines.branch_and_bound.squared_losses import below_squares
from margotree.engines.local_search.descent import Descent
from margotree.engines.local_search.initial_splits import Strategy
from margotree.engines.local_search.kernels.svm import svm
from margotree.engines.local_search.node_samples import Node
from margotree.engines.local_search.training_data import Terms
from margotree.engines.trivial_trees import best_constant, trivial_tree
from margotree.problem import Items, Problem, Regression, Splits, SquaredRegression
from oracle.numbers import faults, instance, one_sided, optimum

GO = np.zeros(1)
SQUARED = {"loss": "squared_epsilon_insensitive"}


def squares(n=30, p=2, depth=2, seed=0, epsilon=0.1, **terms):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] > 0.2, 2.0 * X[:, -1], 1.0) + 0.1 * rng.normal(size=n)
    weight = rng.choice([1.0, 0.5, 2.0], n)
    task = SquaredRegression(epsilon)
    return Problem.make(X, y, task=task, depth=depth, weight=weight, **({"C": [0.05] * (depth - 1) + [3.0]} | terms))


def random_tree(problem, seed):
    rng = np.random.default_rng(seed)
    tree = Splits(w=rng.normal(size=(problem.n_nodes, problem.n_features)), b=rng.normal(size=problem.n_nodes))
    return Descent(Terms.of(problem), tree.w, tree.b, seed, np.ones(1))  # moves samples out of bands


def test_the_value_function_squares_losses_of_leaves_only():
    X, y = np.array([[0.0], [0.5], [1.0]]), np.array([1.0, -2.0, 4.0])
    problem = Problem.make(X, y, task=SquaredRegression(0.5), depth=2, C=[1.0, 10.0, 100.0], weight=[1.0, 2.0, 3.0])
    found = problem.evaluate(Splits(w=np.array([[1.0], [0.0], [2.0]]), b=np.array([-0.5, 0.0, 0.0])))
    # Margins at the split: h is -0.5, 0 and 0.5.  Errors beyond 0.5: 0.5 on the left; 2.5 and 1.5 on the right.
    assert found.node_values.tolist() == pytest.approx(
        [0.5 + (0.5 + 2 * 1.0 + 3 * 0.5), 10.0 * 0.25, 2.0 + 100.0 * (2 * 2.5**2 + 3 * 1.5**2)]
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.4])
def test_the_node_problem_has_the_optimum_of_brute_force(epsilon):
    """Every sample is below, within or above the tube: the best of all 3^n quadratic problems is the optimum."""
    rng = np.random.default_rng(1)
    X, y, cost = rng.normal(size=(6, 2)), rng.normal(size=6), rng.uniform(0.1, 3.0, 6)
    best, design = np.inf, np.column_stack([X, np.ones(6)])

    def value(theta):
        excess = np.maximum(0.0, np.abs(y - design @ theta) - epsilon)
        return 0.5 * theta[:2] @ theta[:2] + cost @ excess**2

    for signs in itertools.product([-1.0, 0.0, 1.0], repeat=6):
        s = np.array(signs)
        H = np.diag([1.0, 1.0, 0.0]) + 2.0 * (design.T * (cost * s**2)) @ design
        right = 2.0 * design.T @ (cost * s**2 * (y - s * epsilon))
        best = min(best, value(np.linalg.lstsq(H, right, rcond=None)[0]))
    theta = np.zeros(3)
    found = svm(X, cost, cost, y - epsilon, y + epsilon, theta, 2.0, 1e-3, True, GO)
    assert found == pytest.approx(best, rel=1e-9) and value(theta) == pytest.approx(found, rel=1e-12)
    wide = np.hstack([X, np.zeros((6, 500))])  # products with the Hessian instead of a matrix
    assert svm(wide, cost, cost, y - epsilon, y + epsilon, np.zeros(503), 2.0, 1e-3, True, GO) == pytest.approx(best)


def test_the_best_constant():
    rng = np.random.default_rng(2)
    for _ in range(20):
        y, p, m = rng.normal(size=9).round(1), rng.choice([0.0, 0.3, 1.0], 9), rng.choice([0.0, 0.3, 1.0], 9)
        epsilon = rng.choice([0.0, 0.5, 5.0])
        items = Items(p, m, y - epsilon, y + epsilon, squared=True)
        b, value = best_constant(items)
        grid = np.linspace(-6.0, 6.0, 2001)
        assert value == pytest.approx(items.loss(np.full(9, b)).sum())
        assert value <= min(items.loss(np.full(9, c)).sum() for c in grid) + 1e-12
    mean, _ = best_constant(Items(np.ones(3), np.ones(3), *[np.array([1.0, 2.0, 6.0])] * 2, squared=True))
    assert mean == pytest.approx(3.0)


def test_slopes_are_those_of_losses():
    rng = np.random.default_rng(3)
    h, step = rng.normal(size=50), 1e-6
    for squared in (False, True):
        items = Items(rng.random(50), rng.random(50), rng.normal(size=50) - 1.0, rng.normal(size=50) + 1.0, squared)
        slope = (items.loss(h + step) - items.loss(h - step)) / (2.0 * step)
        assert items.slope(h) == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("depth", [2, 3])
def test_costs_of_subtrees_are_those_of_the_value_function(depth):
    problem = squares(depth=depth)
    descent = random_tree(problem, 4)
    descent.cost()
    terms, tree = Terms.of(problem), Splits(w=descent.W, b=descent.B)
    node = Node.of(terms, 0, np.arange(problem.n_samples))
    node.compute_subtree_costs(terms, 0, np.arange(problem.n_samples), descent.W, descent.B, terms.initial_choices())
    found = problem.evaluate(tree)
    right = node.heights((tree.w[0], tree.b[0])) >= -0.5 * problem.eps
    losses = float(np.sum(found.node_values[1:])) - 0.5 * float(np.sum(tree.w[1:] ** 2))
    assert float(np.where(right, node.right_cost, node.left_cost).sum()) == pytest.approx(losses, rel=1e-9)
    assert float(np.sum(descent.own)) == pytest.approx(found.objective, rel=1e-9)


def test_tangents_are_below_the_squares_and_touch_them_at_the_tree():
    for seed in range(5):
        problem = squares(seed=seed)
        trees = []
        for k in range(20):
            descent = random_tree(problem, 100 * seed + k)
            descent.cost()
            trees.append(Splits(w=descent.W, b=descent.B))
        for least in (0.0, 0.5, 1.0):
            below = below_squares(problem, trees[0], least)
            assert all(below.evaluate(t).objective <= problem.evaluate(t).objective for t in trees)
        touching = below_squares(problem, trees[0], 0.0)
        here = problem.evaluate(trees[0]).objective
        assert touching.evaluate(trees[0]).objective == pytest.approx(here, rel=1e-9)


@pytest.mark.parametrize("seed", range(0, 16, 2))
def test_objectives_and_bounds_are_on_their_sides_of_the_optimum(seed):
    problem = instance(seed, SquaredRegression)
    best = optimum(problem)
    found = solve(problem, limits=Limits(gap=1e-8, nodes=300)).certificate
    assert not one_sided(faults(problem, best, found.objective, found.bound), best, found.objective)
    assert found.engine == "bnb"


def test_bounds_are_useful():
    problem = squares(n=12, depth=2)
    found = solve(problem, limits=Limits(nodes=3000))
    assert found.certificate.gap < 0.5
    one = solve(squares(depth=1), limits=Limits(gap=1e-6)).certificate
    assert one.gap <= 1e-6 and str(one.stopped) == "solved"


def test_engines_that_do_not_square_losses_say_so():
    problem = squares()
    with pytest.raises(EngineError, match="does not solve problems with squared losses"):
        solve(problem, engine="scip")
    with pytest.raises(EngineError, match="proof cannot be written for the losses of a squared_regression"):
        MargotRegressor(depth=2, proof="never.proof", **SQUARED).fit(problem.X, problem.y)
    with pytest.raises(EngineError, match="bounded weights"):
        solve(squares(max_weight=1.0))


def test_a_task_must_square_where_it_says_so():
    class Half(SquaredRegression):
        squares_losses = False

    with pytest.raises(ValueError, match="squared losses at all last-level nodes"):
        Problem.make([[0.0], [1.0]], [0.0, 1.0], task=Half(), depth=1)


def test_trivial_trees_are_means():
    problem = squares(epsilon=0.0)
    tree = trivial_tree(problem)
    assert tree.b[problem.n_upper :] == pytest.approx(np.average(problem.y, weights=problem.weight))


def two_planes(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3)) * [400.0, 120.0, 90.0]
    return X, np.where(X[:, 2] > 30, 20 + 0.1 * X[:, 0], 50 - 0.2 * X[:, 1]) + 0.1 * rng.normal(size=n)


def test_depth_1_is_ridge_regression():
    X, y = two_planes(40)
    tree = MargotRegressor(depth=1, C=2.0, **SQUARED).fit(X, y).tree_
    scaled, target = tree.scaling.apply(X), tree.target.apply(y)
    ridge = Ridge(alpha=1.0 / (2.0 * 2.0), tol=1e-12).fit(scaled, target)
    residual = target - ridge.predict(scaled)
    assert tree.certificate.objective == pytest.approx(0.5 * ridge.coef_ @ ridge.coef_ + 2.0 * residual @ residual)
    assert tree.certificate.gap <= 1e-4


@pytest.mark.parametrize(
    "model",
    [
        MargotRegressor(depth=2, engine="alternating", node_limit=10, **SQUARED),
        MargotRegressor(depth=2, node_limit=30, epsilon=0.05, **SQUARED),
        HFSMargotRegressor(depth=2, engine="alternating", node_limit=10, **SQUARED),
        MargotRegressor(depth=2, engine="alternating", node_limit=10, alpha=0.5, **SQUARED),
        MargotRegressor(depth=3, engine="alternating", node_limit=5, leaf_budget=0, **SQUARED),
        LocalSVRTreeRegressor(depth=3, **SQUARED),
    ],
    ids=["margot", "bound", "hard budgets", "penalties", "constant leaves", "greedy"],
)
def test_regressors_with_this_loss(model, tmp_path):
    X, y = two_planes()
    model.fit(X, y)
    assert model.score(X, y) > (0.6 if model.leaf_budget == 0 else 0.75 if model.budget else 0.95)
    model.save(tmp_path / "tree.json")
    loaded = margotree.load(tmp_path / "tree.json")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.verify(X, y).objective == pytest.approx(model.certificate_.objective, rel=1e-9)
    leaf, tree = model.apply(X), model.tree_
    if model.leaf_budget == 0:  # constant leaves are means
        for v in np.unique(leaf):
            assert model.predict(X)[leaf == v] == pytest.approx(np.full((leaf == v).sum(), y[leaf == v].mean()))
    assert tree.terms["task"] == {"name": "squared_regression", "parameters": {"epsilon": model.epsilon}}


def test_the_loss_can_be_searched_for():
    X, y = two_planes(40)
    grid = {"loss": ["epsilon_insensitive", "squared_epsilon_insensitive"]}
    search = GridSearchCV(LocalSVRTreeRegressor(depth=2), grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_params_["loss"] in grid["loss"]
    errors = [
        np.sum((LocalSVRTreeRegressor(depth=1, C=100.0, loss=loss).fit(X, y).predict(X) - y) ** 2)
        for loss in grid["loss"]
    ]
    assert errors[1] < errors[0]


@pytest.mark.parametrize("task", [Regression(), SquaredRegression()], ids=["linear", "squared"])
def test_hyperplanes_keep_the_budget_of_their_node(task):
    """Also where a hyperplane comes from a node with a larger budget, as where two subtrees are exchanged."""
    rng = np.random.default_rng(0)
    problem = Problem.make(
        rng.normal(size=(12, 3)), rng.normal(size=12), task=task, depth=3, C=1.0, budget=[3, 3, 1, 3, 0, 2, 1]
    )
    terms = Terms.of(problem)
    for seed in range(5):
        descent = random_tree(problem, seed)
        found = Descent(terms, descent.W, descent.B, seed, GO).run(np.full(7, Strategy.KEEP))
        assert np.isfinite(found.value)
        assert np.all(np.count_nonzero(found.W, axis=1) <= problem.budget)
