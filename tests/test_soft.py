"""Soft trees: their cost and gradient against plain NumPy, what they become when sharp, and what annealing keeps to."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from entries import soft_cost
from margotree.engines.alternating.anneal import SoftTree
from margotree.engines.alternating.kernels.soft import Soft, minimise
from margotree.engines.alternating.search import AlternatingSearch, Effort
from margotree.engines.alternating.starts import Record, Start, Way
from margotree.engines.alternating.terms import Terms
from margotree.engines.multiclass.anneal import ClassSoftTree
from margotree.engines.multiclass.search import ClassSearch
from margotree.engines.multiclass.terms import ClassTerms
from margotree.engines.watch import Watch
from margotree.problem import MulticlassProblem, Problem, Splits, topology

GO = np.zeros(1)


def rounded(lacks, width):
    return np.where(lacks < width, np.maximum(lacks, 0.0) ** 2 / (2.0 * width), lacks - width / 2.0)


def plain_cost(soft, theta):
    """The same in the plainest way: from the last level up, what every sample would pay from each node on."""
    W, B = theta[:, :-1], theta[:, -1]
    h = soft.Z @ W.T + B
    nodes = len(B)
    pays = np.zeros((nodes, len(h)))
    for t in reversed(range(nodes)):
        plus, minus = soft.plus[t, soft.code], soft.minus[t, soft.code]
        pays[t] = soft.weight * (plus * rounded(1.0 - h[:, t], soft.width) + minus * rounded(1.0 + h[:, t], soft.width))
        if t < nodes // 2:
            share = 1.0 / (1.0 + np.exp(-soft.sharp[t] * h[:, t]))
            pays[t] += share * pays[2 * t + 2] + (1.0 - share) * pays[2 * t + 1]
    return 0.5 * np.sum(W**2) + np.sum(pays[0])


def some_soft(rng, depth=3, classes=3, m=12, p=3):
    nodes = topology.n_nodes(depth)
    plus, minus = rng.uniform(size=(2, nodes, classes)) * rng.integers(0, 2, size=(2, nodes, classes))
    return Soft(
        rng.normal(size=(m, p)), rng.uniform(0.5, 2.0, m), rng.integers(0, classes, m), plus, minus,
        rng.uniform(0.3, 2.0, nodes), 0.2,
    ), rng.normal(size=(nodes, p + 1))  # fmt: skip


@pytest.mark.parametrize("sharper", [1.0, 30.0], ids=["dull", "sharp"])
@pytest.mark.parametrize("m", [3, 12, 128, 261])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_cost_and_gradient_are_those_of_plain_numpy(depth, m, sharper):
    """Also of more samples than are sent down at a time, and where few of them come by a node."""
    rng = np.random.default_rng(depth)
    for _ in range(3):
        soft, theta = some_soft(rng, depth, m=m)
        soft = soft._replace(sharp=sharper * soft.sharp)
        grad = np.empty(theta.size)
        assert soft_cost(soft, theta.ravel(), grad) == pytest.approx(plain_cost(soft, theta), rel=1e-5)
        for a in rng.choice(theta.size, 6):
            step = np.zeros(theta.size)
            step[a] = 1e-5
            up, down = (plain_cost(soft, theta + s * step.reshape(theta.shape)) for s in (1, -1))
            assert grad[a] == pytest.approx((up - down) / 2e-5, rel=1e-3, abs=1e-3)


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_steps_lower_the_cost_and_leave_what_is_not_free(seed):
    rng = np.random.default_rng(seed)
    soft, theta = some_soft(rng)
    free = (rng.random(theta.shape) < 0.7).astype(float)
    now, values = theta.copy(), [plain_cost(soft, theta)]
    for _ in range(4):
        said = minimise(soft, now.reshape(-1), free.reshape(-1), 5, GO)
        assert said == pytest.approx(plain_cost(soft, now), rel=1e-5)
        values.append(said)
    assert np.all(np.diff(values) <= 1e-5 * values[0])
    assert values[-1] < values[0]
    assert np.array_equal(now[free == 0], theta[free == 0])


def test_many_steps_come_to_rest():
    """Where the gradient is nothing; the largest of the first ones is about 10."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        soft, theta = some_soft(rng, depth=2)
        first, grad = np.empty(theta.size), np.empty(theta.size)
        soft_cost(soft, theta.ravel(), first)
        now = theta.copy()
        for _ in range(20):
            minimise(soft, now.reshape(-1), np.ones(theta.size), 200, GO)
        soft_cost(soft, now.ravel(), grad)
        assert np.max(np.abs(grad)) < 0.02 * np.max(np.abs(first))


