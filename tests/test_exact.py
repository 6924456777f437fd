"""The exact engine against brute force, and the laws of its search."""

import itertools
import signal
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entries import load
from margotree.engines import Limits, RunControl, local_search_engine, run_control, solve
from margotree.engines.branch_and_bound.engine import BranchAndBound
from margotree.engines.exact import neighbourhood_search as improving
from margotree.engines.exact.kernels.routing import PLACE
from margotree.engines.exact.sample_branching import MargotBrancher, Tactics
from margotree.engines.exact.search import Search
from margotree.engines.local_search.search import Effort
from margotree.engines.node.svm import solve_node
from margotree.engines.polish import polish
from margotree.engines.presolve import merge_duplicates
from margotree.engines.trivial_trees import trivial_tree
from margotree.problem import Problem, Splits, evaluate, topology
from margotree.solution import Proved, Stopped, verify
from oracles import best_value
from patience import slowness, three_tries

TIGHT = Limits(gap=1e-7)


def random_problem(seed, m, n=2, depth=2, *, grid=None):
    """Small problems: weights, C over six decades, and on a grid many equal points with either label."""
    rng = np.random.default_rng(seed)
    grid = seed % 3 == 0 if grid is None else grid
    X = rng.integers(0, 3, (m, n)) / 2.0 if grid else rng.random((m, n))
    y = rng.choice([-1.0, 1.0], m)
    weight = rng.choice([1.0, 1.0, 2.0, 0.5], m)
    C = 10.0 ** rng.integers(-3, 4, depth)
    return Problem.make(X, y, depth=depth, C=C, weight=weight)


def bnb(problem, limits=TIGHT, tactics=None, start=None):
    solution = BranchAndBound(tactics).solve(problem, RunControl(limits), start)
    verify(problem, solution)
    return solution


@pytest.mark.parametrize(("depth", "m"), [(1, 10), (2, 7), (3, 5)])
@pytest.mark.parametrize("seed", range(8))
def test_agrees_with_brute_force(seed, depth, m):
    problem = random_problem(100 * depth + seed, m, depth=depth)
    best = best_value(problem)
    certificate = bnb(problem).certificate
    assert certificate.proved is Proved.OPTIMAL
    assert certificate.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert certificate.bound <= best * (1 + 1e-7) + 1e-9


