"""Small feature penalties: descents leave them out, values include them; greedy trees that take long."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from margotree.engines import Limits, RunControl, get_engine
from margotree.engines import local_search_engine as engines
from margotree.engines.local_search.search import Effort, Job, LocalSearch
from margotree.engines.local_search.sparsification import SparsifyingSearch
from margotree.engines.local_search.starts import unchanged_start
from margotree.engines.local_search_engine import Alternating, good_tree, penalties_are_small
from margotree.engines.presolve import without_budget
from margotree.engines.trivial_trees import allowed_value, trivial_tree
from margotree.problem import Problem, evaluate

FEW = Effort(least=8, most=8)


def board(alpha: float | None, *, n: int = 120, p: int = 4, budget: int = 1, C=(1.0, 10.0)) -> Problem:
    rng = np.random.default_rng(5)
    X = rng.random((n, p))
    y = np.where((X[:, 0] > 0.5) ^ (X[:, 1] > 0.4 + 0.2 * X[:, 2]), 1.0, -1.0)
    y[:6] *= -1
    return Problem.make(X, y, depth=2, C=C, budget=budget, alpha=alpha)


@pytest.mark.parametrize(("alpha", "small"), [(1e-3, True), (10.0, False), (None, False)])
def test_penalties_are_small_compared_with_a_good_tree(alpha, small):
    problem = board(alpha)
    assert penalties_are_small(problem, [trivial_tree(problem)]) is small


def test_compared_with_a_better_tree_penalties_may_not_be_small():
    problem = board(4.0)
    assert penalties_are_small(problem, [])
    control = RunControl(Limits(nodes=10))
    good = get_engine("alternating").search(replace(problem, alpha=np.full(3, 1e-6)), control, None).splits
    assert not penalties_are_small(problem, [good])


@pytest.mark.parametrize("alpha", [1e-3, 0.05])
def test_all_values_include_penalties(alpha):
    problem, told = board(alpha), []
    search = SparsifyingSearch(problem, RunControl(listener=told.append), FEW)
    search.run([])
    assert all(one.value == pytest.approx(evaluate(problem, one.splits).objective, rel=1e-6) for one in search.best)
    answer = evaluate(problem, search.answer())
    assert answer.feasible and answer.objective <= told[-1].incumbent * (1.0 + 1e-9)
    assert [event.incumbent for event in told] == sorted((event.incumbent for event in told), reverse=True)


def test_irrelevant_features_are_dropped_in_the_end():
    """The fourth feature is irrelevant, and no descent without penalties drops it."""
    problem = board(0.05)
    tree = good_tree(problem, [], RunControl(), FEW)
    dense = good_tree(without_budget(problem), [], RunControl(), FEW)
    assert penalties_are_small(problem, [dense])
    assert np.count_nonzero(tree.w) < np.count_nonzero(dense.w)
    assert allowed_value(problem, tree) < allowed_value(problem, dense)


def test_values_without_penalties_are_not_reported():
    problem, told = board(0.05), []
    finished = []

    def finisher(tree, control):
        finished.append(control.listener)
        return tree

    for kind, reports in ((SparsifyingSearch, False), (LocalSearch, True)):
        finished.clear()
        kind(problem, RunControl(Limits(time=600.0), told.append), Effort(least=9, most=9), finisher).run([])
        assert finished and all((one is not None) is reports for one in finished)


@pytest.mark.parametrize("model", ["hfs", "sfs"])
def test_among_many_features_no_answer_is_worse_than_the_greedy_tree(model):
    """It is trained last there."""
    problem = board(0.5 if model == "sfs" else None, p=24, budget=2)
    answer = Alternating(Effort(least=1, most=1)).search(problem, RunControl(Limits(time=60)), None)
    local = get_engine("local_svm").search(problem, RunControl(), None).splits
    assert allowed_value(problem, answer.splits) <= allowed_value(problem, local) < math.inf


@pytest.mark.parametrize("seconds", [60.0, math.inf])
def test_descents_get_most_of_the_time_and_the_greedy_tree_the_rest(monkeypatch, seconds):
    problem, given = board(None, p=24, budget=2), []
    descents = engines.good_tree
    monkeypatch.setattr(
        engines,
        "good_tree",
        lambda p, t, control, *args: given.append(control.remaining) or descents(p, t, control, *args),
    )
    Alternating(Effort(least=1, most=1)).search(problem, RunControl(Limits(time=seconds)), None)
    assert len(given) == 1 and (0.5 * seconds < given[0] < 0.95 * seconds or given[0] == seconds == math.inf)


def test_a_tree_whose_subtree_does_not_improve_is_not_sparsified_again():
    rng = np.random.default_rng(3)
    X = rng.random((120, 4))
    y = np.where(np.sin(9 * X[:, 0]) * np.sin(7 * X[:, 1]) > 0, 1.0, -1.0)
    problem = Problem.make(X, y, depth=3, C=(1.0, 10.0, 100.0), budget=1, alpha=0.05)
    search = SparsifyingSearch(problem, RunControl(), FEW)
    search.run([])
    tree, nodes = search.best[0], [1, 3, 4]
    seen, descent = [], search.descent

    def watched(terms, *rest):
        seen.append(terms.n_nodes)
        found = descent(terms, *rest)
        return replace(found, value=1e9) if terms.n_nodes == 3 else found  # no subtree improves

    search.descent = watched
    below = unchanged_start(replace(tree, W=tree.W[nodes], B=tree.B[nodes]))
    start = replace(unchanged_start(tree), top=1, subtree=below)
    found = [search.descend(Job(start=start, level=0, seed=seed)) for seed in range(6)]
    assert seen == [3] * 6
    assert all(one.value == pytest.approx(tree.value, rel=1e-6) for one in found)
