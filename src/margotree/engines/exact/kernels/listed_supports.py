"""The best support of one tree node from a list: lower bounds for all supports, raised only where they decide
something.

The value of a node on a support never falls when samples are added, so bounds from parent search nodes stay valid. Only
the support with the least bound is solved again, until the least bound is exact or reaches the target.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.kernels.newton import svm_on_features
from margotree.engines.node.kernels.safe_bounds import ROUNDOFF
from margotree.engines.node.kernels.smoothed_loss import NodeSamples
from margotree.engines.numba_backend import inner, kernel, struct

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
I4 = NDArray[np.int32]


#: Other supports are solved up to this share of the way from the best support's value to the target.
AHEAD = 0.3


@struct
class Table(NamedTuple):
    """All supports that a tree node may use, and the last hyperplane found on each (by one thread)."""

    cols: I8  # (supports, widest), filled up with -1
    size: I8
    penalty: F8  # the penalty of the features beyond the budget
    theta: F8  # (supports, widest + 1): weights, then the offset
    width: F8  # of the smoothing with which it was found; 0: no hyperplane yet


@struct
class Samples(NamedTuple):
    """The problem's samples: features as rows, and codes of the values of features that take few values."""

    X: F8
    y: F8
    cost: F8  # (tree nodes, samples)
    code: NDArray[np.int64]
    levels: I8
    reach: float  # the largest possible |b| at any node of a tree better than the incumbent
    word: NDArray[np.int8]  # 1 for the 0/1 features of groups; the first one of each group has their common codes


@kernel()
def search(
    samples: Samples,
    t: int,
    index: I8,
    side: F8,
    eps: float,
    table: Table,
    ids: I8,
    lb: F8,
    target: float,
    tol: float,
    most: int,
    work: F8,
) -> tuple[int, int]:
    """Raise the least of the bounds ``lb`` of the supports ``ids`` until it is exact to ``tol`` or at least ``target``.

    Parameters
    ----------
    t, index, side
        The tree node, the samples at it, and the side that each must take (0: undecided).
    most
        The largest number of supports to solve.
    work
        ``work[1, 1]`` is a flag that stops the search.

    Returns
    -------
    position, solved
        The position of the least bound, and the number of supports solved. The number is negative if the bound is not
        exact: after ``most`` supports, by the flag, or because of rounding.
    """
    if costs_nothing(samples, index, side):
        p = least(lb)
        settle_one_class(samples, table, ids[p], index)
        return p, 0
    small = gather(samples, t, index, side)
    groups = new_groups(samples, index, side)
    fresh = np.zeros(ids.size, np.int8)
    best = target
    done = 0
    while True:
        p = least(lb)
        if lb[p] >= target or fresh[p] == 1:
            return p, done
        if fresh[p] == 2:
            return p, -done - 1
        if done >= most or work[1, 1] != 0.0:
            return p, -done - 1
        # The value of a support above the best one is not needed exactly, only a bound well above the best value.
        goal = min(target, best + AHEAD * (target - best))
        value, sure = on_support(samples, small, groups, table, ids[p], eps, goal, tol, work[1, 1:2])
        lb[p] = max(lb[p], value)
        fresh[p] = 1 if sure else 2
        if sure and value < goal:
            best = min(best, value)
        done += 1


@inner()
def gather(samples: Samples, t: int, index: I8, side: F8) -> NodeSamples:
    """The samples ``index`` at tree node ``t``, as the input of Newton's method."""
    k = index.size
    X = np.empty((samples.X.shape[0], k))
    y = np.empty(k)
    cost = np.empty(k)
    for j in range(X.shape[0]):
        for i in range(k):
            X[j, i] = samples.X[j, index[i]]
    for i in range(k):
        y[i] = samples.y[index[i]]
        cost[i] = samples.cost[t, index[i]]
    return NodeSamples(X, y, cost, np.ones(k), side, np.empty(k), np.empty(k), np.empty(k), np.empty(k), samples.reach)


@inner(allocates=False)
def least(lb: F8) -> int:
    """The position of the least bound."""
    p = 0
    for q in range(lb.size):
        if lb[q] < lb[p]:
            p = q
    return p


@inner(allocates=False)
def costs_nothing(samples: Samples, index: I8, side: F8) -> bool:
    """Whether all samples have one label and none must take the other side: such a node has no cost."""
    for i in range(index.size):
        if samples.y[index[i]] != samples.y[index[0]] or side[i] == -samples.y[index[0]]:
            return False
    return True


@inner(allocates=False)
def settle_one_class(samples: Samples, table: Table, s: int, index: I8) -> None:
    """Set the hyperplane of support ``s`` to the constant that is the samples' label."""
    d = table.size[s]
    for r in range(d):
        table.theta[s, r] = 0.0
    table.theta[s, d] = samples.y[index[0]] if index.size > 0 else 1.0
    table.width[s] = 1.0


