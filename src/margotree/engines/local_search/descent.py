"""One descent: initialise a tree, then train one node after the other, from the last level to the root."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.initial_splits import Strategy, draw
from margotree.engines.local_search.kernels.reduced_problem import GAIN
from margotree.engines.local_search.node_samples import Node, Plane, Rows
from margotree.engines.local_search.support_search import best_svm, largest_weights
from margotree.engines.local_search.training_data import Terms, TrainedTree
from margotree.engines.local_search.upper_nodes import Proposal, propose
from margotree.problem import topology
from margotree.problem.problem import FloatArray

#: Rounds of hyperplane and choice at an upper node.
_MAX_ROUNDS = 3
#: The largest number of sweeps; a descent is abandoned when this number of sweeps like its last would not reach the
#: best.
_MAX_SWEEPS, _SWEEPS_AHEAD = 60, 3.0
#: A descent ends when a sweep over the nodes gains less than this share.
SMALL_GAIN = 1e-4
#: Factors of the weights that are tried to move samples out of a band.
LENGTHS = np.array([1.0, 1.5, 2.0, 5.0, 10.0, 100.0])

Strategies = NDArray[np.int64]


class Descent:
    """A tree that is trained node by node: its hyperplanes and choices, the samples and the cost of each node.

    No sample is ever left in a band, and choices are always the best for the hyperplanes.

    Attributes
    ----------
    W, B : arrays
        The weights and offsets of the nodes.
    choices : Choices
        The choices of the nodes, for tasks that have some.
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
        for sweep in range(_MAX_SWEEPS):
            before = value
            self.sweep()
            self.swept |= not self.flag[0]
            value = float(np.sum(self.own))
            gain = before - value
            if self.flag[0] or gain <= tol * before or (value > best and value - _SWEEPS_AHEAD * gain > best):
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

    def route(self, top: int, strategies: Strategies | None = None) -> None:
        """Route the samples at node ``top`` through its subtree, and compute the choices and costs of its nodes.

        ``strategies`` are the initialisation strategies of all nodes; None keeps the current hyperplanes. If a sample
        lies in the band of a hyperplane, the hyperplane is moved.
        """
        for t in topology.subtree(top, self.depth):
            self._settle(t, Strategy.KEEP if strategies is None else Strategy(strategies[t]))

    def _settle(self, t: int, kind: Strategy) -> None:
        """Initialise one node, route its samples, and compute its choice and cost."""
        node = self._node(t)
        self._keep_budget(t, node)
        if self.is_upper(t):
            if kind is not Strategy.KEEP:
                rows, plane = self.rows[t], self.plane(t)
                self.W[t], self.B[t] = draw(self.terms, t, rows, node, plane, kind, self.rng, self.flag)
            self._route_to_children(t, node)
        elif kind is not Strategy.KEEP and len(node.Z):
            self.W[t], self.B[t] = self._best_last(t, node)
        self._update_cost(t, self._with_best_choice(t, node))
        self.stale[t] = True

    def _keep_budget(self, t: int, node: Node) -> None:
        """Drop the smallest weights beyond a hard budget: the hyperplane may come from a node with a larger one."""
        terms, budget = self.terms, int(self.terms.budget[t])
        if terms.limited(t) and not terms.penalised(t) and terms.groups.count(self.W[t]) > budget:
            kept = largest_weights(node, self.W[t], budget) if len(node.Z) else np.arange(0)
            self.W[t, np.setdiff1d(np.arange(self.W.shape[1]), kept)] = 0.0

    def _node(self, t: int, node: Node | None = None) -> Node:
        """The samples of a node with its choice; the samples of a given ``node`` are not copied."""
        return Node.of(self.terms, t, self.rows[t], self.choices.at(t), None if node is None else node.Z)

    def _best_choice(self, t: int, node: Node, plane: Plane) -> NDArray[np.int64]:
        """The best choice for a hyperplane of a node."""
        y, weight = self.terms.y[self.rows[t]], self.terms.weight[self.rows[t]]
        return self.terms.task.best_choice(y, weight, node.heights(plane), plane[1], last=not self.is_upper(t))

    def _with_best_choice(self, t: int, node: Node) -> Node:
        """Set the best choice for the hyperplane of a node; return the node with this choice."""
        if not self.terms.task.has_choices:
            return node
        self.choices.at(t)[:] = self._best_choice(t, node, self.plane(t))
        return self._node(t, node)

    def _update_cost(self, t: int, node: Node) -> None:
        """Compute the cost of the node itself."""
        self.own[t] = self._cost(t, node, self.plane(t))

    def _cost(self, t: int, node: Node, plane: Plane) -> float:
        """The cost of a hyperplane for the node itself."""
        w = plane[0]
        return 0.5 * float(w @ w) + node.hinges(node.heights(plane)) + self.terms.feature_penalty(t, w)

    def _route_to_children(self, t: int, node: Node) -> None:
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
        node = self.with_subtree_costs(t, self._with_best_choice(t, node))
        if np.any(self.W[t]):
            cut = node.best_cut(self.W[t].copy(), LENGTHS)
            if cut is not None and node.right_of(node.heights(cut[0]), cut[0]) is not None:
                return cut[0]
        return node.best_without_features()[0]

    def with_subtree_costs(self, t: int, node: Node | None = None) -> Node:
        """The samples of an upper node with their subtree costs; the samples of a given ``node`` are not copied."""
        node = node or self._node(t)
        node.compute_subtree_costs(self.terms, t, self.rows[t], self.W, self.B, self.choices)
        return node

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

    def proposed(self, t: int, before: float) -> Plane | None:
        """A better hyperplane for an upper node whose subtree costs ``before``, or None."""
        node, single = self.with_subtree_costs(t), bool(self.directions_failed[t])
        found = self._alternate(t, node, self.choices.at(t), single)
        start, directions_improved = found[0].start, found[0].directions_improved
        for choice in self._other_choices(t, node):
            found += self._alternate(t, node, choice, single)
        self.directions_failed[t] = not directions_improved
        best = min(found, key=lambda proposal: proposal.value)
        return best.plane if start - best.value > GAIN * before else None

    def _other_choices(self, t: int, node: Node) -> list[NDArray[np.int64]]:
        """Choices that are worth a try besides the current one."""
        if not self.terms.task.has_choices:
            return []
        gain = node.left_cost - node.right_cost
        return self.terms.task.other_choices(self.choices.at(t), self.terms.y[self.rows[t]], gain, self.rng)

    def _alternate(self, t: int, node: Node, choice: NDArray[np.int64], single: bool) -> list[Proposal]:
        """Hyperplanes proposed for an upper node: first for ``choice``, then for the best choice of the last one."""
        found: list[Proposal] = []
        plane = self.plane(t)
        while len(found) < _MAX_ROUNDS and not (found and self.flag[0]):
            here = node
            if self.terms.task.has_choices:
                here = node.with_penalties(Node.of(self.terms, t, self.rows[t], choice, node.Z))
            found.append(propose(self.terms, t, here, plane, self.rng, self.flag, single))
            if not self.terms.task.has_choices:
                break
            plane = found[-1].plane
            better = self._best_choice(t, node, plane)
            if np.array_equal(better, choice):
                break
            choice = better
        return found

    def visit_last(self, t: int) -> bool:
        """Try to improve a node of the last level; return whether its cost has decreased."""
        node, before, value, choice = self._node(t), self.plane(t), self.own[t], self.choices.at(t).copy()
        self.W[t], self.B[t] = self._best_last(t, node)
        self._update_cost(t, self._with_best_choice(t, node))
        if self.own[t] < value * (1.0 - GAIN):
            return True
        self.W[t], self.B[t] = before
        self.own[t] = value
        self.choices.at(t)[:] = choice
        return False

    def _best_last(self, t: int, node: Node) -> Plane:
        """The best hyperplane of a node of the last level over its choices, or a constant one if that costs less."""
        current, mass = self.choices.at(t), self.terms.mass(self.rows[t])
        best, plane = math.inf, self.plane(t)
        for choice, least in self.terms.task.promising_last_choices(mass, current):
            if self.terms.C[t] * least >= best or (self.flag[0] and best < math.inf):
                break
            is_current = np.array_equal(choice, current)
            here = node if is_current else Node.of(self.terms, t, self.rows[t], choice, node.Z)
            guess = self.plane(t) if is_current else (np.zeros(self.terms.X.shape[1]), 0.0)
            found, _ = best_svm(self.terms, t, here, guess, self.flag)
            value = self._cost(t, here, found)
            b, constant = here.best_constant()
            if constant <= value:
                found, value = (np.zeros_like(found[0]), b), constant
            if value < best:
                best, plane = value, found
        return plane
