"""The local search: kernels against naive versions, feasible and reproducible trees, never worse than a start."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from entries import least_on_line, sorted_times
from margotree.engines import Limits, RunControl, get_engine, local_search_engine, run_control, solve
from margotree.engines.local_search import search as search_module
from margotree.engines.local_search.descent import Descent
from margotree.engines.local_search.initial_splits import FRESH, Strategy
from margotree.engines.local_search.kernels.reduced_problem import best_threshold, objective, search_lines
from margotree.engines.local_search.kernels.subtree_costs import best_split, subtree_costs
from margotree.engines.local_search.kernels.svm import svm
from margotree.engines.local_search.node_samples import Node
from margotree.engines.local_search.search import Effort, Job, LocalSearch, run_local_search
from margotree.engines.local_search.starts import unchanged_start
from margotree.engines.local_search.subsampling import SubsampleLevels
from margotree.engines.local_search.support_search import ROUGH, best_svm, plain_svm, svm_on
from margotree.engines.local_search.training_data import Terms, TrainedTree
from margotree.engines.local_search.upper_nodes import Proposal, _drop_features, _refine_direction
from margotree.engines.local_search_engine import Alternating, good_tree
from margotree.engines.node.best_subset.groups import FeatureGroups
from margotree.engines.node.svm import solve_large, solve_node
from margotree.engines.presolve import merge_duplicates
from margotree.engines.trivial_trees import trivial_tree
from margotree.problem import Problem, Splits, evaluate
from margotree.solution import Stopped
from patience import three_tries
from several import several_classes

FEW = Effort(least=6, most=6)
LENGTHS = np.array([1.0, 0.3, 0.05])


def some_problem(seed: int, *, n: int = 40, p: int = 3, depth: int = 2, eps: float = 1e-3, model: str = "margot"):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, p)), rng.integers(1, 4))  # ties among projections
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[: n // 2] = np.where(X[: n // 2, 0] > 0.5, 1.0, -1.0)
    terms = {"margot": {}, "hfs": {"budget": 2}, "sfs": {"budget": 1, "alpha": 0.3}}[model]
    C = 10.0 ** rng.integers(-2, 3, depth)
    return Problem.make(X, y, depth=depth, C=C, weight=rng.integers(0, 3, n), eps=eps, **terms)


def some_node(seed: int, *, n: int = 25, eps: float = 0.02, by_side: bool = False) -> Node:
    rng = np.random.default_rng(seed)
    label = rng.random(n) < 0.5
    cost = rng.random(n) * (rng.random(n) < 0.9)
    return Node(
        Z=np.round(rng.random((n, 2)), 2),
        plus=np.where(label | by_side, cost, 0.0),
        minus=np.where(label & ~by_side, 0.0, cost),
        left_cost=3 * rng.random(n),
        right_cost=3 * rng.random(n),
        eps=eps,
        groups=FeatureGroups(2),
        by_side=by_side,
    )


def pieces(node: Node, h: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Where something happens on a line of heights, and points between."""
    moving = np.abs(g) > 1e-12
    ends = [(goal - h[moving]) / g[moving] for goal in (1.0, -1.0, 0.0, -node.eps)]
    ends = np.unique(np.concatenate(ends))
    return np.concatenate([ends, 0.5 * (ends[1:] + ends[:-1])])


def exactly(node: Node, h: np.ndarray) -> float:
    """Hinge losses and subtree costs in plain NumPy; the ends of the band are outside of it, up to rounding."""
    if np.any((h < -1e-9) & (h > -node.eps + 1e-9)):
        return math.inf
    on_right, on_left = node.plus * np.maximum(0, 1 - h), node.minus * np.maximum(0, 1 + h)
    hinges = np.sum(np.where(h >= -1e-9, on_right, on_left) if node.by_side else on_right + on_left)
    return float(hinges + np.sum(np.where(h >= -1e-9, node.right_cost, node.left_cost)))


