"""One descent: initialise a tree, then train one node after the other, from the last level to the root."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.initial_splits import Strategy, draw
from margotree.engines.local_search.kernels.reduced_problem import GAIN
from margotree.engines.local_search.node_samples import Node, Plane, Rows
from margotree.engines.local_search.support_search import best_svm
from margotree.engines.local_search.training_data import Terms, TrainedTree
from margotree.engines.local_search.upper_nodes import propose
from margotree.problem import topology
from margotree.problem.problem import FloatArray

#: A descent ends when a sweep over the nodes gains less than this share.
SMALL_GAIN = 1e-4
#: Factors of the weights that are tried to move samples out of a band.
LENGTHS = np.array([1.0, 1.5, 2.0, 5.0, 10.0, 100.0])

Strategies = NDArray[np.int64]


class BaseDescent(ABC):
    """A tree that is trained node by node: its hyperplanes, the samples and the cost of each node.

    Subclasses define what happens at a node, for two or for several classes.

    Attributes
    ----------
    W, B : arrays
        The weights and offsets of the nodes.
    own : array
        The cost of each node itself; their sum is the objective.
    rows : list of arrays
        The samples at each node.
    stale : array of bool
        The nodes that have to be visited: their samples or subtrees have changed.
    directions_failed : array of bool
        The upper nodes where SVM directions gave no improvement at the last visit; only one is tried next time.
    swept : bool
        Whether one sweep was completed.
    """

    #: The largest number of sweeps; a descent is abandoned when this number of sweeps like its last would not reach the
    #: best.
    max_sweeps, sweeps_ahead = 60, 3.0

    def __init__(self, terms: Terms, W: FloatArray, B: FloatArray, seed: int, flag: FloatArray) -> None:
        self.terms, self.flag = terms, flag
        self.W, self.B = np.array(W), np.array(B)
        self.depth = terms.depth
        self.own = np.zeros(terms.n_nodes)
        self.rows: list[Rows] = [np.arange(0)] * terms.n_nodes
        self.rows[0] = np.arange(terms.n_samples)
        self.stale = np.ones(terms.n_nodes, dtype=bool)
        self.directions_failed = np.zeros(terms.n_nodes, dtype=bool)
        self.choices = terms.initial_choices()
        self.swept = False
        self.rng = np.random.default_rng(seed)

    def run(
        self, strategies: Strategies, tol: float = SMALL_GAIN, best: float = math.inf, abandon_above: float = math.inf
    ) -> TrainedTree:
        """Initialise the nodes, then sweep until the gain is small; returns the tree.

        ``strategies`` are the initialisation strategies of the nodes. The descent ends when a sweep gains less than the
        share ``tol``, or so little that a few more such sweeps would not reach ``best``, the objective of the best tree
        so far; or when the objective after the first sweep is larger than ``best`` by more than the share
        ``abandon_above``.
        """
        value = self.cost(strategies)
        for sweep in range(self.max_sweeps):
            before = value
            self.sweep()
            self.swept |= not self.flag[0]
            value = float(np.sum(self.own))
            gain = before - value
            if self.flag[0] or gain <= tol * before or (value > best and value - self.sweeps_ahead * gain > best):
                break
            if sweep == 0 and value - best > abandon_above * best:
                break
        return TrainedTree(W=self.W, B=self.B, value=value)

    def cost(self, strategies: Strategies | None = None) -> float:
        """Route all samples through the tree, with ``strategies`` as in :meth:`route`; return the objective."""
        self.route(0, strategies)
        return float(np.sum(self.own))

    def sweep(self) -> None:
        """Visit the stale nodes from the last level to the root; if a visit improves a node, its ancestors become
        stale."""
        for t in reversed(range(self.terms.n_nodes)):
            if self.flag[0]:
                return
            if not self.stale[t]:
                continue
            self.stale[t] = False
            if len(self.rows[t]) and (self.visit_upper(t) if self.is_upper(t) else self.visit_last(t)):
                above = topology.parent(t)
                while above >= 0:
                    self.stale[above] = True
                    above = topology.parent(above)

    def is_upper(self, t: int) -> bool:
        """Whether the node is above the last level."""
        return t < self.terms.n_nodes // 2

    def plane(self, t: int) -> Plane:
        """A copy of the node's hyperplane."""
        return self.W[t].copy(), float(self.B[t])

    def route_to_children(self, t: int, node: Node) -> None:
        """Route the samples of an upper node to its children; if some lie in the band, move the hyperplane."""
        goes_right = node.right_of(node.heights(self.plane(t)), self.plane(t))
        if goes_right is None:
            self.W[t], self.B[t] = self._out_of_band(t, node)
            goes_right = node.right_of(node.heights(self.plane(t)), self.plane(t))
        assert goes_right is not None
        self.rows[topology.left(t)], self.rows[topology.right(t)] = self.rows[t][~goes_right], self.rows[t][goes_right]

    def _out_of_band(self, t: int, node: Node) -> Plane:
        """The best hyperplane of node ``t`` in the same direction that has no sample in its band, else one without
        features."""
        node = self.with_subtree_costs(t, node)
        if np.any(self.W[t]):
            cut = node.best_cut(self.W[t].copy(), LENGTHS)
            if cut is not None and node.right_of(node.heights(cut[0]), cut[0]) is not None:
                return cut[0]
        return node.best_without_features()[0]

    def visit_upper(self, t: int) -> bool:
        """Try to improve an upper node; return whether the subtree's cost has decreased.

        The new hyperplane can send samples into bands of the subtree, whose hyperplanes are then moved. If this makes
        the subtree's cost larger, the subtree is restored.
        """
        below = topology.subtree(t, self.depth)
        before = float(np.sum(self.own[below]))
        plane = self.proposed(t, before)
        if plane is None:
            return False
        W, B = self.W[below], self.B[below]
        self.W[t], self.B[t] = plane
        self.route(t)
        if np.sum(self.own[below]) < before * (1.0 - GAIN):
            return True
        self.W[below], self.B[below] = W, B
        self.route(t)
        return False

    @abstractmethod
    def route(self, top: int, strategies: Strategies | None = None) -> None:
        """Route the samples at node ``top`` through its subtree, and compute the costs of its nodes.

        ``strategies`` are the initialisation strategies of all nodes; None keeps the current hyperplanes. If a sample
        lies in the band of a hyperplane, the hyperplane is moved.
        """

    @abstractmethod
    def with_subtree_costs(self, t: int, node: Node | None = None) -> Node:
        """The samples of an upper node with their subtree costs; the samples of a given ``node`` are not copied."""

    @abstractmethod
    def proposed(self, t: int, before: float) -> Plane | None:
        """A better hyperplane for an upper node whose subtree costs ``before``, or None."""

    @abstractmethod
    def visit_last(self, t: int) -> bool:
        """Try to improve a node of the last level; return whether its cost has decreased."""


