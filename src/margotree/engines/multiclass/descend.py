"""One start of the alternating search for several classes: hyperplanes, sides and labels in turn, node after node."""

from __future__ import annotations

import itertools

import numpy as np

from margotree.engines.local_search.descent import BaseDescent, Strategies
from margotree.engines.local_search.kernels.reduced_problem import GAIN
from margotree.engines.local_search.node_samples import Node, Plane
from margotree.engines.local_search.support_search import best_svm
from margotree.engines.local_search.upper_nodes import Proposal, propose
from margotree.engines.multiclass.bipartitions import turned
from margotree.engines.multiclass.draw import Strategy, draw
from margotree.problem import topology
from margotree.problem.blocks import FloatArray, IndexArray
from margotree.problem.tasks.multiclass import best_labels, best_sides, class_losses

#: Rounds of hyperplane and sides at a node.
_ROUNDS = 3
#: A last-level node tries the pairs of so many of its largest classes.
_LARGEST = 3


class ClassDescent(BaseDescent):
    """A tree under work: hyperplanes, sides and labels, the samples and the cost of each node.

    No sample is ever left in a band, and sides and labels are always the best for the hyperplanes.
    """

    max_sweeps, sweeps_ahead = 40, 5.0

    def _heights(self, t: int, plane: Plane) -> FloatArray:
        h: FloatArray = self.terms.samples(self.rows[t]) @ plane[0] + plane[1]
        return h

    def _class_losses(self, t: int, plane: Plane) -> tuple[FloatArray, FloatArray]:
        """The hinge losses of each class at a node, on the right and on the left."""
        rows = self.rows[t]
        return class_losses(
            self.terms.code[rows], self.terms.weight[rows], self.terms.task.n_classes, self._heights(t, plane)
        )

    # -- sending samples down -----------------------------------------------------------------------------------

    def route(self, top: int, strategies: Strategies | None = None) -> None:
        """Send the samples of ``top`` down its subtree, drawing new hyperplanes and emptying bands on the way."""
        for t in topology.subtree(top, self.depth):
            kind = Strategy.KEEP if strategies is None else Strategy(strategies[t])
            if self.is_upper(t):
                if kind is not Strategy.KEEP:
                    now = (self.plane(t), self.choices.sides[t])
                    self.W[t], self.B[t] = draw(self.terms, t, self.rows[t], now, kind, self.rng, self.flag)
                self.route_to_children(t, self._node(t))
            elif kind is not Strategy.KEEP and len(self.rows[t]):
                self.W[t], self.B[t] = self._best_last(t)[0]
            self._label(t)
            self.stale[t] = True

    def _label(self, t: int) -> None:
        """The best sides or labels for the hyperplane, and what the node then costs."""
        plane = self.plane(t)
        right, left = self._class_losses(t, plane)
        if self.is_upper(t):
            sides = best_sides(right, left)
            self.choices.sides[t] = sides
            lacks = float(np.sum(np.where(sides > 0, right, left)))
        else:
            pair = best_labels(right, left, self.terms.mass(self.rows[t]), plane[1] >= 0)
            self.choices.labels[t - self.terms.n_upper] = pair
            lacks = float(np.sum(right) - right[pair[0]] + np.sum(left) - left[pair[1]])
        self.own[t] = (
            0.5 * float(plane[0] @ plane[0]) + self.terms.C[t] * lacks + self.terms.feature_penalty(t, plane[0])
        )

    def _sides(self, t: int, plane: Plane) -> IndexArray:
        right, left = self._class_losses(t, plane)
        return best_sides(right, left)

    def _node(self, t: int) -> Node:
        """The samples of an upper node with the sides that it has now."""
        return Node.of(self.terms, t, self.rows[t], self.choices.sides[t])

    def with_subtree_costs(self, t: int, node: Node | None = None) -> Node:
        """With the sides that it has now; of a node that is being settled, with the best for the hyperplane at hand."""
        if node is None:
            node = self._node(t)
        else:
            node = Node.of(self.terms, t, self.rows[t], self._sides(t, self.plane(t)), node.Z)
        node.compute_subtree_costs(self.terms, t, self.rows[t], self.W, self.B, self.choices)
        return node

    # -- last level ---------------------------------------------------------------------------------------------

    def visit_last(self, t: int) -> bool:
        before, value = self.plane(t), self.own[t]
        self.W[t], self.B[t] = self._best_last(t)[0]
        self._label(t)
        if self.own[t] < value * (1.0 - GAIN):
            return True
        self.W[t], self.B[t] = before
        self._label(t)
        return False

    def _best_last(self, t: int) -> tuple[Plane, float]:
        """The best hyperplane over the pairs of the largest classes; none where a constant label is cheaper."""
        rows, mass = self.rows[t], self.terms.mass(self.rows[t])
        heavy = np.argsort(-mass, kind="stable")[:_LARGEST]
        # A constant label: everybody else pays twice on the wrong side, third classes on both.
        constant = 2.0 * float(self.terms.C[t]) * float(np.sum(mass) - mass[heavy[0]])
        best: tuple[Plane, float] = ((np.zeros(self.terms.X.shape[1]), 1.0), constant)
        now = self.choices.labels[t - self.terms.n_upper]
        pairs = {tuple(sorted((int(a), int(b)))) for a, b in itertools.combinations(heavy, 2)}
        pairs.add((min(now), max(now)))
        for a, b in sorted(pairs, key=lambda pair: -(mass[pair[0]] + mass[pair[1]])):
            floor = 2.0 * float(self.terms.C[t]) * float(np.sum(mass) - mass[a] - mass[b])
            if mass[a] <= 0 or mass[b] <= 0 or floor >= best[1]:
                continue
            own = {a, b} == {int(now[0]), int(now[1])}
            pair = now if own else np.array([a, b])
            guess = self.plane(t) if own else (np.zeros(self.terms.X.shape[1]), 0.0)
            plane, _ = best_svm(self.terms, t, Node.of(self.terms, t, rows, pair), guess, self.flag)
            value = self._last_value(t, plane, pair)
            if value < best[1]:
                best = (plane, value)
        return best

    def _last_value(self, t: int, plane: Plane, pair: IndexArray) -> float:
        right, left = self._class_losses(t, plane)
        lacks = float(np.sum(right) - right[pair[0]] + np.sum(left) - left[pair[1]])
        return (
            0.5 * float(plane[0] @ plane[0]) + float(self.terms.C[t]) * lacks + self.terms.feature_penalty(t, plane[0])
        )

    # -- upper nodes --------------------------------------------------------------------------------------------

    def proposed(self, t: int, before: float) -> Plane | None:
        best = self._best_proposal(t)
        return None if best is None or best.value >= before * (1.0 - GAIN) else best.plane

    def _best_proposal(self, t: int) -> Proposal | None:
        """Hyperplane and sides in turn, from the sides at hand and now and then from those that pay below."""
        node = self.with_subtree_costs(t)
        best: Proposal | None = None
        for sides in self._first_sides(t, node):
            plane = self.plane(t)
            for _ in range(_ROUNDS):
                if self.flag[0]:
                    return best
                again = Node.of(self.terms, t, self.rows[t], sides, node.Z)
                again.left_cost, again.right_cost = node.left_cost, node.right_cost
                found = propose(self.terms, t, again, plane, self.rng, self.flag)
                if best is None or found.value < best.value:
                    best = found
                plane = found.plane
                better = self._sides(t, plane)
                if np.array_equal(better, sides):
                    break
                sides = better
        return best

    def _first_sides(self, t: int, node: Node) -> list[IndexArray]:
        """The sides at hand, and by chance those that are cheaper below or that have one class moved."""
        now = self.choices.sides[t]
        ways = [now]
        if self.rng.random() < 0.5:
            gain = np.bincount(
                self.terms.code[self.rows[t]],
                weights=node.left_cost - node.right_cost,
                minlength=self.terms.task.n_classes,
            )
            other = np.where(gain > 0, 1, np.where(gain < 0, -1, now))
            other[0] = -1
            ways.append(turned(other))
        elif self.terms.task.n_classes > 2:
            other = now.copy()
            other[self.rng.integers(1, self.terms.task.n_classes)] *= -1
            ways.append(turned(other))
        return [way for i, way in enumerate(ways) if i == 0 or not np.array_equal(way, now)]
