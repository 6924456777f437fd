"""Limits hold wherever the time goes: clocks that tests turn by hand, and work that ends when they say so."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from margotree import MargotClassifier, OCT1Classifier, OCTHClassifier
from margotree.baselines.mmsvm.polish import polish as polish_mmsvm
from margotree.baselines.mmsvm.problem import MmSvmProblem
from margotree.baselines.mmsvm.start import LocalSvmStart, constant_tree
from margotree.baselines.oct.cart import cart
from margotree.baselines.oct.engine import OctMip
from margotree.baselines.oct.enumerate import Enumeration
from margotree.baselines.oct.lp import lp_too_large, solve_lp
from margotree.baselines.oct.merged_samples import RankedSamples
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.search import Search
from margotree.baselines.oct.tree_cleanup import clean_tree
from margotree.engines import Limits, RunControl, run_control
from margotree.engines.band import in_band, leave_band
from margotree.engines.local_svm import LocalSVM
from margotree.engines.mip.adapter import Adapter
from margotree.engines.mip.highs import HighsAdapter
from margotree.engines.mip.scip import Scip
from margotree.engines.node.svm import solve_node
from margotree.engines.polish import polish
from margotree.engines.registry import without_audit
from margotree.problem import Problem, Splits
from margotree.problem.blocks import decision_values, row_blocks, sort_rows
from margotree.solution import Stopped


class Asked(RunControl):
    """A clock that runs out once it has been asked so often."""

    def __init__(self, most):
        super().__init__()
        self.times, self.most = 0, most

    @property
    def over(self):
        self.times += 1
        return self.times > self.most


def over():
    return RunControl(Limits(time=0.0))


def oct_problem(seed=0, m=40, n=5, depth=2, **terms):
    rng = np.random.default_rng(seed)
    return OctProblem.make(rng.integers(0, 9, (m, n)), rng.integers(0, 2, m), depth=depth, **terms)


def columns_to_sort(problem):
    """The number of columns that merging equal samples would still sort: it may stop before each of them."""
    asked = []
    problem.ranked_samples.merge(lambda: asked.append(1) is not None)
    return len(asked)


def margin_problem(seed=0, m=40, n=4, **terms):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    return Problem.make(rng.random((m, n)), y, depth=2, C=10.0, **terms)


# -- passes over many samples -----------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [2, 5, 1000])
def test_rows_are_sorted_as_lexsort_does(values):
    table = np.random.default_rng(values).integers(0, values, (300, 6)) * 1.0
    order, new = sort_rows(table.T)
    assert order.tolist() == np.lexsort(table.T[::-1]).tolist()
    ordered = table[order]
    assert new.tolist() == [True, *np.any(ordered[1:] != ordered[:-1], axis=1)]


def test_columns_that_decide_nothing_are_not_looked_at():
    seen = []
    columns = (seen.append(j) or np.random.default_rng(j).random(200) for j in range(50))
    order, new = sort_rows(columns)
    assert new.all() and sorted(order) == list(range(200))
    assert len(seen) <= 2


@pytest.mark.parametrize("used", [0, 1, 2, 7])
def test_heights_are_those_of_the_plain_product(used):
    rng = np.random.default_rng(used)
    X, w = rng.random((9000, 7)), np.zeros(7)
    w[:used] = rng.normal(size=used)
    for rows in (np.arange(9000), np.flatnonzero(rng.random(9000) < 0.7), rng.permutation(9000), np.zeros(0, int)):
        np.testing.assert_allclose(decision_values(X, rows, w, 0.3), X[rows] @ w + 0.3, rtol=0, atol=1e-14)


def test_blocks_cover_all_rows_once():
    parts = list(row_blocks(10_001, 300))
    assert len(parts) > 1
    assert np.concatenate([np.arange(10_001)[part] for part in parts]).tolist() == list(range(10_001))


# -- the fit's own clock ----------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is turned."""
    now = SimpleNamespace(at=0.0)
    monkeypatch.setattr(run_control, "time", SimpleNamespace(perf_counter=lambda: now.at))
    return now


