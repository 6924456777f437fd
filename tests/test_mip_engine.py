"""SCIP against brute force and on sets of real size; what the engine says when its solver is wrong, late or stopped."""

import math
import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from margotree.engines import EngineError, Limits, Refused, RunControl, accepting, choose_engine, get_engine, solve
from margotree.engines.branch_and_bound.engine import BranchAndBound
from margotree.engines.mip.adapter import Adapter
from margotree.engines.mip.constants import derived_constants
from margotree.engines.mip.engine import MipEngine
from margotree.engines.mip.formulation import formulate
from margotree.engines.mip.highs import HighsAdapter
from margotree.engines.mip.model import MipResult
from margotree.engines.mip.scip import Scip, ScipAdapter
from margotree.engines.node.svm import solve_node
from margotree.engines.polish import polish
from margotree.engines.run_control import ctrl_c
from margotree.paper.data import load, paper_hyperparameters, paper_split
from margotree.paper.data.synthetic import make_partitions
from margotree.problem import BINARY, Multiclass, Problem, Regression, Splits, evaluate, topology
from margotree.solution import Proved, Solution, Stopped, VerificationError, verify
from oracles import best_value
from patience import slowness, three_tries

MODELS = {"margot": {}, "hfs": {"budget": 1}, "sfs": {"budget": 1, "alpha": 0.5}}
SOLVERS = ["gurobi", "cplex", "copt"]


def crossed(m=20, seed=0, **kwargs):
    """Points in the square whose classes cross, so that one split is not enough."""
    X = np.random.default_rng(seed).random((m, 2))
    y = np.where((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5), 1, -1)
    return Problem.make(X, y, **{"depth": 2, "C": 10.0, **kwargs})


def greedy(problem):
    """A feasible start: SVMs from the root down on the budget's largest features, their routing re-solved."""
    node = np.zeros(problem.n_samples, dtype=np.int64)
    support = np.ones((problem.n_nodes, problem.n_features), dtype=bool)
    for t in range(problem.n_nodes):
        here = np.flatnonzero(node == t)
        cost = problem.C[t] * problem.weight[here]
        w, b = (found := solve_node(problem.X[here], problem.y[here], cost)).w, found.b
        if problem.budget is not None:
            keep = np.sort(np.argsort(-np.abs(w))[: problem.budget[t]])
            support[t] = np.isin(np.arange(problem.n_features), keep)
            found = solve_node(problem.X[np.ix_(here, keep)], problem.y[here], cost)
            w, b = np.zeros(problem.n_features), found.b
            w[keep] = found.w
        if t in topology.upper(problem.depth):
            h = problem.X[here] @ w + b
            node[here] = np.where(h >= -problem.eps / 2, topology.right(t), topology.left(t))
    return polish(problem, node, None if problem.budget is None else support)


def scaled(data, classes):
    keep = np.isin(data.target, classes)
    X = data.data[keep]
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), np.where(data.target[keep] == classes[1], 1, -1)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("depth", "m", "n"), [(1, 10, 3), (2, 8, 2), (3, 6, 2)])
def test_scip_agrees_with_brute_force(depth, m, n, model):
    rng = np.random.default_rng(100 * depth + m)
    X, y = rng.random((m, n)), rng.choice([-1.0, 1.0], m)
    weight = rng.choice([0.5, 1.0, 2.0], m)
    C = [5.0, 20.0, 2.0][:depth]
    problem = Problem.make(X, y, depth=depth, C=C, weight=weight, **MODELS[model])
    solution = Scip().solve(problem, RunControl(Limits(gap=1e-5)))
    optimum = best_value(problem)
    assert solution.certificate.proved is Proved.OPTIMAL
    assert solution.certificate.objective == pytest.approx(optimum, rel=2e-5)
    assert solution.certificate.bound <= optimum * (1 + 1e-9)
    verify(problem, solution)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("depth", "m", "n"), [(1, 10, 3), (2, 6, 2)])
@pytest.mark.parametrize("seed", range(2))
def test_scip_agrees_with_brute_force_on_regression_trees(seed, depth, m, n, model):
    rng = np.random.default_rng([seed, depth])
    X, y = rng.random((m, n)), rng.normal(5.0, [0.5, 3.0][seed], m)
    weight, C = rng.choice([0.0, 1.0, 2.0], m), [[2.0, 0.1], [5.0, 20.0]][seed][:depth]
    task = Regression([0.3, 0.0][seed])
    problem = Problem.make(X, y, task=task, depth=depth, C=C, weight=weight, eps=0.01, **MODELS[model])
    solution = Scip().solve(problem, RunControl(Limits(gap=1e-5)))
    optimum = best_value(problem)
    assert solution.certificate.proved is Proved.OPTIMAL
    assert solution.certificate.objective == pytest.approx(optimum, rel=2e-5, abs=1e-6)
    assert solution.certificate.bound <= optimum * (1 + 1e-9) + 1e-9
    verify(problem, solution)


