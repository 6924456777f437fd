"""Feature penalties in the dual active set, and the search that places samples first: duality, twins, brute force."""

import gc
import itertools
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import minmax_scale

from entries import add, add_hard_row, decide, penalised_bound, penalty_bound, rebuild, run, switch
from margotree.engines import Limits, RunControl, solve
from margotree.engines.branch_and_bound.engine import BranchAndBound
from margotree.engines.branch_and_bound.portfolio import furthest, is_stuck
from margotree.engines.branch_and_bound.portfolio import new_search as portfolio_search
from margotree.engines.branch_and_bound.strategies import Setup, search_below_least_penalty
from margotree.engines.exact.penalty_branching import PenaltyBrancher
from margotree.engines.exact.proof_search import NoProof
from margotree.engines.exact.sample_branching import MargotBrancher, Tactics
from margotree.engines.exact.search import Search
from margotree.engines.exact.support_branching import SupportTactics
from margotree.engines.node.kernels import cholesky, ratio_test
from margotree.engines.node.kernels import workspace as w
from margotree.engines.presolve import merge_duplicates
from margotree.engines.trivial_trees import allowed_value, trivial_tree
from margotree.problem import Problem
from margotree.solution import Stopped
from oracles import best_value

MANY = 10**6


class Node:
    """One random node problem with feature penalties, its workspace and its value by definition."""

    def __init__(self, seed, budget=1):
        rng = np.random.default_rng(seed)
        m, n = rng.integers(3, 45), rng.integers(1, 12)
        X = rng.integers(0, 3, (m, n)) / 2.0 if seed % 3 == 0 else rng.random((m, n))
        noise = 0.3 * rng.standard_normal(m)
        y = rng.choice([-1.0, 1.0], m) if seed % 2 else np.sign((X - 0.5) @ rng.standard_normal(n) + noise + 1e-9)
        self.rng, self.X, self.y = rng, X - X.mean(axis=0), y
        self.cost = 10.0 ** rng.integers(-2, 4) * rng.choice([1.0, 2.0, 0.5], m)
        self.alpha = 10.0 ** rng.uniform(-2, 3)
        self.ws = w.new_workspace(
            self.X, np.ones(m), self.cost[None], np.array([[self.alpha, budget]]), with_penalties=True, reach=100.0
        )
        for i in range(m):
            add(self.ws, 0, i, y[i])

    @property
    def value(self):
        return self.ws.g[0, w.NUM, w.VALUE]

    def of(self, field):
        """A field of all samples or of all features."""
        return {"w": self.ws.g[0, w.W], "r": self.ws.g[0, w.R], "u": self.ws.g[0, w.U]}[field][: self.X.shape[1]]

    def run(self):
        beyond = 1e3 * (1.0 + self.cost.sum() + self.alpha)  # any value of interest
        return run(self.ws, 0, beyond, MANY, 1e-9)

    def send(self, share):
        """Send a share of the samples to either side of a random hyperplane."""
        h = self.X @ self.rng.standard_normal(self.X.shape[1])
        soft = np.flatnonzero(self.ws.k[0, w.KIND, : len(h)] == w.SOFT)
        for i in self.rng.permutation(soft)[: int(share * len(h))]:
            side = 1.0 if h[i] > 0 else -1.0
            add_hard_row(self.ws, 0, 0, i, side, 0.0 if side > 0 else 1e-3)

    def check(self):
        """Strong duality, as far as huge multipliers of nearly impossible routings let margins tell it."""
        dual, primal = self.value, self.primal()
        mu = self.ws.f[0, w.O] * self.ws.f[0, w.NU]
        slack = 1e-9 * (1 + np.abs(mu).max()) + 1e-7 * (1 + primal)
        assert primal - 10 * slack <= dual <= primal + 1e-9 * (1 + primal)

    def primal(self):
        """Perspective of the weights, by definition, plus losses; routing rows checked."""
        weights, r = self.of("w"), self.of("r")
        h = self.X @ weights + self.ws.g[0, w.NUM, w.B]
        np.testing.assert_allclose(h, self.ws.f[0, w.H], atol=1e-7 * (1 + np.abs(h).max()))
        hard = self.ws.k[0, w.KIND, : len(h)] != w.SOFT
        margin = self.ws.f[0, w.O] * h - self.ws.f[0, w.DELTA]
        assert np.all(margin[hard] >= -1e-6 * (1 + np.abs(h).max()))
        size = np.abs(weights)
        assert np.all(size[np.isinf(r)] == 0.0)
        never = np.isinf(r)
        r = np.where(never, 0.0, r)
        perspective = np.where(size < r, r * size, 0.5 * (size**2 + r**2))
        return perspective[~never].sum() + self.cost @ np.maximum(0.0, 1.0 - self.y * h)