def test_curvature_is_learnt_on_the_way():
    """On features of very different sizes, where following the gradient alone would take thousands of steps."""
    rng = np.random.default_rng(5)
    for _ in range(5):
        soft, theta = some_soft(rng, depth=2, m=80, p=4)
        soft = soft._replace(Z=soft.Z * [10.0, 1.0, 0.3, 0.1], plus=10.0 * soft.plus, minus=10.0 * soft.minus)
        now = theta.copy()
        said = minimise(soft, now.reshape(-1), np.ones(theta.size), 60, GO)
        scipy = minimize(
            lambda v, soft=soft: plain_cost(soft, v.reshape(3, 5)), theta.ravel(), method="L-BFGS-B",
            options={"maxiter": 60, "maxfun": 100_000},
        )  # fmt: skip
        assert said <= 1.05 * scipy.fun


def test_a_raised_flag_stops_at_once():
    soft, theta = some_soft(np.random.default_rng(0))
    now = theta.copy()
    minimise(soft, now.reshape(-1), np.ones(theta.size), 50, np.ones(1))
    assert np.array_equal(now, theta)


def points(rng, m=40, p=3):
    return rng.random((m, p)), rng.uniform(0.5, 2.0, m)


def at_its_sharpest(terms, tree, kind):
    """The cost of a tree whose splits are steps and whose hinges have a corner."""
    soft = kind(terms, tree.w, tree.b, np.random.default_rng(0))
    sharp = np.full(terms.n_nodes, 1e9)
    hard = Soft(soft.Z, terms.weight, terms.code, *soft.prices(sharp), sharp, 1e-9)
    return soft_cost(hard, soft.theta.ravel(), np.empty(soft.theta.size))


@pytest.mark.parametrize(("m", "first", "later"), [(990, 990, 990), (1010, 500, 1010), (4000, 500, 500)])
def test_a_soft_tree_hears_all_samples_unless_they_are_many_more_than_it_may(m, first, later):
    """Features are so many that it may hear 500 at first; later 600 or so, or no more where it is told to hear less."""
    rng = np.random.default_rng(0)
    problem = Problem.make(rng.random((m, 350)), rng.choice([-1.0, 1.0], m), depth=3, C=1.0)
    terms, less = Terms.of(problem), 0.2 if m == 4000 else 1.0
    soft = SoftTree(terms, np.zeros((7, 350)), np.ones(7), rng, heard=less)
    assert (soft.terms.n_samples, soft.later.n_samples) == (first, later)
    for part in (soft.terms, soft.later):  # those who are heard stand for the others
        assert np.sum(part.weight) == pytest.approx(np.sum(terms.weight))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_at_its_sharpest_a_soft_tree_costs_what_the_tree_does(depth):
    rng = np.random.default_rng(depth)
    for _ in range(5):
        X, weight = points(rng)
        y = rng.choice([-1.0, 1.0], len(X))
        C = rng.uniform(0.1, 3.0, depth)
        problem = Problem.make(X, y, depth=depth, C=list(C), eps=1e-9, weight=weight)
        tree = Splits(w=rng.normal(size=(problem.n_nodes, 3)), b=rng.normal(size=problem.n_nodes))
        said = at_its_sharpest(Terms.of(problem), tree, SoftTree)
        assert said == pytest.approx(problem.evaluate(tree).objective, rel=1e-6)


