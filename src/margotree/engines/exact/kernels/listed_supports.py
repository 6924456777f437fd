"""The best support of one tree node: lower bounds for all of them, made true only where that decides something.

A node's value on a support never falls when samples are added, so bounds found higher up in the search stay valid.
Only the support with the least bound is solved again, until the least one is up to date or too costly.
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


#: How far behind the best support, as a share of the way to the target, others are solved.
AHEAD = 0.3


@struct
class Table(NamedTuple):
    """All supports a tree node may use, and the last hyperplane found on each (by one thread)."""

    cols: I8  # (supports, widest), filled up with -1
    size: I8
    penalty: F8  # what the features above the budget cost
    theta: F8  # (supports, widest + 1): weights, then the offset
    width: F8  # of the rounding at which it was found; 0: there is none yet


@struct
class Samples(NamedTuple):
    """The problem's samples: features one per row, and codes of their values for features with few."""

    X: F8
    y: F8
    cost: F8  # (tree nodes, samples)
    code: NDArray[np.int64]
    levels: I8
    reach: float  # how large |b| can be at any node of a tree of interest


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

    Returns its position and how many supports were solved; negative if it is not exact, because ``most`` of them were
    solved, ``work[1, 1]`` asked to stop, or rounding got in the way.
    """
    if free_of_charge(samples, index, side):
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
        # A support behind the best so far need not be known exactly, only to be well behind it.
        goal = min(target, best + AHEAD * (target - best))
        value, sure = on_support(samples, small, groups, table, ids[p], eps, goal, tol, work[1, 1:2])
        lb[p] = max(lb[p], value)
        fresh[p] = 1 if sure else 2
        if sure and value < goal:
            best = min(best, value)
        done += 1


@inner()
def gather(samples: Samples, t: int, index: I8, side: F8) -> NodeSamples:
    """The members of tree node ``t``, ready to be solved."""
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
    return NodeSamples(X, y, cost, side, np.empty(k), np.empty(k), np.empty(k), np.empty(k), samples.reach)


@inner(allocates=False)
def least(lb: F8) -> int:
    p = 0
    for q in range(lb.size):
        if lb[q] < lb[p]:
            p = q
    return p


@inner(allocates=False)
def free_of_charge(samples: Samples, index: I8, side: F8) -> bool:
    """Whether all members have one label and none must go against it: such a node costs nothing."""
    for i in range(index.size):
        if samples.y[index[i]] != samples.y[index[0]] or side[i] == -samples.y[index[0]]:
            return False
    return True


@inner(allocates=False)
def settle_one_class(samples: Samples, table: Table, s: int, index: I8) -> None:
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
    """Lower bound of the node on support ``s``, its price included, and whether it is tight."""
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
    """Members' codes, one feature per row as far as they were asked for, to tell who agrees on a support."""

    index: I8
    label_side: I4  # what label and side make of a member
    code: I4
    is_filled: NDArray[np.int8]  # which rows of codes are filled in
    cell: I4  # scratch, and the next as well
    where: I4
    group: I4  # the number of everyone's kind on the support looked at last, and the first of each kind
    first: I8
    last: I8  # that support, and how many kinds there are


@inner()
def new_groups(samples: Samples, index: I8, side: F8) -> SampleGroups:
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
    """How many kinds of members there can be that differ on ``cols``, in label or in side."""
    groups = 6
    for r in range(cols.size):
        groups = min(groups * samples.levels[cols[r]], 1 << 40)
    return groups


@inner(allocates=False)
def has_few_groups(samples: Samples, cols: I8, index: int) -> bool:
    """Whether so many members are much fewer kinds."""
    return 2 * count_groups(samples, cols) <= index


@inner()
def groups_of(samples: Samples, groups: SampleGroups, s: int, cols: I8) -> tuple[I4, I8]:
    """Which members agree on the features ``cols`` of support ``s``, label and side: the number of everyone's kind, and
    the first of each kind.  There are fewer kinds than members (`has_few_groups`)."""
    if groups.last[0] != s:
        groups.last[0], groups.last[1] = s, _find_groups(samples, groups, cols)
    return groups.group, groups.first[: groups.last[1]]


@inner()
def _find_groups(samples: Samples, groups: SampleGroups, cols: I8) -> int:
    """Fill in the kinds; returns how many there are."""
    count, cell, where, group, first = groups.label_side.size, groups.cell, groups.where, groups.group, groups.first
    for i in range(count):
        cell[i] = groups.label_side[i]
    for r in range(cols.size):
        j = cols[r]
        code, levels = groups.code[j], np.int32(samples.levels[j])
        if not groups.is_filled[j]:
            groups.is_filled[j] = 1
            for i in range(count):
                code[i] = samples.code[j, groups.index[i]]
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
    """The members with those of a kind made one."""
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
    # A hair less, so that rounding of the sums never makes more of a cost.
    for q in range(k):
        cost[q] *= 1.0 - ROUNDOFF * group.size
    return NodeSamples(X, y, cost, side, np.empty(k), np.empty(k), np.empty(k), np.empty(k), samples.reach)