@pytest.mark.parametrize("block", range(4))
def test_the_dual_value_is_the_primal_one(block):
    """400 node problems, with and without routing rows, and with features decided one after another."""
    solved = decided = 0
    for seed in range(40 * block, 40 * block + 40):
        node = Node(seed)
        for share in (0.0, 0.2, 0.2):
            node.send(share)
            outcome = node.run()
            assert outcome != ratio_test.STALLED
            if outcome == ratio_test.OPTIMAL:
                node.check()
                solved += 1
        if outcome != ratio_test.OPTIMAL:
            continue
        for j in node.rng.permutation(node.X.shape[1]):
            before = node.value
            must = bool(node.rng.random() < 0.5)
            decide(node.ws, 0, j, must)
            outcome = node.run()
            if outcome != ratio_test.OPTIMAL:
                assert outcome != ratio_test.STALLED
                break
            node.check()
            value = node.value
            assert value + (node.alpha if must else 0.0) >= before - 1e-6 * (1 + abs(before))
            decided += 1
    assert solved > 60 and decided > 60


@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_the_factor_follows_features_that_are_switched(seed, grid):
    """On a grid free items become dependent when features go; they must leave and the rest stay factored."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (20, 6)) / 2.0 if grid else rng.standard_normal((20, 6))
    ws = w.new_workspace(X, np.ones(20), np.ones((1, 20)), np.array([[1.0, 1.0]]), with_penalties=True)
    for i in range(20):
        add(ws, 0, i, 1.0)
    ws.g[0, w.ON], ws.cnt[0, w.N_FREE], ws.k[0, w.FREE, :4] = 1.0, 4, rng.choice(20, 4, replace=False)
    rebuild(ws, 0)
    for j in rng.integers(6, size=40):
        ws.g[0, w.ON, j] = 1.0 - ws.g[0, w.ON, j]
        switch(ws, 0, j)
        k = ws.cnt[0, w.N_FREE]
        on = X[ws.k[0, w.FREE, :k]] * ws.g[0, w.ON, :6]
        L = np.tril(ws.g[0, w.FACTOR : w.FACTOR + k, :k])
        np.testing.assert_allclose(L @ L.T, on @ on.T + cholesky.RHO, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(L @ ws.g[0, w.V, :k], 1.0, rtol=1e-9)


@given(seed=st.integers(0, 10**6), budget=st.integers(0, 4))
@settings(max_examples=25)
def test_the_penalty_is_the_best_between_0_and_alpha(seed, budget):
    node = Node(seed, budget)
    run(node.ws, 0, 1e9, 5, 1e-9)
    u, terms = node.of("u"), float(node.ws.f[0, w.NU].sum())
    penalties = np.append(np.minimum(0.5 * u**2, node.alpha), [0.0, node.alpha])
    naive = max(terms - 0.5 * np.maximum(u**2 - 2 * p, 0.0).sum() - p * budget for p in penalties)
    assert penalised_bound(node.ws, 0) == pytest.approx(naive, rel=1e-6, abs=1e-6)
    assert penalised_bound(node.ws, 0) <= naive + 1e-9 * (1 + abs(naive))


@given(
    weights=st.lists(st.sampled_from([0.0, 0.5, -0.5, 1.0, 2.0, -3.0]), min_size=1, max_size=7),
    alpha=st.sampled_from([0.1, 1.0, 2.0]),
    budget=st.integers(0, 8),
)
def test_penalties_of_a_point_found_without_them(weights, alpha, budget):
    paid = sorted((min(0.5 * x * x, alpha) for x in weights), reverse=True)
    n = len(weights)
    ws = w.new_workspace(np.zeros((1, n)), np.ones(1), np.ones((1, 1)), np.array([[alpha, budget]]))
    ws.g[0, w.U, :n] = weights
    assert penalty_bound(ws, 0) == pytest.approx(sum(paid[budget:]), abs=1e-12)


def random_problem(seed, m, n, depth):
    """As nasty as those of the other searches, all with feature penalties; budgets from none to all features."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (m, n)) / 2.0 if seed % 3 == 0 else rng.random((m, n))
    return Problem.make(
        X,
        rng.choice([-1.0, 1.0], m),
        depth=depth,
        C=10.0 ** rng.integers(-3, 4, depth),
        weight=rng.choice([1.0, 2.0, 0.5], m),
        budget=rng.integers(1, n + 1, depth),
        alpha=10.0 ** rng.integers(-2, 3, depth),
    )