@pytest.mark.parametrize(("model", "task"), [("hfs", Regression(0.2)), ("sfs", BINARY)])
def test_scip_agrees_with_brute_force_on_groups_of_features(model, task):
    rng = np.random.default_rng(6)
    X, m = rng.random((6, 4)), 6
    y = rng.choice([-1.0, 1.0], m) if task == BINARY else rng.normal(2.0, 1.0, m)
    problem = Problem.make(X, y, task=task, depth=2, C=[1.0, 9.0], groups=[4, 1, 4, 1], **MODELS[model])
    start = polish(problem, np.full(m, 2), search_supports=True)
    solution = Scip().solve(problem, RunControl(Limits(gap=1e-5)), start)
    optimum = best_value(problem)
    assert solution.certificate.proved is Proved.OPTIMAL
    assert solution.certificate.objective == pytest.approx(optimum, rel=2e-5, abs=1e-6)
    single = best_value(replace(problem, groups=None))
    assert optimum < (0.999 if model == "hfs" else 1.0) * single + 1e-9


def test_engines_that_do_not_count_groups_say_so(monkeypatch):
    problem = crossed(groups=[0, 0], budget=1)
    assert choose_engine(problem).name == "bnb"
    monkeypatch.setattr(BranchAndBound, "counts_groups", False)
    with pytest.raises(Refused, match=r"does not count groups of features.*scip"):
        choose_engine(problem, "bnb")
    assert solve(problem, limits=Limits(nodes=1)).certificate.engine == "scip"
    assert choose_engine(crossed(groups=[0, 0])).name == "bnb"


def test_a_problem_of_numeric_targets_is_for_some_engines():
    problem = Problem.make(np.eye(3), [1.0, 2.0, 4.0], task=Regression(), depth=1)
    assert solve(problem).certificate.engine == "bnb"
    known = ["bnb", "scip", "gurobi", "cplex", "copt", "local_svm", "alternating"]
    assert accepting(problem) == known
    with pytest.raises(Refused, match=f"engines that do: {', '.join(known)}"):
        choose_engine(problem, "highs")


@pytest.mark.parametrize("task", [BINARY, Multiclass(3), Regression(0.1)], ids=lambda task: task.name)
def test_scip_and_highs_agree_on_the_model_without_squares(task):
    rng = np.random.default_rng(4)
    X = rng.random((6, 2))
    y = {"binary": rng.choice([-1.0, 1.0], 6), "multiclass": np.arange(6) % 3}.get(task.name, 2 * rng.normal(size=6))
    problem = Problem.make(X, y, task=task, depth=2, budget=1, alpha=0.1)
    mip = formulate(problem, derived_constants(problem, 8.0), label_cuts=True, size=8.0).mip
    linear = replace(mip, quadratic=np.zeros(mip.n_variables))
    scip, highs = (adapter.run(linear, control=RunControl(), gap=1e-6) for adapter in (ScipAdapter(), HighsAdapter()))
    assert scip.stopped is highs.stopped is Stopped.SOLVED
    assert scip.objective == pytest.approx(highs.objective, rel=1e-5, abs=1e-6)
    assert max(scip.bound, highs.bound) <= min(scip.objective, highs.objective) * (1 + 1e-5) + 1e-6


@pytest.mark.parametrize("C", [1e-4, 1e5])
def test_scip_agrees_with_brute_force_at_both_ends_of_C(C):
    rng = np.random.default_rng(8)
    X, y = rng.random((7, 2)), np.array([1, -1, 1, -1, 1, -1, 1])
    problem = Problem.make(X, y, depth=2, C=C, budget=1)
    certificate = Scip().solve(problem, RunControl(Limits(gap=1e-4))).certificate
    assert certificate.proved is Proved.OPTIMAL
    assert certificate.objective == pytest.approx(best_value(problem), rel=1e-4)