# -- kernels ------------------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), by_side=st.booleans())
def test_the_best_threshold_is_that_of_trying_all(seed, by_side):
    node = some_node(seed, by_side=by_side)
    d = np.random.default_rng(seed).standard_normal(2)
    q = node.Z @ d
    s, b, value = best_threshold(node.reduced, d, LENGTHS, node.eps, math.inf)
    naive = math.inf
    for length in LENGTHS:
        for offset in pieces(node, length * q, np.ones(len(q))):
            naive = min(naive, exactly(node, length * q + offset) + 0.5 * length**2 * (d @ d))
    # Beyond the outermost samples the sweep may go further than the naive twin's last event, never the other way.
    assert value <= naive + 1e-9
    assert exactly(node, s * q + b) + 0.5 * s**2 * (d @ d) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_thresholds_near_zero_are_found_in_finite_time(seed):
    """Corners at offsets near 0, where floating-point numbers are far denser than the sums that they are part of."""
    rng = np.random.default_rng(seed)
    q = rng.choice([-1.0, 1.0], 12) * (1.0 - 3e-11 * rng.random(12))
    Z = np.column_stack([np.append(q, 10 * rng.normal(size=4)), np.zeros(16)])
    node = replace(some_node(seed, n=16, eps=1e-5, by_side=True), Z=Z)
    _, b, value = best_threshold(node.reduced, np.array([1.0, 0.0]), np.ones(1), node.eps, math.inf)
    assert math.isfinite(b) and value < math.inf


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), by_side=st.booleans())
def test_the_best_point_of_a_line_is_that_of_trying_all_its_pieces(seed, by_side):
    node = some_node(seed, by_side=by_side)
    rng = np.random.default_rng(seed)
    w, d = rng.standard_normal(2), rng.standard_normal(2) * (rng.random(2) < 0.7)
    b, by = rng.standard_normal(), rng.standard_normal()
    h, g = node.Z @ w + b, node.Z @ d + by
    far, value = least_on_line(h, g, node.reduced, w @ w, w @ d, d @ d, node.eps)
    naive = min(exactly(node, h + t * g) + 0.5 * (w + t * d) @ (w + t * d) for t in pieces(node, h, g))
    assert value <= naive + 1e-7
    if math.isfinite(value):
        assert exactly(node, h + far * g) + 0.5 * (w + far * d) @ (w + far * d) == pytest.approx(value, rel=1e-7)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), alpha=st.sampled_from([0.0, 0.05, math.inf]), by_side=st.booleans())
def test_line_searches_report_the_objective_of_their_hyperplane(seed, alpha, by_side):
    node, rng = some_node(seed, by_side=by_side), np.random.default_rng(seed)
    w, b = rng.standard_normal(2) * [1.0, rng.random() < 0.5], rng.standard_normal()

    def objective(w, b):
        over = max(0, np.count_nonzero(w) - 1)
        return exactly(node, node.Z @ w + b) + 0.5 * w @ w + (alpha * over if over else 0.0)

    first = objective(w, b)
    assume(math.isfinite(first))
    aims, features, chance = rng.standard_normal((3, 3)), rng.permutation(2), rng.random((9, 4))
    h, at = node.Z @ w + b, np.array([b, first])
    search_lines(node.reduced, w, h, at, aims, features, chance, node.eps, 1, alpha, np.zeros(1))
    assert at[1] <= first
    assert at[1] == pytest.approx(objective(w, at[0]), rel=1e-9)
    assert h == pytest.approx(node.Z @ w + at[0], abs=1e-12)
    if alpha == 0.0:  # after some repetitions neither the offset nor a single feature gives an improvement
        again = at.copy()
        for _ in range(30):
            search_lines(node.reduced, w, h, again, aims[:0], features, chance[:0], node.eps, 1, alpha, np.zeros(1))
        for d, by in ((np.zeros(2), 1.0), (np.array([1.0, 0.0]), 0.0), (np.array([0.0, 1.0]), 0.0)):
            _, least = least_on_line(h, node.Z @ d + by, node.reduced, w @ w, w @ d, d @ d, node.eps)
            assert least >= again[1] - 1e-4 * abs(again[1])


@pytest.mark.parametrize("seed", range(8))
def test_an_svm_is_found_from_poor_guesses(seed):
    """Where no sample lies on the smoothed part, as for a guess with small weights, the first step must be short."""
    rng = np.random.default_rng(seed)
    Z = (rng.random((300, 25)) < 0.3).astype(float)
    right = Z @ rng.standard_normal(25) + 0.3 * rng.standard_normal(300) > 0
    none = np.zeros(300)
    penalty = np.where(right, 500.0, 0.0)
    minus, groups = 500.0 - penalty, FeatureGroups(25)
    node = Node(Z=Z, plus=penalty, minus=minus, left_cost=none, right_cost=none, eps=1e-6, groups=groups)
    guess = np.zeros(25)
    guess[seed] = 0.1
    from_nothing = plain_svm(node, (np.zeros(25), 0.0), ROUGH, np.zeros(1))[1]
    for wide in (0.3, 0.1, 0.01):
        assert plain_svm(node, (guess, 0.05), ROUGH, np.zeros(1), wide)[1] <= 1.01 * from_nothing