def searched(problem, make, limits, steps=200):
    problem, _ = merge_duplicates(problem)
    search = new_search(problem, make(problem, Tactics(steps=steps)), limits)
    search.run()
    return search


def features_first(problem, tactics):
    return MargotBrancher(problem, replace(tactics, features_first=True))


#: In two stages, in one, and in one that decides features before it places samples.
WAYS = (PenaltyBrancher, MargotBrancher, features_first)


def new_search(problem, brancher, limits, **options):
    value = lambda tree: allowed_value(problem, tree)  # noqa: E731
    return Search(brancher, value, RunControl(limits), trivial_tree(problem), **options)


@pytest.mark.parametrize("block", range(10))
def test_agrees_with_brute_force(block):
    """500 random instances searched in each way, stopped early and solved: bounds stay below, optima are met."""
    for seed in range(50 * block, 50 * block + 50):
        problem = random_problem(seed, 3 + seed % 4, 1 + seed % 3, 1 + (seed // 7) % 2)
        best = best_value(problem)
        for make in WAYS:
            early = searched(problem, make, Limits(gap=1e-6, nodes=seed % 4), steps=1)
            assert early.bound <= best * (1 + 1e-7) + 1e-8
            full = searched(problem, make, Limits(gap=1e-6))
            assert full.best == pytest.approx(best, rel=2e-6, abs=1e-6), (seed, make)
            assert best * (1 - 2e-6) - 1e-6 <= full.bound <= best * (1 + 1e-7) + 1e-8, (seed, make)


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_brute_force_at_depth_three(seed):
    problem = random_problem(seed, 4, 2, 3)
    for make in WAYS:
        full = searched(problem, make, Limits(gap=1e-6))
        assert full.best == pytest.approx(best_value(problem), rel=2e-6, abs=1e-6)


def larger_problem(seed, m=24, n=4):
    rng = np.random.default_rng(seed)
    X = rng.random((m, n))
    y = np.where((X[:, 0] - 0.5) * (X[:, 1] - 0.4) + 0.05 * rng.standard_normal(m) > 0, 1.0, -1.0)
    return Problem.make(X, y, depth=2, C=[1.0, 10.0], budget=[1, 1], alpha=[2.0, 2.0])


@pytest.mark.parametrize("seed", range(3))
def test_all_ways_and_threads_agree(seed):
    """Too large for brute force: each way and two threads must come to the same value."""
    problem = larger_problem(seed)
    values = [
        searched(problem, make, Limits(gap=1e-5, n_jobs=jobs, time=600)).best
        for make, jobs in itertools.product(WAYS, (1, 2))
    ]
    np.testing.assert_allclose(values, values[0], rtol=3e-5)


def test_a_stopped_search_goes_on_where_it_was():
    problem, _ = merge_duplicates(larger_problem(0))
    whole = searched(problem, PenaltyBrancher, Limits())
    search = new_search(problem, PenaltyBrancher(problem, Tactics(steps=5)), Limits(nodes=20))
    search.run()
    bound, steps = search.bound, search.steps
    assert 0 < steps <= 20 and bound < search.best
    search.run(RunControl(Limits()))
    assert search.steps > steps and search.bound >= bound
    assert search.best == pytest.approx(whole.best, rel=2e-4)


def test_the_garbage_collector_does_not_track_open_nodes():
    """It stops all threads while it visits what it tracks, and the time limit is not checked then."""
    problem, _ = merge_duplicates(larger_problem(0))
    search = new_search(problem, MargotBrancher(problem, Tactics(steps=5)), Limits(nodes=50))
    search.run()
    for _ in range(3):  # tuples are let go when what is in them has been
        gc.collect()
    assert search.open_nodes > 5
    assert not any(gc.is_tracked(waiting) for waiting in search.queue)


def test_a_bound_known_beforehand_ends_the_search():
    problem, _ = merge_duplicates(larger_problem(1))
    whole = searched(problem, PenaltyBrancher, Limits())
    search = new_search(problem, PenaltyBrancher(problem), Limits())
    search.offer(whole.incumbent)
    search.floor = whole.bound
    search.run()
    assert search.steps == 0 and search.bound == pytest.approx(whole.bound)


@pytest.mark.parametrize("share", [0.5, 0.9, 1.1])
def test_a_search_with_a_ceiling_proves_that_or_the_optimum(share):
    problem, _ = merge_duplicates(larger_problem(1))
    whole = searched(problem, PenaltyBrancher, Limits())
    search = new_search(problem, PenaltyBrancher(problem), Limits(), ceiling=share * whole.best)
    assert search.bound == -np.inf  # nothing is proved yet
    assert search.run() == Stopped.SOLVED
    assert search.bound == pytest.approx(min(share * whole.best, whole.bound), rel=2e-4)
    assert search.bound <= whole.best


def test_the_cost_of_trees_without_penalised_features_is_a_bound():
    """60 random instances: the bound is the least penalty or, if that is less, the optimum, and never more."""
    above = 0
    for seed in range(60):
        problem, _ = merge_duplicates(random_problem(seed, 3 + seed % 4, 2 + seed % 2, 1 + seed % 2))
        penalties = problem.alpha[(problem.alpha > 0) & (problem.budget < problem.n_features)]
        if not len(penalties):
            continue
        best, penalty = best_value(problem), penalties.min()
        search = new_search(problem, MargotBrancher(problem), Limits(nodes=1))
        search.run()
        control = RunControl(Limits(gap=1e-6))
        setup = Setup(
            problem=problem, start=None, control=control, tactics=Tactics(), sparse=SupportTactics(), proof=NoProof(),
            new_search=portfolio_search,
        )  # fmt: skip
        search_below_least_penalty(setup, search, control)
        assert search.bound <= best + 1e-9 * (1 + best)
        assert search.bound >= min(penalty, best) - 2e-4 * (1 + best)  # the search's own gap
        above += penalty < best
    assert above > 10


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.3])
def test_whichever_way_goes_on_finds_the_optimum(seconds, monkeypatch):
    """However short the trials are, nothing that was found or proved is lost."""
    monkeypatch.setattr("margotree.engines.branch_and_bound.portfolio._TRIAL_MOST", seconds)
    problem = larger_problem(2, m=30)  # too much for the shortest of them
    answer = BranchAndBound().solve(problem, RunControl(Limits(gap=1e-5, time=600))).certificate
    whole = searched(problem, PenaltyBrancher, Limits(gap=1e-5))
    assert answer.stopped == Stopped.SOLVED
    assert answer.objective == pytest.approx(whole.best, rel=3e-5)
    assert answer.bound <= whole.best * (1 + 1e-9)


