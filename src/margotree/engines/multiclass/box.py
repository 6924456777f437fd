"""An open part of the search for the best tree of several classes: what is decided in it, and its lower bound."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from margotree.engines.multiclass.nodes import IndexArray, NodeSolver
from margotree.engines.run_control import RunControl
from margotree.problem import Problem, Splits, topology
from margotree.problem.problem import FloatArray
from margotree.problem.routing import goes_right


@dataclass(frozen=True, kw_only=True, eq=False)
class Box:
    """Decisions and bounds.

    ``at[i]`` is the node that sample ``i`` is known to reach, ``sides[t, k]`` is 0 while it is open which side class
    ``k`` wants at upper node ``t``.  ``pairs[k]`` are lower bounds on last-level node ``k`` for each pair of labels,
    ``node[t]`` those on the nodes, and ``W``, ``B`` the hyperplanes they come from.
    """

    at: IndexArray
    sides: IndexArray
    pairs: FloatArray
    node: FloatArray
    W: FloatArray
    B: FloatArray

    @property
    def bound(self) -> float:
        return float(np.sum(self.node))

    @property
    def splits(self) -> Splits:
        return Splits(w=self.W, b=self.B)


class Boxes:
    """Makes boxes and bounds them: the sum of what every node costs at least for the samples known to reach it."""

    def __init__(self, problem: Problem, control: RunControl | None = None) -> None:
        self.problem, self.solver = problem, NodeSolver(problem=problem, control=control)
        self.pairs = np.array(list(itertools.combinations(range(problem.task.n_classes), 2)))
        # Equal points go together.
        self.group: NDArray[np.int64] = np.unique(problem.X, axis=0, return_inverse=True)[1].ravel()
        self._under = np.zeros((problem.n_nodes, problem.n_nodes), dtype=bool)
        for t in range(problem.n_nodes):
            self._under[t, topology.subtree(t, problem.depth)] = True

    def root(self) -> Box:
        p = self.problem
        sides = np.zeros((p.n_upper, p.task.n_classes), dtype=np.int64)
        sides[:, 0] = -1
        if p.task.n_classes == 2:
            sides[:, 1] = 1
        box = Box(
            at=np.zeros(p.n_samples, dtype=np.int64),
            sides=sides,
            pairs=np.zeros((p.n_last, len(self.pairs))),
            node=np.zeros(p.n_nodes),
            W=np.zeros((p.n_nodes, p.n_features)),
            B=np.ones(p.n_nodes),
        )
        found = self._bounded(box, range(p.n_nodes), math.inf)
        assert found is not None
        return found

    def rows(self, box: Box, t: int) -> IndexArray:
        """The samples known to reach a node."""
        return np.flatnonzero(self._under[t][box.at])

    def route(self, box: Box) -> IndexArray:
        """The last-level node that each sample reaches by what is decided and, from there on, by the hyperplanes."""
        p, at = self.problem, box.at.copy()
        for t in range(p.n_upper):
            here = np.flatnonzero(at == t)
            right = goes_right(p.X[here] @ box.W[t] + box.B[t], float(box.B[t]), p.eps)
            at[here] = np.where(right, topology.right(t), topology.left(t))
        return at

    def labels(self, box: Box) -> IndexArray:
        """The pairs of labels that the bound of the box rests on."""
        return self.pairs[np.argmin(box.pairs, axis=1)]

    # -- decisions ----------------------------------------------------------------------------------------------

    def with_side(self, box: Box, t: int, k: int, side: int, cutoff: float) -> Box | None:
        """Class ``k`` wants this side of node ``t``; None if that cannot be or costs more than ``cutoff``."""
        sides = box.sides.copy()
        sides[t, k] = side
        open_ = np.flatnonzero(sides[t] == 0)
        if not np.any(sides[t] > 0):
            if not len(open_):
                return None
            if len(open_) == 1:
                sides[t, open_[0]] = 1
        return self._bounded(replace(box, sides=sides), [t], cutoff)

    def with_sample(self, box: Box, i: int, side: int, cutoff: float) -> Box | None:
        """Sample ``i``, and all that lie on it, goes left (-1) or right (+1) at the node it is known to reach."""
        t = int(box.at[i])
        child = topology.right(t) if side > 0 else topology.left(t)
        at = box.at.copy()
        moved = np.flatnonzero((self.group == self.group[i]) & (at == t))
        at[moved] = child
        placed = replace(box, at=at)
        return self._bounded(placed, [k for k in (t, child) if not self._stays(placed, k, moved)], cutoff)

    def _stays(self, box: Box, t: int, moved: IndexArray) -> bool:
        """Whether the hyperplane of a node serves samples that were sent on from it, or to it, for nothing.

        Then it is the best still, and so is the pair of labels it was made for: the others only grow dearer.
        """
        p = self.problem
        h, code = p.X[moved] @ box.W[t] + box.B[t], p.y[moved]
        if box.at[moved[0]] != t:
            went_right = bool(self._under[topology.right(t)][box.at[moved[0]]])
            return bool(np.all(h >= 0.0 if went_right else h <= -p.eps))
        if t < p.n_upper:
            wants = box.sides[t][code]
            return bool(np.all((wants == 0) | (wants * h >= 1.0)))
        a, b = self.pairs[int(np.argmin(box.pairs[t - p.n_upper]))]
        return bool(np.all(np.where(code == b, h >= 1.0, (code == a) & (h <= -1.0))))

    # -- bounds -------------------------------------------------------------------------------------------------

    def _bounded(self, box: Box, changed: range | list[int], cutoff: float) -> Box | None:
        node, pairs, W, B = box.node.copy(), box.pairs.copy(), box.W.copy(), box.B.copy()
        if np.sum(node) >= cutoff:
            return None
        for t in changed:
            room = cutoff - float(np.sum(node)) + float(node[t])
            if t < self.problem.n_upper:
                found = self._upper(box, t, room)
            else:
                found = self._last(box, t, pairs[t - self.problem.n_upper], room)
            if found is None:
                return None
            bound, W[t], B[t] = found
            node[t] = max(node[t], bound)
            if np.sum(node) >= cutoff:
                return None
        return replace(box, node=node, pairs=pairs, W=W, B=B)

    def _upper(self, box: Box, t: int, room: float) -> tuple[float, FloatArray, float] | None:
        rows = self.rows(box, t)
        at = box.at[rows]
        placed = np.where(at == t, 0, np.where(self._under[topology.right(t)][at], 1, -1))
        found = self.solver.upper(t, rows, box.sides[t], placed, cutoff=room)
        # A hyperplane not found to the end still stands for a bound; one that cannot be has an infinite one.
        return None if found.bound >= room else (found.bound, found.w, found.b)

    def _last(self, box: Box, t: int, bounds: FloatArray, room: float) -> tuple[float, FloatArray, float] | None:
        """The least over the pairs of labels: the lowest is solved again until it stays the lowest."""
        p, rows = self.problem, self.rows(box, t)
        mass = np.bincount(p.y[rows], weights=p.weight[rows], minlength=p.task.n_classes)
        third = np.sum(mass) - mass[self.pairs[:, 0]] - mass[self.pairs[:, 1]]
        # A hair less than twice, for rounding.
        np.maximum(bounds, (2.0 - 1e-12) * p.C[t] * third, out=bounds)
        solved: dict[int, tuple[FloatArray, float]] = {}
        while True:
            k = int(np.argmin(bounds))
            if bounds[k] >= room:
                return None
            if k in solved:
                return float(bounds[k]), *solved[k]
            found = self.solver.last(t, rows, *map(int, self.pairs[k]), cutoff=room)
            bounds[k] = max(bounds[k], found.bound)
            solved[k] = found.w, found.b
