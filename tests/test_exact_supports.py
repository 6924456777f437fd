"""The exact engine under feature budgets: brute force over supports and routings, and the parts of the search."""

import numpy as np
import pytest

from margotree.engines import Limits, RunControl, solve
from margotree.engines.branch_and_bound.engine import BranchAndBound
from margotree.engines.exact.support_branching import SupportTactics
from margotree.engines.polish import without_noise
from margotree.problem import Problem, Splits
from margotree.solution import Proved, verify
from oracles import best_value
from patience import slowness, three_tries

TIGHT = Limits(gap=1e-6)


def random_problem(seed, m, n=3, depth=2):
    """Small problems: weights, C over six decades, grids with equal points of either label, any budget and penalty."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (m, n)) / 2.0 if seed % 3 == 0 else rng.random((m, n))
    y = rng.choice([-1.0, 1.0], m)
    weight = rng.choice([1.0, 1.0, 2.0, 0.5], m)
    C = 10.0 ** rng.integers(-3, 4, depth)
    budget = rng.integers(1, n + 1, depth)
    alpha = None if seed % 2 else 10.0 ** rng.integers(-2, 3, depth)
    return Problem.make(X, y, depth=depth, C=C, weight=weight, budget=budget, alpha=alpha)


def bnb(problem, limits=TIGHT, tactics=None, start=None):
    solution = BranchAndBound(sparse=tactics).solve(problem, RunControl(limits), start)
    verify(problem, solution)
    return solution


#: Supports on a list, and partly decided ones as where there are many.
LISTED, GROWN = SupportTactics(), SupportTactics(listed=0)


@pytest.mark.parametrize(("depth", "m"), [(1, 9), (2, 6), (3, 4)])
@pytest.mark.parametrize("seed", range(8))
def test_agrees_with_brute_force(seed, depth, m):
    problem = random_problem(100 * depth + seed, m, depth=depth)
    best = best_value(problem)
    certificate = bnb(problem, tactics=GROWN if seed % 4 == 0 else LISTED).certificate
    assert certificate.proved is Proved.OPTIMAL
    assert certificate.objective == pytest.approx(best, rel=2e-6, abs=1e-6)
    assert certificate.bound <= best * (1 + 1e-7) + 1e-8


@pytest.mark.parametrize("block", range(8))
def test_no_bound_above_the_optimum(block):
    """1,000 random instances, each stopped after 0 to 3 steps: the bound must lie below brute force."""
    for seed in range(50 * block, 50 * block + 50):
        problem = random_problem(seed, 3 + seed % 3, n=1 + seed % 3, depth=1 + (seed // 7) % 2)
        best = best_value(problem)
        listed = 0 if seed % 4 == 0 else 600
        tactics = SupportTactics(steps=1, complete=3, listed=listed)
        early = bnb(problem, Limits(gap=1e-6, nodes=seed % 4), tactics).certificate
        assert early.bound <= best * (1 + 1e-7) + 1e-8
        assert early.objective >= best * (1 - 1e-7) - 1e-8
        full = bnb(problem, tactics=SupportTactics(listed=listed)).certificate
        assert full.proved is Proved.OPTIMAL
        assert full.objective == pytest.approx(best, rel=2e-6, abs=1e-6)


def test_weights_that_are_only_rounding_are_left_out():
    problem = random_problem(4, 6)
    clean = bnb(problem).splits
    noisy = Splits(w=np.where(clean.w == 0.0, 1e-14, clean.w), b=clean.b)
    assert np.array_equal(without_noise(problem, noisy).w, clean.w)
    assert without_noise(problem, clean) is clean


@pytest.mark.parametrize("seed", range(12))
def test_too_many_supports_to_list_give_a_bound_and_a_tree(seed, monkeypatch):
    monkeypatch.setattr("margotree.engines.branch_and_bound.strategies._MOST_SUPPORTS", 1)
    problem = random_problem(seed, 6, n=3)
    problem = Problem.make(problem.X, problem.y, depth=2, C=problem.C, eps=problem.eps, budget=1)
    best = best_value(problem)
    certificate = bnb(problem, Limits(gap=1e-6, nodes=300)).certificate
    assert certificate.bound <= best * (1 + 1e-7) + 1e-8
    assert best * (1 - 1e-7) - 1e-8 <= certificate.objective <= best * 1.5 + 1e-8
    assert certificate.stopped in {"heuristic finished", "node limit", "solved"}
    assert (certificate.proved is Proved.OPTIMAL) == (certificate.stopped == "solved")


@three_tries
def test_five_of_thirty_features_need_no_other_solver():
    rng = np.random.default_rng(0)
    X = rng.random((80, 30))
    problem = Problem.make(X, np.where(X[:, 0] + X[:, 1] > X[:, 2] + 0.5, 1.0, -1.0), depth=2, C=10.0, budget=5)
    solution = solve(problem, limits=Limits(time=3 * slowness()))
    assert solution.certificate.engine == "bnb" and 0 < solution.certificate.bound <= solution.certificate.objective
    assert np.all(np.count_nonzero(solution.splits.w, axis=1) <= 5)
