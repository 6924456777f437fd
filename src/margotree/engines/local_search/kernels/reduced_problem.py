"""The reduced problem of an upper node, whose subtrees are fixed.

Its variables are the weights ``w`` and the offset ``b`` of the node's hyperplane ``h(x) = w.x + b``. Its objective is
``1/2 |w|^2`` plus the hinge losses of the samples plus the subtree cost of each sample on the side to which it goes.
The functions of this module compute the objective, find the best threshold of a direction, and minimise the objective
exactly on lines in the space of ``(w, b)``.

In all functions, ``eps`` is the width of the band, ``h`` are the values of the samples, and ``flag`` is an array with
one number that another thread sets to stop the search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.kernels.edge_directions import MAX_KEPT, edge_direction
from margotree.engines.local_search.kernels.line_search import events, least_on_line, thresholds, thresholds_by_side
from margotree.engines.local_search.kernels.sorting import sort_times
from margotree.engines.local_search.kernels.svm import heights, hinge_value
from margotree.engines.node.kernels.vectors import copy, dot, fill
from margotree.engines.numba_backend import inner, kernel, struct
from margotree.problem.value import TIE

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: A step is taken only if it improves the objective by more than this share.
GAIN = 1e-9
#: Edge directions in a row without improvement after which the search stops.
_MAX_FAILED = 8


@struct
class ReducedProblem(NamedTuple):
    """The samples of a node and their costs; see :class:`~margotree.engines.local_search.node_samples.Node`."""

    Z: F8  # (m, p): the samples
    plus_cost: F8  # penalty of max(0, 1 - h)
    minus_cost: F8  # penalty of max(0, 1 + h)
    left_cost: F8  # subtree cost of a sample that goes left
    right_cost: F8  # subtree cost of a sample that goes right
    by_side: bool  # whether plus_cost is only for samples that go right, and minus_cost only for those that go left
    group: I8  # (p,): the group of each feature; budgets and penalties count groups


class LineWorkspace(NamedTuple):
    """Work arrays of a search on a line.

    ``times``, ``kinds``, ``sample`` are the events on the line: the steps at which a sample crosses the hyperplane, the
    band or its margin. ``order`` sorts them, with the work arrays ``bucket`` and ``ends``. ``w`` and ``h`` are the
    weights and values of a candidate; ``used`` marks groups of features.
    """

    times: F8
    kinds: NDArray[np.int8]
    sample: I8
    order: I8
    bucket: I8
    ends: I8
    w: F8
    h: F8
    used: I8


@kernel()
def objective(node: ReducedProblem, w: F8, b: float, eps: float, h: F8) -> float:
    """The objective of the hyperplane ``(w, b)`` without feature penalties; infinite if a sample is in the band.

    The values of the samples are written to ``h``.
    """
    return _objective(node, w, b, eps, h)


@inner()
def _objective(node: ReducedProblem, w: F8, b: float, eps: float, h: F8) -> float:
    """:func:`objective` as a function that kernels can call."""
    heights(node.Z, w, b, h)
    slack = min(TIE * (1.0 + abs(b)), 0.25 * eps)
    subtree = 0.0
    for i in range(h.size):
        if h[i] >= -slack:
            subtree += node.right_cost[i]
        elif h[i] > slack - eps:
            return np.inf
        else:
            subtree += node.left_cost[i]
    if node.by_side:
        hinges = 0.0
        for i in range(h.size):
            hinges += node.plus_cost[i] * max(0.0, 1.0 - h[i]) if h[i] >= -slack else (
                node.minus_cost[i] * max(0.0, 1.0 + h[i]))  # fmt: skip
        return 0.5 * dot(w, w) + hinges + subtree
    return 0.5 * dot(w, w) + hinge_value(h, node.plus_cost, node.minus_cost) + subtree


@kernel()
def best_threshold(node: ReducedProblem, d: F8, lengths: F8, eps: float, best: float) -> tuple[float, float, float]:
    """The best weights ``s * d``, with ``s`` from ``lengths``, and offset, if their objective is below ``best``.

    Returns the length ``s`` (0 if there is none), the offset and the objective, as
    :func:`~margotree.engines.local_search.kernels.line_search.thresholds`.
    """
    m = node.plus_cost.size
    q, order = np.empty(m), np.empty(m, np.int64)
    heights(node.Z, d, 0.0, q)
    sort_times(q, order, np.empty(m, np.int64), np.empty(m // 2 + 2, np.int64))
    if node.by_side:
        return thresholds_by_side(
            q, order, node.plus_cost, node.minus_cost, node.left_cost, node.right_cost, dot(d, d), lengths, eps, best
        )
    return thresholds(
        q, order, node.plus_cost, node.minus_cost, node.left_cost, node.right_cost, dot(d, d), lengths, eps, best
    )


@kernel()
def search_lines(
    node: ReducedProblem,
    w: F8,
    h: F8,
    state: F8,
    targets: F8,
    features: I8,
    uniforms: F8,
    eps: float,
    budget: int,
    alpha: float,
    flag: F8,
) -> None:
    """Minimise the reduced problem exactly on one line after the other.

    The lines lead towards the hyperplanes ``targets``, change the length of ``w``, change the offset, change the weight
    of one of the ``features``, and follow edge directions until several in a row give no improvement.

    Parameters
    ----------
    node : Reduced
        The samples.
    w, h, state : arrays
        The current weights, the values of the samples, and the offset with the objective; overwritten
        with the best found.
    targets : array of shape (k, p + 1)
        Hyperplanes: weights and offset.
    features : array
        Indices of features.
    uniforms : array of shape (k, 4)
        Random numbers in [0, 1) for at most ``k`` edge directions.
    eps : float
        The width of the band.
    budget, alpha : int, float
        Each group of features beyond the budget adds ``alpha`` to the objective.
    flag : array of length 1
        Another thread may set ``flag[0]`` to stop the search.
    """
    m, p = node.Z.shape
    work = LineWorkspace(
        np.empty(4 * m), np.empty(4 * m, np.int8), np.empty(4 * m, np.int64), np.empty(4 * m, np.int64),
        np.empty(4 * m, np.int64), np.empty(2 * m + 2, np.int64), np.empty(p), np.empty(m), np.empty(p, np.int64),
    )  # fmt: skip
    d, g = np.empty(p), np.empty(m)
    for k in range(targets.shape[0]):
        for a in range(p):
            d[a] = targets[k, a] - w[a]
        _search_line(node, w, h, state, d, targets[k, p] - state[0], g, eps, budget, alpha, work)
    copy(w, d)
    _search_line(node, w, h, state, d, state[0], g, eps, budget, alpha, work)
    fill(d, 0.0)
    _search_line(node, w, h, state, d, 1.0, g, eps, budget, alpha, work)
    for f in range(features.size):
        if flag[0] != 0.0:
            return
        j = features[f]
        d[j] = 1.0
        for i in range(m):
            g[i] = node.Z[i, j]
        _search_line_with_changes(node, w, h, state, d, 0.0, g, eps, budget, alpha, work)
        d[j] = 0.0
    if uniforms.shape[0] > 0:
        _search_edges(node, w, h, state, d, g, uniforms, eps, budget, alpha, work, flag)


@inner()
def _search_edges(
    node: ReducedProblem,
    w: F8,
    h: F8,
    state: F8,
    d: F8,
    g: F8,
    uniforms: F8,
    eps: float,
    budget: int,
    alpha: float,
    work: LineWorkspace,
    flag: F8,
) -> None:
    """Search on lines along edge directions; the other arguments are those of :func:`search_lines`.

    ``d``, ``g`` and ``work`` are work arrays.
    """
    m, p = node.Z.shape
    usable, direction, basis = np.empty(p), np.empty(p + 1), np.empty((min(p + 1, MAX_KEPT), p + 1))
    distance, order = np.empty(m), np.empty(m, np.int64)
    failed, value = 0, np.inf
    for k in range(uniforms.shape[0]):
        if flag[0] != 0.0 or failed == _MAX_FAILED:
            return
        if k == 0 or state[1] < value:
            value = state[1]
            for i in range(m):
                distance[i] = abs(h[i])
            sort_times(distance, order, work.bucket[:m], work.ends[: m // 2 + 2])
            unlimited = budget >= _mark_groups(node.group, w, work.used)
            for a in range(p):
                usable[a] = 1.0 if unlimited or work.used[node.group[a]] != 0 else 0.0
        failed += 1
        if not edge_direction(node.Z, h, node.left_cost, node.right_cost, order, usable, uniforms[k], basis, direction):
            continue
        copy(direction[:p], d)
        _search_line(node, w, h, state, d, direction[p], g, eps, budget, alpha, work)
        if state[1] < value:
            failed = 0


@inner()
def _search_line(
    node: ReducedProblem,
    w: F8,
    h: F8,
    state: F8,
    d: F8,
    db: float,
    g: F8,
    eps: float,
    budget: int,
    alpha: float,
    work: LineWorkspace,
) -> None:
    """Minimise the objective over ``step`` on the line ``(w + step * d, b + step * db)``.

    ``w``, ``h`` and ``state`` (offset and objective) are replaced if the objective decreases; ``g`` is a work array for
    the changes of the values, ``Z @ d + db``.
    """
    heights(node.Z, d, db, g)
    _search_line_with_changes(node, w, h, state, d, db, g, eps, budget, alpha, work)


@inner()
def _search_line_with_changes(
    node: ReducedProblem,
    w: F8,
    h: F8,
    state: F8,
    d: F8,
    db: float,
    g: F8,
    eps: float,
    budget: int,
    alpha: float,
    work: LineWorkspace,
) -> None:
    """:func:`_search_line` with given changes ``g`` of the values.

    The step is taken only if the objective, computed again from ``w`` and ``b``, is smaller.
    """
    _mark_groups(node.group, w, work.used)
    excess = _count_marked(node.group, d, work.used) - budget
    penalty = alpha * excess if excess > 0 else 0.0
    if penalty == np.inf:
        return
    n = events(h, g, node.plus_cost, node.minus_cost, eps, work.times, work.kinds, work.sample)
    sort_times(work.times[:n], work.order[:n], work.bucket[:n], work.ends[: n // 2 + 2])
    step, _ = least_on_line(
        h,
        g,
        node.plus_cost,
        node.minus_cost,
        node.left_cost,
        node.right_cost,
        dot(w, w),
        dot(w, d),
        dot(d, d),
        eps,
        state[1] - penalty,
        work.times,
        work.kinds,
        work.sample,
        work.order[:n],
        node.by_side,
    )
    if step == 0.0:
        return
    for a in range(w.size):
        work.w[a] = w[a] + step * d[a]
    _mark_groups(node.group, work.w, work.used)
    excess = _count_marked(node.group, work.w, work.used) - budget
    b = state[0] + step * db
    value = _objective(node, work.w, b, eps, work.h) + (alpha * excess if excess > 0 else 0.0)
    if value < state[1] - GAIN * abs(state[1]):
        copy(work.w, w)
        copy(work.h, h)
        state[0], state[1] = b, value


@inner(allocates=False)
def _mark_groups(group: I8, w: F8, used: I8) -> int:
    """Mark the groups with a weight in ``used``, and no others; return the number of all groups."""
    count = 0
    for a in range(w.size):
        used[group[a]] = 0
        count = max(count, group[a] + 1)
    for a in range(w.size):
        if w[a] != 0.0:
            used[group[a]] = 1
    return count


@inner(allocates=False)
def _count_marked(group: I8, w: F8, used: I8) -> int:
    """The number of groups that are marked in ``used`` or have a weight; the latter are marked as well."""
    count = 0
    for a in range(w.size):
        if w[a] != 0.0:
            used[group[a]] = 1
    for a in range(w.size):
        if used[group[a]] == 1:
            used[group[a]] = 2
            count += 1
    return count
