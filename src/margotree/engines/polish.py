"""The best tree for a given routing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.svm import solve_node
from margotree.engines.run_control import RunControl
from margotree.problem import Problem, Splits, topology

#: Inner margins that are tried one after the other, so that rounding cannot move a sample across its hyperplane.
_INNER = (0.0, 1e-8, 1e-6)
#: Weights that change no decision value by more than this are rounding errors; and the number of samples of a first
#: check.
_NOISE, _CHECKED_SAMPLES = 1e-10, 1000
#: Factors minus 1 by which hyperplanes are lengthened, so that rounding causes no margin violation.
_LENGTHENINGS = (0.0, *(2.0**-k for k in range(51, 18, -4)))


class Routed(Protocol):
    """The routing of the samples by a tree, and whether the tree is allowed."""

    @property
    def feasible(self) -> bool: ...

    @property
    def node(self) -> NDArray[np.int64]: ...


class Routes(Protocol):
    """A problem that evaluates the routing of a tree."""

    def evaluate(self, splits: Splits) -> Routed: ...


def polish(
    problem: Problem,
    node: NDArray[np.int64],
    support: NDArray[np.bool_] | None = None,
    control: RunControl | None = None,
) -> Splits | None:
    """The best tree for a fixed routing.

    Parameters
    ----------
    problem : Problem
        The problem.
    node : array of shape (n_samples,)
        The last-level node that each sample must reach.
    support : array of shape (n_nodes, n_features), optional
        The features that each node may use.
    control : RunControl, optional
        Limits.

    Returns
    -------
    Splits or None
        None if no tree has this routing, or the time is over before it is found.
    """
    return tree_with_routing(
        problem, node, lambda inner: _solve_all(problem, node, support, inner, control or RunControl())
    )


def tree_with_routing(
    problem: Routes, node: NDArray[np.int64], solve: Callable[[float], Splits | None]
) -> Splits | None:
    """The first allowed tree with this routing that ``solve`` returns for increasing inner margins.

    None if ``solve`` returns None, or no tree has the routing.
    """
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
    """The node problems of all nodes for a routing; None if one is infeasible or the time is over."""
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
    """The hard rows of an upper node: the side of every sample; None at the last level."""
    if t not in topology.upper(problem.depth):
        return None
    return np.where(node >= topology.last_right(t, problem.depth).start, 1, -1).astype(np.int8)


def without_noise(problem: Problem, splits: Splits) -> Splits:
    """The tree without weights that are only rounding errors, if it is as good without them."""
    largest = np.max(np.abs(problem.X[:_CHECKED_SAMPLES]), axis=0)
    if np.all((splits.w == 0) | (np.abs(splits.w) * largest > _NOISE)):
        return splits
    largest_of_all = np.max(np.abs(problem.X), axis=0, initial=1.0)
    w = np.where(np.abs(splits.w) * largest_of_all > _NOISE, splits.w, 0.0)
    if np.array_equal(w, splits.w):
        return splits
    clean = Splits(w=w, b=splits.b)
    before, after = problem.evaluate(splits), problem.evaluate(clean)
    good = after.feasible and after.objective <= before.objective * (1.0 + 1e-9)
    return clean if good and np.array_equal(before.node, after.node) else splits


def without_rounded_losses(problem: Problem, splits: Splits) -> Splits:
    """The tree with slightly longer hyperplanes where this removes losses that are only rounding errors.

    Samples at their margins miss them by the rounding error of ``h``, whose loss is large for a large C.
    """
    limit = getattr(problem, "max_weight", None)

    def lengthened(by: NDArray[np.float64]) -> Splits:
        w = splits.w * (1.0 + by[:, None])
        return Splits(w=w if limit is None else np.clip(w, -limit, limit), b=splits.b * (1.0 + by))

    values = [problem.evaluate(lengthened(np.full(problem.n_nodes, by))).node_values for by in _LENGTHENINGS]
    best = lengthened(np.array(_LENGTHENINGS)[np.argmin(values, axis=0)])
    before, after = problem.evaluate(splits), problem.evaluate(best)
    return best if after.feasible and after.objective < before.objective else splits