@pytest.mark.parametrize("classes", [3, 5])
def test_with_more_classes_it_takes_the_best_sides_and_labels(classes):
    rng = np.random.default_rng(classes)
    for depth in (1, 2, 3):
        X, weight = points(rng)
        y = np.concatenate([np.arange(classes), rng.integers(0, classes, len(X) - classes)])
        problem = MulticlassProblem.make(X, y, depth=depth, C=2.0, eps=1e-9, weight=weight)
        tree = Splits(w=rng.normal(size=(problem.n_nodes, 3)), b=rng.normal(size=problem.n_nodes))
        said = at_its_sharpest(ClassTerms.of(problem), tree, ClassSoftTree)
        assert said == pytest.approx(problem.evaluate(tree).objective, rel=1e-6)


@pytest.mark.parametrize("budget", [1, 2, 4])
def test_annealing_keeps_to_hard_budgets(budget):
    rng = np.random.default_rng(budget)
    X, _ = points(rng, 60, 6)
    y = np.where(X[:, 0] + X[:, 1] > 1, 1.0, -1.0)
    terms = Terms.of(Problem.make(X, y, depth=3, C=5.0, budget=budget))
    for _ in range(5):
        W, B = SoftTree(terms, np.zeros((7, 6)), np.ones(7), rng).anneal(GO)
        assert np.all(np.count_nonzero(W, axis=1) <= budget)
        assert np.all(np.isfinite(W)) and np.all(np.isfinite(B))


def test_a_soft_tree_parts_what_no_single_split_can():
    """Four corners of a square, crosswise: from most starts by chance all are told apart."""
    rng = np.random.default_rng(0)
    X = rng.random((200, 2))
    X = X[np.min(np.abs(X - 0.5), axis=1) > 0.05]
    y = np.where((X[:, 0] > 0.5) == (X[:, 1] > 0.5), 1.0, -1.0)
    problem = Problem.make(X, y, depth=2, C=[0.1, 10.0], eps=1e-9)
    terms = Terms.of(problem)
    right = []
    for _ in range(10):
        W, B = SoftTree(terms, np.zeros((3, 2)), np.ones(3), rng).anneal(GO)
        h = X @ W.T + B
        last = np.where(h[:, 0] >= 0, h[:, 2], h[:, 1])
        right.append(np.mean(np.sign(last) == y))
    assert np.median(right) > 0.95


def test_a_part_of_many_samples_stands_for_all():
    rng = np.random.default_rng(0)
    X, y = rng.random((6_000, 100)), rng.choice([-1.0, 1.0], 6_000)
    soft = SoftTree(Terms.of(Problem.make(X, y, depth=3, C=1.0)), np.zeros((7, 100)), np.ones(7), rng)
    assert soft.terms.n_samples < soft.later.n_samples < 3_000
    for heard in (soft.terms, soft.later):
        assert np.sum(heard.weight) == pytest.approx(6_000)
    soft.steps = 3
    W, B = soft.anneal(GO)
    assert soft.terms is soft.later
    assert np.all(np.isfinite(W)) and np.all(np.isfinite(B))


@pytest.mark.parametrize("kind", ["two", "more"])
def test_searches_with_soft_starts_repeat_and_return_what_they_say(kind):
    rng = np.random.default_rng(1)
    X, _ = points(rng, 60, 4)
    trees = []
    for _ in range(2):
        if kind == "two":
            problem = Problem.make(X, np.where(X[:, 0] > X[:, 1], 1.0, -1.0), depth=2, C=[0.1, 10.0])
            search = AlternatingSearch(problem, Watch(), Effort(least=4, most=4))
        else:
            problem = MulticlassProblem.make(X, np.arange(60) % 3, depth=2, C=[0.1, 10.0])
            search = ClassSearch(problem, Watch(), Effort(least=4, most=4))
        search.run([])
        trees.append(search.answer())
        assert problem.evaluate(trees[-1]).feasible
    assert np.array_equal(trees[0].w, trees[1].w) and np.array_equal(trees[0].b, trees[1].b)


