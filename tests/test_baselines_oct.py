"""OCT-1 and OCT-H: their value, their engines against brute force, and what a tree goes through on the way."""

import math
import threading
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from margotree.baselines.oct.cart import cart
from margotree.baselines.oct.engine import OctMip
from margotree.baselines.oct.lower_bound import oct_h_bound
from margotree.baselines.oct.merged_samples import rank_values
from margotree.baselines.oct.milp import formulate
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.search import Search
from margotree.baselines.oct.separation import separate
from margotree.baselines.oct.start import UnivariateStart
from margotree.baselines.oct.tree_cleanup import build_tree, clean_tree, numbered_splits, tree_from_leaves
from margotree.baselines.registry import choose_engine, engines_for, solve
from margotree.engines import EngineError, Limits, Refused, RunControl
from margotree.engines.mip.adapter import Adapter
from margotree.engines.mip.highs import HighsAdapter
from margotree.engines.mip.model import MipResult
from margotree.engines.mip.scip import ScipAdapter
from margotree.problem import Splits, topology
from margotree.solution import Proved, Stopped
from patience import slowness, three_tries


def some_problem(seed, *, m=12, n=2, classes=2, depth=2, grid=5, mu=None, **kwargs):
    """A few samples on a coarse grid, so that equal values and equal samples occur."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, grid, (m, n)) / (grid - 1) if grid else rng.random((m, n))
    y = rng.integers(0, classes, m)
    y[:classes] = np.arange(classes)
    weight = rng.integers(1, 4, m).astype(float) if seed % 2 else np.ones(m)
    return OctProblem.make(X, y, depth=depth, mu=mu, weight=weight, n_classes=classes, **kwargs)


# -- the slow and obvious twin ------------------------------------------------------------------------------------


def brute_force(problem):
    """The least value over all univariate trees: every feature, every threshold, at every node."""
    X, y, weight = problem.X, problem.y, problem.weight
    base = weight.sum() - max(weight[y == k].sum() for k in range(problem.n_classes))

    @cache
    def best(samples, depth):
        S = np.array(sorted(samples), dtype=int)
        big_enough = weight[S].sum() >= problem.min_leaf - 1e-9
        error = weight[S].sum() - max(weight[S][y[S] == k].sum() for k in range(problem.n_classes))
        values = [error / base if big_enough else math.inf]
        for j, threshold in product(range(X.shape[1]), np.unique(X)):
            left, right = S[X[S, j] < threshold], S[X[S, j] >= threshold]
            if depth and len(left) and len(right):
                below = best(frozenset(left), depth - 1) + best(frozenset(right), depth - 1)
                values.append(problem.alpha + below)
        return min(values)

    return best(frozenset(range(len(y))), problem.depth)


def brute_force_hyperplane(problem):
    """The least value of OCT-H at depth 1: every way to part the samples, every set of features."""
    X, y, weight = problem.X, problem.y, problem.weight
    base = weight.sum() - max(weight[y == k].sum() for k in range(problem.n_classes))

    def error(S):
        return (weight[S].sum() - max(weight[S][y[S] == k].sum() for k in range(problem.n_classes))) / base

    values = [error(np.ones(len(y), dtype=bool))]
    for right in map(np.array, product([False, True], repeat=len(y))):
        if min(weight[right].sum(), weight[~right].sum()) < problem.min_leaf or right.all() or not right.any():
            continue
        for used in map(np.array, product([False, True], repeat=X.shape[1])):
            if used.any() and _band(X[:, used], right) >= _asked_for(problem, used) - 1e-9:
                values.append(error(right) + error(~right) + problem.alpha * used.sum())
    return min(values)


def _band(X, right):
    """The widest band between the two groups for ``|a|_1 <= 1``."""
    m, n = X.shape
    sign = np.where(right, -1.0, 1.0)
    rows = np.hstack([sign[:, None] * X, -sign[:, None] * X, -sign[:, None], np.where(right, 0.0, 1.0)[:, None]])
    rows = np.vstack([rows, np.r_[np.ones(2 * n), 0.0, 0.0]])
    found = linprog(
        np.r_[np.zeros(2 * n + 1), -1.0],
        A_ub=rows,
        b_ub=np.r_[np.zeros(m), 1.0],
        bounds=[(0, None)] * (2 * n) + [(None, None), (0, None)],
    )
    return -found.fun


def _asked_for(problem, used):
    return problem.min_step[used][0] if used.sum() == 1 else problem.mu


# -- value --------------------------------------------------------------------------------------------------------


def test_value_by_hand():
    problem = OctProblem.make([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 2], depth=2, alpha=0.25)
    w, b = np.zeros((3, 1)), np.ones(3)
    w[0], b[0] = 2.0, -1.0  # at 0.5
    w[2], b[2] = 2.0, -5.0  # at 2.5
    found = problem.evaluate(Splits(w=w, b=b))
    assert found.feasible and found.error == 0 and found.splits == 2
    assert found.objective == 0.5
    assert found.leaf.tolist() == [4, 5, 5, 6]
    assert found.label.tolist() == [0, 0, 1, 2]  # leaf 3 has no samples and takes the label of its ancestor
    alone = problem.evaluate(numbered_splits(problem, None))
    assert alone.objective == 1.0 and alone.splits == 0 and set(alone.label) == {1}


def test_violations_are_described():
    X, y = np.array([[0.0, 0.0], [0.4, 1.0], [1.0, 0.5]]), [0, 1, 1]
    problem = OctProblem.make(X, y, depth=1, min_leaf=1.5, mu=None)

    def violations(w, b, of=problem):
        return " ".join(of.evaluate(Splits(w=np.array([w]), b=np.array([b]))).violations)

    assert violations([0.0, 0.0], 1.0) == ""
    assert "fewer than it must" in violations([5.0, 0.0], -1.0)
    assert "more than one feature" in violations([5.0, 5.0], -3.0)
    assert "inside the margin" in violations([2.0, 0.0], -1.4)
    assert "steeper" in violations([50.0, 0.0], -35.0)
    several = replace(problem, mu=0.1, min_leaf=0.0)
    assert violations([5.0, 5.0], -3.0, several) == ""
    assert "steeper" in violations([15.0, 15.0], -10.0, several)


@given(seed=st.integers(0, 10**6), depth=st.integers(1, 3))
@settings(max_examples=25)
def test_value_does_not_depend_on_order_or_on_how_weight_is_written(seed, depth):
    rng = np.random.default_rng(seed)
    problem = some_problem(seed, m=15, classes=3, depth=depth, alpha=0.05)
    tree = cart(problem)
    order = rng.permutation(problem.n_samples)
    times = problem.weight.astype(int)
    for rows in (order, np.repeat(np.arange(problem.n_samples), times)):
        weight = problem.weight[rows] if rows is order else None
        same = OctProblem.make(problem.X[rows], problem.y[rows], depth=depth, alpha=0.05, weight=weight, n_classes=3)
        assert same.evaluate(tree).objective == pytest.approx(problem.evaluate(tree).objective)
        assert same.evaluate(tree).feasible


def test_every_distinct_value_has_a_rank():
    level, step = rank_values(np.array([3.0, 1.0, 1.0 + 1e-14, 2.5, 3.0]))
    assert level.tolist() == [2, 0, 0, 1, 2] and step == 0.5
    assert rank_values(np.full(3, 7.0))[1] == math.inf


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": -1}, "alpha must be a finite number >= 0, got -1"),
        ({"alpha": "much"}, "alpha must be"),
        ({"min_leaf": 5}, "a leaf cannot hold min_leaf = 5 samples, there are 4"),
        ({"mu": 0}, "mu must be a finite number > 0, got 0"),
        ({"depth": 0}, "depth must be a whole number"),
        ({"y": [0, 0, 0, 0]}, "at least two of the classes"),
        ({"y": [0, 1, 2, -1]}, "class numbers"),
        ({"y": [0, 1]}, "of one length"),
        ({"weight": [1, 1, 1, 0]}, "weight must be positive"),
        ({"X": [[1.0], [np.nan], [0.0], [0.0]]}, "NaN or infinity"),
    ],
)
def test_bad_problems_are_refused(change, message):
    given = {"X": [[0.0], [1.0], [2.0], [3.0]], "y": [0, 1, 0, 1], "depth": 1} | change
    with pytest.raises(ValueError, match=message):
        OctProblem.make(given.pop("X"), given.pop("y"), **given)


# -- engines against brute force ----------------------------------------------------------------------------------

CASES = [
    {"depth": depth, "classes": classes, "alpha": alpha, "min_leaf": leaf}
    for depth, classes, alpha, leaf in product((1, 2), (2, 3), (0.0, 0.07), (0.0, 2.5))
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_search_equals_brute_force(case):
    for seed in range(4):
        problem = some_problem(seed, **case)
        solution = Search().solve(problem)
        assert solution.certificate.proved is Proved.OPTIMAL
        assert solution.certificate.objective == pytest.approx(brute_force(problem), abs=1e-9)


@pytest.mark.parametrize("grid", [3, None])
def test_search_equals_brute_force_at_depth_three(grid):
    for seed in range(3):
        problem = some_problem(seed, m=11, depth=3, classes=3, grid=grid, alpha=0.02, min_leaf=1.5)
        assert Search().solve(problem).certificate.objective == pytest.approx(brute_force(problem), abs=1e-9)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_milp_equals_brute_force(case):
    problem = some_problem(3 + len(str(case)), m=9, **case)
    solution = OctMip(HighsAdapter()).solve(problem)
    assert solution.certificate.proved is Proved.OPTIMAL
    assert solution.certificate.objective == pytest.approx(brute_force(problem), abs=1e-9)
    assert solution.certificate.bound <= solution.certificate.objective


def test_scip_and_highs_agree():
    problem = some_problem(5, m=10, classes=3, alpha=0.03, min_leaf=2)
    values = [OctMip(adapter).solve(problem).certificate.objective for adapter in (HighsAdapter(), ScipAdapter())]
    assert values == pytest.approx([brute_force(problem)] * 2)


def test_scip_and_highs_agree_on_hyperplanes():
    """Two classes along a diagonal and a third one at its end: a hyperplane, and a threshold below it."""
    along, side = np.arange(10) / 9, np.arange(10) % 2
    y = np.where(np.arange(10) == 0, 2, side)
    problem = OctProblem.make(np.column_stack([along, 1 - along + 0.3 * side]), y, depth=2, mu=0.02, alpha=0.05)
    for adapter in (HighsAdapter(), ScipAdapter()):
        certificate = OctMip(adapter).solve(problem).certificate
        assert certificate.proved is Proved.OPTIMAL and certificate.objective == pytest.approx(3 * 0.05)
    assert brute_force(problem) > 0.5  # thresholds alone


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("min_leaf", [0.0, 2.0])
def test_oct_h_equals_brute_force_at_depth_one(alpha, min_leaf):
    for seed, grid in ((0, 4), (2, None)):
        problem = some_problem(seed, m=7, depth=1, grid=grid, mu=0.2, alpha=alpha, min_leaf=min_leaf)
        solution = OctMip(HighsAdapter()).solve(problem)
        assert solution.certificate.proved is Proved.OPTIMAL
        assert solution.certificate.objective == pytest.approx(brute_force_hyperplane(problem), abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_oct_h_is_never_worse_than_oct_1(seed):
    """Even for values closer together than mu, and however early the solver is stopped."""
    problem = some_problem(seed, m=14, n=2, classes=2 + seed % 2, grid=None, mu=0.3, min_leaf=1.0)
    univariate = Search().solve(replace(problem, mu=None))
    limits = Limits(time=math.inf, nodes=20)
    solution = solve(problem, engine="highs", limits=limits, start="oct_1")
    assert solution.certificate.objective <= univariate.certificate.objective + 1e-9
    assert solution.certificate.start_objective == pytest.approx(univariate.certificate.objective)


def test_a_better_start_is_kept_and_a_useless_one_is_replaced():
    problem = some_problem(7, m=20, depth=2)
    best = Search().solve(problem)
    worst = numbered_splits(problem, None)
    assert Search().solve(problem, start=worst).certificate.objective == pytest.approx(best.certificate.objective)
    stopped = OctMip(HighsAdapter()).solve(problem, RunControl(Limits(nodes=0)), best.splits)
    assert stopped.certificate.objective == pytest.approx(best.certificate.objective)


# -- shapes -------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), hyperplanes=st.booleans())
@settings(max_examples=30)
def test_cleaning_keeps_the_routing_and_never_increases_the_objective(seed, hyperplanes):
    rng = np.random.default_rng(seed)
    problem = some_problem(seed, m=15, classes=3, grid=None, mu=1e-4 if hyperplanes else None, alpha=0.01)
    w = rng.normal(size=(3, 2)) * rng.choice([1e-3, 1.0, 1e3])
    if not hyperplanes:
        w[np.arange(3), rng.integers(0, 2, 3)] = 0.0
    rough = Splits(w=w, b=-np.sum(w * rng.random((3, 2)), axis=1))
    tree = clean_tree(problem, rough)
    if tree is None:
        assert hyperplanes  # some hyperplane passes too close to a sample; a threshold never does
        return
    found, before = problem.evaluate(tree), problem.evaluate(rough)
    assert found.feasible and found.objective <= before.objective + 1e-9
    assert problem.evaluate(clean_tree(problem, tree)).objective == pytest.approx(found.objective)


def test_a_split_keeps_its_distance_from_both_sides():
    problem = OctProblem.make([[0.0, 0.0], [0.2, 0.1], [0.9, 0.8], [1.0, 1.0]], [0, 0, 1, 1], depth=1, mu=0.01)
    one, several = np.array([0]), np.array([0, 1])
    left, right = np.array([0, 1]), np.array([2, 3])
    w, b = separate(problem, left, right, one, RunControl())
    assert -b / w[0] == pytest.approx(0.55) and w[1] == 0
    w, b = separate(problem, left, right, several, RunControl())
    assert np.abs(w).sum() == pytest.approx(2 / 0.7)  # no |w|_1 is smaller
    h = problem.X @ w + b
    assert h[:2].max() == pytest.approx(-1) and h[2:].min() == pytest.approx(1)
    assert separate(problem, np.array([0, 2]), np.array([1, 3]), several, RunControl()) is None


def test_useless_splits_disappear():
    problem = OctProblem.make([[0.0], [1.0], [2.0]], [0, 1, 1], depth=2)
    w, b = np.array([[2.0], [0.0], [2.0]]), np.array([3.0, 1.0, -1.0])  # the root sends all samples right
    tree = clean_tree(problem, Splits(w=w, b=b))
    assert problem.evaluate(tree).splits == 1 and tree.w[0, 0] == 2.0
    same_label = Splits(w=np.array([[2.0], [0.0], [2.0]]), b=np.array([-1.0, 1.0, -3.0]))
    assert problem.evaluate(clean_tree(problem, same_label)).splits == 1


def test_a_routing_without_allowed_tree_gives_none():
    problem = OctProblem.make([[0.0], [1.0], [2.0]], [0, 1, 0], depth=1)
    everything = np.ones((1, 1), dtype=bool)
    assert tree_from_leaves(problem, np.array([1, 2, 1]), everything) is None
    assert problem.evaluate(tree_from_leaves(problem, np.array([1, 2, 2]), everything)).error == 1
    assert build_tree(problem, lambda t, rows: None, everything).w.any() == np.False_


def test_cart_stops_where_it_may_not_split():
    problem = some_problem(4, m=30, depth=3, min_leaf=10.0)
    found = problem.evaluate(cart(problem))
    sizes = [problem.weight[found.leaf == v].sum() for v in np.unique(found.leaf)]
    assert found.feasible and min(sizes) >= 10.0
    large_alpha = replace(problem, alpha=10.0)
    assert large_alpha.evaluate(cart(large_alpha)).splits == 0


@pytest.mark.parametrize("mu", [None, 0.05], ids=["oct_1", "oct_h"])
@pytest.mark.parametrize("seed", range(6))
def test_a_tree_is_a_point_of_its_model(seed, mu):
    problem = some_problem(seed, m=16, n=3, classes=3, grid=None, depth=1 + seed % 3, mu=mu, alpha=0.05, min_leaf=1.0)
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(problem.n_nodes, 3))
    oblique = clean_tree(problem, Splits(w=w, b=-w.sum(axis=1) / 2)) if mu else None
    for tree in (numbered_splits(problem, None), clean_tree(problem, cart(problem)), oblique):
        if tree is not None:
            model = formulate(problem)
            x = model.point(tree)
            assert model.mip.violation(x) <= 1e-9
            assert model.mip.value(x) == pytest.approx(problem.evaluate(tree).objective)
            again = list(model.trees(x, RunControl()))
            assert [problem.evaluate(t).objective for t in again] == pytest.approx([model.mip.value(x)])


@pytest.mark.parametrize("seed", range(4))
def test_the_splits_are_used_if_the_routing_is_not_allowed(seed):
    problem = some_problem(seed, m=16, n=3, grid=None, mu=0.01)
    w = np.random.default_rng(seed).normal(size=(3, 3)) * [[1, 1, 0], [0, 1, 0], [1, 0, 0]]
    tree = clean_tree(problem, Splits(w=w, b=-w.sum(axis=1) / 2))
    model = formulate(problem)
    x = model.point(tree)
    z = model.mip.blocks["z"]
    x[z], rng = 0.0, np.random.default_rng(seed)
    x[z[np.arange(len(z)), rng.integers(0, 4, len(z))]] = 1.0  # no tree has this routing
    found = problem.evaluate(tree)
    assert [problem.evaluate(t).leaf.tolist() for t in model.trees(x, RunControl())] == [found.leaf.tolist()]


# -- honesty ------------------------------------------------------------------------------------------------------


class Liar(Adapter):
    """A solver that puts every sample into its own label's leaf, realisable or not, and claims a bound."""

    name, package, install = "liar", "numpy", ""

    def __init__(self, bound):
        self.bound = bound

    def version(self):
        return "0"

    def _run(self, job, progress):
        x = np.zeros(job.mip.n_variables)
        z = job.mip.blocks["z"]
        x[z[np.arange(len(z)), np.arange(len(z)) % 2]] = 1.0
        return MipResult(x=x, objective=0.0, bound=self.bound, stopped=Stopped.SOLVED)


