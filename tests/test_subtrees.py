"""Subtrees of good trees trained separately: their samples, their starts, and that no tree gets worse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from margotree.engines.local_search.search import Effort, Job, LocalSearch
from margotree.engines.local_search.starts import soft_start, unchanged_start
from margotree.engines.local_search.subtrees import rows_at, subtree_start
from margotree.engines.local_search.training_data import Terms
from margotree.engines.run_control import RunControl
from margotree.problem import Problem, evaluate, topology
from several import several_classes

SOME = Effort(least=6, most=6)


def two(seed=0, n=120, depth=3, **more):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    y = np.where(np.sin(9 * X[:, 0]) * np.sin(7 * X[:, 1]) > 0, 1, -1)
    return Problem.make(X, y, depth=depth, C=10.0 ** np.arange(depth), eps=1e-4, **more)


def three(seed=0, n=120):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    y = (np.floor(4 * X[:, 0]) + np.floor(3 * X[:, 1])).astype(int) % 3
    return several_classes(X, y, n_classes=3, depth=3, C=(1.0, 10.0, 100.0), eps=1e-4)


def searched(problem):
    search = LocalSearch(problem, RunControl(), SOME)
    search.run([])
    assert np.any(search.best[0].W[0])
    return search


PROBLEMS = [two(), two(budget=[1] * 7), two(budget=[1] * 7, alpha=[2.0] * 7), three()]
NAMES = ["margot", "hfs", "sfs", "three classes"]


@pytest.mark.parametrize("problem", [PROBLEMS[0], PROBLEMS[1]], ids=NAMES[:2])
def test_the_samples_at_a_node_are_those_of_the_value_function(problem):
    search = searched(problem)
    tree, terms = search.best[0], Terms.of(problem)
    last = evaluate(problem, tree.splits).node
    for t in range(problem.n_nodes):
        below = [s for s in topology.subtree(t, 3) if s in topology.last(3)]
        assert list(rows_at(terms, tree.W, tree.B, t)) == list(np.flatnonzero(np.isin(last, below)))


@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_a_tree_costs_what_its_root_and_subtrees_cost(problem):
    search = searched(problem)
    terms, tree = search.levels.terms, search.best[0]
    parts = 0.0
    for t in (1, 2):
        nodes = topology.subtree(t, 3)
        part = terms.subtree(nodes, rows_at(terms, tree.W, tree.B, t))
        assert part.depth == 2
        parts += search.objective_of(part, tree.W[nodes], tree.B[nodes])
    W, B = tree.W.copy(), tree.B.copy()
    whole = search.objective_of(terms, W, B)
    top = replace(terms, C=terms.C[:1], budget=terms.budget[:1], alpha=terms.alpha[:1])
    if terms.task.n_classes > 2:  # a root by itself would be a last-level node, with labels instead of sides
        assert parts <= whole * (1 + 1e-9)
    else:
        assert parts + search.objective_of(top, W[:1], B[:1]) == pytest.approx(whole, rel=1e-9)


def test_starts_are_of_subtrees_with_upper_nodes_and_of_all_kinds():
    search = searched(two(depth=4, n=200))
    rng, tree, strategies = np.random.default_rng(0), search.best[0], []
    for _ in range(300):
        start = subtree_start(tree, 4, rng)
        nodes = topology.subtree(start.top, 4)
        assert start.top in topology.upper(4)
        assert start.top > 0
        assert len(start.subtree.B) == len(nodes) >= 3
        assert not np.any(start.strategies)
        assert start.W is tree.W
        strategies.append((start.top, (start.subtree.n_soft, bool(np.any(start.subtree.W)))))
    assert {top for top, _ in strategies} == set(range(1, 7))
    assert {kind for _, kind in strategies} >= {(1, True), (12, False), (0, True)}


@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_a_subtree_that_does_not_get_better_leaves_the_tree_as_it_is(problem):
    search = searched(problem)
    tree = search.best[0]
    seen = []
    descent = search.descent

    def watched(terms, *rest):
        seen.append(terms.n_nodes)
        found = descent(terms, *rest)
        return replace(found, value=1e9) if terms.n_nodes == 3 else found  # no subtree improves

    search.descent = watched
    for seed in range(6):
        start = subtree_start(tree, 3, np.random.default_rng(seed))
        found = search.descend(Job(start=start, level=0, seed=seed))
        assert np.array_equal(found.W, tree.W)
        assert np.array_equal(found.B, tree.B)
        assert found.value == pytest.approx(tree.value, rel=1e-6)
    assert set(seen) == {3}


@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_a_poor_subtree_improves_and_the_tree_stays_feasible(problem):
    search = searched(problem)
    tree = search.best[0]
    nodes = topology.subtree(1, 3)
    W, B = tree.W.copy(), tree.B.copy()
    W[nodes], B[nodes] = 0.0, 1.0  # all one way
    value = search.value_of(replace(tree, W=W, B=B).splits)
    assert value > tree.value * 1.01
    good = unchanged_start(replace(tree, W=tree.W[nodes], B=tree.B[nodes]))
    for below in (good, soft_start(2, 3)):
        start = replace(unchanged_start(replace(tree, W=W, B=B)), top=1, subtree=below)
        found = search.descend(Job(start=start, level=0, seed=0))
        assert search.value_of(found.splits) == pytest.approx(found.value, rel=1e-6)
        assert found.value <= (tree.value if below is good else value) * (1 + 1e-6)


@pytest.mark.parametrize("rows", [0, 1])
def test_a_subtree_with_at_most_one_sample(rows):
    problem = two()
    search = searched(problem)
    tree = search.best[0]
    W, B = tree.W.copy(), tree.B.copy()
    h = problem.X @ W[0]
    order = np.sort(h)
    B[0] = 1.0 - order[0] if rows == 0 else -0.5 * (order[0] + order[1])
    if rows and order[1] - order[0] < 2 * problem.eps:
        W[0] *= 1.0 / (order[1] - order[0])
        B[0] *= 1.0 / (order[1] - order[0])
    assert len(rows_at(search.levels.terms, W, B, 1)) == rows
    for below in (soft_start(2, 3), unchanged_start(replace(tree, W=W[[1, 3, 4]], B=B[[1, 3, 4]]))):
        start = replace(unchanged_start(replace(tree, W=W, B=B)), top=1, subtree=below)
        found = search.descend(Job(start=start, level=0, seed=0))
        assert np.isfinite(search.value_of(found.splits))