@pytest.mark.parametrize("p", [1, 5, 90, 500])
@pytest.mark.parametrize("C", [0.01, 1.0, 1e4])
def test_the_linear_svm_agrees_with_the_exact_one(p, C):
    rng = np.random.default_rng(p)
    X, y, cost = rng.random((80, p)), np.where(rng.random(80) < 0.4, 1.0, -1.0), C * rng.random(80)
    node = replace(
        some_node(0),
        Z=X,
        plus=np.where(y > 0, cost, 0.0),
        minus=np.where(y < 0, cost, 0.0),
        left_cost=0 * y,
        right_cost=0 * y,
    )
    plane, value = plain_svm(node, (np.zeros(p), 0.0), 1e-7, np.zeros(1))
    exact = solve_node(X, y, cost)
    assert value == pytest.approx(0.5 * plane[0] @ plane[0] + node.hinges(node.heights(plane)), rel=1e-9)
    assert exact.value * (1 - 1e-6) <= value <= exact.value * (1 + 1e-3) + 1e-9


@pytest.mark.parametrize("C", [1.0, 1e3, 1e5])
def test_a_rough_svm_without_a_guess_is_near_the_exact_one_for_any_c(C):
    """With many samples or a large C, a first step of the wrong length would lead nowhere."""
    rng = np.random.default_rng(0)
    X = np.hstack([np.eye(8)[rng.integers(8, size=500)] for _ in range(6)])
    y = np.where(X @ rng.standard_normal(48) + rng.standard_normal(500) > 1, 1.0, -1.0)
    cost = np.full(500, C)
    node = replace(
        some_node(0),
        Z=X,
        plus=np.where(y > 0, cost, 0.0),
        minus=np.where(y < 0, cost, 0.0),
        left_cost=0 * y,
        right_cost=0 * y,
    )
    _, value = plain_svm(node, (np.zeros(48), 0.0), ROUGH, np.zeros(1))
    assert value <= 1.01 * solve_node(X, y, cost).value


@pytest.mark.parametrize("rare", [False, True])
def test_with_many_samples_a_subset_gives_the_first_guess(rare):
    """With a rare label the subset may have one label only; there is no guess then, and the result is as good."""
    rng = np.random.default_rng(0)
    X = rng.random((9_000, 5))
    y = np.where(np.arange(9_000) % 3_000 == 1, 1.0, -1.0) if rare else np.where(X[:, 0] + X[:, 1] > 1, 1.0, -1.0)
    cost = np.full(9_000, 100.0)
    node = replace(
        some_node(0),
        Z=X,
        plus=np.where(y > 0, cost, 0.0),
        minus=np.where(y < 0, cost, 0.0),
        left_cost=0 * y,
        right_cost=0 * y,
    )
    _, value = plain_svm(node, (np.zeros(5), 0.0), ROUGH, np.zeros(1))
    assert value <= 1.01 * solve_large(X, y, cost).value


def test_supports_meet_budgets_and_values_include_penalties():
    for model in ("hfs", "sfs"):
        problem = some_problem(3, p=6, model=model)
        terms, rows = Terms.of(problem), np.arange(problem.n_samples)
        (w, b), value = best_svm(terms, 1, Node.of(terms, 1, rows), (np.zeros(6), 0.0), np.zeros(1))
        node = Node.of(terms, 1, rows)
        assert value == pytest.approx(
            0.5 * w @ w + node.hinges(node.heights((w, b))) + terms.feature_penalty(1, w), rel=1e-6
        )
        assert math.isfinite(terms.feature_penalty(1, w))


@pytest.mark.parametrize("seed", range(3))
def test_an_upper_split_gets_more_features_than_its_budget_if_they_lower_the_objective(seed):
    X = np.random.default_rng(seed).normal(size=(150, 40))
    y = np.where(np.sum(X[:, :12], axis=1) > 0, 1.0, -1.0)
    terms, flag = Terms.of(Problem.make(X, y, depth=2, C=1.0, budget=1, alpha=0.5)), np.zeros(1)
    # One split on the twelve relevant features, children without splits.
    _, value = svm_on(Node.of(terms, 0, np.arange(150)), np.arange(12), (np.zeros(40), 0.0), 1e-3, flag)
    strategies, W, B = np.full(3, Strategy.SVM), np.zeros((3, 40)), np.ones(3)
    assert min(Descent(terms, W, B, s, flag).run(strategies).value for s in range(6)) < value + terms.penalty_of(0, 12)


def test_any_number_of_features_is_tried_with_feature_penalties():
    X, y, rng = np.eye(40), np.where(np.arange(40) % 2, 1.0, -1.0), np.random.default_rng(0)
    soft, hard = (Terms.of(Problem.make(X, y, depth=2, budget=3, **more)) for more in ({"alpha": 0.5}, {}))
    tried = {soft.random_support_size(0, rng) for _ in range(300)}
    assert tried == {3, 6, 12, 24, 40}
    assert {hard.random_support_size(0, rng) for _ in range(20)} == {3}


