"""From a routing to the best max-margin tree that routes so.

With routing, split nodes and labels fixed the problem is convex: minimise ``delta + sum_t g_t(w_t, b_t)`` subject to
``1/2 |w_t|^2 <= delta``, where ``g_t`` is what the samples of a node pay and the routing rows hold.  For prices
``lambda_t >= 0`` of the bounds, summing to 1, it falls apart into one SVM a node, ``min lambda_t 1/2 |w|^2 + g_t``,
whose values add up to a lower bound; and hyperplanes of one node that obey its rows may be averaged.  So: solve the
nodes for some prices, let a small linear program average what was found so far, take its multipliers as the next
prices, until the average is worth what the bound says.
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

#: Rounds at most, and the relative gap at which the average is good enough.
_ROUNDS, _GAP = 60, 1e-9

#: The least price of a bound.  At 0 a node's margin would not matter at all; a little keeps it as wide as it can be
#: without hurting the others, and the SVM within what its solver does well.
_CHEAPEST, _DEAREST_COST = 1e-7, 1e9


@dataclass(kw_only=True, eq=False)
class _Node:
    """The samples of one split node, and the hyperplanes tried for it: ``1/2 |w|^2``, pay, ``w`` and ``b`` of each."""

    X: FloatArray
    y: FloatArray
    cost: FloatArray
    side: NDArray[np.int8] | None
    tried: list[tuple[float, float, FloatArray, float]] = field(default_factory=list)

    def solve(self, price: float, eps: float, inner: float, time_limit: float) -> float | None:
        """Add the best hyperplane for a price of the bound and return its value; None if the rows cannot be obeyed, or
        not in time."""
        price = max(price, _CHEAPEST, float(self.cost.max(initial=0.0)) / _DEAREST_COST)
        cost = self.cost / price
        found = solve_node(self.X, self.y, cost, side=self.side, eps=eps, inner=inner, time_limit=time_limit)
        if not found.feasible:
            return None
        w, b = np.asarray(found.w), float(found.b)
        pay = float(self.cost @ np.maximum(0.0, 1.0 - self.y * (self.X @ w + b)))
        self.tried.append((0.5 * float(w @ w), pay, w, b))
        return price * float(found.bound)


def polish(
    problem: MmSvmProblem,
    node: IndexArray,
    split: NDArray[np.bool_],
    relabelled: NDArray[np.bool_] | None = None,
    control: RunControl | None = None,
) -> Splits | None:
    """The best tree in which sample ``i`` reaches the last-level node ``node[i]`` and only the nodes in ``split`` do
    split; None if no tree routes so.  When ``control`` runs out, the best average so far, or None if there is none."""
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
    if control.over:
        return None
    w, b = np.zeros((problem.n_nodes, problem.n_features)), np.ones(problem.n_nodes)
    nodes: dict[int, _Node] = {}
    for t in range(problem.n_nodes):
        rows = np.flatnonzero(np.isin(node, topology.last_below(t, problem.depth)))
        here = _at(problem, t, rows, node, relabelled)
        if split[t] and len(rows):
            nodes[t] = here
        elif (offset := _constant(here, problem.eps)) is not None:
            b[t] = offset
        else:
            return None
    for t, (w_t, b_t) in (_balance(nodes, problem.eps, inner, control) or {}).items():
        w[t], b[t] = w_t, b_t
    return Splits(w=w, b=b) if all(one.tried for one in nodes.values()) else None


def _at(
    problem: MmSvmProblem, t: int, rows: IndexArray, node: IndexArray, relabelled: NDArray[np.bool_] | None
) -> _Node:
    y = problem.margin.y[rows]
    if relabelled is not None:
        y = np.where(relabelled[t, rows], -y, y)
    side = None
    if t in topology.upper(problem.depth):
        side = np.where(node[rows] >= topology.last_right(t, problem.depth).start, 1, -1).astype(np.int8)
    return _Node(X=problem.margin.X[rows], y=y, cost=problem.c1 * problem.margin.weight[rows], side=side)


def _constant(here: _Node, eps: float) -> float | None:
    """The best offset of a node that does not split; None if its samples part all the same."""
    pull = float(here.cost @ here.y)
    if here.side is None or not len(here.side):
        return 1.0 if pull >= 0 else -1.0
    if np.all(here.side > 0):
        return 1.0 if pull >= 0 else 0.0
    if np.all(here.side < 0):
        return -max(1.0, eps) if pull <= 0 else -eps
    return None


def _balance(
    nodes: dict[int, _Node], eps: float, inner: float, control: RunControl
) -> dict[int, tuple[FloatArray, float]] | None:
    """The hyperplanes of the split nodes; None if there are none or some rows cannot be obeyed."""
    prices = np.full(len(nodes), 1.0 / max(1, len(nodes)))
    best, least = None, -np.inf
    for _ in range(_ROUNDS if nodes else 0):
        pairs = zip(nodes.values(), prices, strict=True)
        values = [one.solve(price, eps, inner, control.remaining) for one, price in pairs]
        if best is not None and control.over:
            return best
        if any(value is None for value in values):
            for one in nodes.values():
                one.tried.clear()
            return None
        least = max(least, sum(value for value in values if value is not None))
        shares, prices, worth = _average(list(nodes.values()))
        best = {t: _mixed(one, share) for (t, one), share in zip(nodes.items(), shares, strict=True)}
        if len(nodes) == 1 or worth - least <= _GAP * max(1.0, abs(worth)):
            break
    return best


def _average(nodes: list[_Node]) -> tuple[list[FloatArray], FloatArray, float]:
    """The best average of the hyperplanes tried: shares a node, the prices of the bounds, and what it is worth."""
    from scipy.optimize import linprog

    if len(nodes) == 1:
        return [np.eye(len(nodes[0].tried))[-1]], np.ones(1), nodes[0].tried[-1][0] + nodes[0].tried[-1][1]
    starts = np.cumsum([0] + [len(one.tried) for one in nodes])
    cost = np.append([pay for one in nodes for _, pay, _, _ in one.tried], 1.0)
    bounds, sums = np.zeros((len(nodes), starts[-1] + 1)), np.zeros((len(nodes), starts[-1] + 1))
    for k, one in enumerate(nodes):
        bounds[k, starts[k] : starts[k + 1]] = [square for square, *_ in one.tried]
        sums[k, starts[k] : starts[k + 1]] = 1.0
    bounds[:, -1] = -1.0
    found = linprog(cost, A_ub=bounds, b_ub=np.zeros(len(nodes)), A_eq=sums, b_eq=np.ones(len(nodes)), bounds=(0, None))
    shares = [np.maximum(found.x[a:b], 0.0) for a, b in pairwise(starts)]
    return [share / share.sum() for share in shares], np.maximum(-found.ineqlin.marginals, 0.0), float(found.fun)


def _mixed(one: _Node, share: FloatArray) -> tuple[FloatArray, float]:
    w = sum(s * w for s, (_, _, w, _) in zip(share, one.tried, strict=True))
    b = sum(s * b for s, (_, _, _, b) in zip(share, one.tried, strict=True))
    return np.asarray(w, dtype=np.float64), float(b)
