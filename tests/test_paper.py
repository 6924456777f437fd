"""The paper's own fits: what must hold on the real sets."""

import math
import os
import time

import pytest

from margotree import HFSMargotClassifier, MargotClassifier, SFSMargotClassifier
from margotree.engines import Limits, solve
from margotree.paper.data import load, paper_hyperparameters, paper_split
from margotree.problem import Problem
from margotree.solution import Proved, verify
from patience import three_tries

pytestmark = [
    pytest.mark.paper,
    pytest.mark.skipif("MARGOTREE_DATA" not in os.environ, reason="MARGOTREE_DATA does not point at the data sets"),
]

#: Certified optima at the tuned hyperparameters, found again by every change of the engine.
OPTIMA = {
    "Breast Cancer D.": 65.2375,
    "Breast Cancer W.": 4663.24165,
    "Climate Model": 72.16273,
    "Ionosphere": 614.46084,
    "Sonar": 0.165803,
    "Tic-Tac-Toe": 84.0,
    "Wholesale": 91504.45649,
}


def margot_problem(name):
    split = paper_split(load(name))
    return Problem.make(split.X_train, split.y_train, depth=2, **paper_hyperparameters("margot", name))


@pytest.mark.parametrize("name", OPTIMA)
def test_margot_is_certified_at_the_tuned_hyperparameters(name):
    problem = margot_problem(name)
    solution = solve(problem, engine="bnb", limits=Limits(time=600, n_jobs=2))
    verify(problem, solution)
    assert solution.certificate.proved is Proved.OPTIMAL
    assert solution.certificate.objective == pytest.approx(OPTIMA[name], rel=2e-4)


@pytest.mark.parametrize(
    "estimator",
    [
        MargotClassifier(C=[100, 1000], time_limit=5),
        HFSMargotClassifier(C=10, budget=[2, 3], time_limit=5),
        SFSMargotClassifier(C=1, budget=1, alpha=4, time_limit=5),
        MargotClassifier(C=10, time_limit=5, engine="scip"),
    ],
    ids=["margot", "hfs", "sfs", "scip"],
)
@three_tries
def test_five_seconds_on_ionosphere(estimator):
    split = paper_split(load("Ionosphere"))
    began = time.perf_counter()
    estimator.fit(split.X_train, split.y_train)
    seconds = time.perf_counter() - began
    print(f"{seconds:.2f} s")
    assert estimator.certificate_.seconds <= 8.0  # 5.1 on a quiet machine; busy ones stall for a second or two
    assert math.isfinite(estimator.certificate_.bound)
