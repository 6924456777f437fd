"""The best-subset SVM of one tree node."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.engines.node.best_subset.samples import I1, merge_equal
from margotree.engines.node.best_subset.search import Search
from margotree.engines.node.best_subset.supports import Supports
from margotree.engines.node.best_subset.task import MAY, MUST, NEVER, Task
from margotree.problem.problem import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class SubsetSolution:
    """Hyperplane of one node under a feature budget, and what is proved about it.

    ``value`` includes the penalties of features above the budget and is inf if no hyperplane was found; ``bound`` is a
    valid lower bound on the best value.  ``exact`` is True if the search finished: then the value is optimal within the
    requested gap, or no value lies below the cutoff, or the hard rows contradict each other.
    """

    w: FloatArray
    b: float
    value: float
    bound: float
    feasible: bool
    exact: bool
    nodes: int = 0

    @property
    def support(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.w)

    @property
    def gap(self) -> float:
        """(value - bound) / value."""
        if not math.isfinite(self.value) or self.value <= 0:
            return 0.0 if self.exact else math.inf
        return max(0.0, (self.value - max(0.0, self.bound)) / self.value)


def best_subset(
    X: FloatArray,
    y: FloatArray,
    cost: FloatArray,
    *,
    corner: FloatArray | None = None,
    budget: int,
    alpha: float | None = None,
    side: ArrayLike | None = None,
    eps: float = 1e-3,
    inner: float = 0.0,
    max_weight: float | None = None,
    groups: NDArray[np.int64] | None = None,
    must: Sequence[int] = (),
    never: Sequence[int] = (),
    cutoff: float = math.inf,
    gap: float = 1e-9,
    time_limit: float = math.inf,
    stop: Callable[[], bool] | None = None,
    node_limit: float = math.inf,
) -> SubsetSolution:
    """Solve ``min 1/2 |w|^2 + sum_i cost_i max(0, corner_i - y_i h_i)`` on at most ``budget`` groups.

    A group is a feature, or several features that are used together.

    Parameters
    ----------
    X, y, cost, corner, side, eps, inner, max_weight
        As in :func:`~margotree.engines.node.svm.solve_node`.
    budget : int
        Largest number of groups.
    alpha : float, optional
        Penalty of each group above the budget, which is allowed then.
    groups : array of shape (n_features,), optional
        The group of every feature, 0, 1, ...; by default every feature is a group.
    must, never : sequences of int
        Groups that count as used even if their weights are 0, and groups that are not allowed.
    cutoff : float
        Only values below it are searched for.
    gap : float
        Relative gap at which the search ends.
    time_limit, stop, node_limit
        The search ends after these seconds, when ``stop()`` is True, or after this number of search nodes.  It also
        ends when its open nodes take too much memory.  In these cases the solution is not exact.
    """
    n_groups = X.shape[1] if groups is None else int(np.max(groups)) + 1
    kind = _initial_kinds(n_groups, must, never)
    if alpha == 0:
        budget, alpha = n_groups, None
    if alpha is None and len(must) > budget:
        raise ValueError(f"{len(must)} features must be used, but the budget is {budget}")
    sides = np.zeros(len(y), np.int8) if side is None else np.asarray(side, np.int8)
    corner = np.ones(len(y)) if corner is None else np.asarray(corner, np.float64)
    task = Task(
        samples=merge_equal(X, y, np.asarray(cost, np.float64), corner, sides),
        kind=kind,
        budget=budget,
        alpha=math.inf if alpha is None else float(alpha),
        limit=math.inf if max_weight is None else float(max_weight),
        stop=_stop_rule(time_limit, stop),
        eps=eps,
        inner=inner,
        group=groups,
    )
    supports = Supports(task, cutoff, gap)
    search = Search(task, supports, node_limit)
    search.run()
    return _solution(search, X, y, cost, corner)


def _initial_kinds(n_groups: int, must: Sequence[int], never: Sequence[int]) -> I1:
    """The state of every group at the root of the search: MUST (if in ``must``), NEVER (if in ``never``) or MAY."""
    kind = np.full(n_groups, MAY, np.int8)
    kind[list(never)] = NEVER
    if np.any(kind[list(must)] == NEVER):
        raise ValueError("a feature is both in 'must' and in 'never'")
    kind[list(must)] = MUST
    return kind


def _stop_rule(time_limit: float, stop: Callable[[], bool] | None) -> Callable[[], bool]:
    """A function that returns whether ``time_limit`` seconds have passed since this call, or ``stop()`` is True."""
    until = time.perf_counter() + time_limit
    return lambda: time.perf_counter() >= until or (stop is not None and stop())


def _solution(search: Search, X: FloatArray, y: FloatArray, cost: FloatArray, corner: FloatArray) -> SubsetSolution:
    """The result of a search: its incumbent as a hyperplane on all features, with value and bound."""
    supports = search.supports
    if supports.support is None:
        return SubsetSolution(
            w=np.zeros(X.shape[1]), b=1.0, value=math.inf, bound=search.bound, feasible=False, exact=search.finished,
            nodes=search.nodes,
        )  # fmt: skip
    w, b = supports.w, supports.b
    hinge = np.maximum(0.0, corner - y * (X @ w + b))
    value = 0.5 * float(w @ w) + float(cost @ hinge) + search.task.penalty(len(supports.support))
    return SubsetSolution(
        w=w, b=b, value=value, bound=min(search.bound, value), feasible=True, exact=search.finished, nodes=search.nodes
    )
