"""The alternating search and Local SVM for several classes."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine, make_blobs

from margotree.engines import Limits, solve
from margotree.engines.local_search.descent import Descent
from margotree.engines.local_search.initial_splits import Strategy, draw
from margotree.engines.local_search.kernels.subtree_costs import best_split, subtree_costs
from margotree.engines.local_search.node_samples import Node
from margotree.engines.local_search.search import Effort, LocalSearch, run_local_search
from margotree.engines.local_search.training_data import Terms
from margotree.engines.local_svm import LocalSVM
from margotree.engines.run_control import RunControl
from margotree.engines.trivial_trees import trivial_tree
from margotree.problem import Choices, Splits, tie
from margotree.problem.tasks.bipartitions import normal_form
from several import several_classes, with_choices

FEW = Effort(least=4, most=4)


def blobs(K, n=120, p=3, seed=0, **terms):
    X, y = make_blobs(n, p, centers=K, cluster_std=0.8, random_state=seed)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    terms = {"depth": 2, "C": [1.0, 10.0, 10.0], **terms}
    return several_classes(X, y, n_classes=K, **terms)


def accuracy(problem, splits):
    found, at = problem.evaluate(splits), np.zeros(problem.n_samples, dtype=np.int64)
    for t in range(problem.n_nodes):
        here = at == t
        at[here] = 2 * t + 1 + (problem.X[here] @ splits.w[t] + splits.b[t] >= -1e-9)
    return float((found.choices.labels.ravel()[at - problem.n_nodes] == problem.y).mean())


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_good_trees_on_small_sets(load):
    X, y = load(return_X_y=True)
    problem = several_classes((X - X.min(axis=0)) / np.ptp(X, axis=0), y, depth=2, C=[1.0, 10.0, 10.0])
    tree = run_local_search(problem, [], RunControl(), FEW)
    assert problem.evaluate(tree).feasible
    assert accuracy(problem, tree) >= 0.96


@pytest.mark.parametrize("terms", [{}, {"budget": 1}, {"budget": 1, "alpha": 2.0}])
@pytest.mark.parametrize("K", [2, 3, 5])
def test_trees_are_allowed_and_values_are_those_of_the_plain_function(K, terms):
    problem = blobs(K, **terms)
    descent = Descent(Terms.of(problem), np.zeros((3, 3)), np.ones(3), 0, np.zeros(1))
    found = descent.run(np.full(3, Strategy.BETWEEN))
    evaluation = problem.evaluate(found.splits)
    assert evaluation.feasible
    assert found.value == pytest.approx(evaluation.objective, rel=1e-9)
    assert np.array_equal(descent.choices.sides, evaluation.choices.sides)
    assert found.value < problem.evaluate(trivial_tree(problem)).objective


def test_many_classes_in_few_starts():
    problem = blobs(12, n=600, p=6, depth=4, C=[1.0] * 7 + [10.0] * 8)
    tree = run_local_search(problem, [], RunControl(), FEW)
    assert problem.evaluate(tree).feasible
    assert accuracy(problem, tree) > 0.9


def test_thirty_classes_and_a_shallow_tree():
    problem = blobs(30, n=300, p=4, depth=3, C=1.0)
    tree = run_local_search(problem, [], RunControl(), Effort(least=1, most=1))
    found = problem.evaluate(tree)
    assert found.feasible and len(set(found.choices.labels.ravel().tolist())) <= 8


def test_a_given_tree_is_never_lost():
    problem = blobs(4)
    first = run_local_search(problem, [], RunControl(), FEW)
    again = run_local_search(problem, [first], RunControl(), Effort(least=1, most=1))
    assert problem.evaluate(again).objective <= problem.evaluate(first).objective * (1 + 1e-12)


def test_the_same_seed_gives_the_same_tree():
    problem = blobs(4)
    trees = [run_local_search(problem, [], RunControl(Limits(seed=3)), FEW) for _ in range(2)]
    assert np.array_equal(trees[0].w, trees[1].w) and np.array_equal(trees[0].b, trees[1].b)


def test_a_race_on_parts_of_many_samples_ends_with_all_of_them():
    problem = blobs(5, n=7000, depth=3, C=1.0)
    tree = run_local_search(problem, [], RunControl(), Effort(least=5, most=5))
    assert problem.evaluate(tree).feasible
    assert accuracy(problem, tree) > 0.9


def test_a_tree_of_a_part_of_the_samples_is_not_forgotten():
    """One start is too few for it to go on to all samples; its tree is valued on them all the same."""
    problem = blobs(5, n=7000, depth=3, C=1.0)
    search = LocalSearch(problem, RunControl(), Effort(least=1, most=1))
    search._greedy = True  # as where there is no time for it, nor for training the best tree to many digits
    search.run([])
    search.refine_best = lambda: None
    assert accuracy(problem, search.answer()) > 0.5  # the largest class has a fifth


@pytest.mark.parametrize("terms", [{}, {"budget": 2}, {"budget": 1, "alpha": 1.0}])
def test_local_svm_parts_the_classes(terms):
    problem = blobs(4, **terms)
    solution = solve(problem, engine="local_svm")
    assert solution.certificate.engine == "local_svm"
    assert accuracy(problem, solution.splits) > (0.9 if not terms else 0.6)
    assert solution.certificate.bound == -np.inf


def test_local_svm_leaves_room_for_every_class():
    problem = blobs(8, n=400, p=5, depth=3, C=10.0)
    answer = LocalSVM().search(problem, RunControl(), None)
    assert set(problem.evaluate(answer.splits).choices.labels.ravel().tolist()) == set(range(8))


def test_bipartitions_have_two_sides_and_the_first_class_left():
    problem, rng = blobs(7), np.random.default_rng(0)
    data = problem.X, problem.y, problem.weight
    ways = [*problem.task.upper_choices(*data, 4, rng), problem.task.random_choice(*data, rng)]
    ways += [*problem.task.random_choices(*data, 3, rng).sides, normal_form(np.ones(7, np.int64))]
    for sides in ways:
        assert sides[0] == -1 and set(sides.tolist()) == {-1, 1}
    few = several_classes([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 3], depth=2)
    room = few.task.upper_choices(few.X, few.y, few.weight, 2, rng)
    assert sorted(tuple(s) for s in room) == [(-1, -1, 1, 1), (-1, 1, -1, 1), (-1, 1, 1, -1)]


def test_choices_at_random_are_those_of_a_tree():
    problem = blobs(5)
    choices = problem.task.random_choices(problem.X, problem.y, problem.weight, 3, np.random.default_rng(0))
    assert problem.task.check_choices(choices, 3, 4).labels.shape == (4, 2)


def test_nodes_of_one_class_separate_the_first_class_in_choices_at_random():
    """With other sides there, half of the soft trees of some tables are worse by 6 %."""
    problem = blobs(3)
    for seed in range(20):
        found = problem.task.random_choices(problem.X, problem.y, problem.weight, 3, np.random.default_rng(seed))
        here = [{0, 1, 2}] + [set()] * 6
        for t in range(3):
            if len(here[t]) < 2:
                assert found.sides[t].tolist() == [-1, 1, 1]
            for side, child in ((-1, 2 * t + 1), (1, 2 * t + 2)):
                here[child] = {k for k in here[t] if found.sides[t][k] == side}
        assert sum(len(classes) < 2 for classes in here[:3]) == 1  # three classes: one side has one


def test_the_best_feature_is_cart_s():
    X = np.column_stack([np.tile([0.0, 1.0], 6), np.repeat([0.0, 1.0, 2.0], 4)])
    problem = several_classes(X, np.repeat([0, 1, 2], 4), depth=2)
    terms, rows, constant = Terms.of(problem), np.arange(12), (np.zeros(2), 1.0)
    node = Node.of(terms, 0, rows, terms.initial_choices().at(0))
    w, b = draw(terms, 0, rows, node, constant, Strategy.CART, np.random.default_rng(0), np.zeros(1))
    assert np.flatnonzero(w).tolist() == [1]
    assert ((X @ w + b >= 0) == (X[:, 1] > 0.5)).all()  # the first class is on the left


def test_the_impurity_is_that_of_gini():
    rng = np.random.default_rng(0)
    q, code, weight = np.round(rng.random(40), 1), rng.integers(0, 3, 40), rng.random(40)
    one_hot = np.eye(3)[code]

    def gini(rows):
        mass = weight[rows] @ one_hot[rows]
        return mass.sum() - mass @ mass / mass.sum()

    best, n_left = best_split(q, np.argsort(q), one_hot, weight)
    values = [gini(q <= at) + gini(q > at) for at in np.unique(q)[:-1]]
    assert best == pytest.approx(min(values))
    assert n_left == np.count_nonzero(q <= np.unique(q)[np.argmin(values)])


def test_subtree_costs_are_those_of_the_plain_function():
    problem = blobs(4, n=50)
    rng = np.random.default_rng(1)
    W, B = rng.normal(size=(3, 3)), rng.normal(size=3)
    found = with_choices(problem, [(-1, 1, -1, 1)], [(0, 1), (3, 2)]).evaluate
    terms, choices = Terms.of(problem), Choices(sides=np.array([(-1, 1, -1, 1)]), labels=np.array([(0, 1), (3, 2)]))
    costs, ties = np.zeros(50), np.array([tie(b, problem.eps) for b in B])
    penalties = terms.hinge_penalties(choices)
    of_samples = problem.X.copy(), terms.code.copy(), problem.weight.copy(), *terms.corners
    subtree_costs(*of_samples, *penalties, W, B, ties, False, False, 0, costs)
    expected = found(Splits(w=W, b=B)).objective - 0.5 * float(np.sum(W**2))
    assert float(np.sum(costs)) == pytest.approx(expected, rel=1e-9)