@pytest.mark.parametrize("block", range(8))
def test_no_bound_above_the_optimum(block):
    """2,000 random instances, each stopped after 0 to 3 steps: the bound must lie below brute force."""
    for seed in range(100 * block, 100 * block + 100):
        problem = random_problem(seed, 3 + seed % 3, n=1 + seed % 2, depth=1 + (seed // 7) % 2)
        best = best_value(problem)
        tactics = Tactics(steps=1, improve=False)
        early = bnb(problem, Limits(gap=1e-7, nodes=seed % 4), tactics).certificate
        assert early.bound <= best + 1e-6 * (1 + best)
        final = bnb(problem, TIGHT, tactics).certificate
        assert final.bound <= best + 1e-6 * (1 + best)
        assert final.objective == pytest.approx(best, rel=1e-6, abs=1e-6)


@given(seed=st.integers(0, 10**6), depth=st.integers(2, 3))
@settings(max_examples=15)
def test_a_bound_never_drops_from_parent_to_child(seed, depth):
    problem, _ = merge_duplicates(random_problem(seed, 25, n=3, depth=depth))
    brancher = MargotBrancher(problem, Tactics(steps=1))
    worker = brancher.worker()
    shared = np.array([evaluate(problem, trivial_tree(problem)).objective, 0.0])
    records = [brancher.root()]
    for _ in range(6):
        if not records:
            break
        parent = records.pop()
        for child in worker.dive(parent, shared).left:
            assert child.bound >= parent.bound
            # Solved again from its record, with the other samples sent where they are headed, the child has at
            # least the bound of its record.
            load(worker.ws, worker.routing, child.data[0], np.concatenate([child.data[1], np.zeros(99)]))
            place = worker.routing.at[PLACE, : problem.n_samples]
            assert solved_again(problem, place) >= child.bound - 1e-6 * (1 + child.bound)
            records.append(child)


def solved_again(problem, place):
    """The value of a tree that has every placed sample where a record has it; inf if there is none."""
    at = place.copy()
    for t in topology.upper(problem.depth):
        ways = [dict(topology.path_to(int(p))) | {int(p): 0} for p in place]
        rows = np.array([i for i, way in enumerate(ways) if t in way], dtype=np.int64)
        sides = [ways[i][t] for i in rows]
        cost = problem.C[t] * problem.weight[rows]
        found = solve_node(problem.X[rows], problem.y[rows], cost, side=sides, eps=problem.eps)
        if not found.feasible:
            return np.inf
        waiting = at == t
        goes_right = problem.X[waiting] @ found.w + found.b >= 0
        at[waiting] = np.where(goes_right, topology.right(t), topology.left(t))
    tree = polish(problem, at)
    return np.inf if tree is None else evaluate(problem, tree).objective


def test_trees_solved_again_are_found():
    """Without them the test above would not test anything."""
    problem, _ = merge_duplicates(random_problem(1, 25, n=3))
    brancher = MargotBrancher(problem, Tactics(steps=1))
    trivial = evaluate(problem, trivial_tree(problem)).objective
    left = brancher.worker().dive(brancher.root(), np.array([trivial, 0.0])).left
    assert left and np.isfinite(solved_again(problem, np.zeros(problem.n_samples, np.int64)))


@given(seed=st.integers(0, 10**6))
@settings(max_examples=15)
def test_order_of_samples_does_not_matter(seed):
    problem = random_problem(seed, 12)
    order = np.random.default_rng(seed).permutation(12)
    shuffled = Problem.make(problem.X[order], problem.y[order], depth=2, C=problem.C, weight=problem.weight[order])
    one, two = bnb(problem).certificate.objective, bnb(shuffled).certificate.objective
    assert one == pytest.approx(two, rel=1e-5, abs=1e-7)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=15)
def test_equal_samples_are_one_heavier_sample(seed):
    problem = random_problem(seed, 14, grid=True)
    merged, stands_for = merge_duplicates(problem)
    assert merged.n_samples <= problem.n_samples
    np.testing.assert_array_equal(merged.X[stands_for], problem.X)
    np.testing.assert_array_equal(merged.y[stands_for], problem.y)
    tree = bnb(problem).splits
    assert evaluate(merged, tree).objective == pytest.approx(evaluate(problem, tree).objective, rel=1e-9)


def hard_problem(m=150, n=6, seed=1, C=(0.3, 1.0)):
    """No structure: not solved within a few seconds."""
    rng = np.random.default_rng(seed)
    return Problem.make(rng.random((m, n)), rng.choice([-1.0, 1.0], m), depth=2, C=C)


def test_one_thread_is_reproducible_to_the_bit():
    problem = hard_problem(m=40)
    one, two = (bnb(problem, Limits(nodes=400)) for _ in range(2))
    assert one.certificate.nodes == two.certificate.nodes
    assert one.certificate.bound == two.certificate.bound
    np.testing.assert_array_equal(one.splits.w, two.splits.w)


def test_two_threads_find_the_same_value():
    problem = random_problem(3, 14, n=3)
    one, two = bnb(problem), bnb(problem, Limits(gap=1e-7, n_jobs=2))
    assert two.certificate.proved is Proved.OPTIMAL
    assert one.certificate.objective == pytest.approx(two.certificate.objective, rel=1e-6)


def test_node_limit_holds_and_proves_no_optimum():
    certificate = bnb(hard_problem(), Limits(nodes=50), Tactics(steps=10)).certificate
    assert certificate.stopped is Stopped.NODES
    assert certificate.proved is Proved.WITHIN_GAP
    assert certificate.nodes == 50
    assert 0 < certificate.bound < certificate.objective


@three_tries
def test_time_limit_holds():
    bnb(random_problem(0, 5))  # compiled before the clock starts
    slow = slowness()
    began = time.perf_counter()
    certificate = bnb(hard_problem(), Limits(time=slow)).certificate
    assert time.perf_counter() - began < 4.0 * slow
    assert certificate.stopped is Stopped.TIME
    assert certificate.proved is not Proved.OPTIMAL


def test_memory_limit_holds_and_the_search_goes_on():
    """Above the limit the search is depth first, and its bound stays valid."""
    problem = hard_problem(m=40)
    free = bnb(problem, Limits(nodes=3000))
    control = RunControl(Limits(nodes=3000, memory=1e5))
    search = Search(MargotBrancher(problem), lambda t: evaluate(problem, t).objective, control, free.splits)
    stopped = search.run()
    assert stopped is Stopped.NODES
    assert 1e4 < search.memory < 1.5e5
    assert 0 < search.bound <= free.certificate.objective


def test_interruption_returns_the_incumbent():
    problem = hard_problem()
    bnb(random_problem(0, 5))
    timer = threading.Timer(0.7, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    solution = solve(problem, engine="bnb", limits=Limits(time=60), start=None)
    timer.join()
    assert solution.certificate.stopped is Stopped.INTERRUPTED
    assert evaluate(problem, solution.splits).feasible


@three_tries
def test_progress_has_incumbent_bound_and_nodes():
    events = []
    solve(hard_problem(), engine="bnb", limits=Limits(time=2 * slowness()), start=None, listener=events.append)
    last = [e for e in events if e.phase == "search"][-1]
    assert last.incumbent < np.inf and last.bound > 0 and last.nodes > 0 and last.open_nodes > 0
    bounds = [e.bound for e in events if e.phase == "search"]
    assert all(b >= a - 1e-9 for a, b in itertools.pairwise(bounds))


def test_a_start_is_never_made_worse():
    problem = hard_problem(m=60)
    start = trivial_tree(problem)
    solution = bnb(problem, Limits(nodes=1), Tactics(improve=False), start)
    assert solution.certificate.objective <= evaluate(problem, start).objective


@pytest.mark.parametrize("seed", range(8))
def test_equal_samples_are_merged_in_the_order_in_which_they_first_appear(seed):
    """Against a plain implementation."""
    problem = random_problem(seed, 30, grid=seed % 2 == 0)
    merged, stands_for = merge_duplicates(problem)
    seen = {}
    for i, row in enumerate(zip(problem.X.tolist(), problem.y.tolist(), strict=True)):
        seen.setdefault(str(row), []).append(i)
    kept = [rows[0] for rows in seen.values()]
    assert merged.X.tolist() == problem.X[kept].tolist() and merged.y.tolist() == problem.y[kept].tolist()
    assert merged.weight == pytest.approx([problem.weight[rows].sum() for rows in seen.values()])
    assert all(stands_for[i] == k for k, rows in enumerate(seen.values()) for i in rows)


@pytest.mark.parametrize("label", [1.0, -1.0])
@pytest.mark.parametrize("eps", [1e-3, 2.0])
def test_no_constant_tree_is_better_than_the_trivial_one(label, eps):
    y = label * np.array([1.0, 1.0, 1.0, -1.0, 1.0])
    problem = Problem.make(np.arange(5.0)[:, None], y, depth=2, C=[2.0, 3.0], eps=eps)
    trivial = evaluate(problem, trivial_tree(problem))
    assert trivial.feasible
    for b in itertools.product([1.0, -max(1.0, eps)], [1.0, -1.0], [1.0, -1.0]):
        other = evaluate(problem, Splits(w=np.zeros((3, 1)), b=b))
        assert trivial.objective <= other.objective


@pytest.mark.parametrize("huge", [0, 10**9])
@pytest.mark.parametrize("seed", range(12))
def test_where_samples_are_many_the_bound_holds_and_the_tree_is_allowed(seed, huge, monkeypatch):
    """The strategy for large tables, on small ones: with a search at the end, and without."""
    monkeypatch.setattr("margotree.engines.branch_and_bound.strategies.MANY", 1)
    monkeypatch.setattr("margotree.engines.branch_and_bound.strategies._HUGE", huge)
    monkeypatch.setattr("margotree.engines.branch_and_bound.strategies.LARGE", 1)
    problem = random_problem(seed, 6)
    best = best_value(problem)
    certificate = bnb(problem, Limits(gap=1e-6, time=600)).certificate
    trivial = evaluate(problem, trivial_tree(problem)).objective
    assert certificate.bound <= best + 1e-6 * (1 + best)
    assert best - 1e-6 * (1 + best) <= certificate.objective <= trivial + 1e-9
    assert certificate.stopped == "solved" or (huge == 0 and certificate.stopped == "heuristic finished")
    assert (certificate.proved is Proved.OPTIMAL) == (certificate.stopped == "solved")


def test_ctrl_c_during_the_local_search_is_the_reason(monkeypatch):
    """The trial before it ended by its own limit, which is not the reason of the whole fit."""
    rng = np.random.default_rng(0)
    problem = Problem.make(rng.random((60, 4)), np.where(rng.random(60) < 0.5, 1.0, -1.0), depth=2, C=10.0)
    control = RunControl(Limits(nodes=10**6, gap=1e-6))
    looked = []

    def look(*_, **__):
        looked.append(1)
        control.interrupt()
        return trivial_tree(problem)

    monkeypatch.setattr("margotree.engines.branch_and_bound.portfolio.FAR", -1.0)
    monkeypatch.setattr("margotree.engines.branch_and_bound.portfolio.better_tree", look)
    monkeypatch.setattr("margotree.engines.branch_and_bound.strategies._ALONE_SHARE", 0.0)
    certificate = BranchAndBound().solve(problem, control).certificate
    assert looked and certificate.stopped == Stopped.INTERRUPTED


def test_neighbourhoods_without_improvement_are_not_searched_again():
    """A second search around a tree continues after the neighbourhoods that the first one has tried."""
    problem, _ = merge_duplicates(random_problem(3, 30, n=3, depth=2))
    brancher, tried = MargotBrancher(problem, Tactics()), {}
    start = trivial_tree(problem)
    first = improving.improve(brancher, [start], RunControl(), shuffles=1, tried=tried)
    value = evaluate(problem, first).objective
    assert value < evaluate(problem, start).objective
    before = tried[value]
    again = improving.improve(brancher, [first], RunControl(), shuffles=1, tried=tried)
    assert evaluate(problem, again).objective <= value and before < tried[value] < 2 * before


@pytest.mark.parametrize(("far", "times"), [(-1.0, 2), (2.0, 1)])
def test_the_local_search_runs_again_where_the_gap_is_large(monkeypatch, far, times):
    rng = np.random.default_rng(0)
    problem = Problem.make(rng.random((60, 4)), np.where(rng.random(60) < 0.5, 1.0, -1.0), depth=2, C=10.0)
    looked = []

    def look(problem, first, control, gap, *, waited=False):
        looked.append(waited)
        return first

    monkeypatch.setattr("margotree.engines.branch_and_bound.portfolio.FAR", far)
    monkeypatch.setattr("margotree.engines.branch_and_bound.portfolio.better_tree", look)
    BranchAndBound().solve(problem, RunControl(Limits(nodes=300, gap=1e-6)))
    assert looked == [False, True][:times]


def test_the_local_search_is_longer_where_the_gap_is_larger(monkeypatch):
    now, seen = SimpleNamespace(at=0.0), []
    monkeypatch.setattr(run_control, "time", SimpleNamespace(perf_counter=lambda: now.at))
    monkeypatch.setattr(
        local_search_engine,
        "run_local_search",
        lambda _, __, part, effort, *___: seen.append((part.limits.time, (effort or Effort()).patience)),
    )
    problem = random_problem(1, 20, n=2, depth=2)
    hard = replace(problem, budget=np.ones(3, np.int64))

    def given(problem, gap, waited, **limits):
        now.at = 0.0
        control = RunControl(Limits(**limits))
        now.at = 50.0
        local_search_engine.better_tree(problem, None, control, gap, waited=waited)
        return seen.pop()

    found = [given(problem, gap, waited, time=100.0) for gap, waited in ((0.2, False), (0.2, True), (0.8, True))]
    seconds, patience = zip(*found, strict=True)
    assert 0.0 < seconds[0] < seconds[1] < seconds[2] < 50.0 and patience[0] < patience[1] < patience[2]
    assert given(problem, 0.95, False, time=100.0) == found[2]  # no proof is within reach
    assert seconds[0] < given(hard, 0.95, False, time=100.0)[0] < seconds[2]  # a search over supports may close it
    for gap, waited in ((0.2, False), (0.2, True), (0.8, True)):  # no time limit would end a long patience
        assert given(problem, gap, waited, nodes=100)[1] <= Effort().patience


def test_above_2000_samples_the_local_search_makes_the_start():
    for m in (2000, 2001):
        assert BranchAndBound().makes_start(random_problem(1, m, n=2, depth=2)) is (m > 2000)
