"""The local search of OCT-H before its solver: never worse, allowed, repeatable, and it stops when told."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from margotree import OCTHClassifier
from margotree.baselines.oct.engine import OctMip
from margotree.baselines.oct.improve import improve
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.retrain import PENALTIES, candidates, coordinate_descent
from margotree.baselines.oct.search import Search
from margotree.baselines.oct.side_costs import SideCosts, side_costs
from margotree.baselines.oct.tree_cleanup import clean_tree, numbered_splits
from margotree.engines import Limits, RunControl
from margotree.engines.mip.highs import HighsAdapter
from margotree.problem import Splits
from margotree.solution import Stopped
from patience import slowness, three_tries


class Counting(RunControl):
    """A clock that says stop once it has been asked so often."""

    def __init__(self, asked):
        super().__init__()
        self.count, self.asked = itertools.count(), asked

    def must_stop(self, nodes=0):
        return Stopped.TIME if next(self.count) >= self.asked else None


def some_problem(seed, *, m=40, n=4, classes=2, depth=2, **kwargs):
    rng = np.random.default_rng(seed)
    X = rng.random((m, n))
    y = np.digitize(X @ rng.normal(size=n) + 0.1 * rng.normal(size=m), [0.0, 0.4][: classes - 1])
    y[:classes] = np.arange(classes)
    weight = rng.integers(1, 4, m).astype(float) if seed % 2 else None
    return OctProblem.make(X, y, depth=depth, mu=0.005, weight=weight, n_classes=classes, **kwargs)


def best_univariate(problem):
    tree = clean_tree(problem, Search().solve(replace(problem, mu=None)).splits)
    assert tree is not None
    return tree


@pytest.mark.parametrize("seed", range(6))
def test_never_worse_than_its_start_and_allowed(seed):
    problem = some_problem(seed, classes=2 + seed % 2, depth=1 + seed % 3, alpha=0.01 * (seed % 2), min_leaf=3.0)
    for start in (best_univariate(problem), numbered_splits(problem, None)):
        reported = []
        tree = improve(problem, start, control=RunControl(), report=reported.append, seed=seed, perturbations=5)
        found = problem.evaluate(tree)
        assert found.feasible, found.violations
        assert found.objective <= problem.evaluate(start).objective
        assert reported == sorted(reported, reverse=True) and found.objective <= reported[-1]


def test_it_finds_a_hyperplane_where_thresholds_do_not_do():
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    X = X[np.abs(X[:, 0] + X[:, 1] - 1.0) > 0.05]
    problem = OctProblem.make(X, (X[:, 0] + X[:, 1] > 1.0).astype(int), depth=1, alpha=0.01, mu=0.005)
    start = best_univariate(problem)
    tree = improve(problem, start, control=RunControl(), perturbations=20)
    assert problem.evaluate(start).error > 0
    assert problem.evaluate(tree).error == 0 and problem.evaluate(tree).features == 2


def test_it_repeats_for_a_seed():
    problem = some_problem(3, alpha=0.01)
    start = best_univariate(problem)
    one, two = (improve(problem, start, control=RunControl(), seed=7, perturbations=10) for _ in range(2))
    assert one.w.tobytes() == two.w.tobytes() and one.b.tobytes() == two.b.tobytes()


@pytest.mark.parametrize("asked", [0, 1, 5, 30])
def test_it_stops_at_a_limit(asked):
    problem = some_problem(1, m=60, n=6)
    start, control = best_univariate(problem), Counting(asked)
    tree = improve(problem, start, control=control)
    # Loops that are under way end one by one; none of them begins anything new.
    assert next(control.count) <= asked + 40
    found = problem.evaluate(tree)
    assert found.feasible and found.objective <= problem.evaluate(start).objective


def test_side_costs_add_up_to_the_objective():
    problem = some_problem(5, alpha=0.02, classes=3)
    tree = best_univariate(problem)
    found = problem.evaluate(tree)
    for t in np.flatnonzero(tree.w.any(axis=1)):
        costs = side_costs(problem, tree, int(t))
        others = found.objective * problem.baseline_error - costs.cost(tree.w[t], float(tree.b[t]))
        for w, b in candidates(costs, tree.w[t], PENALTIES, RunControl()):
            changed = Splits(
                w=np.where(np.arange(3)[:, None] == t, w, tree.w), b=np.where(np.arange(3) == t, b, tree.b)
            )
            cleaned = clean_tree(problem, changed)
            # Labels may get better once the samples are there, never worse.
            if cleaned is not None:
                objective = problem.evaluate(cleaned).objective * problem.baseline_error
                assert objective <= others + costs.cost(w, b) + 1e-9


def test_coordinate_descent_never_increases_the_cost():
    rng = np.random.default_rng(2)
    for _ in range(20):
        left, right = rng.integers(0, 3, (2, 25)).astype(float)
        costs = SideCosts(X=rng.random((25, 3)), left=left, right=right, feature_cost=0.5, band=1e-3)
        w = rng.normal(size=3)
        before = min(costs.cost(w, -h) for h in costs.X @ w + 1e-9)
        assert costs.cost(*coordinate_descent(costs, w / np.abs(w).sum(), RunControl())) <= before


@three_tries
def test_the_solver_starts_from_its_tree():
    rng = np.random.default_rng(1)
    X = rng.random((80, 5))
    problem = OctProblem.make(X, (X @ [1, -1, 1, 0, 0] > 0.5).astype(int), depth=2, alpha=0.01, mu=0.005, min_leaf=4)
    start, events = best_univariate(problem), []
    certificate = (
        OctMip(HighsAdapter()).solve(problem, RunControl(Limits(time=4 * slowness()), events.append), start).certificate
    )
    assert certificate.objective < problem.evaluate(start).objective
    assert certificate.f0 < problem.evaluate(start).objective  # the solver's own first tree
    assert any(event.message == "local search" for event in events)
    assert certificate.bound <= certificate.objective


def test_steps_smaller_than_any_tolerance_are_no_way_around_the_error():
    """A band as narrow as the smallest step would let a solver part points by its tolerances alone."""
    rng = np.random.default_rng(4)
    X = np.sort(rng.random((24, 2)), axis=0)
    X[1::2] = X[::2] + 1e-9
    X[0], X[-1] = 0.0, 1.0
    fitted = OCTHClassifier(depth=1, mu=0.3, min_samples_leaf=1, scale=None, time_limit=60).fit(X, np.arange(24) % 2)
    assert fitted.certificate_.warnings == () and str(fitted.certificate_.proved) == "optimal"
    fitted.verify(X, np.arange(24) % 2)