def test_features_that_gain_less_than_their_penalty_are_dropped():
    X = np.random.default_rng(0).normal(size=(80, 6))
    y, flag = np.where(X[:, 0] > 0, 1.0, -1.0), np.zeros(1)
    for alpha, used in ((5.0, [0]), (0.0, [0, 2, 4])):
        terms = Terms.of(Problem.make(X, y, depth=2, C=1.0, budget=1, alpha=alpha))
        node = Node.of(terms, 0, np.arange(80))
        plane, _ = svm_on(node, np.array([0, 2, 4]), (np.zeros(6), 0.0), 1e-3, flag)
        best = Proposal(terms, 0, node, plane)
        before = best.value
        _drop_features(best, flag)
        assert np.flatnonzero(best.plane[0]).tolist() == used and best.value <= before


def test_misplaced_samples_are_left_out_while_this_improves_the_objective():
    """A line separates most target sides; a few samples far on its wrong side distort the direction of every SVM."""
    better = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 4))
        target = np.where(X[:, 0] > 0, 1.0, -1.0)
        misplaced = np.argsort(-np.abs(X[:, 0] + X[:, 1]))[:25]
        target[misplaced] = -target[misplaced]
        terms = Terms.of(Problem.make(X, target, depth=2, C=[1e-3, 10.0], eps=1e-6))
        node = Node.of(terms, 0, np.arange(200))
        node = replace(node, left_cost=np.where(target > 0, 20.0, 0.0), right_cost=np.where(target > 0, 0.0, 20.0))
        svm_of_all, _ = plain_svm(
            replace(node, plus=node.left_cost, minus=node.right_cost), (np.zeros(4), 0.0), ROUGH, np.zeros(1)
        )
        best = Proposal(terms, 0, node, svm_of_all)
        _refine_direction(best, node, 1.0, rng, np.zeros(1))
        assert best.value <= best.start
        assert best.value == pytest.approx(node.evaluate(best.plane)[1])
        better += best.gain > 0.05 * best.start
    assert better >= 5


def test_kernels_are_compiled_once():
    for model in ("margot", "hfs", "sfs"):
        Alternating(FEW).solve(some_problem(1, depth=3, p=4, model=model), RunControl())
    for kernel in (svm, objective, best_threshold, search_lines, subtree_costs, best_split):
        assert len(kernel.signatures) == 1, kernel


# -- descents -----------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10_000),
    depth=st.integers(1, 4),
    model=st.sampled_from(["margot", "hfs", "sfs"]),
    eps=st.sampled_from([1e-6, 1e-3, 0.1]),
)
def test_every_descent_ends_in_a_feasible_tree_with_its_objective(seed, depth, model, eps):
    problem = some_problem(seed, depth=depth, model=model, eps=eps)
    terms = Terms.of(problem)
    strategies = np.random.default_rng(seed).choice(FRESH, problem.n_nodes)
    zero = np.zeros((problem.n_nodes, problem.n_features))
    found = Descent(terms, zero, np.ones(problem.n_nodes), seed, np.zeros(1)).run(strategies)
    seen = evaluate(problem, found.splits)
    assert seen.feasible, seen.violations
    assert found.value == pytest.approx(seen.objective, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_proposal_that_makes_the_tree_worse_is_undone(classes, monkeypatch):
    rng = np.random.default_rng(classes)
    X, y = rng.random((90, 3)), np.arange(90) % classes
    X[:, 0] += y
    if classes == 2:
        problem = Problem.make(X, 2.0 * y - 1.0, depth=2, C=10.0)
    else:
        problem = several_classes(X, y, depth=2, C=10.0)
    tree = solve(problem, engine="alternating", limits=Limits(time=0.5)).splits
    descent = Descent(Terms.of(problem), tree.w, tree.b, 0, np.zeros(1))
    value = descent.cost()
    own, rows = descent.own.copy(), [list(here) for here in descent.rows]
    monkeypatch.setattr(descent, "proposed", lambda t, before: (np.zeros(3), 1.0))  # all samples to the right
    assert np.any(tree.w[0]) and not descent.visit_upper(0)
    assert np.array_equal(descent.W, tree.w) and np.array_equal(descent.B, tree.b)
    np.testing.assert_allclose(descent.own, own)
    assert [list(here) for here in descent.rows] == rows
    assert descent.cost() == pytest.approx(value)


def test_where_directions_give_no_improvement_the_node_remembers_it():
    problem = some_problem(4, n=80)
    descent = Descent(Terms.of(problem), np.zeros((3, 3)), np.ones(3), 0, np.zeros(1))
    descent.run(np.full(3, Strategy.SVM))
    for failed_before in (False, True):
        descent.directions_failed[0] = failed_before
        descent.proposed(0, math.inf)
        assert descent.directions_failed[0]  # the tree is as good as directions can make it
    descent.W[0], descent.B[0] = 0.0, 1.0
    descent.route(0)
    descent.proposed(0, math.inf)
    assert not descent.directions_failed[0]


def test_no_visit_makes_a_tree_worse():
    problem = some_problem(5, n=80, depth=3, eps=1e-2)
    terms = Terms.of(problem)
    descent = Descent(terms, np.zeros((7, 3)), np.ones(7), 5, np.zeros(1))
    descent.route(0, np.full(7, Strategy.CART))
    values = [float(np.sum(descent.own))]
    for _ in range(8):
        descent.stale[:] = True
        descent.sweep()
        tree = Splits(w=descent.W, b=descent.B)
        values.append(evaluate(problem, tree).objective)
        assert evaluate(problem, tree).feasible
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(values))
    assert values[-1] < values[0]


