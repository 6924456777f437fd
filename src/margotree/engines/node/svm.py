"""The exact SVM of one tree node, the subproblem of every engine."""

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
from margotree.engines.trivial_trees import constant_split, one_side
from margotree.problem.problem import FloatArray

#: Nodes with more samples are solved by Newton's method, to this relative gap.
LARGE, _LARGE_GAP = 2000, 1e-7
#: First guess of the value of an SVM with hard rows, in units of the cost of all samples.
_VALUE_GUESS = 1e3
#: Approximate seconds that the copy of one number takes.
_SECONDS_PER_COPY = 1e-8


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeSolution:
    """Hyperplane of one node; ``value`` is inf and ``feasible`` False if no hyperplane satisfies the hard rows."""

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
    corner: FloatArray | None = None,
    side: ArrayLike | None = None,
    eps: float = 1e-3,
    inner: float = 0.0,
    max_weight: float | None = None,
    cutoff: float = math.inf,
    time_limit: float = math.inf,
) -> NodeSolution:
    """Solve ``min 1/2 |w|^2 + sum_i cost_i max(0, corner_i - y_i h_i)`` to about nine digits.

    Parameters
    ----------
    X, y, cost : arrays
        Samples, labels (+1 or -1) and costs of margin violations.
    corner : array, optional
        The margins ``y_i h_i`` from which on there is no loss; 1 by default.  A sample with losses on both sides is two
        rows of ``X``: see :func:`margotree.problem.tasks.one_sided`.
    side : array, optional
        Hard rows: ``h_i >= inner`` where it is +1, ``h_i <= -eps - inner`` where it is -1; 0 elsewhere.  The corners of
        such rows must be larger than minus these distances.
    eps, inner : float
        Distances of the hard rows from the hyperplane.
    max_weight : float, optional
        Upper bound on every ``|w_j|``.
    cutoff : float
        The work ends when the bound passes it; then the solution is not feasible and only its bound counts.
    time_limit : float
        Seconds.  When they are over, the result without hard rows is the current hyperplane, or the constant one if its
        value is smaller, with the bound reached; with hard rows it is not feasible.
    """
    sides = np.zeros(len(y), np.int8) if side is None else np.asarray(side, np.int8)
    corner = np.ones(len(y)) if corner is None else corner
    if solution := _one_sided_solution(X, y, corner, sides, eps + inner):
        return solution
    if len(y) > LARGE and max_weight is None and not np.any(sides):
        return solve_large(X, y, cost, time_limit, corner=corner)
    until = time.perf_counter() + time_limit
    centre = X.mean(axis=0)
    points, items = node_items(X - centre, y, cost, corner, sides, (inner, eps + inner), max_weight)
    ws = new_workspace(points, items.c, items.cost[None], corner=items.corner[None])
    largest = float(np.max(np.abs(corner)))
    row = (ws, items.y, items.side, items.delta)
    infeasible_from = infeasible_above(cost, cutoff)
    # With hard rows the value is not known in advance: first a guess limits |b|, then the value that was found.
    limit = value_limit(y, cost, corner, sides)
    limit = min(cutoff, limit) if np.any(sides) else limit
    ws.g[0, NUM, REACH] = offset_reach(X - centre, limit, eps + inner, largest)
    with flag_after(stop_flag(ws), until - time.perf_counter()):
        outcome = solve(*row, min(cutoff, infeasible_from), 200 * (len(points) + points.shape[1] + 2) + 1000)
    bound = float(ws.g[0, NUM, VALUE])
    if outcome == INFEASIBLE or bound >= infeasible_from:
        return NodeSolution(w=np.zeros(X.shape[1]), b=1.0, value=math.inf, bound=math.inf, feasible=False)
    w = ws.g[0, W, : X.shape[1]].copy()
    if max_weight is not None:
        w = np.clip(w, -max_weight, max_weight)
    b = float(ws.g[0, NUM, B] - w @ centre)
    hinge = np.maximum(0.0, corner - y * (X @ w + b))
    value = 0.5 * float(w @ w) + float(cost @ hinge)
    if value > limit:
        ws.g[0, NUM, REACH] = offset_reach(X - centre, min(cutoff, (1.0 + 1e-6) * value), eps + inner, largest)
        solve(*row, math.inf, 0)
        bound = float(ws.g[0, NUM, VALUE])
    feasible = bool(outcome == OPTIMAL)
    # A hyperplane that violates rows has no valid value; |b| was bounded for values up to the limit only.
    witness = limit if (np.any(sides) or max_weight is not None) and not feasible else value
    found = NodeSolution(w=w, b=b, value=value, bound=min(bound, witness), feasible=feasible)
    return _or_constant_split(found, y, cost, corner) if outcome == STALLED and not np.any(sides) else found


