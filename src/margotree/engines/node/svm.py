"""The exact SVM of one tree node: the piece that every engine is built from."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.engines.node.kernels import newton
from margotree.engines.node.kernels.entry_points import solve
from margotree.engines.node.kernels.ratio_test import INFEASIBLE, OPTIMAL, STALLED
from margotree.engines.node.kernels.safe_bounds import offset_reach
from margotree.engines.node.kernels.workspace import (
    NUM,
    REACH,
    VALUE,
    B,
    W,
    new_workspace,
    scaled_weight_limit,
    stop_flag,
    weight_limit_rows,
)
from margotree.engines.run_control import flag_after
from margotree.engines.trivial_trees import one_side
from margotree.problem.problem import FloatArray

#: Beyond so many samples Newton's method takes over, to this accuracy.
LARGE, _LARGE_GAP = 2000, 1e-7
#: How much more than all samples cost a hyperplane with prescribed sides is taken to cost, before it is known.
_PLENTY = 1e3
#: Seconds per number that it takes to get there, about.
_COPYING = 1e-8


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
    if one_sided := _one_class(X, y, sides, eps + inner):
        return one_sided
    if len(y) > LARGE and max_weight is None and not np.any(sides):
        return solve_large(X, y, cost, time_limit)
    until = time.perf_counter() + time_limit
    centre = X.mean(axis=0)
    points, items = all_items(X - centre, y, cost, sides, (inner, eps + inner), max_weight)
    ws = new_workspace(points, items.c, items.cost[None])
    row = (ws, items.y, items.side, items.delta)
    most = out_of_reach(cost, cutoff)
    # With hard rows what the best hyperplane costs is not known yet: first a guess, then its own value.
    limit = value_limit(y, cost, sides)
    limit = min(cutoff, limit) if np.any(sides) else limit
    ws.g[0, NUM, REACH] = offset_reach(X - centre, limit, eps + inner)
    with flag_after(stop_flag(ws), until - time.perf_counter()):
        outcome = solve(*row, min(cutoff, most), 200 * (len(points) + points.shape[1] + 2) + 1000)
    bound = float(ws.g[0, NUM, VALUE])
    if outcome == INFEASIBLE or bound >= most:
        return NodeSolution(w=np.zeros(X.shape[1]), b=1.0, value=math.inf, bound=math.inf, feasible=False)
    w = ws.g[0, W, : X.shape[1]].copy()
    if max_weight is not None:
        w = np.clip(w, -max_weight, max_weight)
    b = float(ws.g[0, NUM, B] - w @ centre)
    hinge = np.maximum(0.0, 1.0 - y * (X @ w + b))
    value = 0.5 * float(w @ w) + float(cost @ hinge)
    if value > limit:
        ws.g[0, NUM, REACH] = offset_reach(X - centre, min(cutoff, (1.0 + 1e-6) * value), eps + inner)
        solve(*row, math.inf, 0)
        bound = float(ws.g[0, NUM, VALUE])
    feasible = bool(outcome == OPTIMAL)
    # A hyperplane that breaks rows witnesses nothing; offsets were bounded for values up to the limit only.
    witness = limit if (np.any(sides) or max_weight is not None) and not feasible else value
    found = NodeSolution(w=w, b=b, value=value, bound=min(bound, witness), feasible=feasible)
    return _or_no_split(found, y, cost) if outcome == STALLED and not np.any(sides) else found


def solve_large(X: FloatArray, y: FloatArray, cost: FloatArray, time_limit: float = math.inf) -> NodeSolution:
    """The same without hard rows, for many samples: Newton's method passes over them a few dozen times in all, where
    pivots would pass over them once for each."""
    if time_limit < _COPYING * X.size:  # copies that nobody can stop would not be ready in time
        return _or_no_split(
            NodeSolution(w=np.zeros(X.shape[1]), b=1.0, value=math.inf, bound=0.0, feasible=True), y, cost
        )
    centre = X.mean(axis=0)
    theta, flag = np.zeros(X.shape[1] + 1), np.zeros(1)
    with flag_after(flag, time_limit):
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


def out_of_reach(cost: FloatArray, cutoff: float = math.inf) -> float:
    """The value beyond which the hard rows of a node problem count as contradictory; far beyond the cut-off."""
    return max(1e13 + 1e6 * float(np.sum(cost)), 1e3 * cutoff if cutoff < math.inf else 0.0)


def value_limit(y: FloatArray, cost: FloatArray, sides: NDArray[np.int8]) -> float:
    """What the best hyperplane costs at most; with prescribed sides that is not known, and this a generous guess."""
    return _PLENTY * (1.0 + float(np.sum(cost))) if np.any(sides) else _without_split(y, cost)


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


def _one_class(X: FloatArray, y: FloatArray, sides: NDArray[np.int8], band: float) -> NodeSolution | None:
    """Empty and one-class nodes that routing does not split cost nothing: w = 0, and b beyond the ``band``."""
    sign = float(y[0]) if len(y) else 1.0
    if np.any(y != sign) or np.any(sides == -sign):
        return None
    b = one_side(band if np.any(sides) else 0.0, sign > 0)
    return NodeSolution(w=np.zeros(X.shape[1]), b=b, value=0.0, bound=0.0, feasible=True)


class Items(NamedTuple):
    """What is asked of every point of a node problem, as compiled code takes it."""

    c: FloatArray
    cost: FloatArray
    y: FloatArray
    side: FloatArray
    delta: FloatArray


def all_items(
    X: FloatArray,
    y: FloatArray,
    cost: FloatArray,
    sides: NDArray[np.int8],
    corners: tuple[float, float],
    max_weight: float | None,
) -> tuple[FloatArray, Items]:
    """The points of a node problem and what is asked of each; a limit on weights is two hard rows per feature."""
    (m, n), more = X.shape, 0
    if max_weight is not None:
        X, more = np.vstack([X, weight_limit_rows(n, max_weight)]), 2 * n
    rows = np.concatenate([np.ones(n), -np.ones(n)])[:more]
    limits = np.full(more, -math.inf if max_weight is None else -scaled_weight_limit(max_weight))
    right, left = corners
    return np.ascontiguousarray(X), Items(
        c=np.concatenate([np.ones(m), np.zeros(more)]),
        cost=np.concatenate([cost, np.zeros(more)]),
        y=np.concatenate([y, -rows]),
        side=np.concatenate([sides, rows]).astype(np.float64),
        delta=np.concatenate([np.where(sides > 0, right, left), limits]),
    )