def test_a_raised_flag_leaves_a_feasible_tree():
    problem = some_problem(7, depth=3)
    found = Descent(Terms.of(problem), np.zeros((7, 3)), np.ones(7), 0, np.ones(1)).run(np.full(7, Strategy.SVM))
    assert evaluate(problem, found.splits).feasible


# -- the engine ---------------------------------------------------------------------------------------------------


@settings(max_examples=12)
@given(seed=st.integers(0, 10_000), depth=st.integers(1, 4), model=st.sampled_from(["margot", "hfs", "sfs"]))
def test_the_result_is_no_worse_than_any_start(seed, depth, model):
    problem = some_problem(seed, depth=depth, model=model)
    greedy = get_engine("local_svm").search(problem, RunControl(), None).splits
    solution = Alternating(FEW).solve(problem, RunControl())
    trivial = evaluate(problem, trivial_tree(problem))
    assert trivial.feasible
    for value in (trivial.objective, evaluate(problem, greedy).objective):
        assert solution.certificate.objective <= value * (1 + 1e-9) + 1e-9


def test_a_seed_repeats():
    problem = some_problem(11, n=60, depth=3)
    values = {
        Alternating(FEW, neighbours=False).solve(problem, RunControl(Limits(seed=seed))).splits.w.tobytes()
        for seed in (4, 4)
    }
    assert len(values) == 1


def test_it_beats_the_majority_on_a_board_of_squares():
    rng = np.random.default_rng(0)
    X = rng.random((600, 2))
    y = np.where((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5), 1.0, -1.0)
    problem = Problem.make(X, y, depth=2, C=[0.1, 10.0], eps=1e-6)
    solution = solve(problem, engine="alternating", limits=Limits(nodes=30))
    assert solution.certificate.objective < 0.2 * evaluate(problem, trivial_tree(problem)).objective
    assert solution.certificate.bound == -math.inf and solution.certificate.engine == "alternating"


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(0, 400))
def test_events_are_sorted_for_any_distribution(seed, n):
    rng = np.random.default_rng(seed)
    times = rng.normal(size=n) / rng.normal(size=n)
    shape = rng.integers(5)
    if shape == 1:
        times = np.round(times)  # many are equal
    elif shape == 2:
        times = 1e6 + 1e-6 * times  # all in a few buckets
    elif shape == 3:
        times = np.sign(times) * 10.0 ** (100 * times.clip(-3, 3))  # of all sizes
    elif shape == 4 and n:
        times[0] = np.inf
    order = sorted_times(times)
    assert np.array_equal(np.sort(order), np.arange(n))
    assert np.array_equal(times[order], np.sort(times))


def test_a_descent_that_improves_too_slowly_is_abandoned():
    abandoned = 0
    for seed in range(6):
        problem = some_problem(seed, n=200, depth=3)
        start = Splits(w=np.zeros((7, 3)), b=np.ones(7))
        strategies = np.full(7, Strategy.SVM)
        descent = partial(Descent, Terms.of(problem), start.w, start.b, 0, np.zeros(1))
        whole, far = (descent().run(strategies, best=b) for b in (math.inf, 0.0))
        near = descent().run(strategies, best=whole.value)
        assert near.value >= whole.value * (1 - 1e-12)
        assert evaluate(problem, far.splits).feasible and far.value >= whole.value
        abandoned += far.value > whole.value
    assert abandoned >= 2


