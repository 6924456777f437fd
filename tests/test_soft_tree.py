"""Soft trees: loss and gradient against plain NumPy, the limit of a large inverse temperature, budgets and starts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entries import soft_cost
from margotree.engines.local_search.annealing import Schedule, SoftTree, n_reannealings
from margotree.engines.local_search.kernels.soft_tree import BLOCK, Soft, learn
from margotree.engines.local_search.kernels.svm import svm
from margotree.engines.local_search.search import Effort, LocalSearch
from margotree.engines.local_search.starts import Origin, Start, StartStatistics
from margotree.engines.local_search.training_data import Terms
from margotree.engines.run_control import RunControl
from margotree.problem import Problem, Splits, topology
from several import several_classes

GO = np.zeros(1)
MEDIUM = Schedule(0.5, 0.5)


def rounded(loss, width):
    return np.where(loss < width, np.maximum(loss, 0.0) ** 2 / (2.0 * width), loss - width / 2.0)


def plain_cost(soft, theta):
    return 0.5 * np.sum(theta[:, :-1] ** 2) + loss_of(soft, theta)


def loss_of(soft, theta):
    """The loss in plain NumPy: from the last level up, that of each sample in each subtree."""
    W, B = theta[:, :-1], theta[:, -1]
    h = soft.Z @ W.T + B
    nodes = len(B)
    node_loss = np.zeros((nodes, len(h)))
    for t in reversed(range(nodes)):
        plus, minus = soft.plus[t, soft.code], soft.minus[t, soft.code]
        if t >= nodes // 2:
            below, above = soft.plus_corner - h[:, t], h[:, t] - soft.minus_corner
            losses = plus * rounded(below, soft.last_width) + minus * rounded(above, soft.last_width)
            node_loss[t] = soft.weight * losses
            continue
        share = 1.0 / (1.0 + np.exp(-soft.beta[t] * h[:, t]))
        on_right, on_left = plus * rounded(1.0 - h[:, t], soft.width), minus * rounded(1.0 + h[:, t], soft.width)
        losses = share * on_right + (1.0 - share) * on_left if soft.by_side else on_right + on_left
        node_loss[t] = soft.weight * losses + share * node_loss[2 * t + 2] + (1.0 - share) * node_loss[2 * t + 1]
    return np.sum(node_loss[0])


def hinges(m):
    """The fields of a soft tree whose losses are hinge losses everywhere."""
    return np.ones(m), np.full(m, -1.0)


def some_soft(rng, depth=3, classes=3, m=12, p=3, by_side=False):
    nodes = topology.n_nodes(depth)
    plus, minus = rng.uniform(size=(2, nodes, classes)) * rng.integers(0, 2, size=(2, nodes, classes))
    return Soft(
        rng.normal(size=(m, p)).astype(np.float32), rng.uniform(0.5, 2.0, m), rng.integers(0, classes, m), plus, minus,
        rng.uniform(0.3, 2.0, nodes), 0.2, *(rng.normal(size=(2, m)) if by_side else hinges(m)), 0.3, by_side,
    ), rng.normal(size=(nodes, p + 1))  # fmt: skip


@pytest.mark.parametrize("by_side", [False, True], ids=["classes", "numbers"])
@pytest.mark.parametrize("sharper", [1.0, 30.0], ids=["dull", "sharp"])
@pytest.mark.parametrize("m", [3, 12, 64, 133])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_cost_and_gradient_are_those_of_plain_numpy(depth, m, sharper, by_side):
    """Also with more samples than a block, and where few of them reach a node."""
    rng = np.random.default_rng(depth)
    for _ in range(3):
        soft, theta = some_soft(rng, depth, m=m, by_side=by_side)
        soft = soft._replace(beta=sharper * soft.beta)
        grad = np.empty(theta.size)
        # Shares in single precision count more where losses are of one side only.
        slack = 3e-5 * np.sum(soft.weight) if by_side else 0.0
        assert soft_cost(soft, theta.ravel(), grad) == pytest.approx(loss_of(soft, theta), rel=3e-5, abs=slack)
        for a in rng.choice(theta.size, 6):
            step = np.zeros(theta.size)
            step[a] = 1e-5
            up, down = (loss_of(soft, theta + s * step.reshape(theta.shape)) for s in (1, -1))
            assert grad[a] == pytest.approx((up - down) / 2e-5, rel=3e-3, abs=3e-3)


def trained(soft, theta, steps, step_length=0.01, decay=None, order=None, state=None, done=0, flag=GO):
    """The parameters after some steps, and the number of steps; by default weights have a decay of 1."""
    now = theta.ravel().copy()
    step_length = np.broadcast_to(np.asarray(step_length, np.float32), theta.shape).ravel()
    decay = np.ones_like(theta) * ([1.0] * (theta.shape[1] - 1) + [0.0]) if decay is None else decay
    order = np.arange(len(soft.Z)) if order is None else order
    state = np.zeros((2, now.size), np.float32) if state is None else state
    done = learn(soft, order, now, decay.ravel().astype(np.float32), step_length, steps, state, done, flag)
    return now.reshape(theta.shape), done


@given(st.integers(0, 10_000))
@settings(max_examples=30)
def test_steps_lower_the_cost_and_leave_fixed_parameters(seed):
    rng = np.random.default_rng(seed)
    soft, theta = some_soft(rng)
    free = rng.random(theta.shape) < 0.7
    now, done = trained(soft, theta, 300, step_length=0.01 * free)
    assert done == 300
    assert plain_cost(soft, now) < plain_cost(soft, theta)
    assert np.array_equal(now[~free], theta[~free])


def test_the_first_step_has_the_given_length():
    rng = np.random.default_rng(1)
    soft, theta = some_soft(rng)
    step_length = 1e-3 * rng.uniform(0.1, 10.0, theta.shape)
    now, _ = trained(soft, theta, 1, step_length=step_length)
    gone = np.abs(now - theta) / step_length
    assert np.max(gone) == pytest.approx(1.0, rel=1e-3)  # for every parameter the same
    assert np.all((gone < 1e-9) | (gone > 0.99))


def test_parameters_decay_as_given():
    """Without losses only the decay is left: a minimum at zero for some parameters, and none for the rest."""
    soft, theta = some_soft(np.random.default_rng(1))
    no_loss = soft._replace(plus=0.0 * soft.plus, minus=0.0 * soft.minus)
    decay = np.zeros_like(theta)
    decay[:, 1:3] = [1.0, 1e-3]
    now, _ = trained(no_loss, theta, 3000, decay=decay)
    assert np.array_equal(now[:, [0, 3]], theta[:, [0, 3]])
    assert np.all(np.abs(now[:, 1:3]) < 1e-2)


@pytest.mark.parametrize("sizes", [[1.0, 1.0, 1.0, 1.0], [10.0, 1.0, 0.3, 0.1]], ids=["alike", "apart"])
def test_a_single_node_becomes_the_svm(sizes):
    """Also with mini-batches, and on features of very different scales, by their decay."""
    rng = np.random.default_rng(5)
    for _ in range(3):
        Z = rng.normal(size=(200, 4)).astype(np.float32)
        code = (Z @ rng.normal(size=4) + 0.5 * rng.normal(size=200) > 0).astype(np.int64)
        penalties = np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])
        soft = Soft(Z, np.ones(200), code, *penalties, np.ones(1), 1e-3, *hinges(200), 1e-3, False)
        theta, state, done = np.zeros((1, 5)), np.zeros((2, 5), np.float32), 0
        decay = np.append(1.0 / np.square(sizes), 0.0)
        for step_length in (0.1, 0.03, 0.01, 0.003, 0.001):
            theta, done = trained(soft, theta, 500, step_length, decay, rng.permutation(200), state, done)
        exact = np.zeros(5)
        X = Z.astype(np.float64) * sizes
        best = svm(X, (code == 1) * 1.0, (code == 0) * 1.0, *hinges(200), exact, 2.0, 1e-6, False, GO)
        found = plain_cost(soft._replace(Z=X), theta / [[*sizes, 1.0]])
        assert best - 1e-3 * best <= found <= 1.01 * best


def test_training_in_parts_gives_the_same_result():
    rng = np.random.default_rng(2)
    soft, theta = some_soft(rng, m=3 * BLOCK + 5)
    order, state = rng.permutation(len(soft.Z)), np.zeros((2, theta.size), np.float32)
    whole, done = trained(soft, theta, 30, order=order)
    half, first = trained(soft, theta, 13, order=order, state=state)
    rest, last = trained(soft, half, 17, order=order, state=state, done=first)
    assert (first, last) == (13, done)
    assert rest == pytest.approx(whole, rel=1e-5)  # parameters are rounded once more in between


def test_the_order_within_a_block_does_not_matter():
    rng = np.random.default_rng(2)
    soft, theta = some_soft(rng, m=50)
    one, _ = trained(soft, theta, 5)
    other, _ = trained(soft, theta, 5, order=rng.permutation(50))
    assert other == pytest.approx(one, abs=1e-4)


def test_samples_are_used_cyclically():
    """A step uses the next samples in order, cyclically, with weights scaled to the sum of all."""
    soft, theta = some_soft(np.random.default_rng(3), m=BLOCK + 6)
    rows = np.r_[BLOCK : BLOCK + 6, : BLOCK - 6]
    block = soft._replace(**{name: getattr(soft, name)[rows] for name in ("Z", "weight", "code")})
    scaled = block._replace(weight=block.weight * (BLOCK + 6) / BLOCK)
    here, done = trained(soft, theta, 1, done=1)
    there, _ = trained(scaled, theta, 1, done=1)
    assert done == 2
    assert here == pytest.approx(there, abs=1e-6)
    assert np.any(np.abs(here - trained(soft, theta, 1, done=2)[0]) > 1e-4)  # others next


def test_a_raised_flag_stops_at_once():
    soft, theta = some_soft(np.random.default_rng(0))
    now, done = trained(soft, theta, 50, flag=np.ones(1))
    assert done == 0 and np.array_equal(now, theta)


def points(rng, m=40, p=3):
    return rng.random((m, p)), rng.uniform(0.5, 2.0, m)


def at_zero_temperature(terms, tree):
    """The objective of a tree whose splits are steps and whose hinge losses are not smoothed."""
    soft = SoftTree(terms, tree.w, tree.b, np.random.default_rng(0), MEDIUM)
    sharp = np.full(terms.n_nodes, 1e9)
    penalties = terms.hinge_penalties(soft.choices(sharp))
    by_side = terms.task.losses_follow_side
    hard = Soft(soft.Z, terms.weight, terms.code, *penalties, sharp, 1e-9, *terms.corners, 1e-9 * terms.unit, by_side)
    return 0.5 * np.sum(tree.w**2) + soft_cost(hard, soft.theta.ravel(), np.empty(soft.theta.size))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_at_zero_temperature_a_soft_tree_costs_what_the_tree_does(depth):
    rng = np.random.default_rng(depth)
    for _ in range(5):
        X, weight = points(rng)
        y = rng.choice([-1.0, 1.0], len(X))
        C = rng.uniform(0.1, 3.0, depth)
        problem = Problem.make(X, y, depth=depth, C=list(C), eps=1e-9, weight=weight)
        tree = Splits(w=rng.normal(size=(problem.n_nodes, 3)), b=rng.normal(size=problem.n_nodes))
        said = at_zero_temperature(Terms.of(problem), tree)
        assert said == pytest.approx(problem.evaluate(tree).objective, rel=1e-5)


@pytest.mark.parametrize("classes", [3, 5])
def test_with_more_classes_it_has_the_best_sides_and_labels(classes):
    rng = np.random.default_rng(classes)
    for depth in (1, 2, 3):
        X, weight = points(rng)
        y = np.concatenate([np.arange(classes), rng.integers(0, classes, len(X) - classes)])
        problem = several_classes(X, y, depth=depth, C=2.0, eps=1e-9, weight=weight)
        tree = Splits(w=rng.normal(size=(problem.n_nodes, 3)), b=rng.normal(size=problem.n_nodes))
        said = at_zero_temperature(Terms.of(problem), tree)
        assert said == pytest.approx(problem.evaluate(tree).objective, rel=1e-5)


@pytest.mark.parametrize("budget", [1, 2, 4])
def test_annealing_keeps_to_hard_budgets(budget):
    rng = np.random.default_rng(budget)
    X, _ = points(rng, 60, 6)
    y = np.where(X[:, 0] + X[:, 1] > 1, 1.0, -1.0)
    terms = Terms.of(Problem.make(X, y, depth=3, C=5.0, budget=budget))
    for _ in range(5):
        W, B = SoftTree(terms, np.zeros((7, 6)), np.ones(7), rng, Schedule.at_random(rng)).anneal(GO)
        assert np.all(np.count_nonzero(W, axis=1) <= budget)
        assert np.all(np.isfinite(W)) and np.all(np.isfinite(B))


def test_features_beyond_the_budget_decay_by_their_penalty():
    rng = np.random.default_rng(0)
    X, _ = points(rng, 60, 6)
    W, y = rng.normal(size=(3, 6)), np.where(X[:, 0] > X[:, 1], 1.0, -1.0)
    W[2] = 0.0
    for alpha, limit in ((3.0, 3.0), (0.0, 0.0), (np.inf, 0.0)):
        terms = replace(Terms.of(Problem.make(X, y, depth=2, C=1.0, budget=2)), alpha=np.full(3, alpha))
        soft = SoftTree(terms, W, rng.normal(size=3), rng, MEDIUM)
        own = np.append(terms.inverse_spread**2, 0.0)
        costs = 0.5 * (soft.decay(0.0) - own) * soft.theta**2
        assert not np.any(costs[:, -1]) and not np.any(costs[2])  # offsets, and a split without features
        order = np.argsort(-np.abs(soft.theta[:, :-1]), axis=1)
        for t in range(2):
            assert not np.any(costs[t, order[t, :2]])  # those in the budget are free
            beyond = costs[t, order[t, 2:]]
            assert np.all(beyond <= limit) and np.all(np.diff(beyond) <= 0.0)
            assert np.all(beyond >= 0.0) and (beyond[0] > 0.3 * limit or limit == 0.0)
        assert np.all(0.5 * (soft.decay(1.0) - own) * soft.theta**2 >= costs - 1e-9)  # in the end even small ones


def test_soft_trees_have_the_features_that_gain_more_than_their_penalty():
    rng = np.random.default_rng(0)
    X = rng.random((300, 8))
    y = np.where((X[:, 0] > 0.5) == (X[:, 1] > 0.5), 1.0, -1.0)
    counts = {}
    for alpha in (1e-4, 30.0):
        terms = Terms.of(Problem.make(X, y, depth=2, C=[0.1, 10.0], budget=1, alpha=alpha))
        found = [
            SoftTree(terms, np.zeros((3, 8)), np.ones(3), np.random.default_rng(k), MEDIUM).anneal(GO)[0]
            for k in range(10)
        ]
        counts[alpha] = np.mean([np.count_nonzero(W, axis=1) for W in found])
        if alpha > 1:
            assert (
                np.mean([np.count_nonzero(W[:, 2:]) for W in found]) < 4.0
            )  # of 18 irrelevant ones, three of which are within the budget
    assert counts[30.0] < 0.5 * counts[1e-4]


def test_a_soft_tree_separates_what_no_single_split_can():
    """Four corners of a square, crosswise: most random starts separate them all."""
    rng = np.random.default_rng(0)
    X = rng.random((200, 2))
    X = X[np.min(np.abs(X - 0.5), axis=1) > 0.05]
    y = np.where((X[:, 0] > 0.5) == (X[:, 1] > 0.5), 1.0, -1.0)
    problem = Problem.make(X, y, depth=2, C=[0.1, 10.0], eps=1e-9)
    terms = Terms.of(problem)
    right = []
    for _ in range(10):
        W, B = SoftTree(terms, np.zeros((3, 2)), np.ones(3), rng, Schedule.at_random(rng)).anneal(GO)
        h = X @ W.T + B
        last = np.where(h[:, 0] >= 0, h[:, 2], h[:, 1])
        right.append(np.mean(np.sign(last) == y))
    assert np.median(right) > 0.95


def test_a_re_annealed_tree_stays_good_and_often_improves():
    """At a high inverse temperature, all hyperplanes move together; a random start is much worse."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 5))
    y = np.where((X[:, 0] + 0.3 * X[:, 2] > 0.6) == (X[:, 1] > 0.5), 1.0, -1.0)
    terms = Terms.of(Problem.make(X, y, depth=2, C=[0.1, 10.0], eps=1e-9))
    search = LocalSearch(Problem.make(X, y, depth=2, C=[0.1, 10.0], eps=1e-9), RunControl())
    tree = SoftTree(terms, np.zeros((3, 5)), np.ones(3), rng, MEDIUM).anneal(GO)
    before = search.objective_of(terms, *tree)
    values = [
        search.objective_of(terms, *SoftTree(terms, *tree, rng, Schedule.for_reannealing(rng)).anneal(GO))
        for _ in range(10)
    ]
    assert np.median(values) < 1.05 * before
    assert min(values) < before


