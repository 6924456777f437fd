"""The mixed-integer form for several classes: trees are points of it, and SCIP finds what the own engine finds."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from margotree.engines import Limits, get_engine, solve
from margotree.engines.multiclass.formulation import class_constants, formulate_classes
from margotree.engines.multiclass.nodes import NodeSolver, polish
from margotree.solution import Proved
from oracle.instances import several
from oracle.judge import problem_of
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


@pytest.mark.parametrize("seed", range(8))
def test_a_tree_is_a_point_of_the_model_and_costs_there_what_it_costs(seed):
    problem = problem_of(several(np.random.default_rng([7, seed]), depth=1 + seed % 3))
    tree = solve(problem, engine="local_svm").splits
    found = problem.evaluate(tree)
    polished = polish(NodeSolver(problem=problem), found.node, found.choices.sides, found.choices.labels)
    found = problem.evaluate(polished)
    form = formulate_classes(problem, class_constants(problem, found.objective))
    x = form.point(polished)
    assert form.mip.violation(x) < 1e-7
    assert form.mip.value(x) == pytest.approx(found.objective, rel=1e-6)
    assert np.array_equal(form.node(x), found.node) and np.array_equal(form.sides(x), found.choices.sides)
    assert {frozenset(pair) for pair in form.labels(x).tolist()} == {
        frozenset(p) for p in found.choices.labels.tolist()
    }
    again = problem.evaluate(polish(NodeSolver(problem=problem), form.node(x), form.sides(x), form.labels(x)))
    assert again.objective == pytest.approx(found.objective, rel=1e-6)


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
    engine = get_engine(name, problem)
    if (need := engine.missing()) is not None:
        pytest.skip(f"{name} is not installed: {need}")
    found = engine.solve(problem).certificate
    assert found.objective == pytest.approx(solve(problem).certificate.objective, rel=3e-4)
