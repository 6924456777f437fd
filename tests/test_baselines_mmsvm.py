"""MM-SVM-OCT: its value, its cone model against brute force over routings, and the polish behind it."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from margotree.baselines.mmsvm.engine import MmSvmMip
from margotree.baselines.mmsvm.miqcp import formulate
from margotree.baselines.mmsvm.polish import polish
from margotree.baselines.mmsvm.problem import MmSvmProblem
from margotree.baselines.mmsvm.start import LocalSvmStart, best_polished_tree, constant_tree
from margotree.baselines.registry import choose_engine, solve
from margotree.engines import EngineError, Limits, Refused, RunControl
from margotree.engines.mip.adapter import Adapter
from margotree.engines.mip.model import MipResult
from margotree.engines.mip.scip import ScipAdapter
from margotree.problem import Splits, evaluate, topology
from margotree.solution import Proved, Stopped
from oracles import separable
from patience import slowness, three_tries


def some_problem(seed, *, m=6, n=2, **kwargs):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(m) < 0.5, -1.0, 1.0)
    y[:2] = -1.0, 1.0
    weight = rng.integers(1, 4, m) if seed % 2 else None
    return MmSvmProblem.make(rng.random((m, n)), y, weight=weight, **{"depth": 2, "c1": 5.0, "c3": 0.5, **kwargs})


# -- the slow and obvious twin ------------------------------------------------------------------------------------


def brute_force(problem):
    """The least value over all routings, split nodes and relabellings, each a smooth convex problem of its own."""
    last, best = topology.last(problem.depth), math.inf
    for route in product(last, repeat=problem.n_samples):
        node = np.array(route)
        if all(_realisable(problem, node, t) for t in topology.upper(problem.depth)):
            for split in product([False, True], repeat=problem.n_nodes):
                for flip in _flips(problem):
                    best = min(best, _fixed(problem, node, np.array(split), flip, best))
    return best


def _flips(problem):
    shape = (problem.n_nodes, problem.n_samples)
    if problem.c2 is None:
        return [np.zeros(shape, dtype=bool)]
    return [np.array(flat).reshape(shape) for flat in product([False, True], repeat=shape[0] * shape[1])]


def _passes(problem, node, t):
    return np.isin(node, topology.last_below(t, problem.depth))


def _realisable(problem, node, t):
    here = _passes(problem, node, t)
    right = np.isin(node, topology.last_right(t, problem.depth))
    return separable(problem.margin.X[here & ~right], problem.margin.X[here & right])


def _fixed(problem, node, split, flip, best):
    """The best value with everything discrete fixed; inf if it cannot be, or cannot beat ``best``."""
    X, y, n = problem.margin.X, problem.margin.y, problem.n_features
    fees, columns, at = problem.c3 * split.sum(), {}, 1  # variable 0 is delta
    for t in range(problem.n_nodes):
        columns[t] = np.arange(at, at + n if split[t] else at), at + n * split[t]
        at = columns[t][1] + 1
    losses = [(t, i) for t in range(problem.n_nodes) for i in np.flatnonzero(_passes(problem, node, t))]
    fees += sum((problem.c2 or 0.0) * problem.margin.weight[i] for t, i in losses if flip[t, i])
    if fees >= best or any((t, i) not in losses for t, i in zip(*np.nonzero(flip), strict=True)):
        return math.inf
    size, lines, rhs = at + len(losses), [], []

    def row(t, i, sign, least, slack=None):
        line = np.zeros(size)
        line[columns[t][0]] = sign * X[i] if split[t] else []
        line[columns[t][1]] = sign
        if slack is not None:
            line[slack] = 1.0
        lines.append(line)
        rhs.append(least)

    for q, (t, i) in enumerate(losses):
        row(t, i, -y[i] if flip[t, i] else y[i], 1.0, at + q)
        if t in topology.upper(problem.depth):
            right = node[i] >= topology.last_right(t, problem.depth).start
            row(t, i, 1.0 if right else -1.0, 0.0 if right else problem.eps)
    # a box on the offsets, far out, keeps the set of minima bounded where only one class is left
    offsets = np.eye(size)[[b for _, b in columns.values()]]
    A = np.vstack([*lines, np.eye(len(losses), size, at), offsets, -offsets])
    cost = np.r_[1.0, np.zeros(at - 1), [problem.c1 * problem.margin.weight[i] for _, i in losses]]
    groups = [columns[t][0] for t in range(problem.n_nodes) if split[t]]
    return fees + barrier(cost, A, np.r_[rhs, np.zeros(len(losses)), np.full(2 * len(columns), -1e4)], groups)


def barrier(cost, A, a, groups):
    """``min cost.x`` subject to ``A x >= a`` and ``x_0 >= 1/2 |x_g|^2`` for every group, by a textbook barrier."""
    m, size = A.shape
    inside = linprog(
        np.r_[1e-9 * (cost > 0), -1.0], A_ub=np.hstack([-A, np.ones((m, 1))]), b_ub=-a,
        bounds=[(-1e2, 1e2)] * size + [(None, 1e-4)],
    )  # fmt: skip
    if inside.x[-1] < 1e-9:
        return math.inf
    x = inside.x[:size]
    x[0] = max([0.0] + [0.5 * x[g] @ x[g] for g in groups]) + 1.0

    def terms(x):
        return np.r_[A @ x - a, [x[0] - 0.5 * x[g] @ x[g] for g in groups]] if groups else np.r_[A @ x - a, x[0]]

    t = 1e-3
    while (m + 1 + len(groups)) / t > 1e-6 * (1 + abs(cost @ x)):
        t *= 5.0
        for _ in range(500):
            room = terms(x)
            slopes = np.vstack([A, *(_slope(x, g) for g in groups)]) if groups else np.vstack([A, np.eye(1, size)])
            gradient = t * cost - slopes.T @ (1 / room)
            curve = (slopes.T / room**2) @ slopes
            for g, r in zip(groups, room[m:], strict=False):
                curve[g, g] += 1 / r
            even = 1 / np.sqrt(np.diag(curve))  # curvatures differ by twenty orders of magnitude
            move = even * np.linalg.lstsq(even[:, None] * curve * even, -even * gradient, rcond=1e-15)[0]
            length = math.sqrt(max(0.0, -gradient @ move))
            # the barrier is self-concordant: this step stays inside and gets there without a line search
            x = x + move / (1 + length if length > 0.25 else 1)
            if length < 1e-5:
                break
    return float(cost @ x)


def _slope(x, g):
    slope = np.zeros(len(x))
    slope[0], slope[g] = 1.0, -x[g]
    return slope[None, :]


# -- value --------------------------------------------------------------------------------------------------------


def test_value_by_hand():
    problem = MmSvmProblem.make([[0.0], [1.0], [2.0]], [-1, 1, 1], depth=2, c1=3.0, c3=0.5)
    splits = Splits(w=[[2.0], [0.0], [1.0]], b=[-1.0, -1.0, 0.0])
    found = problem.evaluate(splits)
    # root: h = -1, 1, 3, no loss; node 1 goes right; node 2: h = 1, 2
    assert found.feasible and found.node.tolist() == [1, 2, 2]
    assert found.delta == 2.0 and found.loss == 0.0 and found.splits == 2
    assert found.objective == 3.0
    worse = problem.evaluate(Splits(w=splits.w, b=[-1.0, 1.0, 0.0]))
    assert worse.objective == 3.0 + 3.0 * 2.0
    relabelling = MmSvmProblem.make([[0.0], [1.0], [2.0]], [-1, 1, 1], depth=2, c1=3.0, c2=1.0, c3=0.5)
    cured = relabelling.evaluate(Splits(w=splits.w, b=[-1.0, 1.0, 0.0]))
    assert cured.objective == 3.0 + 1.0
    assert cured.relabelled.nonzero()[0].tolist() == [1]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_the_losses_are_those_of_the_margin_problem(seed):
    rng = np.random.default_rng(seed)
    problem = some_problem(seed, m=12, depth=3)
    splits = Splits(w=rng.normal(size=(7, 2)), b=rng.normal(size=7))
    found, margin = problem.evaluate(splits), evaluate(problem.margin, splits)
    squares = 0.5 * np.sum(splits.w**2, axis=1)
    assert found.objective == pytest.approx(margin.objective - squares.sum() + squares.max() + 0.5 * 7)
    assert found.feasible == margin.feasible


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"c1": 0}, "c1 must be a positive finite number, got 0"),
        ({"c3": -1}, "c3 must be a positive finite number, got -1"),
        ({"c2": 0}, "c2 must be"),
        ({"eps": 0}, "eps must be"),
        ({"y": [0, 1, 1]}, "-1 and [+]1 only"),
    ],
)
def test_bad_problems_are_refused(change, message):
    given = {"X": [[0.0], [1.0], [2.0]], "y": [-1, 1, 1], "depth": 1} | change
    with pytest.raises(ValueError, match=message):
        MmSvmProblem.make(given.pop("X"), given.pop("y"), **given)


# -- the model against brute force --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "case"),
    [
        (0, {"depth": 1, "c1": 1.0}),
        (1, {"depth": 1, "c1": 100.0, "m": 7}),
        (2, {"depth": 2, "c1": 1.0, "c3": 0.01, "m": 5}),
        (3, {"depth": 2, "c1": 20.0, "c3": 1.0, "m": 5}),
        (4, {"depth": 2, "c1": 1000.0, "c3": 0.0, "m": 5}),
        (6, {"depth": 2, "c1": 0.01, "c3": 0.01, "m": 5}),
        (3, {"depth": 2, "c1": 20.0, "c3": 30.0, "m": 5}),
        (5, {"depth": 1, "c1": 10.0, "c2": 3.0, "m": 6}),
        (8, {"depth": 1, "c1": 1.0, "c2": 0.5, "c3": 0.0, "m": 6}),
    ],
    ids=str,
)
def test_the_model_equals_brute_force(seed, case):
    problem = some_problem(seed, **case)
    solution = MmSvmMip(ScipAdapter()).solve(problem)
    assert solution.certificate.proved is Proved.OPTIMAL
    assert solution.certificate.objective == pytest.approx(brute_force(problem), rel=1e-4)
    assert solution.certificate.bound <= solution.certificate.objective


@pytest.mark.parametrize("seed", range(8))
def test_the_polish_is_the_best_tree_of_its_routing(seed):
    problem = some_problem(seed, m=7, c1=[0.1, 10.0, 1e3, 1e5][seed % 4])
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(3, 2))
    rough = Splits(w=w, b=-w.sum(axis=1) / 2)
    node = evaluate(problem.margin, rough).node
    tree = polish(problem, node, np.ones(3, dtype=bool))
    found = problem.evaluate(tree)
    assert found.feasible and np.array_equal(found.node, node)
    # a node without samples has no weights, so it adds no split penalty
    reached = np.array([_passes(problem, node, t).any() for t in range(3)])
    wanted = _fixed(problem, node, reached, np.zeros((3, 7), dtype=bool), math.inf)
    spared = problem.c3 * (reached.sum() - found.splits)
    assert found.objective + spared == pytest.approx(wanted, rel=1e-5)


def test_what_cannot_be_routed_is_not_polished():
    problem = MmSvmProblem.make([[0.0], [1.0], [2.0]], [-1, 1, -1], depth=2)
    everywhere, nowhere = np.ones(3, dtype=bool), np.zeros(3, dtype=bool)
    assert polish(problem, np.array([1, 2, 1]), everywhere) is None
    assert polish(problem, np.array([1, 2, 2]), nowhere) is None
    tree = polish(problem, np.array([1, 1, 1]), nowhere)
    assert not tree.w.any() and problem.evaluate(tree).node.tolist() == [1, 1, 1]


@pytest.mark.parametrize("c2", [None, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_tree_is_a_point_of_its_model(seed, c2):
    problem = some_problem(seed, m=10, c1=10.0, c2=c2)
    tree = LocalSvmStart().solve(problem).splits
    for splits in (constant_tree(problem), tree, best_polished_tree(problem, tree)):
        value = problem.evaluate(splits).objective
        model = formulate(problem, value)
        x = model.point(splits)
        assert model.mip.violation(x) <= 1e-7
        assert model.mip.value(x) <= value * (1 + 1e-9)
        assert model.mip.kind == "MIQCP"
        again = [problem.evaluate(t).objective for t in model.trees(x, RunControl())]
        assert again and again[0] <= value * (1 + 1e-6)


def test_the_start_is_no_worse_than_no_tree():
    for c1, c3 in ((1e-5, 0.01), (1.0, 1e6), (100.0, 0.0)):
        problem = some_problem(4, m=20, c1=c1, c3=c3)
        alone = problem.evaluate(constant_tree(problem)).objective
        assert LocalSvmStart().solve(problem).certificate.objective <= alone * (1 + 1e-12)


# -- honesty ------------------------------------------------------------------------------------------------------


class Liar(Adapter):
    """A solver that claims to part what cannot be parted."""

    name, package, install, kinds = "liar", "numpy", "", frozenset({"MIQCP"})

    def version(self):
        return "0"

    def _run(self, job, progress):
        x = np.zeros(job.mip.n_variables)
        z = job.mip.blocks["z"]
        x[z[np.arange(len(z)), np.arange(len(z)) % 2]] = 1.0
        return MipResult(x=x, objective=0.0, bound=1e9, stopped=Stopped.SOLVED)


def test_the_result_of_a_wrong_solver_is_rejected():
    problem = MmSvmProblem.make([[0.0], [1.0], [2.0], [3.0]], [-1, 1, -1, 1], depth=2)
    solution = MmSvmMip(Liar()).solve(problem)
    assert solution.certificate.objective == pytest.approx(problem.evaluate(constant_tree(problem)).objective)
    assert solution.certificate.proved is not Proved.OPTIMAL
    assert solution.certificate.bound <= solution.certificate.objective
    assert any("no tree routes" in warning for warning in solution.certificate.warnings)


def hard_problem():
    rng = np.random.default_rng(0)
    return MmSvmProblem.make(rng.random((150, 6)), np.where(rng.random(150) < 0.5, -1, 1), depth=3, c1=10.0, c3=0.1)


@three_tries
def test_a_time_limit_claims_nothing():
    certificate = solve(hard_problem(), limits=Limits(time=3 * slowness()), start="local_svm").certificate
    assert certificate.stopped is Stopped.TIME and certificate.proved is Proved.WITHIN_GAP
    assert 0 < certificate.bound < certificate.objective <= certificate.start_objective * (1 + 1e-12)


def test_an_interrupted_search_returns_its_tree():
    problem, events = hard_problem(), []

    def on_event(event):
        events.append(event)
        control.interrupt()  # on a busy machine, too, the solver is at work then

    control = RunControl(Limits(time=60), on_event)
    certificate = MmSvmMip(ScipAdapter()).solve(problem, control).certificate
    assert certificate.stopped is Stopped.INTERRUPTED and certificate.proved is not Proved.OPTIMAL
    assert events


def test_engines_by_name():
    assert choose_engine("mm_svm_oct").name == "scip"
    with pytest.raises(Refused, match="highs does not solve mm_svm_oct problems; engines that do: scip, gurobi"):
        choose_engine("mm_svm_oct", "highs")


def test_gurobi_agrees_where_it_is_installed():
    pytest.importorskip("gurobipy")
    problem = some_problem(2, m=5, c1=1.0, c3=0.01)
    try:
        solution = solve(problem, engine="gurobi")
    except EngineError as error:
        pytest.skip(str(error))
    assert solution.certificate.objective == pytest.approx(solve(problem).certificate.objective, rel=1e-4)