def test_the_first_start_is_soft_and_the_tree_at_hand_comes_second():
    rng = np.random.default_rng(1)
    X, _ = points(rng, 30, 4)
    problem = Problem.make(X, np.where(X[:, 0] > X[:, 1], 1.0, -1.0), depth=2, C=1.0)
    given = Splits(w=np.zeros((3, 4)), b=np.ones(3))
    search = AlternatingSearch(problem, Watch(), Effort(least=5, most=5))
    seen, descend = [], search._descend
    search._descend = lambda job: (seen.append(job.start), descend(job))[1]
    search.run([given])
    assert [start.soft > 0 for start in seen] == [True, False, False, True, False]
    assert np.array_equal(seen[1].B, given.b) and not np.any(seen[1].kinds)


@pytest.mark.parametrize(("kind", "shares"), [("two", {0.2, 1.0}), ("three", {1.0})])
def test_for_two_classes_every_other_soft_start_hears_less(kind, shares):
    rng = np.random.default_rng(0)
    X, _ = points(rng)
    told = []

    def listening(search, tree):
        class Listening(tree):
            def __init__(self, *args):
                told.append((len(search.record.soft), args[-1]))
                super().__init__(*args)

        return Listening

    if kind == "two":
        problem = Problem.make(X, np.where((X[:, 0] - 0.5) * (X[:, 1] - 0.5) > 0, 1, -1), depth=2)
        search = AlternatingSearch(problem, Watch(), Effort(least=8, most=8))
    else:
        problem = MulticlassProblem.make(X, rng.integers(3, size=len(X)), n_classes=3, depth=2)
        search = ClassSearch(problem, Watch(), Effort(least=8, most=8))
    search.soft_tree = listening(search, type(search).soft_tree)
    search.run([])
    assert {share for _, share in told} == shares
    assert all(share == search.heard[before % len(search.heard)] for before, share in told)


def test_who_does_better_is_asked_more_often():
    zero, record, rng = (
        Start(W=np.zeros((3, 2)), B=np.ones(3), kinds=np.zeros(3, int)),
        Record(),
        np.random.default_rng(0),
    )
    assert record.share == 0.5
    assert [record.asks_soft(k, rng) for k in range(4)] == [True, False, True, False]
    for k in range(4):
        record.note(replace(zero, soft=2), 10.0 + k, 30.0)
        record.note(zero, 20.0 + k, 30.0)
    record.note(replace(zero, W=np.ones((3, 2))), 1.0, 30.0)  # was not from nothing
    assert record.share == pytest.approx(5 / 6)
    for k in range(8):
        record.note(zero, 5.0 + k / 10, 30.0)
    assert record.share == pytest.approx(1 / 6)
    asked = [record.asks_soft(k, rng) for k in range(4, 400)]
    assert 0.08 < np.mean(asked) < 0.28


def start_of(way):
    tree = Start(W=np.ones((3, 2)), B=np.ones(3), kinds=np.zeros(3, int))
    return {
        Way.FROM_NOTHING: replace(tree, W=np.zeros((3, 2))),
        Way.DISTURBED: tree,
        Way.SOFT_AGAIN: replace(tree, soft=1),
        Way.SUBTREE: replace(tree, top=1, below=tree),
    }[way]


def ways_asked(record, rng, depth=3, times=300):
    return np.bincount([record.next_way(100, depth, rng) for _ in range(times)], minlength=len(Way)) / times


@pytest.mark.parametrize("paying", list(Way))
def test_ways_that_bring_better_trees_are_taken_more_often(paying):
    record, rng = Record(), np.random.default_rng(0)
    assert all(record.next_way(k, 3, rng) is Way.FROM_NOTHING for k in range(5))
    assert np.all(ways_asked(record, rng) > 0.15)  # nothing is known yet
    for _ in range(12):
        for way in Way:
            record.note(start_of(way), 0.9 if way is paying else 1.1, 1.0)
    asked = ways_asked(record, rng)
    assert asked[paying] > 0.7
    for _ in range(400):  # and less often once they no longer do
        record.note(start_of(paying), 1.1, 1.0)
    assert ways_asked(record, rng)[paying] < asked[paying] - 0.2


