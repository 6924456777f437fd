"""Margin trees for any number of classes: what a tree is worth, against loops and against all sides and labels."""

import itertools

import numpy as np
import pytest

from margotree.engines.presolve import standard_scale
from margotree.problem import Problem, Splits, evaluate, topology
from several import several_classes, with_choices


def some_problem(rng, *, K=3, depth=2, n=14, p=3, **terms):
    X, y = rng.normal(size=(n, p)), rng.integers(0, K, n)
    weight = rng.uniform(0.2, 3.0, n)
    C = rng.uniform(0.1, 5.0, 2**depth - 1)
    return several_classes(X, y, depth=depth, C=C, n_classes=K, weight=weight, **terms)


def some_tree(rng, problem):
    return Splits(w=rng.normal(size=(problem.n_nodes, problem.n_features)), b=rng.normal(size=problem.n_nodes))


def by_hand(problem, splits, sides, labels):
    """The objective sample by sample, straight from the definition."""
    total = 0.5 * float(np.sum(splits.w**2))
    for x, k, weight in zip(problem.X, problem.y, problem.weight, strict=True):
        t = 0
        while t < problem.n_nodes:
            h = x @ splits.w[t] + splits.b[t]
            if t < problem.n_upper:
                loss = max(0.0, 1 - sides[t][k] * h)
            else:
                a, b = labels[t - problem.n_upper]
                loss = (k != a) * max(0.0, 1 - h) + (k != b) * max(0.0, 1 + h)
            total += problem.C[t] * weight * loss
            t = topology.right(t) if h >= 0 else topology.left(t)
    if problem.alpha is not None:
        used = np.count_nonzero(splits.w, axis=1)
        total += float(problem.alpha @ np.maximum(0, used - problem.budget))
    return total


def all_labellings(problem):
    sides = [s for s in itertools.product([-1, 1], repeat=problem.task.n_classes) if s[0] == -1 and 1 in s]
    pairs = list(itertools.permutations(range(problem.task.n_classes), 2))
    for chosen in itertools.product(sides, repeat=problem.n_upper):
        for labels in itertools.product(pairs, repeat=problem.n_last):
            yield chosen, labels


@pytest.mark.parametrize("seed", range(12))
def test_the_value_is_the_least_over_all_sides_and_labels(seed):
    rng = np.random.default_rng(seed)
    terms = [{}, {"budget": 2}, {"budget": 1, "alpha": 0.7}][seed % 3]
    problem = some_problem(rng, K=3 + seed % 2, depth=1 + seed % 2, **terms)
    splits = some_tree(rng, problem)
    found = problem.evaluate(splits)
    values = [by_hand(problem, splits, *choice) for choice in all_labellings(problem)]
    assert found.objective == pytest.approx(min(values), rel=1e-12)
    assert found.objective == pytest.approx(
        by_hand(problem, splits, found.choices.sides, found.choices.labels), rel=1e-12
    )
    assert (
        with_choices(problem, found.choices.sides, found.choices.labels).evaluate(splits).objective == found.objective
    )
    assert found.over_budget == (1 if seed % 3 == 1 else 0)
    assert found.choices.labels.ravel().shape == (2**problem.depth,)


@pytest.mark.parametrize("seed", range(5))
def test_stated_labels_are_the_ones_that_count(seed):
    rng = np.random.default_rng(100 + seed)
    problem = some_problem(rng, K=4, depth=2)
    splits = some_tree(rng, problem)
    sides, labels = [(-1, 1, 1, -1)], [(2, 0), (1, 3)]
    found = with_choices(problem, sides, labels).evaluate(splits)
    assert found.objective == pytest.approx(by_hand(problem, splits, sides, labels), rel=1e-12)
    assert found.choices.labels.ravel().tolist() == [2, 0, 1, 3]
    assert found.objective >= problem.evaluate(splits).objective


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_two_classes_are_margot_to_the_last_digits(depth):
    rng = np.random.default_rng(depth)
    for terms in ({}, {"budget": 1}, {"budget": 1, "alpha": 0.3}):
        problem = some_problem(rng, K=2, depth=depth, **terms)
        splits = some_tree(rng, problem)
        margot = problem.as_binary()
        forced = with_choices(problem, [(-1, 1)] * problem.n_upper, [(0, 1)] * problem.n_last).evaluate(splits)
        assert forced.objective == pytest.approx(evaluate(margot, splits).objective, rel=1e-12)
        assert forced.violations == evaluate(margot, splits).violations
        assert problem.evaluate(splits).objective <= forced.objective * (1 + 1e-12)
        assert problem.model == margot.model


def test_a_sample_in_the_band_is_complained_of():
    problem = several_classes([[0.0], [1.0], [2.0]], [0, 1, 2], depth=2)
    splits = Splits(w=[[1.0], [0.0], [0.0]], b=[-1.0005, 1.0, 1.0])
    assert "routing band" in problem.evaluate(splits).violations[0]


def test_empty_nodes_and_pure_ones_take_labels_from_above():
    problem = several_classes([[0.0]] * 3 + [[1.0]] * 2, [2, 2, 2, 1, 0], depth=2)
    found = problem.evaluate(Splits(w=np.zeros((3, 1)), b=[1.0, -1.0, 1.0]))
    left, right = found.choices.labels
    assert left[0] == 2  # no sample came: what is heaviest above, on the side that w = 0 sends to
    assert right[1] == 2 and right[0] in (0, 1)


def test_features_in_other_units_are_the_same_problem():
    rng = np.random.default_rng(0)
    problem = several_classes(1000 * rng.normal(size=(9, 2)), [0, 1, 2] * 3, depth=2, budget=1, alpha=0.5)
    scaled, way = standard_scale(problem)
    splits = some_tree(rng, problem)
    assert way.scale > 1
    value = scaled.evaluate(way.into(splits)).objective * way.unit
    assert value == pytest.approx(problem.evaluate(splits).objective, rel=1e-12)


@pytest.mark.parametrize(
    ("y", "more", "words"),
    [
        ([0.0, 1.0], {}, "class numbers"),
        ([0, -1], {}, "class numbers"),
        ([0, 3], {"n_classes": 3}, "3 classes"),
        ([0, 0], {"n_classes": 1}, "2 classes"),
        ([0, 1], {"alpha": 1.0}, "no budget"),
    ],
)
def test_bad_problems_are_refused(y, more, words):
    with pytest.raises(ValueError, match=words):
        several_classes([[0.0], [1.0]], y, depth=1, **more)


def test_bad_labellings_are_refused():
    problem = several_classes([[0.0], [1.0], [2.0]], [0, 1, 2], depth=2)
    good = [(0, 1), (1, 2)]
    for sides, labels in [
        ([(1, 1, -1)], good),
        ([(-1, -1, -1)], good),
        ([(-1, 1)], good),
        ([(-1, 1, 1)], [(0, 0), (1, 2)]),
        ([(-1, 1, 1)], [(0, 3), (1, 2)]),
    ]:
        with pytest.raises(ValueError):
            with_choices(problem, sides, labels)
    with pytest.raises(ValueError, match="3 classes"):
        problem.as_binary()


def test_it_is_a_training_problem_like_the_others():
    problem = several_classes([[0.0], [1.0], [2.0]], [0, 1, 2], depth=3, budget=1)
    assert (problem.model, problem.n_nodes, problem.n_upper, problem.n_last) == ("hfs", 7, 3, 4)
    assert isinstance(Problem.make([[0.0], [1.0]], [1, -1], depth=1).model, str)
