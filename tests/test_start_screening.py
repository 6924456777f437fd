"""Start screening: with many samples, starts are tried on few of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from margotree.engines import Limits, RunControl
from margotree.engines.local_search import start_screening
from margotree.engines.local_search.initial_splits import Strategy
from margotree.engines.local_search.search import Effort, Job, LocalSearch, run_local_search
from margotree.engines.local_search.starts import (
    first_strategies,
    greedy_start,
    new_start,
    reannealed_start,
    soft_start,
    unchanged_start,
)
from margotree.engines.local_search.training_data import Terms, TrainedTree
from margotree.engines.trivial_trees import trivial_tree
from margotree.problem import Problem, evaluate
from several import several_classes


@pytest.fixture
def problem():
    rng = np.random.default_rng(3)
    X = rng.random((1700, 2))
    y = np.where((X[:, 0] > 0.4) ^ (X[:, 1] > 0.6), 1.0, -1.0)
    return Problem.make(X, y, depth=2, C=[0.1, 10.0], eps=1e-6)


def test_only_new_and_random_starts_are_screened(problem):
    terms, rng = Terms.of(problem), np.random.default_rng(0)
    mixed = new_start(np.array([Strategy.FEATURE, Strategy.CART, Strategy.CART]), 2)
    tree = TrainedTree(W=np.ones((3, 2)), B=np.ones(3), value=1.0)
    assert start_screening.is_screened(terms, soft_start(2, 2)) and start_screening.is_screened(terms, mixed)
    # Local SVM and CART use all samples, since no result may be worse than theirs.
    plain = [greedy_start(2, 2), *(new_start(first_strategies(number, 2, rng), 2) for number in (0, 1))]
    assert not any(
        start_screening.is_screened(terms, start) for start in [*plain, unchanged_start(tree), reannealed_start(tree)]
    )


def test_samples_must_be_many_compared_with_the_weights_of_the_tree(problem):
    terms, rng = Terms.of(problem), np.random.default_rng(0)
    few = terms.part(np.arange(400), np.ones(400))
    mixed = new_start(np.array([Strategy.FEATURE, Strategy.CART, Strategy.CART]), 2)
    assert start_screening.is_screened(terms, mixed) and not start_screening.is_screened(few, mixed)
    wide = replace(terms, X=np.tile(terms.X, 10))  # ten times as many weights
    assert not start_screening.is_screened(wide, new_start(mixed.strategies, 20))
    parts = list(start_screening.subsamples(terms, rng))
    assert len(parts) > 1 and len({part.n_samples for part in parts}) == 1
    assert parts[0].n_samples < next(start_screening.subsamples(wide, rng)).n_samples < terms.n_samples
    assert all(np.sum(part.weight) == pytest.approx(np.sum(terms.weight)) for part in parts)
    assert not np.array_equal(parts[0].X, parts[1].X)


def test_the_try_that_is_best_on_all_samples_continues(problem):
    search = LocalSearch(problem, RunControl())
    terms, descent, tries, last = search.levels.terms, search.descent, [], []

    def watched(part, start, *rest):
        found = descent(part, start, *rest)
        (last if part.n_samples == problem.n_samples else tries).append((start, found))
        return found

    search.descent = watched
    mixed = new_start(np.array([Strategy.FEATURE, Strategy.CART, Strategy.CART]), 2)
    found = search.descend(Job(start=mixed, level=search.levels.top, seed=0))
    ((start, trained),) = last
    assert trained is found and not np.any(start.strategies)
    # The value of a try on its few samples is not used.
    values = [search.objective_of(terms, tree.W, tree.B) for _, tree in tries]
    assert len(values) > 1 and search.objective_of(terms, start.W, start.B) == min(values)
    assert found.value <= min(values) * (1 + 1e-9)


def test_screened_starts_are_reproducible(problem):
    trees = [run_local_search(problem, [], RunControl(Limits(seed=4)), Effort(least=3, most=3)) for _ in range(2)]
    assert np.array_equal(trees[0].w, trees[1].w)
    seen = evaluate(problem, trees[0])
    assert seen.feasible and seen.objective < 0.2 * evaluate(problem, trivial_tree(problem)).objective


def test_starts_for_several_classes_are_screened_as_well(problem):
    codes = (problem.X[:, 0] > 0.4) + 1 * (problem.X[:, 1] > 0.6)
    several = several_classes(problem.X, codes, depth=2, C=[0.1, 10.0], eps=1e-6)
    search = LocalSearch(several, RunControl(), Effort(least=1, most=1))
    assert start_screening.is_screened(search.levels.terms, soft_start(2, 2))
    search.run([])
    assert several.evaluate(search.best[0].splits).feasible
