"""Our engine and SCIP on one zoo of small problems: both prove, and prove the same."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from margotree.engines import Limits, RunControl
from margotree.engines.branch_and_bound.engine import BranchAndBound
from margotree.engines.mip.scip import Scip
from margotree.paper.data.synthetic import make_partitions
from margotree.problem import Problem
from margotree.solution import Proved, Stopped, verify


def crossed(m, seed, **terms):
    X = np.random.default_rng(seed).random((m, 2))
    y = np.where((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5), 1, -1)
    return Problem.make(X, y, **{"depth": 2, "C": 10.0, **terms})


def noisy(m, seed, **terms):
    """On a grid, with weights, equal points of either label and labels that follow nothing."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 3, (m, 3)) / 2.0, rng.choice([-1, 1], m)
    return Problem.make(X, y, weight=rng.choice([0.5, 1.0, 2.0], m), **terms)


def two_sorts(bunch, sorts, **terms):
    rows = np.flatnonzero(np.isin(bunch.target, sorts))[::2]
    X = bunch.data[rows]
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return Problem.make(X, np.where(bunch.target[rows] == sorts[1], 1, -1), depth=2, **terms)


def four_partitions(rows, **terms):
    made = make_partitions(4, random_state=0).dataset
    return Problem.make(made.X[:rows], made.y_sign[:rows], depth=2, **terms)


ZOO = {
    "one split": lambda: noisy(14, 0, depth=1, C=1.0),
    "crossed": lambda: crossed(20, 0),
    "crossed, small C above": lambda: crossed(16, 1, C=[0.1, 10.0]),
    "grid, weights": lambda: noisy(12, 1, depth=2, C=[1.0, 10.0]),
    "depth 3": lambda: crossed(10, 2, depth=3, C=[0.1, 1.0, 10.0]),
    "4-partitions": lambda: four_partitions(24, C=[1.0, 100.0]),
    "hfs, grid": lambda: noisy(12, 2, depth=2, C=1.0, budget=[1, 2]),
    "hfs, crossed": lambda: crossed(16, 3, budget=1),
    "sfs, grid": lambda: noisy(12, 3, depth=2, C=1.0, budget=1, alpha=0.3),
    "sfs, crossed": lambda: crossed(16, 4, budget=1, alpha=2.0),
    "hfs, two sorts of iris": lambda: two_sorts(load_iris(), (1, 2), C=10.0, budget=1),
    "sfs, two sorts of wine": lambda: two_sorts(load_wine(), (0, 1), C=1.0, budget=1, alpha=1.0),
}


@pytest.mark.parametrize("name", ZOO)
def test_our_engine_and_scip_prove_the_same_value(name):
    problem = ZOO[name]()
    ours = BranchAndBound().solve(problem, RunControl(Limits(gap=1e-7)))
    theirs = Scip().solve(problem, RunControl(Limits(gap=1e-6, time=600)))
    for solution in (ours, theirs):
        verify(problem, solution)
        assert solution.certificate.stopped is Stopped.SOLVED
    assert ours.certificate.proved is Proved.OPTIMAL
    assert theirs.certificate.objective == pytest.approx(ours.certificate.objective, rel=1e-6)
    # SCIP's bound carries its feasibility tolerance.
    assert theirs.certificate.bound == pytest.approx(ours.certificate.objective, rel=1e-5)
    assert ours.certificate.bound <= theirs.certificate.objective * (1 + 1e-7)