def test_scip_with_max_weight():
    problem = crossed(8, seed=3, max_weight=2.0)
    certificate = Scip().solve(problem, RunControl(Limits(gap=1e-5))).certificate
    assert certificate.objective == pytest.approx(best_value(problem), rel=2e-5)


def certified(problem, solution):
    verify(problem, solution)
    certificate = solution.certificate
    assert certificate.stopped is Stopped.SOLVED
    assert certificate.proved is Proved.OPTIMAL
    assert certificate.nodes >= 1
    assert certificate.objective <= certificate.start_objective
    assert certificate.f0 >= certificate.f1 - 1e-9
    assert not certificate.restriction
    assert not certificate.warnings


@pytest.mark.slow
def test_scip_certifies_margot_on_108_points_in_four_partitions():
    made = make_partitions(4)
    problem = Problem.make(made.dataset.X, made.dataset.y, depth=2, C=1e3)
    solution = Scip().solve(problem, RunControl(Limits(time=600)), greedy(problem))
    certified(problem, solution)
    assert solution.certificate.objective <= evaluate(problem, made.truth).objective


@pytest.mark.slow
def test_scip_certifies_hfs_on_two_sorts_of_iris():
    X, y = scaled(load_iris(), (1, 2))
    problem = Problem.make(X, y, depth=2, C=10.0, budget=1)
    solution = Scip().solve(problem, RunControl(Limits(time=600)), greedy(problem))
    certified(problem, solution)
    assert np.all(np.count_nonzero(solution.splits.w, axis=1) <= 1)


@pytest.mark.slow
def test_scip_certifies_sfs_on_two_sorts_of_wine():
    X, y = scaled(load_wine(), (0, 1))
    problem = Problem.make(X, y, depth=2, C=1.0, budget=1, alpha=1.0)
    solution = Scip().solve(problem, RunControl(Limits(time=600)), greedy(problem))
    certified(problem, solution)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", SOLVERS)
def test_rival_solvers_find_the_same_value(name, model):
    engine = get_engine(name)
    if (need := engine.missing()) is not None:
        pytest.skip(f"{name} is not installed: {need}")
    problem = crossed(16, **MODELS[model])
    control = RunControl(Limits(gap=1e-6, time=600))
    try:
        theirs = engine.solve(problem, control)
    except EngineError as error:
        pytest.skip(f"{name} cannot run here: {error}")
    ours = Scip().solve(problem, RunControl(Limits(gap=1e-6, time=600)))
    assert theirs.certificate.stopped is Stopped.SOLVED
    assert theirs.certificate.objective == pytest.approx(ours.certificate.objective, rel=1e-5)
    assert theirs.certificate.bound <= ours.certificate.objective * (1 + 1e-9)
    assert theirs.certificate.bound == pytest.approx(ours.certificate.objective, rel=1e-5)


def refusal(engine, problem):
    try:
        engine.solve(problem, RunControl(Limits(time=20.0)))
    except EngineError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", SOLVERS)
def test_a_model_beyond_the_licence_gets_a_message(name):
    engine = get_engine(name)
    if (need := engine.missing()) is not None:
        pytest.skip(f"{name} is not installed: {need}")
    X, y = scaled(load_breast_cancer(), (0, 1))
    problem = Problem.make(X, y, depth=2, C=1.0)
    message = refusal(engine, problem)
    if message is None:
        pytest.skip(f"{name} has a licence without limits here")
    assert "licence" in message
    assert "scip" in message


def test_highs_refuses_trees_and_names_who_would_take_them():
    problem = crossed()
    with pytest.raises(Refused, match=r"MIQP.*scip"):
        choose_engine(problem, "highs")
    with pytest.raises(Refused, match="MIQP"):
        get_engine("highs").solve(problem)


@pytest.mark.parametrize("model", MODELS)
def test_label_cuts_change_the_way_not_the_goal(model):
    problem = crossed(12, seed=5, **MODELS[model])
    values = [
        Scip(label_cuts=on).solve(problem, RunControl(Limits(gap=1e-5))).certificate.objective for on in (False, True)
    ]
    assert values[0] == pytest.approx(values[1], rel=2e-5)