def test_many_samples_are_searched_by_successive_halving():
    rng = np.random.default_rng(1)
    X = rng.random((30_000, 3))
    y = np.where((X[:, 0] > 0.3) ^ (X[:, 1] > 0.6), 1.0, -1.0)
    problem = Problem.make(X, y, depth=2, C=[0.1, 10.0], eps=1e-7, weight=1 + (X[:, 2] > 0.5))
    levels = SubsampleLevels(Terms.of(problem), 0)
    assert levels.sizes == [3000, 12000, 30000]
    for sign in (1.0, -1.0):
        part = levels.at(0)
        assert np.sum(part.weight[part.y == sign]) == pytest.approx(np.sum(problem.weight[y == sign]))
    tree = run_local_search(problem, [], RunControl(Limits(time=60)), Effort(least=8, most=8))
    seen = evaluate(problem, tree)
    assert seen.feasible and seen.objective < 0.3 * evaluate(problem, trivial_tree(problem)).objective


def test_the_greedy_tree_of_all_samples_is_among_the_first():
    rng = np.random.default_rng(1)
    X = rng.random((8_000, 3))
    y = np.where(X @ [1.0, -2.0, 0.5] + 0.3 * rng.standard_normal(8_000) > 0, 1.0, -1.0)
    problem = Problem.make(X, y, depth=2, C=1.0, eps=1e-7)
    search = LocalSearch(problem, RunControl(), Effort(least=1, most=1))
    search.run([])
    assert search.best[0].value <= 1.001 * solve(problem, engine="local_svm").certificate.objective
    assert LocalSearch(problem, RunControl()).next_job().level == 1
    # Where there is time for the first level only, the first start there is the greedy tree.
    assert LocalSearch(problem, RunControl(Limits(time=1e-3))).next_job().level == 0


def found(value):
    return TrainedTree(W=np.zeros((3, 2)), B=np.ones(3), value=value)


