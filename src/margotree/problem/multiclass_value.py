"""The definition of the objective and the feasibility of a tree for any number of classes.

The code is kept plain, because the result of every engine is checked with :func:`evaluate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margotree.problem import topology
from margotree.problem.blocks import FloatArray
from margotree.problem.value import CommonTerms, Evaluation, Splits, evaluate_routing

IndexArray = NDArray[np.int64]

#: Pairs of labels whose costs differ by less than this, relatively, count as equal.
_EQUAL = 1e-12


class ClassTerms(CommonTerms, Protocol):
    """The parts of a :class:`~margotree.problem.MulticlassProblem` on which the objective of a tree depends."""

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
    """The result of :func:`evaluate`: as for two classes, with the sides and labels used for the objective."""

    sides: IndexArray
    labels: IndexArray

    @property
    def label(self) -> IndexArray:
        """The class of every leaf, left to right."""
        return self.labels.ravel()


def evaluate(problem: ClassTerms, splits: Splits) -> MulticlassEvaluation:
    """Compute objective and feasibility of a tree from its hyperplanes.

    Sides and labels are those of the problem; where it has none, the best ones are used.
    """
    upper = topology.upper(problem.depth)
    sides = np.zeros((problem.n_upper, problem.n_classes), dtype=np.int64)
    labels = np.zeros((problem.n_last, 2), dtype=np.int64)
    mass = np.zeros((problem.n_nodes, problem.n_classes))

    def hinge_loss(t: int, h: FloatArray, reached: IndexArray) -> float:
        right, left, mass[t] = class_hinges(problem.y[reached], problem.weight[reached], problem.n_classes, h)
        if t in upper:
            given = None if problem.sides is None else problem.sides[t]
            sides[t] = best_sides(right, left) if given is None else given
            return float(np.sum(np.where(sides[t] > 0, right, left)))
        k = t - problem.n_upper
        given = None if problem.labels is None else problem.labels[k]
        labels[k] = best_pair(right, left, _nearest_mass(mass, t), bool(splits.b[t] >= 0)) if given is None else given
        a, b = labels[k]
        return float(np.sum(np.delete(right, a)) + np.sum(np.delete(left, b)))

    found = evaluate_routing(problem, splits, hinge_loss)
    return MulticlassEvaluation(**vars(found), sides=sides, labels=labels)


def class_hinges(
    y: IndexArray, weight: FloatArray, n_classes: int, h: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return for each class the hinge losses (without ``C``) for lying right and for lying left, and the weight."""
    losses = (weight * np.maximum(0.0, 1.0 - h), weight * np.maximum(0.0, 1.0 + h), weight)
    right, left, mass = (np.bincount(y, weights=part, minlength=n_classes).astype(np.float64) for part in losses)
    return right, left, mass


def best_sides(right: FloatArray, left: FloatArray) -> IndexArray:
    """Return the side of smaller loss for every class, right if equal.

    The first class goes left, and at least one other class goes right.
    """
    sides = np.where(right <= left, 1, -1)
    sides[0] = -1
    if not np.any(sides > 0):
        sides[1 + int(np.argmin(right[1:] - left[1:]))] = 1
    return sides


def best_pair(right: FloatArray, left: FloatArray, mass: FloatArray, goes_right: bool) -> IndexArray:
    """Return the labels of the left and the right leaf with the smallest loss.

    Label ``a`` on the left saves the loss ``right[a]`` of its class, label ``b`` on the right saves ``left[b]``. Of
    equal pairs the one with more weight ``mass`` is returned; the heavier label is on the side to which a node without
    weights sends all samples (``goes_right``).
    """
    K = len(mass)
    saved = right[:, None] + left[None, :]
    saved[np.arange(K), np.arange(K)] = -np.inf
    total = float(np.sum(right) + np.sum(left))
    best = np.max(saved)
    pair_mass = (mass[:, None] + 2 * mass[None, :]) if goes_right else (2 * mass[:, None] + mass[None, :])
    pair_mass = np.where(saved >= best - _EQUAL * (1.0 + total), pair_mass, -np.inf)
    # Flattened order: the smaller left label first.
    a, b = np.unravel_index(int(np.argmax(pair_mass)), pair_mass.shape)
    return np.array([a, b], dtype=np.int64)


def _nearest_mass(mass: FloatArray, t: int) -> FloatArray:
    """Return the weight of the classes at node ``t``, or at the nearest node above that samples reach."""
    while t > 0 and not mass[t].any():
        t = topology.parent(t)
    return mass[t]
