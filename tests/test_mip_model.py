"""The neutral description, and every solver on small models whose answer is known otherwise."""

import math
import threading
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from margotree.engines import NotInstalled, Refused, RunControl
from margotree.engines.mip.copt import CoptAdapter
from margotree.engines.mip.cplex import CplexAdapter
from margotree.engines.mip.gurobi import GurobiAdapter
from margotree.engines.mip.highs import HighsAdapter
from margotree.engines.mip.model import Draft
from margotree.engines.mip.scip import ScipAdapter
from margotree.engines.run_control import Limits
from margotree.solution import Stopped
from patience import slowness, three_tries

ADAPTERS = [ScipAdapter(), HighsAdapter(), GurobiAdapter(), CplexAdapter(), CoptAdapter()]


def by_name(adapters):
    return pytest.mark.parametrize("adapter", adapters, ids=lambda a: a.name)


@pytest.fixture(autouse=True)
def _installed(request):
    adapter = request.node.callspec.params.get("adapter") if hasattr(request.node, "callspec") else None
    if adapter is not None and (need := adapter.missing()) is not None:
        pytest.skip(f"{adapter.name} is not installed: {need}")


def knapsack(seed=0, n=12, m=4):
    """Maximise values under several weights, and one two-sided row; a MILP with 2-D and shared terms."""
    rng = np.random.default_rng(seed)
    weights, values = rng.integers(1, 30, (m, n)).astype(float), rng.integers(1, 30, n).astype(float)
    draft = Draft()
    take = draft.block("take", n, lower=0.0, upper=1.0, integer=True, linear=-values)
    spare = draft.block("spare", m, lower=0.0)
    draft.rows([(take, weights), (spare[:, None], 1.0)], lower=weights.sum(axis=1) // 2, upper=weights.sum(axis=1) // 2)
    draft.rows([(take[None, :], 1.0)], lower=2.0, upper=7.0)
    return draft.finish()


def nearest_whole_point():
    """The integer point nearest to (1.3, -0.6, 2.5), the last coordinate reduced by a linear cost: a MIQP."""
    draft = Draft()
    x = draft.block("x", 3, lower=-5.0, upper=5.0, integer=True, linear=[-1.3, 0.6, -2.3], quadratic=1.0)
    draft.rows([(x[None, :], 1.0)], upper=10.0)
    return draft.finish(), np.array([1.0, -1.0, 2.0])


def smallest_ball():
    """The least radius of a ball around 0 that holds a point with x + y >= 3, y whole and y <= 1: a MIQCP."""
    draft = Draft()
    x = draft.block("x", 2, lower=-9.0, upper=9.0)
    y = draft.block("y", 1, lower=-9.0, upper=1.0, integer=True)
    half_square = draft.block("r", 1, lower=0.0, linear=1.0)
    draft.rows([(x[[0]], 1.0), (x[[1]], -1.0)], lower=0.0, upper=0.0)
    draft.rows([(x[[0]], 1.0), (y, 1.0)], lower=3.0)
    draft.ball([*x, *y], [(int(half_square[0]), -1.0)], 0.0)
    return draft.finish(), 0.5 * (4 + 4 + 1)


def test_a_draft_keeps_blocks_rows_and_kinds():
    mip = knapsack()
    assert mip.kind == "MILP"
    assert mip.blocks["spare"].tolist() == [12, 13, 14, 15]
    assert mip.rows.shape == (5, 16) == (mip.n_rows, mip.n_variables)
    x = np.arange(16.0)
    assert np.allclose(mip.part(x, "spare"), [12, 13, 14, 15])
    assert nearest_whole_point()[0].kind == "MIQP"
    assert smallest_ball()[0].kind == "MIQCP"


def test_one_sided_rows_say_the_same():
    mip = knapsack()
    matrix, senses, sides = mip.one_sided()
    assert sorted(senses) == sorted(["="] * 4 + ["<", ">"])
    rng = np.random.default_rng(1)
    for x in rng.normal(size=(20, mip.n_variables)):
        two_sided = max(np.max(mip.row_lower - mip.rows @ x), np.max(mip.rows @ x - mip.row_upper))
        excess = np.where(senses == "<", 1, -1) * (matrix @ x - sides)
        excess[senses == "="] = np.abs(matrix @ x - sides)[senses == "="]
        assert np.max(excess) == pytest.approx(two_sided)


def test_a_violation_is_seen_wherever_it_is():
    mip, value = smallest_ball()
    good = np.array([2.0, 2.0, 1.0, value])
    assert mip.violation(good) == 0.0
    for j, change in [(0, 0.5), (2, 0.25), (2, 8.0), (3, -1.0)]:
        bad = good.copy()
        bad[j] += change
        assert mip.violation(bad) > 0.1


def test_a_draft_refuses_what_it_cannot_mean():
    draft = Draft()
    draft.block("x", 2)
    with pytest.raises(ValueError, match="already"):
        draft.block("x", 2)
    draft.block("y", 1, quadratic=-1.0)
    with pytest.raises(ValueError, match="convex"):
        draft.finish()


@by_name(ADAPTERS)
def test_milp(adapter):
    mip = knapsack()
    rows = LinearConstraint(sparse.csc_matrix(mip.rows), mip.row_lower, mip.row_upper)
    expected = milp(mip.linear, constraints=rows, bounds=Bounds(mip.lower, mip.upper), integrality=mip.integer).fun
    result = adapter.run(mip, control=RunControl(), gap=1e-7)
    assert result.stopped is Stopped.SOLVED
    assert result.objective == pytest.approx(expected)
    assert result.bound == pytest.approx(expected, rel=1e-6)
    assert mip.violation(result.x) < 1e-5
    assert mip.value(result.x) == pytest.approx(expected)


@by_name(ADAPTERS)
def test_a_start_is_the_first_incumbent_or_was_beaten(adapter):
    mip = knapsack()
    start = np.zeros(mip.n_variables)
    start[:2] = 1.0
    start[12:] = mip.row_upper[:4] - mip.rows[:4, :12] @ start[:12]
    assert mip.violation(start) == 0.0
    result = adapter.run(mip, control=RunControl(), gap=1e-7, start=start)
    assert result.stopped is Stopped.SOLVED
    assert result.objective <= mip.value(start)
    assert math.isnan(result.f0) or result.f0 <= mip.value(start) + 1e-6


@by_name(ADAPTERS)
@pytest.mark.parametrize("size", [1.0, 1e-6, 1e6])
def test_miqp(adapter, size):
    """Scaling the objective by a hint of its size does not show in the answer."""
    mip, expected = nearest_whole_point()
    mip = replace(mip, size=size)
    if "MIQP" not in adapter.kinds:
        with pytest.raises(Refused, match="MIQP"):
            adapter.run(mip, control=RunControl())
        return
    result = adapter.run(mip, control=RunControl(), gap=1e-7)
    assert np.allclose(result.x, expected, atol=1e-5)
    assert result.objective == pytest.approx(mip.value(expected), abs=1e-5)
    assert result.bound == pytest.approx(mip.value(expected), abs=1e-5)


@by_name([a for a in ADAPTERS if "MIQCP" in a.kinds])
def test_miqcp(adapter):
    mip, expected = smallest_ball()
    result = adapter.run(mip, control=RunControl(), gap=1e-7)
    assert result.objective == pytest.approx(expected, abs=1e-4)
    assert result.bound <= expected + 1e-4


@by_name(ADAPTERS)
def test_an_infeasible_model_has_no_point_and_no_claim(adapter):
    draft = Draft()
    x = draft.block("x", 2, lower=0.0, upper=1.0, integer=True, linear=1.0)
    draft.rows([(x[None, :], 1.0)], lower=3.0)
    result = adapter.run(draft.finish(), control=RunControl())
    assert result.x is None
    assert result.objective == math.inf
    assert result.stopped is Stopped.STALLED


def hard_knapsack():
    """Too hard to finish in a second: many rows of near-equal weights."""
    rng = np.random.default_rng(3)
    n, m = 120, 20
    weights = rng.integers(900, 1100, (m, n)).astype(float)
    draft = Draft()
    take = draft.block("take", n, lower=0.0, upper=1.0, integer=True, linear=-rng.integers(900, 1100, n).astype(float))
    draft.rows([(take, weights)], upper=weights.sum(axis=1) // 2)
    return draft.finish()


@by_name(ADAPTERS)
@three_tries
def test_time_limit_interruption_and_progress(adapter):
    mip, slow = hard_knapsack(), slowness()
    events = []
    control = RunControl(Limits(time=slow), events.append)
    result = adapter.run(mip, control=control, gap=0.0)
    assert result.stopped is Stopped.TIME
    assert result.bound <= result.objective
    assert events
    assert {e.phase for e in events} == {adapter.name}
    assert control.elapsed < 6.0 * slow

    control = RunControl(Limits(time=60.0 * slow))
    threading.Timer(0.7 * slow, control.interrupt).start()
    result = adapter.run(mip, control=control, gap=0.0)
    assert result.stopped is Stopped.INTERRUPTED
    assert control.elapsed < 30.0 * slow


@by_name(ADAPTERS)
def test_no_time_at_all(adapter):
    result = adapter.run(knapsack(), control=RunControl(Limits(time=0.0)))
    assert result.x is None
    assert result.stopped is Stopped.TIME
    assert result.bound == -math.inf


@by_name(ADAPTERS)
def test_a_solver_that_is_not_there_says_what_to_install(adapter, monkeypatch):
    monkeypatch.setattr(adapter, "package", "no_such_solver_here", raising=True)
    with pytest.raises(NotInstalled, match="pip install"):
        adapter.run(knapsack(), control=RunControl())