@pytest.mark.parametrize("model", [MargotClassifier, OCT1Classifier, OCTHClassifier])
def test_reading_and_scaling_count(model, clock, monkeypatch):
    seen = []

    class Enough(Exception):
        pass

    def solve(self, problem, start, limits, listener):
        seen.append(limits)
        raise Enough

    def scaling(self, samples):
        clock.at += 3.0
        return plain(self, samples)

    plain = model._scaling
    monkeypatch.setattr(model, "_scaling", scaling)
    monkeypatch.setattr(model, "_solve", solve)
    # The search has four fifths of the limit whatever happens.
    for limit, left in ((20.0, 17.0), (10.0, 8.0), (2.0, 1.6), (None, math.inf)):
        with pytest.raises(Enough):
            model(time_limit=limit).fit([[0.0], [1.0]], [0, 1])
        assert seen.pop().time == left


def test_time_for_the_audit_is_set_aside(clock):
    class Slow:
        n_nodes, n_features = 3, 2

        def evaluate(self, splits):
            assert splits.w.shape == (3, 2)
            clock.at += 0.1

    assert without_audit(RunControl(Limits(time=10.0)), Slow()).remaining == pytest.approx(9.5)
    assert without_audit(RunControl(Limits(time=0.4)), Slow()).remaining == 0.0
    assert without_audit(RunControl(), Slow()).remaining == math.inf
    assert clock.at == pytest.approx(0.2)  # the clock is not read without a limit


def test_grace_is_what_is_left_or_a_little(clock):
    one = RunControl(Limits(time=10.0))
    clock.at = 4.0
    assert one.grace().remaining == 6.0
    clock.at = 11.0
    assert 0.1 < one.grace().remaining < 0.5


# -- OCT-1 and OCT-H --------------------------------------------------------------------------------------------


def test_sorting_goes_on_where_it_was_stopped():
    problem = oct_problem(n=6)
    ranked_samples = RankedSamples(problem.X, problem.y, 2, problem.weight)
    turns = itertools.count()
    assert not ranked_samples.merge(lambda: next(turns) >= 4)
    assert next(turns) == 5
    turns = itertools.count()
    assert ranked_samples.merge(lambda: next(turns) >= 4)
    assert next(turns) == 2  # the two columns that were left
    whole = problem.points
    for name in ("X", "class_weight", "weight", "rank", "n_values", "point_of"):
        assert np.array_equal(getattr(ranked_samples.points, name), getattr(whole, name))


def test_the_steps_of_a_feature_need_no_others():
    problem = oct_problem(n=6)
    assert problem.ranked_samples.step(3) == 1.0
    assert columns_to_sort(problem) == 6
    assert problem.min_step.tolist() == [1.0] * 6


def test_points_are_those_of_unique_rows():
    problem = oct_problem(seed=3, m=200, n=2)
    unique, of = np.unique(problem.X, axis=0, return_inverse=True)
    assert np.array_equal(problem.points.X, unique)
    assert np.array_equal(problem.points.point_of, of.ravel())
    assert problem.points.weight.sum() == 200


@pytest.mark.parametrize("asked", [0, 3, 5, 6, 8, 12, 30])
def test_cart_ends_on_request_with_an_allowed_tree(asked):
    problem, control = oct_problem(), Asked(asked)
    found = problem.evaluate(cart(problem, control))
    assert found.feasible
    assert control.times <= asked + 3  # one look per node that was still to come
    if asked <= 5:
        assert found.splits == 0


def test_enumeration_that_is_halted_looks_at_nothing_more():
    for depth in (1, 2, 3):
        problem = oct_problem(m=200, depth=depth)
        work = Enumeration(problem, problem.baseline_error)
        work.halt()
        work.run()
        assert work.progress[1] <= 2
        whole = Enumeration(problem, problem.baseline_error)
        whole.run()
        assert whole.progress[1] > work.progress[1] or depth == 1


@pytest.mark.parametrize("mu", [None, 0.005])
def test_no_time_at_all_gives_an_allowed_tree_and_no_claim(mu):
    problem = oct_problem(mu=mu)
    engine = Search() if mu is None else OctMip(HighsAdapter())
    certificate = engine.solve(problem, over()).certificate
    assert certificate.stopped is Stopped.TIME
    assert certificate.bound == 0.0 and certificate.objective == 1.0
    assert columns_to_sort(problem) == problem.n_features