def test_the_result_of_a_wrong_solver_is_rejected():
    problem = some_problem(2, m=20, depth=1)
    start = cart(problem)
    solution = OctMip(Liar(bound=0.0)).solve(problem, start=start)
    assert solution.certificate.objective == pytest.approx(problem.evaluate(start).objective)
    assert solution.certificate.proved is not Proved.OPTIMAL
    assert any("no tree routes" in warning for warning in solution.certificate.warnings)
    solution = OctMip(Liar(bound=5.0)).solve(problem, start=start)
    assert solution.certificate.bound <= solution.certificate.objective
    assert any("contradicts" in warning for warning in solution.certificate.warnings)


def hard_problem(mu=None, m=150, depth=4):
    rng = np.random.default_rng(0)
    return OctProblem.make(rng.random((m, 8)), rng.integers(0, 2, m), depth=depth, mu=mu, min_leaf=5)


@pytest.mark.parametrize(("mu", "engine"), [(None, "search"), (None, "highs"), (0.005, "highs")])
@three_tries
def test_a_time_limit_claims_nothing(mu, engine):
    problem = hard_problem(mu)
    start = "cart" if mu is None else "oct_1"
    certificate = solve(problem, engine=engine, limits=Limits(time=1.5 * slowness()), start=start).certificate
    assert certificate.stopped is Stopped.TIME and certificate.proved is Proved.WITHIN_GAP
    assert certificate.objective <= certificate.start_objective


