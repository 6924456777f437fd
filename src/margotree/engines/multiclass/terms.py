"""A problem of several classes as the alternating search takes it, and the nodes of its trees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.node_samples import Node, Plane, Rows
from margotree.engines.local_search.training_data import Terms
from margotree.problem import Problem, topology
from margotree.problem.problem import FloatArray
from margotree.problem.routing import goes_right
from margotree.problem.tasks.multiclass import class_losses

IndexArray = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassTerms(Terms):
    """The terms of a problem in which ``y`` holds class numbers."""

    n_classes: int

    @classmethod
    def of(cls, problem: Problem) -> ClassTerms:
        nodes, p = problem.n_nodes, problem.n_features
        return cls(
            X=problem.X,
            y=problem.y.astype(np.float64),
            weight=problem.weight,
            C=np.array(problem.C),
            budget=np.full(nodes, p) if problem.budget is None else np.array(problem.budget),
            alpha=np.full(nodes, np.inf) if problem.alpha is None else np.array(problem.alpha),
            eps=problem.eps,
            n_classes=problem.task.n_classes,
        )

    @cached_property
    def code(self) -> IndexArray:
        return self.y.astype(np.int64)

    @property
    def n_upper(self) -> int:
        return self.n_nodes // 2

    def mass(self, rows: Rows) -> FloatArray:
        """What each class weighs among some samples."""
        found = np.bincount(self.code[rows], weights=self.weight[rows], minlength=self.n_classes)
        return found.astype(np.float64)

    def by_class(self, rows: Rows, h: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What each class lacks to lie right, what to lie left, and its weight."""
        right, left = class_losses(self.code[rows], self.weight[rows], self.n_classes, h)
        return right, left, self.mass(rows)


@dataclass(kw_only=True, eq=False)
class Labels:
    """The wanted sides of the classes at upper nodes and the two labels of last-level nodes."""

    sides: IndexArray
    pairs: IndexArray

    @classmethod
    def blank(cls, terms: ClassTerms) -> Labels:
        sides = np.ones((terms.n_upper, terms.n_classes), dtype=np.int64)
        sides[:, 0] = -1
        return cls(sides=sides, pairs=np.tile([0, 1], (terms.n_nodes - terms.n_upper, 1)))


def upper_node(terms: ClassTerms, t: int, rows: Rows, sides: IndexArray, Z: FloatArray | None = None) -> Node:
    """An upper node: every sample has the side that its class wants; ``Z`` are the samples, where they are at hand."""
    cost, wants_right = terms.C[t] * terms.weight[rows], sides[terms.code[rows]] > 0
    Z = terms.samples(rows) if Z is None else Z
    return _node(terms, Z, np.where(wants_right, cost, 0.0), np.where(wants_right, 0.0, cost))


def last_node(terms: ClassTerms, t: int, rows: Rows, pair: IndexArray) -> Node:
    """A last-level node: a sample pays for each of the two labels that is not its own."""
    cost, code = terms.C[t] * terms.weight[rows], terms.code[rows]
    Z = terms.samples(rows)
    return _node(terms, Z, np.where(code != pair[0], cost, 0.0), np.where(code != pair[1], cost, 0.0))


def _node(terms: ClassTerms, Z: FloatArray, plus: FloatArray, minus: FloatArray) -> Node:
    none = np.zeros(len(Z))
    return Node(Z=Z, plus=plus, minus=minus, left_cost=none, right_cost=none, eps=terms.eps)


def pay_below(terms: ClassTerms, rows: Rows, W: FloatArray, B: FloatArray, labels: Labels, top: int) -> FloatArray:
    """What each sample would pay from node ``top`` on; bands on its way are looked at later."""
    at, pays = np.full(len(rows), top), np.zeros(len(rows))
    for t in topology.subtree(top, terms.depth):
        here = np.flatnonzero(at == t)
        if not len(here):
            continue
        h = terms.X[rows[here]] @ W[t] + B[t]
        code = terms.code[rows[here]]
        if t < terms.n_upper:
            lacks = np.maximum(0.0, 1.0 - labels.sides[t][code] * h)
            at[here] = 2 * t + 1 + goes_right(h, float(B[t]), terms.eps)
        else:
            a, b = labels.pairs[t - terms.n_upper]
            lacks = (code != a) * np.maximum(0.0, 1.0 - h) + (code != b) * np.maximum(0.0, 1.0 + h)
        pays[here] += terms.C[t] * lacks
    return pays * terms.weight[rows]


__all__ = ["ClassTerms", "IndexArray", "Labels", "Plane", "Rows", "last_node", "pay_below", "upper_node"]
