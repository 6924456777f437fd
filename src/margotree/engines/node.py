"""The exact SVM of one tree node: the piece that every engine is built from."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.engines.kernels import newton, pivot
from margotree.engines.kernels.certain import offset_reach
from margotree.engines.kernels.jit import raising
from margotree.engines.kernels.state import REACH, VALUE, B, NodeState, add_item, new_state
from margotree.problem.problem import FloatArray

_TOLERANCES = (1e-7, 1e-9, 1e-11)
_GAP = 1e-10
#: Beyond so many samples Newton's method takes over, to this accuracy.
LARGE, _LARGE_GAP = 2000, 1e-7

#: Samples put into a node between two looks at the clock.
_BATCH = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeSolution:
    """Hyperplane of one node; ``value`` is inf and ``feasible`` False if no hyperplane obeys the routing rows."""

    w: FloatArray
    b: float
    value: float
    bound: float
    feasible: bool


def solve_node(
    X: FloatArray,
    y: FloatArray,
    cost: FloatArray,
    *,
    side: ArrayLike | None = None,
    eps: float = 1e-3,
    inner: float = 0.0,
    max_weight: float | None = None,
    cutoff: float = math.inf,
    time_limit: float = math.inf,
) -> NodeSolution:
    """Solve ``min 1/2 |w|^2 + sum_i cost_i max(0, 1 - y_i h_i)`` to about nine digits.

    ``side`` adds hard rows: ``h_i >= 0`` where it is +1, ``h_i <= -eps`` where it is -1, both tightened by ``inner``.
    ``max_weight`` bounds every ``|w_j|``.  The work stops as soon as the bound passes ``cutoff``; the solution then is
    not feasible and only its bound counts.  It also stops after ``time_limit`` seconds: without rows the hyperplane at
    hand (or none, if that is cheaper) is returned with the bound reached, with rows it counts as not feasible.
    """
    sides = np.zeros(len(y), np.int8) if side is None else np.asarray(side, np.int8)
    if one_sided := _one_class(X, y, sides):
        return one_sided
    if len(y) > LARGE and max_weight is None and not np.any(sides):
        return solve_large(X, y, cost, time_limit)
    until = time.perf_counter() + time_limit
    centre = X.mean(axis=0)
    state = _cold_start(X - centre, y, cost, sides, (inner, eps + inner), max_weight, until)
    if state is None:
        return _not_begun(X, y, cost, sides)
    out_of_reach = 1e13 + 1e6 * float(np.sum(cost))
    # With hard rows what the best hyperplane costs is not known yet: first a guess, then its own value.
    limit = min(cutoff, 1e3 * (1.0 + float(np.sum(cost)))) if np.any(sides) else _without_split(y, cost)
    state.num[REACH] = offset_reach(X - centre, limit, eps + inner)
    outcome = _to_convergence(state, min(cutoff, out_of_reach), until - time.perf_counter())
    bound = float(state.num[VALUE])
    if outcome == pivot.INFEASIBLE or bound >= out_of_reach:
        return NodeSolution(w=np.zeros(X.shape[1]), b=1.0, value=math.inf, bound=math.inf, feasible=False)
    w = state.w.copy()
    b = float(state.num[B] - w @ centre)
    hinge = np.maximum(0.0, 1.0 - y * (X @ w + b))
    value = 0.5 * float(w @ w) + float(cost @ hinge)
    if value > limit:
        state.num[REACH] = offset_reach(X - centre, min(cutoff, (1.0 + 1e-6) * value), eps + inner)
        pivot.refresh(state, _work(state))
        bound = float(state.num[VALUE])
    found = NodeSolution(w=w, b=b, value=value, bound=min(bound, value), feasible=outcome == pivot.OPTIMAL)
    return _or_no_split(found, y, cost) if outcome == pivot.STALLED and not np.any(sides) else found


def solve_large(X: FloatArray, y: FloatArray, cost: FloatArray, time_limit: float = math.inf) -> NodeSolution:
    """The same without hard rows, for many samples: Newton's method passes over them a few dozen times in all, where
    pivots would pass over them once for each."""
    centre = X.mean(axis=0)
    theta, flag = np.zeros(X.shape[1] + 1), np.zeros(1)
    with raising(flag, time_limit):
        # Copies, so that frozen arrays do not need kernels of their own.
        columns = np.array(X.T, order="C")
        columns -= centre[:, None]
        reach = offset_reach(columns.T, _without_split(y, cost), 0.0)
        bound, _ = newton.solve_plain(columns, np.array(y), np.array(cost), theta, _LARGE_GAP, flag, reach)
    w = theta[:-1]
    b = float(theta[-1] - w @ centre)
    value = 0.5 * float(w @ w) + float(cost @ np.maximum(0.0, 1.0 - y * (X @ w + b)))
    found = NodeSolution(w=w, b=b, value=value, bound=min(bound, value), feasible=True)
    return _or_no_split(found, y, cost)


def _without_split(y: FloatArray, cost: FloatArray) -> float:
    """What no hyperplane at all costs: twice the lesser class."""
    return 2.0 * min(float(np.sum(cost[y > 0])), float(np.sum(cost[y < 0])))


def _or_no_split(found: NodeSolution, y: FloatArray, cost: FloatArray) -> NodeSolution:
    """A hyperplane that was cut short, or the constant one if that is cheaper."""
    sign = 1.0 if cost @ y >= 0 else -1.0
    value = 2.0 * float(np.sum(cost[y != sign]))
    if value < found.value:
        return replace(found, w=np.zeros_like(found.w), b=sign, value=value, feasible=True)
    return replace(found, feasible=True)


def _not_begun(X: FloatArray, y: FloatArray, cost: FloatArray, sides: NDArray[np.int8]) -> NodeSolution:
    """What is known when time ran out before the first pivot."""
    nothing = NodeSolution(w=np.zeros(X.shape[1]), b=1.0, value=math.inf, bound=0.0, feasible=False)
    return nothing if np.any(sides) else _or_no_split(nothing, y, cost)


def _one_class(X: FloatArray, y: FloatArray, sides: NDArray[np.int8]) -> NodeSolution | None:
    """Empty and one-class nodes that routing does not split cost nothing: w = 0."""
    sign = float(y[0]) if len(y) else 1.0
    if np.any(y != sign) or np.any(sides == -sign):
        return None
    return NodeSolution(w=np.zeros(X.shape[1]), b=sign, value=0.0, bound=0.0, feasible=True)


def _cold_start(
    X: FloatArray,
    y: FloatArray,
    cost: FloatArray,
    sides: NDArray[np.int8],
    corners: tuple[float, float],
    max_weight: float | None,
    until: float,
) -> NodeState | None:
    """All samples with no multiplier yet; None if the clock shows ``until`` before they are in."""
    m, n = X.shape
    c = np.ones(m)
    if max_weight is not None:
        X = np.vstack([X, np.eye(n), np.eye(n)])
        c = np.concatenate([c, np.zeros(2 * n)])
        cost = np.concatenate([cost, np.zeros(2 * n)])
    state = new_state(np.ascontiguousarray(X), c, np.ascontiguousarray(cost, dtype=np.float64))
    for i in range(m):
        if i % _BATCH == 0 and time.perf_counter() >= until:
            return None
        add_item(state, i, float(y[i]))
        if sides[i]:
            pivot.harden(state, i, float(sides[i]), corners[0] if sides[i] > 0 else corners[1])
    if max_weight is not None:
        for j in range(2 * n):
            sign = 1.0 if j < n else -1.0
            add_item(state, m + j, -sign)
            pivot.harden(state, m + j, sign, -max_weight)
    return state


def _to_convergence(state: NodeState, cutoff: float, time_limit: float = math.inf) -> int:
    """Pivot, recompute from the multipliers, correct, until primal and dual values agree or time is up."""
    work = _work(state)
    budget = 200 * (int(state.cnt[0]) + state.free.size) + 1000
    with raising(work[1, 1:2], time_limit):
        return _pivot_all(state, cutoff, budget, work)


def _work(state: NodeState) -> FloatArray:
    return np.zeros((6, state.free.size))


def _pivot_all(state: NodeState, cutoff: float, budget: int, work: FloatArray) -> int:
    outcome = pivot.STALLED
    for tol in _TOLERANCES:
        outcome = pivot.run(state, cutoff, budget, tol, work)
        if outcome == pivot.INFEASIBLE:
            return outcome
        pivot.refresh(state, work)
        pivot.correct(state, work)
        if outcome == pivot.CUT or work[1, 1]:
            return outcome
        if pivot.primal_value(state) - state.num[VALUE] <= _GAP * abs(state.num[VALUE]):
            return pivot.OPTIMAL
    return pivot.OPTIMAL if outcome == pivot.OPTIMAL else outcome