@pytest.mark.parametrize(("mu", "engine"), [(None, "search"), (0.005, "highs")])
@three_tries
def test_an_interrupted_search_returns_its_tree(mu, engine):
    problem, events = hard_problem(mu), []
    control = RunControl(Limits(time=60), events.append)
    threading.Timer(slowness(), control.interrupt).start()
    certificate = choose_engine(problem.model, engine).solve(problem, control, cart(problem)).certificate
    assert certificate.stopped is Stopped.INTERRUPTED and certificate.proved is not Proved.OPTIMAL
    assert events and events[-1].phase == engine


def test_the_trivial_bound_is_the_irreducible_error():
    problem = OctProblem.make([[0.0], [0.0], [0.0], [1.0]], [0, 0, 1, 1], depth=1)
    assert problem.points.irreducible_error == 1.0
    stopped = RunControl(Limits(time=1e-9))
    for engine in (Search(), OctMip(HighsAdapter()), UnivariateStart()):
        certificate = engine.solve(replace(problem, mu=0.1) if engine.name == "oct_1" else problem, stopped).certificate
        assert certificate.bound in (pytest.approx(0.5), -math.inf)
    assert Search().solve(problem).certificate.objective == pytest.approx(0.5)


@pytest.mark.parametrize("alpha", [0.0, 0.02, 0.2, 0.6])
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_of_oct_h_is_below_every_tree(seed, alpha):
    problem = some_problem(seed, m=7, depth=1, grid=None, mu=0.05, alpha=alpha, min_leaf=1)
    assert problem.trivial_bound <= oct_h_bound(problem, RunControl()) <= brute_force_hyperplane(problem) + 1e-9


