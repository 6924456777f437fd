"""Polishing: the best max-margin tree with a given routing, by column generation.

With routing, split nodes and labels fixed the problem is convex: minimise ``delta + sum_t g_t(w_t, b_t)`` subject to
``1/2 |w_t|^2 <= delta``, where ``g_t`` is the loss of the samples of a node under the routing rows.  For multipliers
``lambda_t >= 0`` of these constraints, summing to 1, it decomposes into one SVM per node,
``min lambda_t 1/2 |w|^2 + g_t``, and the sum of the minima is a lower bound.  A convex combination of feasible
hyperplanes of a node is feasible.  The algorithm alternates: solve the SVMs for the current multipliers; combine all
hyperplanes found so far by a small linear program (the master problem), whose dual values are the next multipliers.
It ends when the value of the combination reaches the lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from margotree.baselines.mmsvm.problem import IndexArray, MmSvmProblem
from margotree.engines import RunControl
from margotree.engines.node.svm import solve_node
from margotree.engines.polish import tree_with_routing
from margotree.problem import Splits, topology
from margotree.problem.problem import FloatArray

#: The largest number of rounds, and the relative gap at which they end.
_ROUNDS, _GAP = 60, 1e-9

#: The smallest multiplier and the largest cost of a sample relative to it.  With a multiplier of 0 the margin of a node
#: would be arbitrary; a small one gives the widest margin that the other nodes allow, and keeps the SVM well scaled.
_MIN_MULTIPLIER, _MAX_COST = 1e-7, 1e9


@dataclass(kw_only=True, eq=False)
class _Node:
    """The samples of one node, and its columns: ``1/2 |w|^2``, loss, ``w`` and ``b`` of every hyperplane found."""

    X: FloatArray
    y: FloatArray
    cost: FloatArray
    side: NDArray[np.int8] | None
    columns: list[tuple[float, float, FloatArray, float]] = field(default_factory=list)

    def solve(self, multiplier: float, eps: float, inner: float, time_limit: float) -> float | None:
        """Add the best hyperplane for a multiplier as a column, and return a lower bound on its value; None if the rows
        are infeasible or no hyperplane was found within the time limit."""
        multiplier = max(multiplier, _MIN_MULTIPLIER, float(self.cost.max(initial=0.0)) / _MAX_COST)
        cost = self.cost / multiplier
        found = solve_node(self.X, self.y, cost, side=self.side, eps=eps, inner=inner, time_limit=time_limit)
        if not found.feasible:
            return None
        w, b = np.asarray(found.w), float(found.b)
        loss = float(self.cost @ np.maximum(0.0, 1.0 - self.y * (self.X @ w + b)))
        self.columns.append((0.5 * float(w @ w), loss, w, b))
        return multiplier * float(found.bound)


def polish(
    problem: MmSvmProblem,
    node: IndexArray,
    split: NDArray[np.bool_],
    relabelled: NDArray[np.bool_] | None = None,
    control: RunControl | None = None,
) -> Splits | None:
    """Compute the best tree with a given routing; None if no tree has it.

    Parameters
    ----------
    node : array
        ``node[i]`` is the node of the last level that sample ``i`` reaches.
    split : array
        Which nodes split; the others have ``w = 0``.
    relabelled : array, optional
        ``relabelled[t, i]``: whether sample ``i`` has the other label at node ``t``.
    control : RunControl, optional
        Limits; when they are reached, the result is the best combination so far, or None.
    """
    return tree_with_routing(
        problem, node, lambda inner: _solve(problem, node, split, relabelled, inner, control or RunControl())
    )


def _solve(
    problem: MmSvmProblem,
    node: IndexArray,
    split: NDArray[np.bool_],
    relabelled: NDArray[np.bool_] | None,
    inner: float,
    control: RunControl,
) -> Splits | None:
    """As :func:`polish`, for one distance ``inner`` by which the routing rows are tightened."""
    if control.over:
        return None
    w, b = np.zeros((problem.n_nodes, problem.n_features)), np.ones(problem.n_nodes)
    nodes: dict[int, _Node] = {}
    for t in range(problem.n_nodes):
        rows = np.flatnonzero(np.isin(node, topology.last_below(t, problem.depth)))
        data = _node_data(problem, t, rows, node, relabelled)
        if split[t] and len(rows):
            nodes[t] = data
        elif (offset := _constant_offset(data, problem.eps)) is not None:
            b[t] = offset
        else:
            return None
    for t, (w_t, b_t) in (_combine_nodes(nodes, problem.eps, inner, control) or {}).items():
        w[t], b[t] = w_t, b_t
    return Splits(w=w, b=b) if all(data.columns for data in nodes.values()) else None


def _node_data(
    problem: MmSvmProblem, t: int, rows: IndexArray, node: IndexArray, relabelled: NDArray[np.bool_] | None
) -> _Node:
    """The samples ``rows`` of node ``t`` with their labels and sides."""
    y = problem.margin.y[rows]
    if relabelled is not None:
        y = np.where(relabelled[t, rows], -y, y)
    side = None
    if t in topology.upper(problem.depth):
        side = np.where(node[rows] >= topology.last_right(t, problem.depth).start, 1, -1).astype(np.int8)
    return _Node(X=problem.margin.X[rows], y=y, cost=problem.c1 * problem.margin.weight[rows], side=side)


def _constant_offset(data: _Node, eps: float) -> float | None:
    """The best offset of a node that does not split; None if its samples go to both sides."""
    label_sum = float(data.cost @ data.y)
    if data.side is None or not len(data.side):
        return 1.0 if label_sum >= 0 else -1.0
    if np.all(data.side > 0):
        return 1.0 if label_sum >= 0 else 0.0
    if np.all(data.side < 0):
        return -max(1.0, eps) if label_sum <= 0 else -eps
    return None


def _combine_nodes(
    nodes: dict[int, _Node], eps: float, inner: float, control: RunControl
) -> dict[int, tuple[FloatArray, float]] | None:
    """The hyperplanes of the split nodes by column generation; None without nodes or if the rows are infeasible."""
    multipliers = np.full(len(nodes), 1.0 / max(1, len(nodes)))
    best, bound = None, -np.inf
    for _ in range(_ROUNDS if nodes else 0):
        pairs = zip(nodes.values(), multipliers, strict=True)
        values = [data.solve(multiplier, eps, inner, control.remaining) for data, multiplier in pairs]
        if best is not None and control.over:
            return best
        if any(value is None for value in values):
            for data in nodes.values():
                data.columns.clear()
            return None
        bound = max(bound, sum(value for value in values if value is not None))
        weights, multipliers, objective = _solve_master(list(nodes.values()))
        best = {t: _weighted_sum(data, own) for (t, data), own in zip(nodes.items(), weights, strict=True)}
        if len(nodes) == 1 or objective - bound <= _GAP * max(1.0, abs(objective)):
            break
    return best


def _solve_master(nodes: list[_Node]) -> tuple[list[FloatArray], FloatArray, float]:
    """Solve the master problem: the weights of the columns of every node, the multipliers, and the objective."""
    from scipy.optimize import linprog

    if len(nodes) == 1:
        return [np.eye(len(nodes[0].columns))[-1]], np.ones(1), nodes[0].columns[-1][0] + nodes[0].columns[-1][1]
    starts = np.cumsum([0] + [len(data.columns) for data in nodes])
    cost = np.append([loss for data in nodes for _, loss, _, _ in data.columns], 1.0)
    bounds, sums = np.zeros((len(nodes), starts[-1] + 1)), np.zeros((len(nodes), starts[-1] + 1))
    for k, data in enumerate(nodes):
        bounds[k, starts[k] : starts[k + 1]] = [square for square, *_ in data.columns]
        sums[k, starts[k] : starts[k + 1]] = 1.0
    bounds[:, -1] = -1.0
    found = linprog(cost, A_ub=bounds, b_ub=np.zeros(len(nodes)), A_eq=sums, b_eq=np.ones(len(nodes)), bounds=(0, None))
    weights = [np.maximum(found.x[a:b], 0.0) for a, b in pairwise(starts)]
    return [own / own.sum() for own in weights], np.maximum(-found.ineqlin.marginals, 0.0), float(found.fun)


def _weighted_sum(data: _Node, weights: FloatArray) -> tuple[FloatArray, float]:
    """The convex combination ``w, b`` of the columns of a node."""
    w = sum(s * w for s, (_, _, w, _) in zip(weights, data.columns, strict=True))
    b = sum(s * b for s, (_, _, _, b) in zip(weights, data.columns, strict=True))
    return np.asarray(w, dtype=np.float64), float(b)
