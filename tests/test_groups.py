"""Budgets and penalties that count groups of features, in the exact search and in the local search."""

from dataclasses import replace

import numpy as np
import pytest
from tests.proofs.spoil import both

from margotree.engines.branch_and_bound import strategies
from margotree.engines.branch_and_bound.engine import BranchAndBound
from margotree.engines.exact.support_lists import list_supports
from margotree.engines.local_search.search import Effort
from margotree.engines.local_search_engine import Alternating
from margotree.engines.run_control import Limits, RunControl
from margotree.problem import Problem
from margotree.problem.tasks import BINARY
from margotree.proof.write import ProofWriter
from oracle.grouped import instance
from oracles import best_value


def few_nodes(nodes: int) -> RunControl:
    return RunControl(Limits(nodes=nodes))


@pytest.mark.parametrize("block", range(6))
def test_engines_agree_with_brute_force_over_groups(block):
    for seed in range(5 * block, 5 * block + 5):
        problem = instance(seed, numeric=seed % 2 == 1)
        best = best_value(problem)
        exact = BranchAndBound().solve(problem, few_nodes(300)).certificate
        found = Alternating(Effort(least=6, most=6)).solve(problem, few_nodes(6)).certificate
        assert exact.objective == pytest.approx(best, rel=2e-4, abs=1e-7)
        assert exact.bound <= best * (1.0 + 1e-6) + 1e-9
        assert exact.bound >= best * (1.0 - 1e-3) - 1e-9 or problem.task != BINARY
        assert found.objective >= best * (1.0 - 1e-6) - 1e-9


@pytest.mark.parametrize("seed", [0, 1, 2, 6, 12, 15])
def test_proofs_about_groups_are_accepted_by_both_checkers(tmp_path, seed):
    """Over lists of supports (hard budgets of two classes), and of trees without budgets in other cases."""
    problem, writer = instance(seed, numeric=seed % 2 == 1), ProofWriter(tmp_path / "a.proof")
    certificate = BranchAndBound().solve_with_proof(problem, writer, few_nodes(300)).certificate
    objective, bound = both(tmp_path / "a.proof", (problem.X, np.asarray(problem.y, np.float64), problem.weight))
    best = best_value(problem)
    assert objective == pytest.approx(best, rel=2e-4) and certificate.bound <= bound <= best * (1.0 + 1e-9)
    if problem.task == BINARY and problem.model == "hfs":
        assert bound >= objective * (1.0 - 1.01e-4)


def words(n: int = 40, *, seed: int = 0, **terms) -> Problem:
    """Three columns of four words each and one number; the target depends on one column of words."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, 4, (n, 3))
    X = np.column_stack([np.eye(4)[column] for column in columns.T] + [rng.random(n)])
    y = np.where(np.isin(columns[:, 1], [0, 2]) ^ (rng.random(n) < 0.05), 1.0, -1.0)
    return Problem.make(X, y, C=3.0, groups=[*np.repeat(np.arange(3), 4), 3], **terms)


def test_a_budget_of_one_column_admits_all_its_words():
    problem = words(depth=1, budget=1)
    for engine in (BranchAndBound(), Alternating(Effort(least=4, most=4))):
        solution = engine.solve(problem, few_nodes(200))
        assert set(np.flatnonzero(solution.splits.w[0])) <= {4, 5, 6, 7}
        assert np.count_nonzero(solution.splits.w[0]) > 1
    assert BranchAndBound().solve(problem).certificate.gap <= 1e-4
    single = BranchAndBound().solve(replace(problem, groups=None)).certificate
    assert single.objective > BranchAndBound().solve(problem).certificate.objective


def test_two_columns_per_split_are_certified_by_the_sides_that_words_imply():
    """Random labels; a search that decides about every sample for itself has a gap of 10 % after as many nodes."""
    problem = words(30, depth=2, budget=2)
    problem = replace(problem, y=np.where(np.random.default_rng(0).random(30) < 0.5, 1.0, -1.0))
    assert BranchAndBound().solve(problem, few_nodes(400)).certificate.gap <= 1e-4


def test_lists_of_supports_have_whole_groups():
    problem = words(depth=2, budget=2, alpha=1.0)
    lists = list_supports(problem, limit=1.5, most=0)
    assert lists[0] is not None
    rows = {tuple(c[:k]): p for c, k, p in zip(lists[0].cols.tolist(), lists[0].size, lists[0].penalty, strict=True)}
    assert len(rows) == 6 + 4  # two groups, or three of four with a penalty of 1
    assert rows[(0, 1, 2, 3, 12)] == 0.0
    assert rows[(0, 1, 2, 3, 4, 5, 6, 7, 12)] == 1.0


def test_supports_that_are_too_many_leave_a_bound_without_budgets(monkeypatch):
    problem = words(25, depth=2, budget=1, alpha=0.5)
    listed = BranchAndBound().solve(problem, few_nodes(40)).certificate
    monkeypatch.setattr(strategies, "_MOST_SUPPORTS", 3)
    certificate = BranchAndBound().solve(problem, few_nodes(40)).certificate
    assert 0.0 < certificate.bound <= listed.objective * (1.0 + 1e-9)
    assert certificate.objective >= listed.bound * (1.0 - 1e-9)


def test_local_search_within_a_budget_of_groups():
    for terms in ({"budget": 2}, {"budget": 1, "alpha": 0.4}):
        problem = words(40, depth=2, **terms)
        start = Alternating(Effort(least=8, most=8)).solve(problem, few_nodes(8))
        found = problem.evaluate(start.splits)
        assert found.feasible
        assert found.objective <= 1.05 * BranchAndBound().solve(problem, few_nodes(30)).certificate.objective