@pytest.mark.parametrize("budget", [1, 2])
def test_a_re_annealed_tree_keeps_to_its_budget(budget):
    rng = np.random.default_rng(budget)
    X, _ = points(rng, 60, 6)
    terms = Terms.of(Problem.make(X, np.where(X[:, 0] > X[:, 1], 1.0, -1.0), depth=2, C=5.0, budget=budget))
    W = np.zeros((3, 6))
    W[:, :budget] = rng.normal(size=(3, budget))
    same = 0
    for _ in range(20):
        again, B = SoftTree(terms, W, rng.normal(size=3), rng, Schedule.at_random(rng)).anneal(GO)
        assert np.all(np.count_nonzero(again, axis=1) <= budget) and np.all(np.isfinite(B))
        same += np.array_equal(again != 0, W != 0)
    assert 5 <= same < 20  # half of them keep their supports in any case


def test_constant_features_and_a_single_sample_do_no_harm():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(20), rng.random(20), np.full(20, 7.0)])
    y = np.where(X[:, 1] > 0.5, 1.0, -1.0)
    terms = Terms.of(Problem.make(X, y, depth=2, C=10.0))
    W, B = SoftTree(terms, np.zeros((3, 3)), np.ones(3), rng, MEDIUM).anneal(GO)
    assert not np.any(W[:, [0, 2]]) and np.all(np.isfinite(B))
    one = terms.part(np.arange(1), np.ones(1))
    W, B = SoftTree(one, np.zeros((3, 3)), np.ones(3), rng, MEDIUM).anneal(GO)
    assert np.all(np.isfinite(W)) and np.all(np.isfinite(B))