def test_oblique_splits_are_not_set_apart_without_time():
    problem = oct_problem(mu=0.005)
    rng = np.random.default_rng(1)
    tree = Splits(w=rng.normal(size=(3, 5)), b=rng.normal(size=3))
    assert clean_tree(problem, tree, over()) is None


def test_a_linear_program_knows_what_it_takes():
    assert lp_too_large(10**9, RunControl(Limits(time=10.0)))
    assert not lp_too_large(10**9, RunControl())
    assert not lp_too_large(10, RunControl(Limits(time=10.0)))
    found = solve_lp(np.array([1.0]), np.array([[-1.0]]), np.array([-2.0]), [(0, None)], RunControl(Limits(time=10.0)))
    assert found.x[0] == pytest.approx(2.0)


# -- models for solvers -----------------------------------------------------------------------------------------


def test_a_model_that_cannot_be_built_in_time_is_not_begun(monkeypatch):
    for engine, problem in ((OctMip(HighsAdapter()), oct_problem()), (Scip(), margin_problem())):
        monkeypatch.setattr(Adapter, "entries_per_second", 1e-3)
        monkeypatch.setattr(type(engine.adapter), "entries_per_second", 1e-3)
        monkeypatch.setattr(type(engine.adapter), "_run", None)
        certificate = engine.solve(problem, RunControl(Limits(time=30.0))).certificate
        assert certificate.stopped is Stopped.TIME
        assert "was not built: not enough time" in certificate.warnings[0]


def test_a_model_that_does_not_fit_into_memory_is_not_begun():
    adapter = HighsAdapter()
    reason, words = adapter.exceeded_limit(1e9, RunControl())
    assert reason is Stopped.MEMORY and "not enough memory" in words
    assert adapter.exceeded_limit(1e6, RunControl()) is None
    assert adapter.exceeded_limit(1e6, RunControl(Limits(time=1e-9)))[0] is Stopped.TIME


# -- margin trees -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("terms", [{}, {"budget": 1}, {"budget": 1, "alpha": 0.5}, {"max_weight": 2.0}])
def test_local_svm_without_time_does_not_split(terms):
    problem = margin_problem(**terms)
    found = LocalSVM().solve(problem, over())
    assert not found.splits.w.any()
    assert found.certificate.warnings


def test_a_node_without_time_is_constant_and_claims_nothing():
    problem = margin_problem()
    cost = 10.0 * problem.weight
    found = solve_node(problem.X, problem.y, cost, time_limit=0.0)
    assert found.feasible and not found.w.any() and found.bound == 0.0
    assert found.value == pytest.approx(cost @ np.maximum(0.0, 1.0 - problem.y * found.b))
    sides = np.where(problem.X[:, 0] > 0.5, 1, -1)
    assert not solve_node(problem.X, problem.y, cost, side=sides, time_limit=0.0).feasible
    assert solve_node(problem.X, problem.y, cost, side=sides).feasible


def test_polish_gives_up_without_time():
    problem = margin_problem()
    node = np.where(problem.X[:, 0] > 0.5, 2, 1)
    assert polish(problem, node) is not None
    assert polish(problem, node, None, over()) is None


def test_the_band_is_left_even_without_time():
    problem = margin_problem(eps=0.2)
    w, rows = np.array([1.0, 0.5, 0.0, 0.0]), np.arange(40)
    b = 0.1 - float((problem.X @ w).mean())
    assert in_band(problem, w, b, rows).any()
    moved, offset = leave_band(problem, 0, rows, w, b, over())
    assert not in_band(problem, moved, offset, rows).any()
    assert np.array_equal(moved, w)  # only shifted


def test_mm_svm_oct_without_time_does_not_split():
    margin = margin_problem()
    problem = MmSvmProblem.make(margin.X, margin.y, depth=2)
    assert np.array_equal(LocalSvmStart().solve(problem, over()).splits.w, constant_tree(problem).w)
    node = np.where(problem.margin.X[:, 0] > 0.5, 2, 1)
    assert polish_mmsvm(problem, node, np.ones(3, bool), control=over()) is None
