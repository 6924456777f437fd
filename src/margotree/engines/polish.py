"""The best tree for a given routing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.best_subset import best_subset
from margotree.engines.node.svm import solve_node
from margotree.engines.run_control import RunControl
from margotree.problem import Choices, Problem, Splits, topology
from margotree.problem.tasks import one_sided

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
    *,
    choices: Choices | None = None,
    search_supports: bool = False,
) -> Splits | None:
    """The best tree for a fixed routing and choices.

    Parameters
    ----------
    problem : Problem
        The problem.
    node : array of shape (n_samples,)
        The last-level node that each sample must reach.
    support : array of shape (n_nodes, n_features), optional
        The features that each node may use; all by default.
    control : RunControl, optional
        Limits.
    choices : Choices, optional
        Sides of classes and labels of leaves, for tasks that have them; those that the problem fixes by default.
    search_supports : bool
        Whether nodes with a budget get the best features that it allows, found by branch and bound; not together with
        ``support``.

    Returns
    -------
    Splits or None
        None if no tree has this routing, or the time is over before it is found.
    """
    limits = control or RunControl()
    settled = choices or problem.choices or Choices.none(problem.n_upper, problem.n_last)

    def solve(inner: float) -> Splits | None:
        return _solve_all(problem, node, settled, partial(solver, inner=inner, control=limits), limits)

    solver = partial(_on_best_support, problem) if search_supports else partial(_on_support, problem, support)
    return tree_with_routing(problem, node, solve)


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


class _Plane(NamedTuple):
    """A hyperplane on all features."""

    w: NDArray[np.float64]
    b: float


def _solve_all(
    problem: Problem,
    node: NDArray[np.int64],
    choices: Choices,
    solve: Callable[[int, RoutedRows], _Plane | None],
    control: RunControl,
) -> Splits | None:
    """The node problems of all nodes for a routing; None if one is infeasible or the time is over."""
    w = np.zeros((problem.n_nodes, problem.n_features))
    b = np.ones(problem.n_nodes)
    for t in range(problem.n_nodes):
        if control.over:
            return None
        plane = solve(t, routed_rows(problem, t, node, choices.at(t)))
        if plane is None:
            return None
        w[t], b[t] = plane
    return Splits(w=w, b=b)


def _on_support(
    problem: Problem,
    support: NDArray[np.bool_] | None,
    t: int,
    routed: RoutedRows,
    *,
    inner: float,
    control: RunControl,
) -> _Plane | None:
    """The best hyperplane of a node on given features."""
    columns = np.arange(problem.n_features) if support is None else np.flatnonzero(support[t])
    found = solve_node(
        problem.X[np.ix_(routed.rows, columns)],
        routed.label,
        routed.cost,
        corner=routed.corner,
        side=routed.side,
        eps=problem.eps,
        inner=inner,
        max_weight=problem.max_weight,
        time_limit=control.remaining,
    )
    w = np.zeros(problem.n_features)
    w[columns] = found.w
    return _Plane(w, found.b) if found.feasible else None


def _on_best_support(
    problem: Problem, t: int, routed: RoutedRows, *, inner: float, control: RunControl
) -> _Plane | None:
    """The best hyperplane of a node on the features that its budget allows."""
    if problem.budget is None or problem.budget[t] >= problem.n_groups:
        return _on_support(problem, None, t, routed, inner=inner, control=control)
    found = best_subset(
        problem.X[routed.rows],
        routed.label,
        routed.cost,
        corner=routed.corner,
        budget=int(problem.budget[t]),
        alpha=None if problem.alpha is None else float(problem.alpha[t]),
        side=routed.side,
        eps=problem.eps,
        inner=inner,
        max_weight=problem.max_weight,
        groups=problem.groups,
        stop=lambda: control.over,
    )
    return _Plane(found.w, found.b) if found.feasible else None


class RoutedRows(NamedTuple):
    """A node problem for a fixed routing, as :func:`~margotree.engines.node.svm.solve_node` takes it."""

    rows: NDArray[np.int64]  # samples; those with losses on both sides occur twice
    label: NDArray[np.float64]
    cost: NDArray[np.float64]
    corner: NDArray[np.float64]
    side: NDArray[np.int8] | None  # hard rows, one per sample; None at the last level


def routed_rows(problem: Problem, t: int, node: NDArray[np.int64], choice: NDArray[np.int64]) -> RoutedRows:
    """The losses and hard rows at node ``t`` of the samples that pass it on their way to last-level nodes ``node``."""
    below = topology.last_below(t, problem.depth)
    here = np.flatnonzero((node >= below.start) & (node < below.stop))
    last = t >= problem.n_upper
    sides = None if last else np.where(node[here] >= topology.last_right(t, problem.depth).start, 1, -1)
    items = problem.task.items(problem.y[here], last=last, side=sides, choice=choice)
    found = one_sided(items, problem.C[t] * problem.weight[here])
    rows, label, corner, cost = found
    if sides is not None:
        # Samples without a loss have a hard row all the same.
        bare = np.setdiff1d(np.arange(len(here)), rows)
        rows, label = np.concatenate([rows, bare]), np.concatenate([label, sides[bare]])
        corner, cost = (np.concatenate([part, np.full(len(bare), to)]) for part, to in ((corner, 1.0), (cost, 0.0)))
    order = np.argsort(rows, kind="stable")
    rows, label, corner, cost = rows[order], label[order], corner[order], cost[order]
    if sides is None:
        return RoutedRows(here[rows], label, cost, corner, None)
    first = np.ediff1d(rows, to_begin=1) > 0
    return RoutedRows(here[rows], label, cost, corner, np.where(first, sides[rows], 0).astype(np.int8))


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