def test_the_papers_constants_restrict_the_proof_and_say_so():
    """Two classes 0.004 apart need |w| = 500, which M_w = 50 forbids."""
    X = np.array([[0.0], [0.004], [0.5], [1.0]])
    problem = Problem.make(X, [-1, 1, -1, 1], depth=2, C=1e6, budget=1)
    free = Scip().solve(problem, RunControl(Limits(gap=1e-5)))
    bound_by_them = Scip(big_m="paper").solve(problem, RunControl(Limits(gap=1e-5)))
    assert free.certificate.restriction == ""
    assert free.certificate.objective == pytest.approx(best_value(problem), rel=2e-5)
    assert "M_w = 50" in bound_by_them.certificate.restriction
    assert any("M_w" in warning for warning in bound_by_them.certificate.warnings)
    assert "only under" in str(bound_by_them.certificate)


def test_where_the_papers_constants_do_not_bind_they_give_the_same_value_without_a_warning():
    problem = crossed(12, seed=5, C=1.0)
    paper = Scip(big_m="paper").solve(problem, RunControl(Limits(gap=1e-5))).certificate
    free = Scip().solve(problem, RunControl(Limits(gap=1e-5))).certificate
    assert paper.objective == pytest.approx(free.objective, rel=2e-5)
    assert paper.warnings == free.warnings == ()


def test_unknown_constants_are_refused():
    with pytest.raises(ValueError, match="derived"):
        Scip(big_m="large")


@pytest.mark.parametrize("model", MODELS)
def test_every_odd_data_set_works(model):
    """Equal points of both classes, constant columns, one class, one sample, one feature, zero weights."""
    cases = [
        ([[0.5, 0.5]] * 4, [1, -1, 1, -1], None),
        ([[0.5, 0.1], [0.5, 0.9], [0.5, 0.4]], [1, -1, 1], None),
        ([[0.1, 0.2], [0.3, 0.4]], [1, 1], None),
        ([[0.1, 0.2]], [-1], None),
        ([[0.1, 0.2], [0.3, 0.4], [0.2, 0.9]], [1, -1, 1], [0.0, 1.0, 0.0]),
    ]
    for X, y, weight in cases:
        problem = Problem.make(X, y, depth=2, C=1.0, weight=weight, **MODELS[model])
        certificate = Scip().solve(problem, RunControl(Limits(gap=1e-5, time=600))).certificate
        assert certificate.objective == pytest.approx(best_value(problem), rel=2e-5, abs=1e-7)


def test_a_corrupted_answer_is_caught():
    problem = crossed()
    solution = Scip().solve(problem, RunControl(Limits(gap=1e-3)))
    verify(problem, solution)
    w, b = solution.splits.w, solution.splits.b
    on_the_line = Splits(w=w, b=b - (problem.X[0] @ w[0] + b[0] + problem.eps / 2) * np.array([1, 0, 0]))
    for splits in (Splits(w=w * 1.01, b=b), on_the_line):
        with pytest.raises(VerificationError):
            verify(problem, Solution(splits=splits, certificate=solution.certificate))
    boast = solution.certificate.with_(restriction="none", bound=solution.certificate.objective * 1.01)
    with pytest.raises(VerificationError):
        verify(problem, Solution(splits=solution.splits, certificate=boast))


class Scripted(Adapter):
    """A solver that returns a given result."""

    name, package, install = "scripted", "numpy", "nothing to install"
    kinds = frozenset({"MIQP"})

    def __init__(self, answer):
        self.answer = answer

    def version(self):
        return "0"

    def _run(self, job, progress):
        return self.answer(job)


def scripted(answer):
    class Engine(MipEngine):
        name = "scripted"
        models = frozenset({"margot", "hfs", "sfs"})
        adapter = Scripted(answer)

    return Engine()


def routed(problem, node):
    """A point that claims this routing and nothing else."""

    def answer(job):
        x = np.zeros(job.mip.n_variables)
        z = job.mip.blocks["z"]
        x[z] = node[:, None] == np.array(topology.last(problem.depth))
        return MipResult(x=x, objective=1.0, bound=0.5)

    return answer


def test_a_solver_that_finds_nothing_leaves_the_start():
    problem = crossed()
    start = greedy(problem)
    solution = scripted(lambda job: MipResult(x=None, stopped=Stopped.TIME)).solve(problem, start=start)
    assert solution.certificate.objective <= evaluate(problem, start).objective
    assert solution.certificate.stopped is Stopped.TIME
    assert 0 <= solution.certificate.bound <= solution.certificate.objective
    assert math.isnan(solution.certificate.f0)


def test_a_solver_that_finds_nothing_without_a_start_leaves_a_tree():
    for model in MODELS.values():
        problem = crossed(**model)
        solution = scripted(lambda job: MipResult(x=None, stopped=Stopped.TIME)).solve(problem)
        minority = min(np.sum(problem.y > 0), np.sum(problem.y < 0))
        assert solution.certificate.objective <= 2 * 2 * 10.0 * minority


