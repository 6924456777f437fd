"""Bounded weights in our own engines: exact, against brute force and SCIP, and never worse than what is known."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from margotree import MargotClassifier
from margotree.engines.base import Refused
from margotree.engines.branch_and_bound.engine import BranchAndBound
from margotree.engines.exact.sample_branching import MargotBrancher
from margotree.engines.local_search_engine import Alternating
from margotree.engines.registry import choose_engine, solve
from margotree.engines.run_control import Limits, RunControl
from margotree.engines.trivial_trees import trivial_tree
from margotree.problem import Problem, evaluate
from margotree.solution import Stopped
from oracles import best_value
from patience import slowness, three_tries

MODELS = ("margot", "hfs", "sfs")


def some_problem(seed, model="margot", m=None, n=None, depth=None, limit=None):
    rng = np.random.default_rng(seed)
    m, n, depth = m or int(rng.integers(4, 8)), n or int(rng.integers(1, 4)), depth or 1 + int(rng.random() < 0.7)
    y = rng.choice([-1, 1], m)
    y[:2] = 1, -1
    terms = {} if model == "margot" else {"budget": 1}
    if model == "sfs":
        terms["alpha"] = float(10 ** rng.uniform(-2, 1))
    C, weight = float(10 ** rng.uniform(-1, 3)), rng.integers(1, 4, m).astype(float)
    limit = float(10 ** rng.uniform(-1, 1)) if limit is None else limit
    return Problem.make(rng.random((m, n)), y, depth=depth, C=C, weight=weight, max_weight=limit, **terms)


def binds(problem, splits):
    return np.max(np.abs(splits.w)) >= problem.max_weight * (1 - 1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_agrees_with_brute_force(model):
    """Optima are met, bounds stay below, also where the search is stopped early; limits bind in many of them."""
    bound_by_limit = 0
    count = 24 if model == "margot" else 12  # brute force over supports takes long
    for seed in range(count):
        problem = some_problem(seed, model)
        best = best_value(problem)
        solution = BranchAndBound().solve(problem, RunControl(Limits(gap=1e-6)))
        certificate = solution.certificate
        assert evaluate(problem, solution.splits).feasible
        assert certificate.stopped is Stopped.SOLVED, seed
        assert certificate.objective == pytest.approx(best, rel=2e-6, abs=1e-6), seed
        assert best * (1 - 2e-6) - 1e-6 <= certificate.bound <= best * (1 + 1e-7) + 1e-8, seed
        early = BranchAndBound().solve(problem, RunControl(Limits(gap=1e-6, nodes=seed % 4))).certificate
        assert early.bound <= best * (1 + 1e-7) + 1e-8, seed
        bound_by_limit += binds(problem, solution.splits)
    assert count / 4 <= bound_by_limit < count


@pytest.mark.parametrize("model", MODELS)
def test_scip_finds_the_same(model):
    rng = np.random.default_rng(3)
    X = rng.random((14, 2))
    y = np.where((X[:, 0] - 0.5) * (X[:, 1] - 0.5) > 0, 1, -1)
    terms = {} if model == "margot" else {"budget": 1} if model == "hfs" else {"budget": 1, "alpha": 0.5}
    problem = Problem.make(X, y, depth=2, C=10.0, max_weight=4.0, **terms)
    found = [solve(problem, engine=name, limits=Limits(gap=1e-5)) for name in ("bnb", "scip")]
    assert binds(problem, found[0].splits)
    assert found[0].certificate.stopped is Stopped.SOLVED
    assert found[0].certificate.objective == pytest.approx(found[1].certificate.objective, rel=3e-5)


def test_records_keep_what_the_rows_of_a_limit_weigh():
    """A search that stores and loads its records at every step comes to the same end as one that dives on."""
    problem = some_problem(5, m=12, n=2, depth=2, limit=1.5)
    want = BranchAndBound().solve(problem, RunControl(Limits(gap=1e-6))).certificate.objective
    brancher = MargotBrancher(problem)
    worker, stack, best = brancher.worker(), [brancher.root()], evaluate(problem, trivial_tree(problem)).objective
    shared = np.array([best, 0.0])
    for _ in range(3000):
        if not stack:
            break
        record = stack.pop()
        dive = worker.dive(record, shared, 1)
        assert all(left.bound >= record.bound - 1e-7 * (1 + abs(record.bound)) for left in dive.left)
        for tree in dive.trees:
            best = min(best, evaluate(problem, tree).objective)
            shared[0] = best * (1 - 1e-9)
        stack += [left for left in dive.left if left.bound < shared[0]]
    assert not stack
    assert best == pytest.approx(want, rel=1e-6)


def test_more_room_never_costs_more_and_far_limits_change_nothing():
    problem = some_problem(11, m=10, n=2, depth=2)
    values = [
        BranchAndBound().solve(replace(problem, max_weight=limit), RunControl(Limits(gap=1e-6))).certificate.objective
        for limit in (0.1, 1.0, 3.0, 1e6, None)
    ]
    assert all(b <= a * (1 + 2e-6) for a, b in itertools.pairwise(values))
    assert values[-2] == pytest.approx(values[-1], rel=2e-6)
    assert values[0] > values[-1] * 1.01


FEW = Limits(nodes=5)


@pytest.mark.parametrize("model", MODELS)
def test_the_alternating_search_holds_weights_within_the_limit(model):
    rng = np.random.default_rng(1)
    X = rng.random((80, 4))
    y = np.where((X[:, 0] - 0.5) * (X[:, 1] - 0.4) > 0, 1, -1)
    terms = {} if model == "margot" else {"budget": 2} if model == "hfs" else {"budget": 1, "alpha": 0.5}
    problem = Problem.make(X, y, depth=2, C=[1.0, 10.0], max_weight=3.0, **terms)
    assert not evaluate(
        problem, Alternating().search(replace(problem, max_weight=None), RunControl(FEW), None).splits
    ).feasible
    found = evaluate(problem, Alternating().search(problem, RunControl(FEW), None).splits)
    assert found.feasible
    assert found.objective < 0.9 * evaluate(problem, trivial_tree(problem)).objective


@three_tries
def test_many_samples_get_a_tree_within_the_limit_and_a_bound():
    rng = np.random.default_rng(2)
    X = rng.random((2500, 3))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(2500) > 0.7, 1, -1)
    problem = Problem.make(X, y, depth=2, C=1.0, max_weight=2.0)
    solution = solve(problem, limits=Limits(time=6 * slowness()))
    assert evaluate(problem, solution.splits).feasible
    assert 0.0 < solution.certificate.bound <= solution.certificate.objective
    assert solution.certificate.objective < 0.9 * evaluate(problem, trivial_tree(problem)).objective


def test_it_is_what_auto_takes_and_no_proof_is_promised(tmp_path):
    problem = some_problem(0)
    assert choose_engine(problem).name == "bnb"
    X, y = problem.X, problem.y
    fitted = MargotClassifier(depth=1, C=100, max_weight=0.5).fit(X, y)
    assert fitted.certificate_.engine == "bnb"
    with pytest.raises(Refused, match="where weights are bounded"):
        MargotClassifier(depth=1, max_weight=0.5, proof=tmp_path / "a.proof").fit(X, y)
    assert not list(tmp_path.iterdir())