@pytest.mark.parametrize("size", [1e-60, 1e-3, 1e4, 1e60])
def test_features_of_any_scale_lead_to_the_same_hyperplanes(size):
    """Single precision holds neither such samples nor such weights: samples are standardised.

    Splits cost almost nothing where the scale is large, so only the routing is compared.
    """
    rng = np.random.default_rng(0)
    X = rng.random((200, 3))
    y = np.where((X[:, 0] > 0.5) == (X[:, 1] > 0.5), 1.0, -1.0)
    right = []
    for seed in range(6):
        terms = Terms.of(Problem.make(size * (X + 5.0), y, depth=2, C=[0.1, 1e3 * max(1.0, size**-2)], eps=1e-9))
        W, B = SoftTree(terms, np.zeros((3, 3)), np.ones(3), np.random.default_rng(seed), MEDIUM).anneal(GO)
        h = terms.X @ W.T + B
        right.append(np.mean(np.sign(np.where(h[:, 0] >= 0, h[:, 2], h[:, 1])) == y))
    assert np.max(right) > 0.9


def test_a_given_tree_is_returned_unchanged_if_there_is_no_time():
    """Standardised and transformed back."""
    rng = np.random.default_rng(0)
    X = rng.random((50, 4)) * [1.0, 1e9, 1e-9, 0.0] + 3.0
    terms = Terms.of(Problem.make(X, rng.choice([-1.0, 1.0], 50), depth=2, C=1.0))
    W, B = rng.normal(size=(3, 4)) * [1.0, 1e-9, 1e9, 0.0], rng.normal(size=3)
    again, offsets = SoftTree(terms, W, B, rng, MEDIUM).anneal(np.ones(1))
    assert again == pytest.approx(W, rel=1e-9)
    assert offsets == pytest.approx(B, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("C", [1e-40, 1e40])
def test_extreme_penalties_lead_to_finite_trees(C):
    X, _ = points(np.random.default_rng(0), 30, 3)
    problem = Problem.make(X, np.where(X[:, 0] > X[:, 1], 1.0, -1.0), depth=2, C=C)
    W, B = SoftTree(Terms.of(problem), np.zeros((3, 3)), np.ones(3), np.random.default_rng(0), MEDIUM).anneal(GO)
    assert np.all(np.isfinite(W)) and np.all(np.isfinite(B))


def test_large_data_are_used_less_often(monkeypatch):
    told = []

    def counted(soft, order, theta, decay, step_length, steps, *rest):
        told.append(steps * min(BLOCK, len(order)))
        return steps

    monkeypatch.setattr("margotree.engines.local_search.annealing.learn", counted)
    rng = np.random.default_rng(0)
    sums = []
    for m, p in ((20, 3), (2_000, 3), (4_000, 3), (2_000, 300)):
        problem = Problem.make(rng.random((m, p)), rng.choice([-1.0, 1.0], m), depth=3, C=1.0)
        told.clear()
        SoftTree(Terms.of(problem), np.zeros((7, p)), np.ones(7), rng, MEDIUM).anneal(GO)
        sums.append(sum(told))
    few, many, more, wide = sums
    assert few / 20 > many / 2_000 and few < many
    assert more == pytest.approx(many, rel=0.01)  # twice as many samples, each half as often
    assert wide < many


def test_a_similar_schedule_is_near_and_in_range():
    rng = np.random.default_rng(0)
    for schedule in (Schedule(0.0, 1.0), MEDIUM):
        near = [schedule.similar(rng) for _ in range(100)]
        assert all(0.0 <= one.beta <= 1.0 and 0.0 <= one.step_length <= 1.0 for one in near)
        assert np.mean([abs(one.beta - schedule.beta) for one in near]) < 0.15
        assert len({one.step_length for one in near}) > 10


def test_schedules_of_better_trees_are_used_again():
    statistics, rng = StartStatistics(), np.random.default_rng(0)
    assert len({statistics.next_schedule(rng) for _ in range(10)}) == 10
    statistics.schedules += [(10.0 + k, Schedule(k / 20, 1.0)) for k in range(20)]
    sharp = np.array([statistics.next_schedule(rng).beta for _ in range(400)])
    assert 0.55 < np.mean(sharp < 0.3) < 0.8  # half of them random, the others like the best four
    assert np.mean(sharp > 0.6) > 0.1


def test_trees_with_long_descents_are_re_annealed_more_often():
    rng = np.random.default_rng(0)

    def times(m, p, **budget):
        return n_reannealings(Terms.of(Problem.make(rng.random((m, p)), rng.choice([-1.0, 1.0], m), depth=2, **budget)))

    assert [times(50, 4), times(500, 8), times(1000, 32), times(5000, 100)] == [1, 2, 5, 6]
    assert times(1000, 32, budget=2) == 1


@pytest.mark.parametrize("kind", ["two", "more"])
def test_searches_with_soft_starts_are_reproducible(kind):
    rng = np.random.default_rng(1)
    X, _ = points(rng, 60, 4)
    trees = []
    for _ in range(2):
        if kind == "two":
            problem = Problem.make(X, np.where(X[:, 0] > X[:, 1], 1.0, -1.0), depth=2, C=[0.1, 10.0])
            search = LocalSearch(problem, RunControl(), Effort(least=4, most=4))
        else:
            problem = several_classes(X, np.arange(60) % 3, depth=2, C=[0.1, 10.0])
            search = LocalSearch(problem, RunControl(), Effort(least=4, most=4))
        search.run([])
        trees.append(search.answer())
        assert problem.evaluate(trees[-1]).feasible
    assert np.array_equal(trees[0].w, trees[1].w) and np.array_equal(trees[0].b, trees[1].b)


def test_the_first_start_is_soft_and_the_given_tree_is_the_second():
    rng = np.random.default_rng(1)
    X, _ = points(rng, 30, 4)
    problem = Problem.make(X, np.where(X[:, 0] > X[:, 1], 1.0, -1.0), depth=2, C=50.0)
    given = Splits(w=np.zeros((3, 4)), b=np.ones(3))
    search = LocalSearch(problem, RunControl(), Effort(least=5, most=5))
    seen, descend = [], search.descend
    search.descend = lambda job: (seen.append(job.start), descend(job))[1]
    search.run([given])
    assert [start.n_soft > 0 for start in seen[:4]] == [True, False, False, True]
    assert np.array_equal(seen[1].B, given.b) and not np.any(seen[1].strategies)


def test_more_successful_new_starts_are_chosen_more_often():
    zero, statistics, rng = (
        Start(W=np.zeros((3, 2)), B=np.ones(3), strategies=np.zeros(3, int)),
        StartStatistics(),
        np.random.default_rng(0),
    )
    assert statistics.soft_share == 0.5
    assert [statistics.next_is_soft(rng) or statistics.next_number() for _ in range(4)] == [True, 0, True, 1]
    for k in range(4):
        statistics.update(replace(zero, n_soft=2), 10.0 + k, 30.0, 0)
        statistics.update(zero, 20.0 + k, 30.0, 0)
    statistics.update(replace(zero, W=np.ones((3, 2))), 1.0, 30.0, 9)  # not a new start
    assert statistics.soft_share == pytest.approx(5 / 6)
    for k in range(8):
        statistics.update(zero, 5.0 + k / 10, 30.0, 0)
    assert statistics.soft_share == pytest.approx(1 / 6)
    asked = [statistics.next_is_soft(rng) for _ in range(400)]
    assert 0.08 < np.mean(asked) < 0.28


def start_of(origin):
    tree = Start(W=np.ones((3, 2)), B=np.ones(3), strategies=np.zeros(3, int))
    return {
        Origin.NEW: replace(tree, W=np.zeros((3, 2))),
        Origin.PERTURBED: tree,
        Origin.REANNEALED: replace(tree, n_soft=1),
        Origin.SUBTREE: replace(tree, top=1, subtree=tree),
    }[origin]


def origin_shares(statistics, rng, depth=3, times=300):
    return np.bincount([statistics.next_origin(100, depth, rng) for _ in range(times)], minlength=len(Origin)) / times


@pytest.mark.parametrize("best", list(Origin))
def test_origins_that_improve_the_best_tree_are_chosen_more_often(best):
    statistics, rng = StartStatistics(), np.random.default_rng(0)
    assert [statistics.next_origin(k, 3, rng) for k in range(3)] == [Origin.NEW] * 3
    assert np.all(origin_shares(statistics, rng) > 0.15)  # nothing is known yet
    for _ in range(12):
        for origin in Origin:
            statistics.update(start_of(origin), 0.9 if origin is best else 1.1, 1.0, 100)
    asked = origin_shares(statistics, rng)
    assert asked[best] > 0.6
    for _ in range(400):  # and less often once they no longer do
        statistics.update(start_of(best), 1.1, 1.0, 100)
    assert origin_shares(statistics, rng)[best] < asked[best] - 0.2


def test_the_credit_of_an_origin():
    def asked(better):
        statistics, rng = StartStatistics(), np.random.default_rng(0)
        for origin in Origin:
            for _ in range(10):
                statistics.update(start_of(origin), 1.0 - better * (origin is Origin.PERTURBED), 1.0, 100)
        return origin_shares(statistics, rng)[Origin.PERTURBED]

    # The more the better, but no more than a half per cent counts; a tree that is worse is no debt.
    assert asked(0.5) == asked(0.005) > asked(0.001) > asked(0.0) == asked(-0.5)


def test_costly_starts_are_made_less_often():
    statistics, rng = StartStatistics(), np.random.default_rng(0)
    for origin in Origin:
        for _ in range(50):
            statistics.update(start_of(origin), 1.0, 1.0, 100)
    nothing, perturbed, again, subtree = origin_shares(statistics, rng, times=3000)
    assert nothing < 0.7 * min(perturbed, again)
    assert max(perturbed, again) < 0.7 * subtree


def test_nothing_is_credited_or_charged_before_there_is_a_choice():
    statistics, rng = StartStatistics(), np.random.default_rng(0)
    for _ in range(20):
        statistics.update(start_of(Origin.NEW), 1.0, 1.0, 2)
    assert np.all(origin_shares(statistics, rng) > 0.15)


def test_subtree_starts_need_subtrees_with_upper_nodes():
    statistics, rng = StartStatistics(), np.random.default_rng(0)
    assert set(np.flatnonzero(origin_shares(statistics, rng, 1))) == {Origin.NEW}
    assert set(np.flatnonzero(origin_shares(statistics, rng, 2))) == {Origin.NEW, Origin.PERTURBED, Origin.REANNEALED}
    assert set(np.flatnonzero(origin_shares(statistics, rng, 3))) == set(Origin)


@pytest.mark.parametrize("kind", ["two", "three"])
def test_starts_are_credited_with_what_they_gain_on_the_best_tree(kind):
    X, _ = points(np.random.default_rng(5), 60, 2)
    if kind == "two":
        problem = Problem.make(X, np.where((X[:, 0] - 0.5) * (X[:, 1] - 0.5) > 0, 1, -1), depth=2, C=10.0)
        search = LocalSearch(problem, RunControl(), Effort(least=40, most=40))
    else:
        problem = several_classes(X, np.digitize(X[:, 0], [0.3, 0.7]), n_classes=3, depth=2, C=10.0)
        search = LocalSearch(problem, RunControl(), Effort(least=40, most=40))
    told, note, best = [], search.statistics.update, []

    def listening(start, value, before, number):
        told.append((start, before, number))
        best.append(search.pool.best_value)
        note(start, value, before, number)

    search.statistics.update = listening
    search.run([])
    assert len(told) == 40
    assert [before for _, before, _ in told] == best
    assert not any(np.any(start.W) for start, _, number in told if number < 3)
    assert any(np.any(start.W) and start.n_soft for start, _, number in told if number >= 3)
    assert any(np.any(start.W) and not start.n_soft for start, _, number in told if number >= 3)


def test_a_tree_without_splits_has_no_variations():
    X, _ = points(np.random.default_rng(1), 30, 4)
    search = LocalSearch(Problem.make(X, np.where(X[:, 0] > X[:, 1], 1.0, -1.0), depth=2), RunControl())
    search.best_pool.trees = [search.constant()]
    starts = [search.new_job().start for _ in range(60)]
    assert all(not np.any(start.W) and (start.n_soft > 0 or np.all(start.strategies > 0)) for start in starts)


def test_a_single_split_has_no_soft_starts():
    X, _ = points(np.random.default_rng(1), 30, 4)
    search = LocalSearch(Problem.make(X, np.where(X[:, 0] > X[:, 1], 1.0, -1.0), depth=1), RunControl())
    assert all(search.new_job().start.n_soft == 0 for _ in range(40))
