"""The local search and Local SVM for numeric targets."""

import itertools

import numpy as np
import pytest

from margotree.engines import RunControl, solve
from margotree.engines.local_search import initial_splits, node_samples
from margotree.engines.local_search.descent import Descent
from margotree.engines.local_search.initial_splits import FRESH_OF_NUMBERS, Strategy
from margotree.engines.local_search.node_samples import Node
from margotree.engines.local_search.search import Effort, LocalSearch, run_local_search
from margotree.engines.local_search.support_search import plain_svm
from margotree.engines.local_search.training_data import Terms
from margotree.engines.node.svm import solve_node
from margotree.engines.polish import polish
from margotree.engines.trivial_trees import trivial_tree
from margotree.problem import Problem, Regression, Splits
from margotree.problem.tasks import one_sided

FEW = Effort(least=4, most=4)


def two_planes(seed=0, n=120, p=3, **terms):
    """Targets on two planes, one on either side of a hyperplane, with weights and noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    y = np.where(X[:, 0] + X[:, 1] > 1.0, 3.0 * X[:, -1], 1.0 - 2.0 * X[:, 0]) + 0.02 * rng.normal(size=n)
    terms = {"depth": 2, "C": [0.01, 10.0], "eps": 1e-4, "weight": rng.uniform(0.5, 2.0, n), **terms}
    return Problem.make(X, y, task=Regression(0.02), **terms)


TERMS = [
    {},
    {"depth": 3, "C": [0.1, 0.01, 5.0]},
    {"depth": 3, "budget": [2, 1, 0], "C": [0.01, 0.01, 1.0]},
    {"budget": [1, 2]},
    {"budget": [1, 1], "alpha": 0.5},
    {"depth": 1, "C": 2.0},
]


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("kind", [None, *FRESH_OF_NUMBERS])
def test_the_objective_of_a_descent_never_rises_and_is_that_of_the_plain_function(terms, kind):
    problem = two_planes(**terms)
    nodes = problem.n_nodes
    strategies = np.random.default_rng(0).choice(FRESH_OF_NUMBERS, nodes) if kind is None else np.full(nodes, kind)
    descent = Descent(Terms.of(problem), np.zeros((nodes, 3)), np.ones(nodes), 0, np.zeros(1))
    values = [descent.cost(strategies)]
    for _ in range(3):
        descent.sweep()
        values.append(float(np.sum(descent.own)))
        found = problem.evaluate(Splits(w=descent.W, b=descent.B))
        assert found.feasible, found.violations
        assert values[-1] == pytest.approx(found.objective, rel=1e-8)
        assert values[-1] <= values[-2] * (1.0 + 1e-9)


@pytest.mark.parametrize("terms", TERMS)
def test_trees_are_allowed_and_better_than_the_trivial_one(terms):
    problem = two_planes(**terms)
    tree = run_local_search(problem, [], RunControl(), FEW)
    found = problem.evaluate(tree)
    assert found.feasible, found.violations
    assert found.objective < 0.9 * problem.evaluate(trivial_tree(problem)).objective
    if problem.budget is not None and problem.budget[-1] == 0:
        assert not np.any(tree.w[problem.n_upper :])


def test_two_planes_are_found():
    problem = two_planes(n=300)
    at = problem.evaluate(run_local_search(problem, [], RunControl(), FEW)).node
    truth = problem.X[:, 0] + problem.X[:, 1] > 1.0
    agreement = np.mean((at == 2) == truth)
    assert max(agreement, 1.0 - agreement) > 0.97


def best_of_all(problem):
    """The smallest objective over all divisions of the samples by one feature: depth 2, one feature."""
    order, best = np.argsort(problem.X[:, 0]), np.inf
    for n_left, left in itertools.product(range(len(order) + 1), (1, 2)):
        node = np.full(len(order), 3 - left)
        node[order[:n_left]] = left
        tree = polish(problem, node)
        best = best if tree is None else min(best, problem.evaluate(tree).objective)
    return best


@pytest.mark.parametrize("seed", range(6))
def test_tiny_problems_are_nearly_solved(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.random((9, 1)), rng.normal(size=9)
    terms = {"depth": 2, "C": [10.0 ** rng.uniform(-2, 0), 10.0 ** rng.uniform(-1, 1)], "eps": 0.01}
    problem = Problem.make(X, y, task=Regression(0.1 * (seed % 2)), **terms)
    found = problem.evaluate(run_local_search(problem, [], RunControl(), Effort(least=20, most=20)))
    assert found.feasible
    best = best_of_all(problem)
    assert best * (1.0 - 1e-9) <= found.objective <= 1.005 * best
    # With its routing the tree is the best one.
    assert found.objective == pytest.approx(problem.evaluate(polish(problem, found.node)).objective, rel=1e-4)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_last_level_nodes_are_support_vector_regressions_at_any_scale(scale):
    problem = two_planes(depth=1, C=2.0)
    y = scale * problem.y + 7.0 * scale
    scaled = Problem.make(problem.X, y, task=Regression(0.02 * scale), depth=1, C=2.0 * scale, weight=problem.weight)
    node = Node.of(Terms.of(scaled).fine(), 0, np.arange(len(y)))
    _, value = plain_svm(node, (np.zeros(3), 0.0), 1e-6, np.zeros(1))
    items = one_sided(scaled.task.items(y, last=True), scaled.C[0] * scaled.weight)
    exact = solve_node(scaled.X[items.rows], items.label, items.cost, corner=items.corner)
    assert exact.value * (1.0 - 1e-9) <= value <= exact.value * (1.0 + 1e-4)


@pytest.mark.parametrize("terms", TERMS)
def test_local_svm_is_a_greedy_tree_of_regressions(terms):
    problem = two_planes(**terms)
    solution = solve(problem, engine="local_svm")
    assert problem.evaluate(solution.splits).feasible
    assert solution.certificate.objective <= (1.0 if terms else 0.6) * problem.evaluate(trivial_tree(problem)).objective


def test_many_samples_are_searched_on_subsamples_first():
    problem = two_planes(n=7000, weight=None)
    search = LocalSearch(problem, RunControl(), Effort(least=3, most=3))
    assert search.levels.top > 0
    search.run([])
    found = problem.evaluate(search.answer())
    assert found.feasible and found.objective < 0.3 * problem.evaluate(trivial_tree(problem)).objective


def test_subtree_costs_do_not_depend_on_how_many_are_computed_at_a_time(monkeypatch):
    problem, rng = two_planes(depth=3, C=[0.1, 0.01, 5.0]), np.random.default_rng(0)
    terms, rows = Terms.of(problem), np.flatnonzero(np.arange(120) % 3)
    W, B = rng.normal(size=(7, 3)), rng.normal(size=7)
    costs = []
    for most in (1000, 7):
        monkeypatch.setattr(node_samples, "_MOST_GATHERED", most)
        node = Node.of(terms, 0, rows)
        node.compute_subtree_costs(terms, 0, rows, W, B, terms.initial_choices())
        costs.append([node.left_cost, node.right_cost])
    assert np.array_equal(*costs) and len(np.unique(costs[0])) > 80


@pytest.mark.parametrize("kind", FRESH_OF_NUMBERS)
def test_no_sample_lies_in_the_band_of_a_split_drawn_from_a_part_of_the_samples(kind, monkeypatch):
    monkeypatch.setattr(initial_splits, "_MAX_DRAWN_FROM", 20)
    problem = two_planes(n=400, eps=0.01)
    terms, rows, constant = Terms.of(problem), np.arange(400), (np.zeros(3), 1.0)
    node, splits = Node.of(terms, 0, rows), 0
    for seed in range(40):
        plane = initial_splits.draw(terms, 0, rows, node, constant, kind, np.random.default_rng(seed), np.zeros(1))
        assert node.right_of(node.heights(plane), plane) is not None
        splits += bool(np.any(plane[0]))
    assert splits >= 10


def test_constant_targets_and_equal_samples_give_a_tree():
    for y in (np.full(6, 4.0), np.arange(6.0)):
        problem = Problem.make(np.ones((6, 2)), y, task=Regression(0.0), depth=2, C=1.0)
        tree = run_local_search(problem, [], RunControl(), FEW)
        found = problem.evaluate(tree)
        assert found.feasible
        assert found.objective == pytest.approx(np.sum(np.abs(y - np.median(y))), abs=1e-6)


def test_leaf_budgets_are_for_numeric_targets():
    with pytest.raises(ValueError, match="at least 1 above the last level"):
        two_planes(budget=0)
    with pytest.raises(ValueError, match=">= 1"):
        Problem.make([[0.0], [1.0]], [1, -1], depth=2, budget=[1, 0])
    assert Strategy.TWO_MODELS in FRESH_OF_NUMBERS
