"""The mixed-integer form for several classes: SCIP finds what the own engine finds."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from margotree.engines import Limits, get_engine, solve
from margotree.solution import Proved
from several import several_classes

MODELS = {"margot": {}, "hfs": {"budget": 1}, "sfs": {"budget": 1, "alpha": 0.5}}


def few_rows(data, per_class, features, **terms):
    """The first rows of every class, brought to [0, 1]."""
    rows = np.concatenate([np.flatnonzero(data.target == k)[:per_class] for k in range(3)])
    X = data.data[rows][:, :features]
    return several_classes((X - X.min(axis=0)) / np.ptp(X, axis=0), data.target[rows], depth=2, **terms)


SMALL = {
    "iris": lambda **terms: few_rows(load_iris(), 5, 3, **terms),
    "wine": lambda **terms: few_rows(load_wine(), 4, 3, **terms),
}


@pytest.mark.parametrize(("data", "model"), [("iris", "margot"), ("wine", "margot"), ("iris", "hfs"), ("wine", "sfs")])
def test_scip_finds_what_the_own_engine_finds(data, model):
    problem = SMALL[data](C=1.0, **MODELS[model])
    limits = Limits(time=6000, gap=1e-4)
    own, scip = (solve(problem, engine=name, limits=limits).certificate for name in ("bnb", "scip"))
    assert own.proved is Proved.OPTIMAL and scip.engine == "scip"
    assert scip.objective == pytest.approx(own.objective, rel=3e-4)
    assert scip.bound <= own.objective * (1 + 1e-6) and own.bound <= scip.objective * (1 + 1e-6)
    assert scip.proved is Proved.OPTIMAL


def test_a_run_cut_short_keeps_a_tree_and_a_bound_that_holds():
    problem = SMALL["wine"](C=10.0)
    best = solve(problem, limits=Limits(time=600)).certificate
    cut = solve(problem, engine="scip", limits=Limits(nodes=2, time=600)).certificate
    assert 0.0 <= cut.bound <= best.objective * (1 + 1e-6)
    assert cut.objective >= best.bound * (1 - 1e-9)


@pytest.mark.parametrize("name", ["gurobi", "cplex", "copt"])
def test_other_solvers_take_the_same_model(name):
    problem = few_rows(load_iris(), 2, 2, C=1.0)
    engine = get_engine(name)
    if (need := engine.missing()) is not None:
        pytest.skip(f"{name} is not installed: {need}")
    found = engine.solve(problem).certificate
    assert found.objective == pytest.approx(solve(problem).certificate.objective, rel=3e-4)