class Descent(BaseDescent):
    """The descent for two classes. No sample is ever left in a band."""

    def route(self, top: int, strategies: Strategies | None = None) -> None:
        """Route the samples at node ``top`` through its subtree; see :meth:`BaseDescent.route`."""
        for t in topology.subtree(top, self.depth):
            self._settle_one(t, Strategy.KEEP if strategies is None else Strategy(strategies[t]))

    def _settle_one(self, t: int, kind: Strategy) -> None:
        """Initialise one node, compute its cost, and route its samples."""
        node = Node.of(self.terms, t, self.rows[t])
        if self.is_upper(t):
            if kind is not Strategy.KEEP:
                self.W[t], self.B[t] = draw(self.terms, t, node, self.plane(t), kind, self.rng, self.flag)
            self.route_to_children(t, node)
        elif kind is not Strategy.KEEP and len(node.Z):
            self._set_last(t, *best_svm(self.terms, t, node, self.plane(t), self.flag)[0], node)
        self._update_cost(t, node)
        self.stale[t] = True

    def with_subtree_costs(self, t: int, node: Node | None = None) -> Node:
        node = node or Node.of(self.terms, t, self.rows[t])
        node.compute_subtree_costs(self.terms, t, self.rows[t], self.W, self.B, self.choices)
        return node

    def _update_cost(self, t: int, node: Node) -> None:
        """Compute the cost of the node itself."""
        w = self.W[t]
        self.own[t] = 0.5 * float(w @ w) + node.hinges(node.heights(self.plane(t))) + self.terms.feature_penalty(t, w)

    def _set_last(self, t: int, w: FloatArray, b: float, node: Node) -> None:
        """Set the hyperplane of a node of the last level, or a constant label if that costs less."""
        plus, minus = float(np.sum(node.plus)), float(np.sum(node.minus))
        value = 0.5 * float(w @ w) + node.hinges(node.heights((w, b))) + self.terms.feature_penalty(t, w)
        if 2.0 * min(plus, minus) <= value:
            w, b = np.zeros_like(w), 1.0 if plus >= minus else -1.0
        self.W[t], self.B[t] = w, b

    def visit_last(self, t: int) -> bool:
        node, before = Node.of(self.terms, t, self.rows[t]), self.plane(t)
        value = self.own[t]
        self._set_last(t, *best_svm(self.terms, t, node, before, self.flag)[0], node)
        self._update_cost(t, node)
        if self.own[t] < value * (1.0 - GAIN):
            return True
        self.W[t], self.B[t] = before
        self.own[t] = value
        return False

    def proposed(self, t: int, before: float) -> Plane | None:
        found = propose(
            self.terms,
            t,
            self.with_subtree_costs(t),
            self.plane(t),
            self.rng,
            self.flag,
            bool(self.directions_failed[t]),
        )
        self.directions_failed[t] = not found.directions_improved
        return found.plane if found.gain > GAIN * before else None