def solve_large(
    X: FloatArray, y: FloatArray, cost: FloatArray, time_limit: float = math.inf, *, corner: FloatArray | None = None
) -> NodeSolution:
    """Solve the problem of `solve_node` without hard rows, for many samples, by Newton's method.

    It reads all samples a few dozen times, while the active-set method reads them once per pivot.
    """
    corner = np.ones(len(y)) if corner is None else corner
    if time_limit < _SECONDS_PER_COPY * X.size:  # the copies, which cannot be interrupted, would take longer
        none = NodeSolution(w=np.zeros(X.shape[1]), b=1.0, value=math.inf, bound=0.0, feasible=True)
        return _or_constant_split(none, y, cost, corner)
    centre = X.mean(axis=0)
    theta, flag = np.zeros(X.shape[1] + 1), np.zeros(1)
    with flag_after(flag, time_limit):
        # Copies are writeable arrays: Numba would compile another version for read-only ones.
        columns = np.array(X.T, order="C")
        columns -= centre[:, None]
        reach = offset_reach(columns.T, constant_split(y, cost, corner)[1], 0.0, float(np.max(np.abs(corner))))
        data = (columns, np.array(y), np.array(cost), np.array(corner))
        bound, _ = newton.solve_plain(*data, theta, _LARGE_GAP, flag, reach)
    w = theta[:-1]
    b = float(theta[-1] - w @ centre)
    value = 0.5 * float(w @ w) + float(cost @ np.maximum(0.0, corner - y * (X @ w + b)))
    found = NodeSolution(w=w, b=b, value=value, bound=min(bound, value), feasible=True)
    return _or_constant_split(found, y, cost, corner)


def infeasible_above(cost: FloatArray, cutoff: float = math.inf) -> float:
    """The value from which on the hard rows of a node problem count as contradictory; far beyond the cutoff."""
    return max(1e13 + 1e6 * float(np.sum(cost)), 1e3 * cutoff if cutoff < math.inf else 0.0)


def value_limit(y: FloatArray, cost: FloatArray, corner: FloatArray, sides: NDArray[np.int8]) -> float:
    """An upper bound on the value of the best hyperplane; with hard rows it is unknown, and this is a guess."""
    return _VALUE_GUESS * (1.0 + float(np.sum(cost))) if np.any(sides) else constant_split(y, cost, corner)[1]


def _or_constant_split(found: NodeSolution, y: FloatArray, cost: FloatArray, corner: FloatArray) -> NodeSolution:
    """The solution of an early stop, or the constant split if its value is smaller."""
    b, value = constant_split(y, cost, corner)
    if value < found.value:
        return replace(found, w=np.zeros_like(found.w), b=b, value=value, feasible=True)
    return replace(found, feasible=True)


def _one_sided_solution(
    X: FloatArray, y: FloatArray, corner: FloatArray, sides: NDArray[np.int8], band: float
) -> NodeSolution | None:
    """The solution with w = 0 and value 0 of a node with at most one class and no hard row against it, else None.

    ``band`` is the distance of hard rows on the left side.
    """
    sign = float(y[0]) if len(y) else 1.0
    if np.any(y != sign) or np.any(sides == -sign):
        return None
    b = one_side(band if np.any(sides) else 0.0, sign > 0)
    b = sign * max(abs(b), float(np.max(corner, initial=1.0)))
    return NodeSolution(w=np.zeros(X.shape[1]), b=b, value=0.0, bound=0.0, feasible=True)


class Items(NamedTuple):
    """The data of the items of a node problem, as compiled code reads them (`kernels.workspace`)."""

    c: FloatArray
    cost: FloatArray
    corner: FloatArray
    y: FloatArray
    side: FloatArray
    delta: FloatArray


def node_items(
    X: FloatArray,
    y: FloatArray,
    cost: FloatArray,
    corner: FloatArray,
    sides: NDArray[np.int8],
    deltas: tuple[float, float],
    max_weight: float | None,
) -> tuple[FloatArray, Items]:
    """The points of a node problem and their items; a limit on weights adds two hard rows per feature.

    ``deltas`` are the distances of hard rows on the right and on the left side.
    """
    (m, n), more = X.shape, 0
    if max_weight is not None:
        X, more = np.vstack([X, weight_limit_rows(n, max_weight)]), 2 * n
    rows = np.concatenate([np.ones(n), -np.ones(n)])[:more]
    limits = np.full(more, -math.inf if max_weight is None else -scaled_weight_limit(max_weight))
    right, left = deltas
    return np.ascontiguousarray(X), Items(
        c=np.concatenate([np.ones(m), np.zeros(more)]),
        cost=np.concatenate([cost, np.zeros(more)]),
        corner=np.concatenate([corner, np.ones(more)]),
        y=np.concatenate([y, -rows]),
        side=np.concatenate([sides, rows]).astype(np.float64),
        delta=np.concatenate([np.where(sides > 0, right, left), limits]),
    )
