"""The exact engine where numbers are extreme: bands of 1 and more, huge features, costs of any size, tiny limits."""

from dataclasses import replace

import numpy as np
import pytest

from margotree import MargotClassifier
from margotree.engines import Limits, RunControl, solve
from margotree.engines.band import leave_band
from margotree.engines.branch_and_bound.engine import BranchAndBound
from margotree.engines.branch_and_bound.portfolio import new_search
from margotree.engines.exact.support_branching import SupportBrancher, SupportTactics
from margotree.engines.node.svm import LARGE, solve_node
from margotree.engines.polish import polish, without_rounded_losses
from margotree.engines.presolve import standard_scale
from margotree.engines.trivial_trees import allowed_value, trivial_tree
from margotree.problem import Problem, Splits, evaluate
from margotree.proof import check
from margotree.proof.write import ProofWriter
from margotree.solution import Stopped, relative_gap
from oracle.instances import base, make
from oracle.judge import judge, problem_of
from oracle.node import Rows, bounds
from oracle.tree import optimum


def certified(problem, **limits):
    return solve(problem, engine="bnb", limits=Limits(**{"gap": 1e-4, "time": 60.0, **limits})).certificate


# -- bands of 1 and more --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eps", [1.0, 1.5, 8.0])
def test_a_band_wider_than_the_margin_is_proved_optimal(eps):
    """A sample sent left along its label lies beyond its margin there: once left out of the bound by C (eps - 1)."""
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 1, 0])
    certificate = MargotClassifier(depth=2, C=(1, 1000), band=eps, scale=None).fit(X, y).certificate_
    one = replace(
        base(np.random.default_rng(0), depth=2, n=1, m=4), X=X, y=2.0 * y - 1, C=[1.0, 1000.0, 1000.0], eps=eps
    )
    best = optimum(one)
    assert certificate.stopped is Stopped.SOLVED
    assert certificate.objective == pytest.approx(best.upper, rel=2e-4)
    assert certificate.bound <= best.upper


