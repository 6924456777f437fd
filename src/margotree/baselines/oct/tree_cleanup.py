"""Build a feasible tree of OCT-1 or OCT-H that has a given routing.

Every split is computed again, so that its hyperplane has the required margin to the points on both sides.  Splits that
reduce the error by less than they cost are removed.  :func:`clean_tree` takes the routing from the hyperplanes of
another tree, :func:`tree_from_leaves` from the leaf of every point; both use :func:`build_tree`.

A point is a group of equal samples (:mod:`margotree.baselines.oct.merged_samples`).
"""

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
from margotree.problem.blocks import decision_values
from margotree.problem.problem import FloatArray

#: A function of a node and the points at it: a mask of the points that go right, or None if the node does not split.
SideRule = Callable[[int, IndexArray], NDArray[np.bool_] | None]

#: A split is removed if it reduces the objective by no more than this (the tree without splits has objective 1).
_MIN_SAVING = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class Branch:
    """A split ``w.x + b`` with its subtrees (None is a leaf); ``cost`` is the part of the objective of all of them."""

    w: FloatArray
    b: float
    left: Branch | None
    right: Branch | None
    cost: float


class NotSeparable(Exception):
    """There is no feasible split between the points of a node that go left and those that go right."""


def clean_tree(problem: OctProblem, splits: Splits, control: RunControl | None = None) -> Splits | None:
    """The feasible tree with the routing of ``splits``, scaled to a margin of 1 and without splits that are not
    worthwhile; None if there is none.

    The given hyperplanes may have any scale.  The result is also None if a limit of ``control`` is reached before the
    new splits by several features are computed.
    """

    def side(t: int, rows: IndexArray) -> NDArray[np.bool_] | None:
        w, b = splits.w[t], float(splits.b[t])
        if not np.any(w):
            return np.full(len(rows), b >= 0)
        # The tolerance of the value function is in margin units; this one is relative to the scale of the split.
        return decision_values(problem.points.X, rows, w, b) >= -min(tie(b), 1e-12 * (abs(b) + float(np.abs(w).sum())))

    return build_tree(problem, side, splits.w != 0, control)


def tree_from_leaves(
    problem: OctProblem, leaf: IndexArray, support: NDArray[np.bool_], control: RunControl | None = None
) -> Splits | None:
    """The feasible tree that sends point ``u`` to ``leaf[u]``; None if there is none.

    ``support`` is a mask of shape (nodes, features): the features that each split may use.
    """

    def side(t: int, rows: IndexArray) -> NDArray[np.bool_] | None:
        return np.isin(leaf[rows], leaves_below(topology.right(t), problem.depth))

    return build_tree(problem, side, support, control)


def build_tree(
    problem: OctProblem, side: SideRule, support: NDArray[np.bool_], control: RunControl | None = None
) -> Splits | None:
    """The feasible tree whose node ``t`` sends the points right that ``side`` returns; None if there is none.

    ``support`` is a mask of shape (nodes, features): the features that each split may use.
    """
    try:
        root = _grow(_GrowthRules(problem, side, support, control or RunControl()), 0, np.arange(len(problem.points.X)))
    except NotSeparable:
        return None
    splits = numbered_splits(problem, root)
    return splits if problem.evaluate(splits).feasible else None


def numbered_splits(problem: OctProblem, root: Branch | None) -> Splits:
    """The splits of a nested tree in the order of the nodes; nodes at and below its leaves send all samples right."""
    w, b = np.zeros((problem.n_nodes, problem.n_features)), np.ones(problem.n_nodes)
    queue = [(0, root)]
    while queue:
        t, branch = queue.pop()
        if branch is not None:
            w[t], b[t] = branch.w, branch.b
            queue += [(topology.left(t), branch.left), (topology.right(t), branch.right)]
    return Splits(w=w, b=b)


def branch_or_leaf(
    problem: OctProblem, split: tuple[FloatArray, float], rows: IndexArray, left: Branch | None, right: Branch | None
) -> Branch | None:
    """The branch of ``split`` (weights, offset) and its subtrees at the points ``rows``; None if a leaf is no worse."""
    w, b = split
    goes_right = decision_values(problem.points.X, rows, w, b) > 0
    cost = (
        problem.split_cost(w)
        + _branch_cost(problem, left, rows[~goes_right])
        + _branch_cost(problem, right, rows[goes_right])
    )
    if leaf_cost(problem, rows) <= cost + _MIN_SAVING:
        return None
    return Branch(w=w, b=b, left=left, right=right, cost=cost)


def leaves_below(v: int, depth: int) -> range:
    """The leaves below a node (the node itself if it is a leaf)."""
    down = depth - topology.level(v)
    return range((v + 1) * 2**down - 1, (v + 2) * 2**down - 1)


def leaf_cost(problem: OctProblem, rows: IndexArray) -> float:
    """The error of the points ``rows`` if they are in one leaf, divided by the error of the tree without splits."""
    per_class = problem.points.class_weight[rows].sum(axis=0)
    return float(per_class.sum() - per_class.max(initial=0.0)) / problem.baseline_error


def _branch_cost(problem: OctProblem, branch: Branch | None, rows: IndexArray) -> float:
    """The part of the objective of a subtree with the points ``rows``."""
    return leaf_cost(problem, rows) if branch is None else branch.cost


class _GrowthRules(NamedTuple):
    """The arguments of :func:`_grow` that are the same at all nodes."""

    problem: OctProblem
    side: SideRule
    support: NDArray[np.bool_]
    control: RunControl


def _grow(rules: _GrowthRules, t: int, rows: IndexArray) -> Branch | None:
    """The subtree at node ``t`` for the points ``rows``; None is a leaf.  Raises NotSeparable."""
    problem = rules.problem
    if t >= problem.n_nodes or not len(rows):
        return None
    goes_right = rules.side(t, rows)
    if goes_right is None:
        return None
    if goes_right.all() or not goes_right.any():
        # One side is empty: the child on the other side replaces the node.
        return _grow(rules, topology.right(t) if goes_right.all() else topology.left(t), rows)
    right, left = rows[goes_right], rows[~goes_right]
    split = separate(problem, left, right, np.flatnonzero(rules.support[t]), rules.control)
    if split is None:
        raise NotSeparable
    below_left, below_right = _grow(rules, topology.left(t), left), _grow(rules, topology.right(t), right)
    if np.count_nonzero(split[0]) == 1 and np.sum(split[0]) < 0:
        # In the MILP models, the larger values of a feature go right.
        return branch_or_leaf(problem, (-split[0], -split[1]), rows, below_right, below_left)
    return branch_or_leaf(problem, split, rows, below_left, below_right)
