"""The exact search for numeric targets and for tasks of others, against brute force over routings."""

import numpy as np
import pytest
from scipy.optimize import minimize

from margotree.engines import Limits, Refused, solve
from margotree.engines.polish import polish
from margotree.engines.trivial_trees import trivial_tree
from margotree.problem import Problem, Regression
from margotree.proof import check
from margotree.proof.write import ProofWriter
from margotree.solution import Proved
from oracle import numbers
from proofs import exact
from test_multiclass_exact import instance as classes


def instance(seed, *, depth, n, p=2):
    """Small numeric targets of all sizes, with weights, budgets or penalties in some."""
    rng = np.random.default_rng([seed, depth])
    X = rng.integers(0, 5, (n, p)) / 4.0 if seed % 3 == 0 else rng.normal(size=(n, p))
    y = rng.normal(size=n).round(1) * 10.0 ** rng.integers(-3, 4)
    epsilon = float(rng.choice([0.0, 0.1, 10.0]))
    weight = rng.uniform(0.3, 2.0, n) if seed % 2 else np.ones(n)
    C = 10.0 ** rng.uniform(-2, 1.5, 2**depth - 1)
    terms = ({}, {"budget": 1}, {"budget": 1, "alpha": float(rng.uniform(0.05, 1.0))})[seed % 3]
    eps = 10.0 ** rng.uniform(-4, 0.5)
    return Problem.make(X, y, task=Regression(epsilon), depth=depth, C=C, weight=weight, eps=eps, **terms)


@pytest.mark.parametrize("seed", range(18))
def test_the_search_finds_what_brute_force_finds(seed):
    problem = numbers.instance(seed)
    certificate = solve(problem, engine="bnb", start=None, limits=Limits(gap=1e-8)).certificate
    assert not numbers.faults(problem, numbers.optimum(problem), certificate.objective, certificate.bound)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("kind", "depth", "n"), [(3, 1, 7), (4, 2, 7), (3, 3, 5), (0, 1, 8), (0, 2, 7), (0, 3, 4)])
def test_both_checkers_accept_the_proofs_of_the_search(seed, kind, depth, n, tmp_path):
    """Several classes and numeric targets, with and without budgets and penalties."""
    problem = instance(seed, depth=depth, n=n) if kind == 0 else classes(seed, K=kind, depth=depth, n=n)
    writer = ProofWriter(tmp_path / "tree.proof")
    solution = solve(problem, engine="bnb", start=None, proof=writer, limits=Limits(gap=1e-6))
    found = check.check(writer.path, (problem.X, problem.y, problem.weight))
    exact.check(writer.path, problem.X.tolist(), problem.y.tolist(), problem.weight.tolist())
    assert found.bound == solution.certificate.bound
    assert found.bound == pytest.approx(solution.certificate.objective, rel=1e-5, abs=1e-12)


def test_a_regression_tree_is_certified_with_any_number_of_threads():
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    y = np.where(X[:, 0] > 0.5, 3 * X[:, 1], -X[:, 1]) + 0.05 * rng.normal(size=40)
    problem = Problem.make(X, y, task=Regression(0.05), depth=2, C=[0.01, 10.0])
    found = [solve(problem, engine="bnb", start=None, limits=Limits(n_jobs=n)).certificate for n in (1, 2)]
    assert all(one.proved is Proved.OPTIMAL for one in found)
    assert found[0].objective == pytest.approx(found[1].objective, rel=2e-4)


def test_the_trivial_tree_predicts_a_weighted_median():
    problem = Problem.make(
        np.arange(4.0)[:, None], [0.0, 1.0, 5.0, 9.0], task=Regression(), depth=2, weight=[1, 1, 1, 4]
    )
    tree = trivial_tree(problem)
    assert np.all(tree.w == 0.0) and np.all(tree.b[1:] == 9.0)
    assert problem.evaluate(tree).objective == pytest.approx(9 + 8 + 4)


def test_the_best_tree_of_a_routing_has_the_value_of_its_nodes():
    problem = instance(4, depth=2, n=6)
    splits = polish(problem, np.array([1, 1, 1, 2, 2, 2]))
    if splits is not None:
        value = problem.evaluate(splits)
        assert value.node.tolist() == [1, 1, 1, 2, 2, 2]

        def objective(theta):
            w, b = theta[:6].reshape(3, 2), theta[6:]
            h = problem.X @ w.T + b
            return 0.5 * np.sum(w**2) + sum(
                problem.C[t] * problem.weight[rows] @ problem.task.items(problem.y[rows], last=True).loss(h[rows, t])
                for t, rows in ((1, slice(0, 3)), (2, slice(3, 6)))
            )

        theta = np.concatenate([splits.w.ravel(), splits.b])
        better = minimize(objective, theta, method="Nelder-Mead", options={"maxiter": 300}).fun
        root = value.node_values[0]
        assert value.objective - root <= better - 0.5 * splits.w[0] @ splits.w[0] + 1e-9 * (1 + value.objective)


def test_a_task_whose_losses_the_search_does_not_know_is_refused():
    class Lopsided(Regression):
        """Samples that go right must lie twice as far from the split as those that go left."""

        name = "lopsided"

        def items(self, y, *, last, side=None, choice=None):
            found = super().items(y, last=last, side=side)
            return found if last else found._replace(r=2.0 * found.r)

    problem = Problem.make([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0], task=Lopsided(), depth=2)
    with pytest.raises(Refused, match="lopsided"):
        solve(problem, engine="bnb", start=None)
