"""From a routing to the best tree that routes so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.svm import solve_node
from margotree.engines.run_control import RunControl
from margotree.problem import Problem, Splits, topology

#: Inner margins tried in turn, so that rounding cannot push a sample over the hyperplane it must stay behind.
_INNER = (0.0, 1e-8, 1e-6)
#: Weights that move no sample by more than this are rounding; so many samples mostly show that they are not.
_NOISE, _SOME = 1e-10, 1000
#: By how much hyperplanes are lengthened so that rounding leaves no sample short of its margin.
_LONGER = (0.0, *(2.0**-k for k in range(51, 18, -4)))


class Routed(Protocol):
    """Where samples go in a tree, and whether it is allowed."""

    @property
    def feasible(self) -> bool: ...

    @property
    def node(self) -> NDArray[np.int64]: ...


class Routes(Protocol):
    """A problem whose plain value function knows the routing."""

    def evaluate(self, splits: Splits) -> Routed: ...


def polish(
    problem: Problem,
    node: NDArray[np.int64],
    support: NDArray[np.bool_] | None = None,
    control: RunControl | None = None,
) -> Splits | None:
    """The best tree under a fixed routing, or None if no tree routes so or ``control`` runs out before it is found.

    ``node[i]`` is the last-level node that sample ``i`` must reach; ``support`` allows only some features per node.
    """
    return tree_with_routing(
        problem, node, lambda inner: _solve_all(problem, node, support, inner, control or RunControl())
    )


def tree_with_routing(
    problem: Routes, node: NDArray[np.int64], solve: Callable[[float], Splits | None]
) -> Splits | None:
    """The first allowed tree of this routing that ``solve`` gives for inner margins tried in turn, or None once it
    gives none."""
    for inner in _INNER:
        splits = solve(inner)
        if splits is None:
            return None
        found = problem.evaluate(splits)
        if found.feasible and np.array_equal(found.node, node):
            return splits
    return None


def _solve_all(
    problem: Problem, node: NDArray[np.int64], support: NDArray[np.bool_] | None, inner: float, control: RunControl
) -> Splits | None:
    w = np.zeros((problem.n_nodes, problem.n_features))
    b = np.ones(problem.n_nodes)
    for t in range(problem.n_nodes):
        if control.over:
            return None
        below = topology.last_below(t, problem.depth)
        rows = np.flatnonzero((node >= below.start) & (node < below.stop))
        columns = np.arange(problem.n_features) if support is None else np.flatnonzero(support[t])
        found = solve_node(
            problem.X[np.ix_(rows, columns)],
            problem.y[rows],
            problem.C[t] * problem.weight[rows],
            side=_sides(problem, t, node[rows]),
            eps=problem.eps,
            inner=inner,
            max_weight=problem.max_weight,
            time_limit=control.remaining,
        )
        if not found.feasible:
            return None
        w[t, columns], b[t] = found.w, found.b
    return Splits(w=w, b=b)


def _sides(problem: Problem, t: int, node: NDArray[np.int64]) -> NDArray[np.int8] | None:
    if t not in topology.upper(problem.depth):
        return None
    return np.where(node >= topology.last_right(t, problem.depth).start, 1, -1).astype(np.int8)


def without_noise(problem: Problem, splits: Splits) -> Splits:
    """The tree without weights that are only rounding, if it is as good without them."""
    some = np.max(np.abs(problem.X[:_SOME]), axis=0)
    if np.all((splits.w == 0) | (np.abs(splits.w) * some > _NOISE)):
        return splits
    reach = np.max(np.abs(problem.X), axis=0, initial=1.0)
    w = np.where(np.abs(splits.w) * reach > _NOISE, splits.w, 0.0)
    if np.array_equal(w, splits.w):
        return splits
    clean = Splits(w=w, b=splits.b)
    before, after = problem.evaluate(splits), problem.evaluate(clean)
    good = after.feasible and after.objective <= before.objective * (1.0 + 1e-9)
    return clean if good and np.array_equal(before.node, after.node) else splits


def without_rounded_losses(problem: Problem, splits: Splits) -> Splits:
    """The tree with hyperplanes a hair longer where that costs less than losses that are nothing but rounding.

    Samples at their margins miss it by a rounding of ``h``, which a large C makes large.
    """
    limit = getattr(problem, "max_weight", None)

    def longer(by: NDArray[np.float64]) -> Splits:
        w = splits.w * (1.0 + by[:, None])
        return Splits(w=w if limit is None else np.clip(w, -limit, limit), b=splits.b * (1.0 + by))

    values = [problem.evaluate(longer(np.full(problem.n_nodes, by))).node_values for by in _LONGER]
    best = longer(np.array(_LONGER)[np.argmin(values, axis=0)])
    before, after = problem.evaluate(splits), problem.evaluate(best)
    return best if after.feasible and after.objective < before.objective else splits