@pytest.mark.parametrize("eps", [0.3, 1.0, 1.0001, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_node_with_rows_beyond_the_margin_is_solved(seed, eps):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 9, (8, 2)) / 8.0, rng.choice([-1, 1], 8)
    side = np.where(X @ np.array([1.0, 0.7]) > 0.9, 1, -1)
    found = solve_node(X, y.astype(float), np.full(8, 2.0), side=side, eps=eps)
    k = 40
    rows = Rows(
        points=tuple(tuple(int(v * 8) for v in x) for x in X), k=3, label=tuple(map(int, y)), cost=(2,) * 8, kc=0,
        side=tuple(map(int, side)), least=tuple(0 if s > 0 else round(eps * 2**k) for s in side), kr=k,
    )  # fmt: skip
    low, high, _ = bounds(rows)
    assert found.feasible
    assert found.value == pytest.approx(high, rel=1e-6)
    assert low * (1 - 1e-6) <= found.bound <= high * (1 + 1e-9)


def test_a_node_without_a_split_lies_beyond_a_wide_band():
    """Among samples of one class the constant hyperplane is the best one; it was put into the band."""
    X = np.array([[0.0], [1.0], [2.0]])
    found = solve_node(X, -np.ones(3), np.ones(3), side=[-1, -1, -1], eps=3.0)
    assert found.feasible and found.value == 0.0 and found.b <= -3.0
    problem = Problem.make([*X, [3.0]], [-1, -1, -1, 1], depth=2, C=1.0, eps=3.0)
    tree = polish(problem, np.array([1, 1, 1, 2]))
    assert tree is not None and evaluate(problem, tree).feasible


def test_many_samples_leave_a_wide_band():
    rng = np.random.default_rng(0)
    X = rng.random((LARGE + 100, 1))
    problem = Problem.make(X, np.where(rng.random(len(X)) < 0.1, 1, -1), depth=2, C=1.0, eps=3.0)
    rows = np.arange(len(X))
    w, b = leave_band(problem, 0, rows, np.zeros(1), -1.0)
    h = X @ w + b
    assert np.all((h >= -1e-6) | (h <= -3.0 + 1e-6))


@pytest.mark.parametrize("model", ["margot", "hfs", "sfs"])
def test_proofs_of_wide_bands_are_believed(model, tmp_path):
    rng = np.random.default_rng(3)
    terms = {"margot": {}, "hfs": {"budget": 1}, "sfs": {"budget": 1, "alpha": 0.3}}[model]
    X, y = np.round(rng.random((9, 2)), 2), rng.choice([-1.0, 1.0], 9)
    problem = Problem.make(X, y, depth=2, C=(1.0, 50.0), eps=1.5, **terms)
    path = tmp_path / "a.proof"
    limits = Limits(gap=1e-4, nodes=3000)
    certificate = BranchAndBound().solve_with_proof(problem, ProofWriter(path), RunControl(limits)).certificate
    assert certificate.stopped is Stopped.SOLVED
    found = check.check(str(path), (problem.X, problem.y, problem.weight))
    assert found.bound == pytest.approx(certificate.bound)


# -- huge features, huge costs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e0, 1e8, 1e14, 1e17, 1e20])
def test_a_plain_svm_is_solved_at_any_cost(C):
    """Beside multipliers of 1e17 weights of 1 are less than a rounding; points are too many for no losses."""
    rng = np.random.default_rng(2)
    X, y = rng.random((25, 2)), rng.choice([-1.0, 1.0], 25)
    found = solve_node(X, y, np.full(25, C))
    assert found.feasible
    assert 0.0 <= found.value - found.bound <= 1e-4 * found.value
    if C > 1e6:  # the same hyperplane from some cost on
        np.testing.assert_allclose(found.w, solve_node(X, y, np.full(25, 1e6)).w, rtol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_one_split_of_unscaled_features_is_proved_optimal(seed, classes):
    rng = np.random.default_rng(seed)
    X, y = rng.random((14, 1 + seed % 3)) * 4e8, rng.integers(0, classes, 14)
    y[:classes] = range(classes)
    for C in (1.0, 100.0):
        certificate = MargotClassifier(depth=1, C=C, scale=None).fit(X, y).certificate_
        assert certificate.stopped is Stopped.SOLVED
        assert certificate.gap <= 1e-4


def test_losses_that_are_rounding_do_not_stay():
    """Separable points: C times a rounding of ``h`` was more than all weights cost."""
    rng = np.random.default_rng(14)
    X = rng.random((7, 3)) * 4e8
    y = np.where(X[:, 0] > np.median(X[:, 0]), 1.0, -1.0)
    for C in (1.0, 1e4):
        assert certified(Problem.make(X, y, depth=1, C=C)).stopped is Stopped.SOLVED


def test_a_longer_tree_is_taken_only_if_it_is_better():
    problem = Problem.make([[0.0], [1.0]], [-1, 1], depth=1, C=1e12)
    short = Splits(w=[[2.0 - 1e-9]], b=[-1.0 + 5e-10])
    good = without_rounded_losses(problem, short)
    assert evaluate(problem, good).objective < 2.1 < evaluate(problem, short).objective
    best = Splits(w=[[2.0]], b=[-1.0])
    assert without_rounded_losses(problem, best) is best


@pytest.mark.parametrize("number", [24, 33, 52, 66, 79, 111, 295])
def test_budgets_and_prices_beside_huge_costs(number):
    one = make("huge_numbers", number)
    assert one.model != "margot"
    assert certified(problem_of(one)).stopped is Stopped.SOLVED


@pytest.mark.parametrize("number", [14, 90, 145])
def test_grown_supports_beside_huge_costs(number):
    """Penalties of features used in part are tiny there; relaxations that rounding leaves unsolved are split."""
    problem, control = standard_scale(problem_of(make("huge_numbers", number)))[1].problem, RunControl(Limits(gap=1e-4))
    first = trivial_tree(problem)
    brancher = SupportBrancher(problem, allowed_value(problem, first), SupportTactics(listed=0), control)
    search = new_search(problem, brancher, first, control)
    search.run()
    assert relative_gap(search.best, search.bound) <= 1e-4


def test_bands_beside_tiny_costs(tmp_path):
    """The parabola that penalises samples inside a band is as large as the multipliers of its rows."""
    problem = problem_of(make("sixteen_orders", 460))
    assert certified(problem).stopped is Stopped.SOLVED
    path = tmp_path / "a.proof"
    written = BranchAndBound().solve_with_proof(problem, ProofWriter(path), RunControl(Limits(gap=1e-4))).certificate
    assert written.stopped is Stopped.SOLVED
    found = check.check(str(path), (problem.X, problem.y, problem.weight))
    assert found.bound == pytest.approx(written.bound)


# -- tiny limits ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0.0011, 1e-5, 1e-7])
def test_tiny_limits_on_weights(limit):
    """Weights were a rounding too large for a tiny limit: an error, or a tree below the optimum."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        m, n = int(rng.integers(4, 9)), int(rng.integers(1, 4))
        X, y = rng.random((m, n)), rng.choice([-1.0, 1.0], m)
        y[:2] = 1.0, -1.0
        problem = Problem.make(X, y, depth=1 + seed % 2, C=100.0, eps=(0.14, 1e-3)[seed % 2], max_weight=limit)
        solution = solve(problem, engine="bnb", limits=Limits(gap=1e-4))
        assert solution.certificate.stopped is Stopped.SOLVED
        assert np.max(np.abs(solution.splits.w)) <= limit


@pytest.mark.parametrize("generator", ["wide_bands", "sixteen_orders", "tiny_limits", "huge_numbers"])
def test_the_oracle_is_sure_of_extreme_problems(generator):
    """Verdicts that rest on wide intervals would be no use."""
    assert not any(judge(make(generator, number)).unsure for number in range(10, 14))