def trained(search, *values):
    """Results with these values on the first level."""
    for value in values:
        search.record(Job(start=unchanged_start(search.constant()), level=0, seed=0), found(value))


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is turned."""
    now = SimpleNamespace(at=0.0)
    monkeypatch.setattr(run_control, "time", SimpleNamespace(perf_counter=lambda: now.at))
    return now


def test_the_greedy_tree_of_all_samples_replaces_no_promoted_tree(clock):
    problem = Problem.make(np.random.default_rng(0).random((8_000, 2)), np.resize([1.0, -1.0], 8_000), depth=2, C=1.0)
    search = LocalSearch(problem, RunControl(Limits(time=100.0)))
    job = search.next_job()
    assert job.greedy and job.level == search.levels.top == 1
    search.record(job, found(5.0))
    assert search.best[0].value == 5.0
    trained(search, 6.0)
    assert search.next_job().level == 0
    clock.at = 80.0  # it is late, and no tree has been promoted to all samples
    assert search.next_job().level == 1


def test_one_descent_at_a_time_uses_all_samples_of_large_data(monkeypatch):
    problem = Problem.make(np.random.default_rng(0).random((8_000, 2)), np.resize([1.0, -1.0], 8_000), depth=2, C=1.0)
    for most, level in ((16_000, 1), (15_999, 0)):
        monkeypatch.setattr(search_module, "_MAX_SHARED", most)
        search = LocalSearch(problem, RunControl())
        search.best_pool.trees = [found(300.0)]
        first = search.next_job()  # the greedy tree, on all samples
        trained(search, *range(100, 108))
        second = search.next_job()
        assert first.level == 1 and second.level == level
        search.record(second, found(99.0))
        search.record(first, found(200.0))
        trained(search, *[98.0] * 8)
        assert search.next_job().level == 1  # no other descent uses them any more


def test_given_samples_are_not_copied_for_subtree_costs():
    problem = some_problem(2)
    several = several_classes(problem.X, np.resize([0, 1, 2], problem.n_samples), depth=2, C=10.0)
    for terms in (Terms.of(problem), Terms.of(several)):
        descent = Descent(terms, np.zeros((3, terms.X.shape[1])), np.ones(3), 0, np.zeros(1))
        descent.cost()
        descent.rows[0] = np.arange(1, terms.n_samples)  # of all of them there would be no copy anyway
        node = descent.with_subtree_costs(0)
        again = descent.with_subtree_costs(0, node)
        assert (
            again.Z is node.Z
            and np.array_equal(again.left_cost, node.left_cost)
            and np.array_equal(again.right_cost, node.right_cost)
        )


def test_the_finisher_gets_no_more_than_half_of_the_elapsed_time():
    seen = []

    def finisher(tree, control):
        seen.append((control.remaining, time.perf_counter() - began))
        return tree

    began = time.perf_counter()
    run_local_search(some_problem(3, n=60), [], RunControl(Limits(time=600.0)), Effort(least=30, most=30), finisher)
    assert len(seen) >= 5 and all(given <= max(0.5, 0.5 * past) + 1e-6 for given, past in seen)
    # Reproducible work does not depend on the clock.
    seen.clear()
    run_local_search(
        some_problem(3, n=60), [], RunControl(Limits(time=600.0, nodes=100)), Effort(least=9, most=9), finisher
    )
    assert seen and all(given > 100.0 for given, _ in seen)


def test_the_best_tree_and_new_ones_alternate_at_the_finisher():
    search = LocalSearch(some_problem(1, depth=2), RunControl(), finisher=lambda tree, control: tree)
    search.best_pool.results = [found(value) for value in (100.0, 100.01, 150.0, *range(200, 209))]
    search.best_pool.trees = [found(100.0)]
    sent = []
    for result in (99.0, 99.0, 149.0):
        job = search.next_job()
        sent.append(next(tree.value for tree in [*search.best_pool.results, *search.best] if tree.W is job.start.W))
        search.record(job, found(result))
        search.best_pool.results_at_visit = 0  # as if as many trees had come in between
    assert sent == [100.0, 99.0, 150.0]  # 100.01 is as good as the first


def test_a_finisher_without_improvement_is_called_less_often():
    search = LocalSearch(
        some_problem(1, depth=2), RunControl(), Effort(patience=1000), finisher=lambda tree, control: tree
    )
    search.best_pool.trees = [found(100.0)]
    asked = []
    for k in range(120):
        search.best_pool.results.append(found(200.0 + k))
        if (job := search.next_job()).finish:
            asked.append(k)
            search.record(job, found(90.0 if len(asked) == 8 else 150.0))
    between = np.diff(asked)
    before, after = between[:7], between[7:]
    for part in (before, after):
        assert np.all(np.diff(part) >= 0) and part[-1] > part[0]
    assert after[0] < before[-1]  # an improvement makes visits frequent again


def test_equal_samples_are_merged(monkeypatch):
    X = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 50, axis=0)
    y = np.repeat([-1.0, 1.0, 1.0, -1.0], 50)
    y[:5] = 1.0
    problem = Problem.make(X, y, depth=2, C=[0.01, 1.0], eps=1e-6)
    seen = []

    def searched(part, trees, control, effort, neighbours):
        seen.append(part)
        assert effort.patience > 2 * Effort().patience  # as the only engine, it does not end early
        return good_tree(part, trees, control, effort, neighbours)

    get_engine("alternating").prepare(problem)
    monkeypatch.setattr(local_search_engine, "good_tree", searched)
    tree = solve(problem, engine="alternating").splits
    assert [part.n_samples for part in seen] == [5] and np.sum(seen[0].weight) == 200.0
    assert evaluate(problem, tree).objective == pytest.approx(evaluate(seen[0], tree).objective)
    # Equal samples of large data are not merged.
    assert merge_duplicates(problem, X.size - 1)[0] is problem


@pytest.mark.parametrize(("growth", "last"), [(0.0, 16), (0.5, 21), (1.0, 26)])
def test_patience_grows_with_the_start_of_the_best_tree(growth, last):
    effort = Effort(least=1, most=200, patience=6, growth=growth)
    search = LocalSearch(some_problem(1, depth=2), RunControl(), effort)
    while (job := search.next_job()) is not None:
        search.record(job, found(100.0 - search.starts if search.starts <= 10 else 150.0))
    assert search.starts == last


@pytest.mark.parametrize("idle", [False, True])
def test_visits_to_the_finisher_that_are_cut_off_get_a_share_of_the_time(clock, idle):
    """Descents of a second, and visits that take all the time that they are given, or a moment."""
    spent, visits = {}, {}
    for slow in (True, False):

        def finisher(tree, control, slow=slow):
            clock.at += control.remaining if slow else 1e-3
            return tree

        clock.at = 0.0
        control = RunControl(Limits(time=1000.0))
        search = LocalSearch(some_problem(1, depth=2), control, Effort(patience=1000), finisher)
        search.best_pool.keep(replace(search.constant(), value=100.0))
        spent[slow] = visits[slow] = 0
        for k in range(300):
            job, began = search.next_job(), clock.at
            if job.finish:
                result = search.finish(job)
                spent[slow] += clock.at - began
                visits[slow] += 1
                search.record(job, result)
            else:
                clock.at += 1.0
                value = 200.0 + k if idle else 100.0 * 0.99**k
                search.record(job, replace(search.constant(), value=value))
        spent[slow] /= clock.at
    assert 0.0 < spent[True] < (0.75 if idle else 0.45)
    assert spent[False] < 0.01 and visits[False] > visits[True]


@pytest.mark.parametrize("seconds", [math.inf, 1e-9])
def test_trees_of_a_subset_of_the_samples_are_evaluated_on_all(seconds, monkeypatch):
    """Two starts are too few for a promotion to all samples; the better one is evaluated on them in the end."""
    rng = np.random.default_rng(1)
    X = rng.random((8_000, 2))
    y = np.where((X[:, 0] > 0.3) ^ (X[:, 1] > 0.6), 1.0, -1.0)
    problem = Problem.make(X, y, depth=2, C=[0.1, 10.0], eps=1e-7)
    search = LocalSearch(problem, RunControl(), Effort(least=2, most=2))
    assert search.next_job().greedy  # it is not trained, as where there is no time for it
    search.run([])
    vote = evaluate(problem, trivial_tree(problem)).objective
    assert search.best[0].value == vote
    monkeypatch.setattr("margotree.engines.local_search.search._MAX_SETTLED", 0 if seconds < 1 else 10**9)
    search.value_on_all(1)
    assert search.best[0].value < 0.9 * vote
    seen = evaluate(problem, search.best[0].splits)
    assert seen.feasible and seen.objective == pytest.approx(search.best[0].value)


def test_weights_of_zero_are_as_good_as_absent():
    problem = some_problem(13, n=60)
    extra = Problem.make(
        np.vstack([problem.X, problem.X + 0.5]),
        np.append(problem.y, -problem.y),
        depth=2,
        C=problem.C,
        weight=np.append(problem.weight, np.zeros(60)),
    )
    solution = Alternating(FEW).solve(extra, RunControl())
    assert evaluate(extra, solution.splits).feasible


@three_tries
def test_an_interrupted_search_returns_its_best_tree():
    problem = some_problem(17, n=200, depth=3)
    control = RunControl(Limits(time=60))
    control.listener = lambda event: control.interrupt()
    began = time.perf_counter()
    solution = Alternating().solve(problem, control)
    assert solution.certificate.stopped is Stopped.INTERRUPTED
    assert time.perf_counter() - began < 20


# -- bad input ----------------------------------------------------------------------------------------------------


def bad_problems():
    rng = np.random.default_rng(0)
    coin = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    yield "constant columns", Problem.make(np.ones((50, 3)), coin[:50], depth=3)
    yield "a constant column", Problem.make(np.c_[rng.random(50), np.ones(50)], coin[:50], depth=2, budget=1)
    yield "one row per class", Problem.make([[0.0, 1.0], [1.0, 1.0]], [1, -1], depth=3)
    yield "a single row", Problem.make([[0.0, 1.0]], [1], depth=2)
    yield "one class", Problem.make(rng.random((20, 2)), np.ones(20), depth=2)
    yield "no weight at all", Problem.make(rng.random((20, 2)), coin[:20], depth=2, weight=np.zeros(20))
    yield "a coin", Problem.make(rng.random((300, 4)), coin, depth=3)
    yield "more features than rows", Problem.make(rng.random((100, 5000)), coin[:100], depth=2, C=10.0)
    yield "equal rows", Problem.make(np.tile([0.3, 0.7], (20_000, 1)), np.resize([1.0, -1.0], 20_000), depth=2)


@pytest.mark.parametrize(("name", "problem"), list(bad_problems()), ids=lambda value: str(value)[:24])
@three_tries
def test_unusual_data_get_a_feasible_tree_in_time(name, problem):
    solution = solve(problem, engine="alternating", limits=Limits(time=3.0, n_jobs=2))
    assert evaluate(problem, solution.splits).feasible
    assert solution.certificate.objective <= evaluate(problem, trivial_tree(problem)).objective * (1 + 1e-9) + 1e-9
    assert solution.certificate.search_seconds < 30  # of a limit of 3, on any machine: no hang


@pytest.mark.parametrize("budget", [1, 2])
def test_features_ranked_on_a_subset_are_those_of_all_samples(budget):
    """Hard budgets with many samples: a thousand of them choose the features, but the SVM is trained on all."""
    rng = np.random.default_rng(budget)
    X = rng.random((5000, 20))
    y = np.where(X[:, 3] + 0.8 * (budget - 1) * X[:, 11] + 0.05 * rng.standard_normal(5000) > 0.5 * budget, 1.0, -1.0)
    problem = Problem.make(X, y, depth=1, C=1.0, budget=budget)
    terms = Terms.of(problem).fine()
    node = Node.of(terms, 0, np.arange(5000))
    (w, b), value = best_svm(terms, 0, node, (np.zeros(20), 0.0), np.zeros(1))
    assert np.flatnonzero(w).tolist() == [3, 11][:budget]
    assert value == pytest.approx(evaluate(problem, Splits(w=w[None], b=np.array([b]))).objective, rel=1e-5)
    cols = np.flatnonzero(w)
    alone = solve_node(X[:, cols], y, np.ones(5000))
    assert value == pytest.approx(alone.value, rel=1e-5)