def test_trees_that_reach_the_bound_need_no_solver():
    """If a second feature is not worthwhile, and if the error is irreducible."""
    large_alpha = some_problem(3, m=16, n=3, grid=None, mu=0.01, alpha=0.5, min_leaf=1)
    solution = OctMip(Liar(bound=0.0)).solve(large_alpha, start=cart(large_alpha))
    assert solution.certificate.proved is Proved.OPTIMAL
    assert solution.certificate.objective == pytest.approx(brute_force(large_alpha))
    X = np.random.default_rng(0).random((30, 2))
    easy = OctProblem.make(X, (X[:, 0] > 0.5).astype(int), depth=2, mu=0.01)
    assert OctMip(Liar(bound=0.0)).solve(easy, start=cart(easy)).certificate.proved is Proved.OPTIMAL


# -- who solves what ----------------------------------------------------------------------------------------------


def test_engines_by_name():
    assert engines_for("oct_1")[0] == "search" and engines_for("oct_h")[0] == "highs"
    assert choose_engine("oct_h").name == "highs"
    with pytest.raises(ValueError, match="unknown engine 'cplexx'; for oct_1 there are: auto, search, highs"):
        choose_engine("oct_1", "cplexx")
    with pytest.raises(Refused, match="bnb does not solve oct_h problems; engines that do: highs, scip"):
        choose_engine("oct_h", "bnb")
    with pytest.raises(EngineError, match="does not solve oct_h"):
        Search().solve(some_problem(0, mu=0.1))


def test_gurobi_agrees_where_it_is_installed():
    pytest.importorskip("gurobipy")
    problem = some_problem(1, m=10, classes=3, alpha=0.02)
    try:
        solution = solve(problem, engine="gurobi")
    except EngineError as error:
        pytest.skip(str(error))
    assert solution.certificate.objective == pytest.approx(brute_force(problem))


def test_leaves_are_numbered_as_everywhere():
    problem = some_problem(0, depth=2)
    found = problem.evaluate(cart(problem))
    assert set(found.leaf) <= set(topology.leaves(2))
