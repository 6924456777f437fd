"""From a rough tree to a clean one: thresholds set apart from the samples, splits that do not pay removed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.baselines.oct.merged_samples import IndexArray
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.separation import separate
from margotree.engines import RunControl
from margotree.problem import Splits, tie, topology
from margotree.problem.blocks import heights
from margotree.problem.problem import FloatArray

#: For points of a node: which of them go right.  None where the node does not split.
Side = Callable[[int, IndexArray], NDArray[np.bool_] | None]

#: A split must save more than this, relative to the error without any split, or it is removed.
_PAYS = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class Branch:
    """A split with what lies below it; None stands for a leaf.  ``cost`` is the value of the whole subtree."""

    w: FloatArray
    b: float
    left: Branch | None
    right: Branch | None
    cost: float


class NotSeparable(Exception):
    """No allowed split parts the points of a node as asked."""


def settle(problem: OctProblem, splits: Splits, control: RunControl | None = None) -> Splits | None:
    """The tree that routes as ``splits`` does, in margin units and without useless splits; None if none is allowed.

    Takes hyperplanes of any scale, so trees from anywhere can be brought into the problem.  None, too, where splits by
    several features are not set apart from the samples before ``control`` runs out.
    """

    def side(t: int, rows: IndexArray) -> NDArray[np.bool_] | None:
        w, b = splits.w[t], float(splits.b[t])
        if not np.any(w):
            return np.full(len(rows), b >= 0)
        # A scale-free tie: the tolerance of the value function speaks of margin units.
        return heights(problem.points.X, rows, w, b) >= -min(tie(b), 1e-12 * (abs(b) + float(np.abs(w).sum())))

    return build(problem, side, splits.w != 0, control)


def realise(
    problem: OctProblem, leaf: IndexArray, support: NDArray[np.bool_], control: RunControl | None = None
) -> Splits | None:
    """The tree that sends every point to the leaf it is given, with the features each node may use; None if none is
    allowed."""

    def side(t: int, rows: IndexArray) -> NDArray[np.bool_] | None:
        return np.isin(leaf[rows], leaves_below(topology.right(t), problem.depth))

    return build(problem, side, support, control)


def build(
    problem: OctProblem, side: Side, support: NDArray[np.bool_], control: RunControl | None = None
) -> Splits | None:
    """The tree whose nodes part the points as ``side`` says, by the features ``support`` allows them."""
    try:
        root = _grow(_Shape(problem, side, support, control or RunControl()), 0, np.arange(len(problem.points.X)))
    except NotSeparable:
        return None
    splits = lay_out(problem, root)
    return splits if problem.evaluate(splits).feasible else None


def lay_out(problem: OctProblem, root: Branch | None) -> Splits:
    """The numbered nodes of a nested tree; where it ends early, nodes do not split and send everybody right."""
    w, b = np.zeros((problem.n_nodes, problem.n_features)), np.ones(problem.n_nodes)
    waiting = [(0, root)]
    while waiting:
        t, branch = waiting.pop()
        if branch is not None:
            w[t], b[t] = branch.w, branch.b
            waiting += [(topology.left(t), branch.left), (topology.right(t), branch.right)]
    return Splits(w=w, b=b)


def join(
    problem: OctProblem, split: tuple[FloatArray, float], rows: IndexArray, left: Branch | None, right: Branch | None
) -> Branch | None:
    """The split with its subtrees, or a leaf in its place if that is worth no less."""
    w, b = split
    goes_right = heights(problem.points.X, rows, w, b) > 0
    cost = problem.price(w) + _cost(problem, left, rows[~goes_right]) + _cost(problem, right, rows[goes_right])
    if leaf_cost(problem, rows) <= cost + _PAYS:
        return None
    return Branch(w=w, b=b, left=left, right=right, cost=cost)


def leaves_below(v: int, depth: int) -> range:
    """The leaves under a node (itself if it is one)."""
    down = depth - topology.level(v)
    return range((v + 1) * 2**down - 1, (v + 2) * 2**down - 1)


def leaf_cost(problem: OctProblem, rows: IndexArray) -> float:
    """The error of these points in one leaf, as a share of the baseline."""
    per_class = problem.points.loss[rows].sum(axis=0)
    return float(per_class.sum() - per_class.max(initial=0.0)) / problem.baseline


def _cost(problem: OctProblem, branch: Branch | None, rows: IndexArray) -> float:
    return leaf_cost(problem, rows) if branch is None else branch.cost


class _Shape(NamedTuple):
    """What a tree is grown by."""

    problem: OctProblem
    side: Side
    support: NDArray[np.bool_]
    control: RunControl


def _grow(shape: _Shape, t: int, rows: IndexArray) -> Branch | None:
    problem = shape.problem
    if t >= problem.n_nodes or not len(rows):
        return None
    goes_right = shape.side(t, rows)
    if goes_right is None:
        return None
    if goes_right.all() or not goes_right.any():
        # One side gets nobody: the node is not needed, the other side takes its place.
        return _grow(shape, topology.right(t) if goes_right.all() else topology.left(t), rows)
    right, left = rows[goes_right], rows[~goes_right]
    split = separate(problem, left, right, np.flatnonzero(shape.support[t]), shape.control)
    if split is None:
        raise NotSeparable
    below_left, below_right = _grow(shape, topology.left(t), left), _grow(shape, topology.right(t), right)
    if np.count_nonzero(split[0]) == 1 and np.sum(split[0]) < 0:
        # The models have right mean the larger values of a feature.
        return join(problem, (-split[0], -split[1]), rows, below_right, below_left)
    return join(problem, split, rows, below_left, below_right)
