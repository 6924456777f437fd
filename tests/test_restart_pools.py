"""Restart pools: trees that are compared with each other only, and the best trees of all pools."""

from __future__ import annotations

import math

import numpy as np
import pytest

from margotree.engines.local_search.descent import Descent
from margotree.engines.local_search.restart_pool import RestartPool
from margotree.engines.local_search.search import Effort, Job, LocalSearch
from margotree.engines.local_search.starts import new_start, reannealed_start, unchanged_start
from margotree.engines.local_search.training_data import Terms, TrainedTree
from margotree.engines.run_control import Limits, RunControl
from margotree.problem import Problem, evaluate


def found(value):
    return TrainedTree(W=np.full((3, 2), value), B=np.ones(3), value=value)


def checkered(n=150, depth=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    y = np.where(np.sin(9 * X[:, 0]) * np.sin(7 * X[:, 1]) > 0, 1.0, -1.0)
    return Problem.make(X, y, depth=depth, C=10.0 ** np.arange(depth), eps=1e-5)


def test_a_pool_keeps_the_best_trees_that_differ():
    pool = RestartPool()
    assert pool.best_value == math.inf and pool.improves(5.0)
    for value in (5.0, 9.0, 7.0, 7.0 + 1e-9, 4.0, 8.0, 6.0):
        pool.keep(found(value))
    assert [tree.value for tree in pool.trees] == [4.0, 5.0, 6.0, 7.0, 8.0]


def test_a_better_tree_replaces_its_parent():
    pool, first, second = RestartPool(), found(5.0), found(6.0)
    pool.keep(first)
    pool.keep(second)
    pool.keep(found(5.5), second)
    assert [tree.value for tree in pool.trees] == [5.0, 5.5]
    pool.keep(found(5.7), first)  # no better: both stay
    assert [tree.value for tree in pool.trees] == [5.0, 5.5, 5.7]


def test_only_an_improvement_resets_the_idle_starts():
    pool = RestartPool()
    pool.keep(found(5.0))
    pool.idle_starts = 7.0
    pool.keep(found(5.0 * (1 - 1e-5)))
    assert pool.idle_starts == 7.0
    pool.keep(found(4.0))
    assert pool.idle_starts == 0.0


def test_an_idle_pool_is_left_for_a_new_one_and_that_one_for_the_best_pool():
    search = LocalSearch(checkered(), RunControl(), Effort(patience=1000))
    first = search.pool
    assert first is search.best_pool

    def result(value):
        job = search.new_job()
        search.record(job, found(value))
        return job

    for _ in range(3):
        assert not np.any(result(10.0).start.W)
    while (job := search.new_job()).pool is first:
        search.record(job, found(11.0))
    second = job.pool
    assert second is not first and job.number == 0 and not np.any(job.start.W) and job.parent is None
    search.record(job, found(20.0))
    assert [tree.value for tree in second.trees] == [20.0]
    assert 20.0 in [tree.value for tree in search.best] and search.best[0].value == 10.0
    for _ in range(90):  # it improves in every start, so it is not left
        before = second.best_value
        job = result(before * 0.99)
        assert job.pool is second
    assert search.best[0].value == pytest.approx(second.best_value)
    while search.pool is second:
        result(30.0)
    assert search.pool is search.best_pool
    assert search.best_pool.best_value <= second.best_value


def test_first_starts_do_not_make_a_pool_idle():
    search = LocalSearch(checkered(), RunControl())
    search.best_pool.keep(found(1.0))
    for number in range(3):
        search.record(
            Job(start=new_start(np.zeros(3, int), 2), level=0, seed=0, pool=search.best_pool, number=number), found(9.0)
        )
        assert search.best_pool.idle_starts == 0.0
    search.record(
        Job(start=new_start(np.zeros(3, int), 2), level=0, seed=0, pool=search.best_pool, number=3), found(9.0)
    )
    assert search.best_pool.idle_starts == 1.0


def test_the_value_to_beat_is_that_of_the_pool():
    search = LocalSearch(checkered(), RunControl())
    search.best_pool.keep(found(1.0))
    pool = RestartPool()
    job = Job(start=new_start(np.zeros(3, int), 2), level=0, seed=0, pool=pool)
    assert search.value_to_beat(job) == math.inf
    search.record(job, found(9.0))
    assert search.value_to_beat(job) == 9.0 and search.best[0].value == 1.0


def test_successive_halving_and_depth_1_have_one_pool():
    rng = np.random.default_rng(0)
    large = Problem.make(rng.random((8_000, 2)), np.resize([1.0, -1.0], 8_000), depth=2)
    for problem in (large, checkered(depth=1)):
        search = LocalSearch(problem, RunControl())
        search.pool.idle_starts = 1e9
        search.new_job()
        assert search.pool is search.best_pool


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_search_with_many_pools_returns_the_best_tree(jobs, monkeypatch):
    monkeypatch.setattr("margotree.engines.local_search.search._POOL_PATIENCE", 2.0)
    problem, pools, told = checkered(), set(), []
    control = RunControl(Limits(time=600, n_jobs=jobs), told.append)
    search = LocalSearch(problem, control, Effort(least=80, most=80))
    take = search.record
    search.record = lambda job, tree: (pools.add(id(job.pool)), take(job, tree))[1]
    search.run([])
    assert len(pools) > 2
    answer = evaluate(problem, search.answer())
    assert answer.feasible and answer.objective <= told[-1].incumbent * (1 + 1e-9)
    assert [event.incumbent for event in told] == sorted((event.incumbent for event in told), reverse=True)


def test_variations_are_of_the_trees_of_the_pool():
    search = LocalSearch(checkered(), RunControl())
    search.best_pool.keep(found(1.0))
    search.pool = RestartPool(trees=[found(9.0)])
    parents = [search.new_job().parent for _ in range(40)]
    assert {id(tree) for tree in parents if tree is not None} == {id(search.pool.trees[0])}


@pytest.mark.parametrize(
    ("abandon_above", "best", "once"), [(0.02, 0.9, True), (math.inf, 0.9, False), (0.02, None, False)]
)
def test_a_descent_far_from_the_best_is_abandoned_after_a_sweep(abandon_above, best, once):
    problem = checkered(depth=3)
    sweeps = []

    class Counted(Descent):
        sweeps_ahead = 1e12  # otherwise it continues as long as it improves

        def sweep(self):
            sweeps.append(1)
            super().sweep()

    start = new_start(np.full(problem.n_nodes, 6), 2)

    def value(best):
        sweeps.clear()
        descent = Counted(Terms.of(problem), start.W, start.B, 3, np.zeros(1))
        return descent.run(start.strategies, best=best, abandon_above=abandon_above).value

    least = value(math.inf)
    assert len(sweeps) > 1  # there is no best tree
    if best is not None:
        value(best * least)
        assert (len(sweeps) == 1) is once


def test_short_descents_use_few_directions_and_are_abandoned_far_from_the_best(monkeypatch):
    seen = []

    class Told(Descent):
        def run(self, strategies, **more):
            seen.append((bool(np.all(self.directions_failed)), more["abandon_above"] < 1.0))
            return super().run(strategies, **more)

    search = LocalSearch(checkered(), RunControl())
    monkeypatch.setattr("margotree.engines.local_search.search.Descent", Told)
    for short in (True, False):
        search.descent(search.levels.terms, new_start(np.full(3, 6), 2), 0, math.inf, short)
    assert seen == [(True, True), (False, False)]


def test_re_annealed_trees_go_through_a_short_descent():
    search = LocalSearch(checkered(depth=3), RunControl(), Effort(least=6, most=6))
    search.run([])
    tree = search.best[0]
    search, seen = LocalSearch(search.problem, RunControl()), []
    descent = search.descent

    def watched(terms, start, seed, best, short):
        seen.append(short)
        return descent(terms, start, seed, best, short)

    search.descent = watched
    for seed in (1, 2):
        search.descend(Job(start=reannealed_start(tree), level=0, seed=seed))
    search.descend(Job(start=unchanged_start(tree), level=0, seed=1))
    assert seen == [True, True, False]