def test_what_a_way_is_credited_with():
    def asked(better):
        record, rng = Record(), np.random.default_rng(0)
        record.next_way(100, 3, rng)
        for way in Way:
            for _ in range(10):
                record.note(start_of(way), 1.0 - better * (way is Way.DISTURBED), 1.0)
        return ways_asked(record, rng)[Way.DISTURBED]

    # The more the better, but no more than a half per cent counts; a tree that is worse is no debt.
    assert asked(0.5) == asked(0.005) > asked(0.001) > asked(0.0) == asked(-0.5)


def test_dear_starts_are_made_less_often():
    record, rng = Record(), np.random.default_rng(0)
    record.next_way(100, 3, rng)
    for way in Way:
        for _ in range(50):
            record.note(start_of(way), 1.0, 1.0)
    nothing, disturbed, again, subtree = ways_asked(record, rng, times=3000)
    assert nothing < 0.7 * min(disturbed, again)
    assert max(disturbed, again) < 0.7 * subtree


def test_nothing_is_credited_or_charged_before_there_is_a_choice():
    record, rng = Record(), np.random.default_rng(0)
    for _ in range(20):
        record.note(start_of(Way.FROM_NOTHING), 1.0, 1.0)
    assert np.all(ways_asked(record, rng) > 0.15)


def test_what_has_no_subtrees_of_upper_nodes_is_not_asked_for_any():
    record, rng = Record(), np.random.default_rng(0)
    assert set(np.flatnonzero(ways_asked(record, rng, 1))) == {Way.FROM_NOTHING}
    assert set(np.flatnonzero(ways_asked(record, rng, 2))) == {Way.FROM_NOTHING, Way.DISTURBED, Way.SOFT_AGAIN}
    assert set(np.flatnonzero(ways_asked(record, rng, 3))) == set(Way)


@pytest.mark.parametrize("kind", ["two", "three"])
def test_starts_are_credited_with_what_they_gain_on_the_best_tree(kind):
    X, _ = points(np.random.default_rng(5), 60, 2)
    if kind == "two":
        problem = Problem.make(X, np.where((X[:, 0] - 0.5) * (X[:, 1] - 0.5) > 0, 1, -1), depth=2, C=10.0)
        search = AlternatingSearch(problem, Watch(), Effort(least=40, most=40))
    else:
        problem = MulticlassProblem.make(X, np.digitize(X[:, 0], [0.3, 0.7]), n_classes=3, depth=2, C=10.0)
        search = ClassSearch(problem, Watch(), Effort(least=40, most=40))
    told, note, best = [], search.record.note, []

    def listening(start, value, before):
        told.append((start, before))
        best.append(search.best[0].value)
        note(start, value, before)

    search.record.note = listening
    search.run([])
    assert len(told) == 40
    assert [before for _, before in told] == best
    assert all(not np.any(start.W) for start, _ in told[:5])
    assert any(np.any(start.W) and start.soft for start, _ in told[5:])
    assert any(np.any(start.W) and not start.soft for start, _ in told[5:])


def test_a_tree_without_splits_is_nothing_to_start_from():
    X, _ = points(np.random.default_rng(1), 30, 4)
    search = AlternatingSearch(Problem.make(X, np.where(X[:, 0] > X[:, 1], 1.0, -1.0), depth=2), Watch())
    search.best = [search._constant()]
    starts = [search._new_start(k, np.random.default_rng(k)) for k in range(60)]
    assert all(not np.any(start.W) and (start.soft == 2 or np.all(start.kinds > 0)) for start in starts)


def test_a_stump_has_nothing_to_be_soft_about():
    X, _ = points(np.random.default_rng(1), 30, 4)
    search = AlternatingSearch(Problem.make(X, np.where(X[:, 0] > X[:, 1], 1.0, -1.0), depth=1), Watch())
    assert all(search._new_start(k, np.random.default_rng(k)).soft == 0 for k in range(40))