@inner()
def on_support(
    samples: Samples,
    small: NodeSamples,
    groups: SampleGroups,
    table: Table,
    s: int,
    eps: float,
    target: float,
    tol: float,
    flag: F8,
) -> tuple[float, bool]:
    """A lower bound of the node on support ``s``, its feature penalty included, and whether it is tight."""
    d = table.size[s]
    cols = table.cols[s, :d]
    theta = table.theta[s, : d + 1]
    lam = np.zeros(d)
    warm = table.width[s] > 0.0
    goal = target - table.penalty[s]
    if has_few_groups(samples, cols, small.y.size):
        merged = merge_groups(samples, small, groups, s, cols)
        value, sure, table.width[s] = svm_on_features(merged, cols, lam, theta, eps, goal, tol, warm, flag)
    else:
        value, sure, table.width[s] = svm_on_features(small, cols, lam, theta, eps, goal, tol, warm, flag)
    return value + table.penalty[s], sure


class SampleGroups(NamedTuple):
    """Codes of the samples at a node, one feature per row, and the groups of samples that are equal on a support.

    Rows of codes are filled in when a support uses the feature.
    """

    sample_ids: I8  # numbers of the samples
    label_side: I4  # a code for label and side
    code: I4
    is_filled: NDArray[np.int8]  # which rows of ``code`` are filled in
    cell: I4  # scratch, and ``where`` as well
    where: I4
    group: I4  # each sample's group on the support of ``last``
    first: I8  # the first sample of each group
    last: I8  # the support of the last call, and its number of groups


@inner()
def new_groups(samples: Samples, index: I8, side: F8) -> SampleGroups:
    """Allocate the groups of the samples ``index`` with these sides."""
    n, k = samples.X.shape[0], index.size
    label_side = np.empty(k, np.int32)
    for i in range(k):
        label_side[i] = (3 if samples.y[index[i]] > 0 else 0) + int(side[i]) + 1
    cell, where, group = np.empty(k, np.int32), np.empty(k, np.int32), np.empty(k, np.int32)
    last = np.full(2, -1, np.int64)
    return SampleGroups(
        index,
        label_side,
        np.empty((n, k), np.int32),
        np.zeros(n, np.int8),
        cell,
        where,
        group,
        np.empty(k, np.int64),
        last,
    )


@inner(allocates=False)
def count_groups(samples: Samples, cols: I8) -> int:
    """The largest number of groups of samples that differ on ``cols``, in label or in side."""
    groups = 6
    for r in range(cols.size):
        groups = min(groups * samples.levels[cols[r]], 1 << 40)
    return groups


@inner(allocates=False)
def has_few_groups(samples: Samples, cols: I8, index: int) -> bool:
    """Whether the groups are at most half as many as the samples."""
    return 2 * count_groups(samples, cols) <= index


@inner()
def groups_of(samples: Samples, groups: SampleGroups, s: int, cols: I8) -> tuple[I4, I8]:
    """The group of every sample and the first sample of each group; samples of a group are equal in the features
    ``cols`` of support ``s``, label and side.

    There must be fewer groups than samples (`has_few_groups`).
    """
    if groups.last[0] != s:
        groups.last[0], groups.last[1] = s, _find_groups(samples, groups, cols)
    return groups.group, groups.first[: groups.last[1]]


@inner()
def _find_groups(samples: Samples, groups: SampleGroups, cols: I8) -> int:
    """Compute the groups; return their number."""
    count, cell, where, group, first = groups.label_side.size, groups.cell, groups.where, groups.group, groups.first
    for i in range(count):
        cell[i] = groups.label_side[i]
    for r in range(cols.size):
        j = cols[r]
        code, levels = groups.code[j], np.int32(samples.levels[j])
        if not groups.is_filled[j]:
            groups.is_filled[j] = 1
            for i in range(count):
                code[i] = samples.code[j, groups.sample_ids[i]]
        for i in range(count):
            cell[i] = cell[i] * levels + code[i]
    for q in range(count_groups(samples, cols)):
        where[q] = -1
    k = 0
    for i in range(count):
        if where[cell[i]] < 0:
            where[cell[i]], first[k] = k, i
            k += 1
        group[i] = where[cell[i]]
    return k


@inner()
def merge_groups(samples: Samples, small: NodeSamples, groups: SampleGroups, s: int, cols: I8) -> NodeSamples:
    """The samples with each group merged into one sample."""
    group, first = groups_of(samples, groups, s, cols)
    k = first.size
    y, cost, side = np.empty(k), np.empty(k), np.empty(k)
    for q in range(k):
        y[q], cost[q], side[q] = small.y[first[q]], 0.0, small.side[first[q]]
    for i in range(group.size):
        cost[group[i]] += small.cost[i]
    X = np.empty((samples.X.shape[0], k))
    for r in range(cols.size):
        for q in range(k):
            X[cols[r], q] = small.X[cols[r], first[q]]
    # Rounded down, so that no sum of costs is above the true one.
    for q in range(k):
        cost[q] *= 1.0 - ROUNDOFF * group.size
    return NodeSamples(X, y, cost, np.ones(k), side, np.empty(k), np.empty(k), np.empty(k), np.empty(k), samples.reach)