@pytest.mark.parametrize("model", ["hfs", "sfs"])
def test_everything_is_compiled_before_the_clock_starts(model):
    """In a process of its own, as others here have compiled all there is."""
    code = f"""
from margotree.engines.branch_and_bound.engine import BranchAndBound
from margotree.engines.exact.kernels.plunge import plunge, plunge_penalised
from margotree.problem.tiny_problems import tiny_problem
BranchAndBound().prepare(tiny_problem("{model}"))
print(len(plunge.signatures), len(plunge_penalised.signatures))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1" if model == "sfs" else "0"]


class Tried:
    """Stands in for a search: comes to ``own`` after ten steps, for a reason, and gains ``pace`` each time after."""

    best, control = 10.0, RunControl()

    def __init__(self, own, reason=Stopped.TIME, pace=0.0):
        self.own_bound, self.reason, self.floor, self.steps, self.pace = own - pace, reason, 0.0, 0, pace
        self.incumbent, self.offered = object(), []

    @property
    def bound(self):
        return max(self.floor, self.own_bound)

    def run(self, control):
        self.steps += 10
        self.own_bound += self.pace

    def offer(self, tree):
        self.offered.append(tree)


@pytest.mark.parametrize(
    ("own", "wins", "steps"), [((5.0, 1.0, 3.0), 0, 37), ((1.0, 5.0, 3.0), 1, 37), ((1.0, 3.0, 5.0), 2, 37)]
)
def test_the_search_that_goes_on_has_what_all_have_found(own, wins, steps):
    ways = [Tried(bound) for bound in own]
    ways[0].floor, ways[0].steps = 4.0, 7
    chosen = furthest(ways, RunControl(Limits(time=10)), 0.1)
    assert chosen is ways[wins]
    assert chosen.bound == 5.0 and chosen.steps == steps
    assert ways[1].offered[0] is ways[0].incumbent and ways[2].offered[0] is ways[1].incumbent
    assert wins == 2 or chosen.offered[-1] is ways[2].incumbent


@pytest.mark.parametrize(("pace", "wins", "steps"), [((0.0, 0.2, 0.0), 1, 70), ((0.5, 0.0, 0.0), 0, 50)])
def test_searches_that_are_close_are_tried_again(pace, wins, steps):
    ways = [Tried(own, pace=more) for own, more in zip((5.0, 4.9, 3.0), pace, strict=True)]
    chosen = furthest(ways, RunControl(Limits(time=10)), 0.1)
    assert chosen is ways[wins] and chosen.steps == steps
    assert ways[2].steps == 30  # it was tried once, after the others


def test_a_search_that_solves_the_problem_is_the_last_one_tried():
    ways = [Tried(5.0), Tried(1.0, Stopped.SOLVED), Tried(9.0)]
    assert furthest(ways, RunControl(Limits(time=10)), 0.1) is ways[1]
    assert ways[1].floor == 5.0 and ways[1].steps == 20 and ways[2].steps == 0


def test_a_search_that_is_stuck_leaves_it_to_the_others():
    """It has nothing left to do, and yet a node could not be solved."""
    ways = [Tried(9.0, reason=None), Tried(1.0), Tried(3.0)]
    assert furthest(ways, RunControl(Limits(time=10)), 0.1) is ways[2]
    assert ways[2].floor == 9.0  # what it has proved is proved
    done = Tried(10.0 * (1.0 - 1e-9), reason=None)  # as close as numbers are, though not by a target of nothing
    done.control = RunControl(Limits(gap=0.0))
    assert not is_stuck(done)
    alone = [Tried(9.0, reason=None)]
    assert furthest(alone, RunControl(Limits(time=10)), 0.1) is alone[0]


@pytest.mark.skipif(not os.environ.get("MARGOTREE_DATA"), reason="MARGOTREE_DATA is not set")
def test_a_table_on_which_the_search_over_supports_gets_stuck_is_certified():
    """24 different rows of up to 506 equal ones: rows of the root's problem contradict each other by a hair."""
    path = Path(os.environ["MARGOTREE_DATA"]) / "breadth" / "titanic.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    table = np.genfromtxt(path, delimiter=",", skip_header=1)
    X, _, y, _ = train_test_split(table[:, :-1], table[:, -1], random_state=1, stratify=table[:, -1], train_size=0.75)
    y = np.where(y == y.max(), 1.0, -1.0)
    problem = Problem.make(minmax_scale(X), y, depth=2, C=100.0, budget=1, alpha=1.0, eps=1e-6)
    found = solve(problem, engine="bnb", limits=Limits(time=60, gap=1e-4)).certificate
    assert found.gap <= 1e-4 and found.objective == pytest.approx(149308.698, rel=1e-6)
