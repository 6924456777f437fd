"""The single source of truth for more than two classes: what a given tree is worth, and whether it is allowed.

Written in the plainest way on purpose; every answer is passed through :func:`evaluate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margotree.problem import topology
from margotree.problem.blocks import FloatArray
from margotree.problem.value import Common, Evaluation, Splits, evaluate_routing

IndexArray = NDArray[np.int64]

#: Choices whose costs differ by less than this share are equals.
_EQUAL = 1e-12


class ClassTerms(Common, Protocol):
    """What the value of a tree depends on; see :class:`~margotree.problem.MulticlassProblem`, which has it all."""

    @property
    def y(self) -> IndexArray: ...

    @property
    def n_classes(self) -> int: ...

    @property
    def n_upper(self) -> int: ...

    @property
    def n_last(self) -> int: ...

    @property
    def sides(self) -> IndexArray | None: ...

    @property
    def labels(self) -> IndexArray | None: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class MulticlassEvaluation(Evaluation):
    """What :func:`evaluate` found: as for two classes, and the sides and labels that the value was computed with."""

    sides: IndexArray
    labels: IndexArray

    @property
    def label(self) -> IndexArray:
        """The class of every leaf, left to right."""
        return self.labels.ravel()


def evaluate(problem: ClassTerms, splits: Splits) -> MulticlassEvaluation:
    """Value and feasibility of a tree from its hyperplanes; sides and labels are the problem's, or else the best."""
    upper = topology.upper(problem.depth)
    sides = np.zeros((problem.n_upper, problem.n_classes), dtype=np.int64)
    labels = np.zeros((problem.n_last, 2), dtype=np.int64)
    mass = np.zeros((problem.n_nodes, problem.n_classes))

    def hinges(t: int, h: FloatArray, reached: IndexArray) -> float:
        right, left, mass[t] = class_hinges(problem.y[reached], problem.weight[reached], problem.n_classes, h)
        if t in upper:
            given = None if problem.sides is None else problem.sides[t]
            sides[t] = best_sides(right, left) if given is None else given
            return float(np.sum(np.where(sides[t] > 0, right, left)))
        k = t - problem.n_upper
        given = None if problem.labels is None else problem.labels[k]
        labels[k] = best_pair(right, left, _nearest(mass, t), bool(splits.b[t] >= 0)) if given is None else given
        a, b = labels[k]
        return float(np.sum(np.delete(right, a)) + np.sum(np.delete(left, b)))

    found = evaluate_routing(problem, splits, hinges)
    return MulticlassEvaluation(**vars(found), sides=sides, labels=labels)


def class_hinges(
    y: IndexArray, weight: FloatArray, n_classes: int, h: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What each class lacks to lie right by a margin, what to lie left, and how much it weighs (without ``C``)."""
    lacks = (weight * np.maximum(0.0, 1.0 - h), weight * np.maximum(0.0, 1.0 + h), weight)
    right, left, mass = (np.bincount(y, weights=part, minlength=n_classes).astype(np.float64) for part in lacks)
    return right, left, mass


def best_sides(right: FloatArray, left: FloatArray) -> IndexArray:
    """Every class on its cheaper side, right if equal; the first one left, and at least one other right."""
    sides = np.where(right <= left, 1, -1)
    sides[0] = -1
    if not np.any(sides > 0):
        sides[1 + int(np.argmin(right[1:] - left[1:]))] = 1
    return sides


def best_pair(right: FloatArray, left: FloatArray, mass: FloatArray, goes_right: bool) -> IndexArray:
    """The two labels that save most; of equals the heavier ones, the heaviest where a node without weights sends all.

    Label ``a`` on the left spares its class ``right[a]``, label ``b`` on the right spares ``left[b]``.
    """
    K = len(mass)
    spared = right[:, None] + left[None, :]
    spared[np.arange(K), np.arange(K)] = -np.inf
    total = float(np.sum(right) + np.sum(left))
    best = np.max(spared)
    heavy = (mass[:, None] + 2 * mass[None, :]) if goes_right else (2 * mass[:, None] + mass[None, :])
    heavy = np.where(spared >= best - _EQUAL * (1.0 + total), heavy, -np.inf)
    # Flattened order: the smaller left label first.
    a, b = np.unravel_index(int(np.argmax(heavy)), heavy.shape)
    return np.array([a, b], dtype=np.int64)


def _nearest(mass: FloatArray, t: int) -> FloatArray:
    """The classes at a node, or at the nearest above it that samples reach."""
    while t > 0 and not mass[t].any():
        t = topology.parent(t)
    return mass[t]