def test_a_routing_without_a_tree_is_reported():
    X = np.array([[0.0], [0.5], [1.0]])
    problem = Problem.make(X, [1, -1, 1], depth=2, C=1.0)
    impossible = np.array([1, 2, 1])
    solution = scripted(routed(problem, impossible)).solve(problem)
    assert any("no tree" in warning for warning in solution.certificate.warnings)
    assert solution.certificate.stopped is Stopped.STALLED
    assert solution.certificate.proved is not Proved.OPTIMAL


def test_a_bound_above_a_known_tree_is_dropped():
    problem = crossed()
    liar = scripted(lambda job: MipResult(x=None, bound=1e9, stopped=Stopped.SOLVED))
    certificate = liar.solve(problem).certificate
    assert certificate.bound < certificate.objective
    assert certificate.stopped is Stopped.STALLED
    assert any("contradicts" in warning for warning in certificate.warnings)


def test_the_answer_is_the_polished_one():
    """The binaries decide, not the solver's hyperplanes, which may be anything."""
    problem = crossed()
    best = Scip().solve(problem, RunControl(Limits(gap=1e-6)))
    node = evaluate(problem, best.splits).node
    again = scripted(routed(problem, node)).solve(problem)
    assert again.certificate.objective == pytest.approx(best.certificate.objective, rel=1e-9)


@three_tries
def test_time_limit_holds_and_leaves_a_bound():
    X, y = scaled(load_breast_cancer(), (0, 1))
    problem = Problem.make(X, y, depth=2, C=10.0)
    Scip().solve(crossed(8))  # compiles the kernels outside the clock
    slow = slowness()
    control = RunControl(Limits(time=2.0 * slow))
    solution = Scip().solve(problem, control)
    assert control.elapsed < 4.0 * slow
    assert solution.certificate.stopped is Stopped.TIME
    assert 0 < solution.certificate.bound < solution.certificate.objective
    assert solution.certificate.proved is Proved.WITHIN_GAP


def test_progress_is_reported_and_only_improves():
    events = []
    Scip().solve(crossed(), RunControl(Limits(gap=1e-4), events.append))
    incumbents, bounds = [e.incumbent for e in events], [e.bound for e in events]
    assert len(events) > 2
    assert incumbents == sorted(incumbents, reverse=True)
    assert bounds == sorted(bounds)
    assert bounds[-1] <= incumbents[-1] * (1 + 1e-9)


def test_node_limit():
    certificate = Scip().solve(crossed(60), RunControl(Limits(nodes=5, time=120))).certificate
    assert certificate.stopped is Stopped.NODES
    assert certificate.proved is Proved.WITHIN_GAP


def test_interruption_before_anything_returns_the_start():
    problem = crossed(60)
    control = RunControl()
    control.interrupt()
    start = greedy(problem)
    solution = Scip().solve(problem, control, start)
    assert solution.certificate.stopped is Stopped.INTERRUPTED
    assert solution.certificate.objective <= evaluate(problem, start).objective


def test_ctrl_c_returns_a_tree():
    pytest.importorskip("pyscipopt", reason="needs pyscipopt: pip install 'margotree[mip]'")
    X, y = scaled(load_breast_cancer(), (0, 1))
    problem = Problem.make(X, y, depth=2, C=10.0)
    control = RunControl(Limits(time=120))
    with ctrl_c(control):
        threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        solution = Scip().solve(problem, control)
    assert solution.certificate.stopped is Stopped.INTERRUPTED
    assert control.elapsed < 60
    verify(problem, solution)


@pytest.mark.paper
@pytest.mark.slow
@three_tries
def test_scip_bounds_the_papers_optimum_on_wholesale():
    if "MARGOTREE_DATA" not in os.environ:
        pytest.skip("MARGOTREE_DATA does not point at the paper's data sets")
    part = paper_split(load("Wholesale"))
    hyper = paper_hyperparameters("margot", "Wholesale")
    problem = Problem.make(part.X_train, part.y_train, depth=2, **hyper)
    start = greedy(problem)
    assert evaluate(problem, start).objective == pytest.approx(104787.61, abs=0.01)
    certificate = Scip().solve(problem, RunControl(Limits(time=8 * slowness())), start).certificate
    assert 58000 < certificate.bound <= 97000
    assert certificate.objective <= 104787.62
