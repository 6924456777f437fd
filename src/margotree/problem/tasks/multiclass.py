"""Any number of classes 0, 1, ..., K-1: upper nodes have a side for each class, last-level nodes two labels."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.problem.blocks import FloatArray, IndexArray
from margotree.problem.tasks import bipartitions
from margotree.problem.tasks.base import NO_CHOICE, Choices, Items, Task, corners
from margotree.problem.tasks.binaries import ChoiceVariables, ConditionalLosses

#: Pairs of this number of the largest classes are worth a try as labels of a last-level node.
_LARGEST = 3
#: Choices whose losses differ by less than this share are equal.
_EQUAL = 1e-12


class Multiclass(Task):
    """Classes 0, 1, ..., K-1.

    Every upper node ``t`` has a target side ``sides[t, k]`` in {-1, +1} for every class, every last-level node two
    different labels, ``a`` for its left leaf and ``b`` for its right one. A sample of class ``k`` has the loss::

        upper node:       max(0, 1 - sides[t, k] h)
        last-level node:  [k != a] max(0, 1 - h) + [k != b] max(0, 1 + h)

    A sample of class ``b`` should lie on the right by a margin, one of class ``a`` on the left, and one of a third
    class is wrong on either side.

    The sides of a node are not all equal. Reversing all of them gives the same tree with children exchanged, so of each
    such pair of trees only the one with ``sides[t, 0] = -1`` is allowed. With two classes nothing is left to choose,
    and all values equal those of :class:`~margotree.problem.tasks.Binary`.

    Parameters
    ----------
    n_classes : int
        K, at least 2.
    """

    name = "multiclass"
    has_choices = True

    def __init__(self, n_classes: int) -> None:
        if n_classes < 2:
            raise ValueError(f"there must be at least 2 classes, got {n_classes}")
        self.n_classes = int(n_classes)

    def targets(self, y: ArrayLike) -> IndexArray:
        codes = np.array(y).ravel()
        if codes.dtype.kind not in "iu" or not len(codes) or codes.min() < 0:
            raise ValueError("y must hold class numbers: 0, 1, ...")
        if codes.max() >= self.n_classes:
            raise ValueError(f"y must hold numbers of {self.n_classes} classes, 0 to {self.n_classes - 1}")
        return codes.astype(np.int64)

    def items(
        self,
        y: NDArray[Any],
        *,
        last: bool,
        side: IndexArray | None = None,
        choice: IndexArray = NO_CHOICE,
    ) -> Items:
        if last:
            p, m = y != choice[0], y != choice[1]
        else:
            p, m = choice[y] > 0, choice[y] < 0
        r, l = corners(len(y))  # noqa: E741
        return Items(p=p.astype(np.float64), m=m.astype(np.float64), r=r, l=l)

    def codes(self, y: NDArray[Any]) -> IndexArray:
        return np.asarray(y, dtype=np.int64)

    def responses(self, y: NDArray[Any]) -> FloatArray:
        one_hot: FloatArray = (y[:, None] == np.arange(self.n_classes)).astype(np.float64)
        return one_hot

    def random_choice(
        self, X: FloatArray, y: NDArray[Any], weight: FloatArray, rng: np.random.Generator
    ) -> IndexArray | None:
        return bipartitions.at_random(bipartitions.class_means(X, y, weight, self.n_classes), self.n_classes, rng)

    def random_choices(
        self, X: FloatArray, y: NDArray[Any], weight: FloatArray, depth: int, rng: np.random.Generator
    ) -> Choices:
        means = bipartitions.class_means(X, y, weight, self.n_classes)
        sides, labels = bipartitions.recursive(means, self.n_classes, depth, rng)
        return Choices(sides=sides, labels=labels)

    def upper_choices(
        self, X: FloatArray, y: NDArray[Any], weight: FloatArray, n_leaves: int, rng: np.random.Generator
    ) -> list[IndexArray]:
        means = bipartitions.class_means(X, y, weight, self.n_classes)
        return bipartitions.candidates(means, self.n_classes, n_leaves, rng)

    def other_choices(
        self, choice: IndexArray, y: NDArray[Any], gain: FloatArray, rng: np.random.Generator
    ) -> list[IndexArray]:
        """The sides with the smaller subtree costs, or the current ones with one class moved."""
        if rng.random() < 0.5:
            by_class = np.bincount(y, weights=gain, minlength=self.n_classes)
            other = np.where(by_class > 0, 1, np.where(by_class < 0, -1, choice))
            other[0] = -1
        elif self.n_classes > 2:
            other = choice.copy()
            other[rng.integers(1, self.n_classes)] *= -1
        else:
            return []
        other = bipartitions.normal_form(other)
        return [] if np.array_equal(other, choice) else [other]

    def promising_last_choices(self, mass: FloatArray, current: IndexArray) -> list[tuple[IndexArray, float]]:
        heaviest = np.argsort(-mass, kind="stable")[:_LARGEST]
        pairs = {tuple(sorted((int(a), int(b)))) for a, b in itertools.combinations(heaviest, 2)}
        pairs.add((int(min(current)), int(max(current))))
        total = float(np.sum(mass))
        least = {pair: 2.0 * (total - float(mass[pair[0]] + mass[pair[1]])) for pair in pairs}
        ordered = sorted(least, key=lambda pair: (least[pair], pair))
        # A class without samples gains nothing beside a constant label, which the other pairs have as well.
        kept = [pair for k, pair in enumerate(ordered) if k == 0 or min(mass[list(pair)]) > 0.0]
        return [(current if set(pair) == set(current.tolist()) else np.array(pair), least[pair]) for pair in kept]

    def initial_choices(self, n_upper: int, n_last: int) -> Choices:
        sides = np.ones((n_upper, self.n_classes), dtype=np.int64)
        sides[:, 0] = -1
        return Choices(sides=sides, labels=np.tile([0, 1], (n_last, 1)))

    def proof_losses(self) -> dict[str, Any]:
        return {"kind": "classes", "count": self.n_classes}

    def class_penalties(self, choices: Choices) -> tuple[FloatArray, FloatArray]:
        classes = np.arange(self.n_classes)
        p = np.vstack([choices.sides > 0, choices.labels[:, :1] != classes])
        m = np.vstack([choices.sides < 0, choices.labels[:, 1:] != classes])
        return p.astype(np.float64), m.astype(np.float64)

    def check_choices(self, choices: Choices, n_upper: int, n_last: int) -> Choices:
        K = self.n_classes
        sides, labels = (np.array(a, dtype=np.int64) for a in (choices.sides, choices.labels))
        if sides.shape != (n_upper, K) or labels.shape != (n_last, 2):
            raise ValueError(
                f"sides and labels of a tree with {n_upper} upper and {n_last} last-level nodes for {K} classes have "
                f"shapes {(n_upper, K)} and {(n_last, 2)}, got {sides.shape} and {labels.shape}"
            )
        if np.any(np.abs(sides) != 1) or np.any(sides[:, 0] != -1) or not np.all((sides == 1).any(axis=1)):
            raise ValueError("sides are -1 and +1, both at every node, and -1 for the first class")
        if np.any(labels < 0) or np.any(labels >= K) or np.any(labels[:, 0] == labels[:, 1]):
            raise ValueError(f"the two labels of a last-level node are different class numbers below {K}")
        for array in (sides, labels):
            array.setflags(write=False)
        return Choices(sides=sides, labels=labels)

    def best_choice(
        self,
        y: NDArray[Any],
        weight: FloatArray,
        h: FloatArray,
        b: float,
        *,
        last: bool,
        mass: FloatArray | None = None,
    ) -> IndexArray:
        right, left = class_losses(y, weight, self.n_classes, h)
        if not last:
            return best_sides(right, left)
        return best_labels(right, left, self.mass(y, weight) if mass is None else mass, b >= 0)

    def mass(self, y: NDArray[Any], weight: FloatArray) -> FloatArray:
        total: FloatArray = np.bincount(y, weights=weight, minlength=self.n_classes).astype(np.float64)
        return total

    def conditional_losses(self, y: NDArray[Any], *, last: bool) -> ConditionalLosses:
        n = len(y)
        # A sample has no loss on a side of a last-level node if the label of the other leaf is its class.
        variable, value = ([y, self.n_classes + y], [0, 0]) if last else ([y, y], [1, 0])
        return ConditionalLosses(
            rows=np.tile(np.arange(n), 2),
            label=np.repeat([1.0, -1.0], n),
            corner=np.ones(2 * n),
            penalty=np.ones(2 * n),
            side=np.zeros(2 * n, dtype=np.int64),
            variable=np.concatenate(variable),
            value=np.repeat(value, n),
        )

    def choice_variables(self, *, last: bool) -> ChoiceVariables:
        """Upper nodes: whether the target side of each class is the right.  Last level: the labels, left then right."""
        K = self.n_classes
        if not last:
            some, upper = np.ones((1, K)), (np.arange(K) > 0).astype(np.float64)
            return ChoiceVariables(upper=upper, rows=some, low=np.ones(1), high=np.full(1, np.inf))
        one = np.kron(np.eye(2), np.ones(K))
        in_order = np.kron([-1.0, 1.0], np.arange(K))
        return ChoiceVariables(
            upper=np.ones(2 * K),
            rows=np.vstack([one, in_order]),
            low=np.ones(3),
            high=np.array([1.0, 1.0, np.inf]),
        )

    def encode_choice(self, choice: IndexArray, *, last: bool) -> IndexArray:
        if not last:
            return (choice > 0).astype(np.int64)
        return (choice[:, None] == np.arange(self.n_classes)).ravel().astype(np.int64)

    def decode_choice(self, values: FloatArray, *, last: bool) -> IndexArray:
        if not last:
            return np.where(values > 0.5, 1, -1)
        return np.argmax(values.reshape(2, self.n_classes), axis=1)

    def last_choices(self) -> list[IndexArray]:
        return [np.array(pair) for pair in itertools.combinations(range(self.n_classes), 2)]

    def allowed_last_choice(self, choice: IndexArray) -> tuple[IndexArray, bool]:
        return np.sort(choice), bool(choice[0] > choice[1])


def class_losses(y: IndexArray, weight: FloatArray, n_classes: int, h: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The hinge losses of each class if its target side is the right, and if it is the left (without ``C``)."""
    losses = (weight * np.maximum(0.0, 1.0 - h), weight * np.maximum(0.0, 1.0 + h))
    right, left = (np.bincount(y, weights=part, minlength=n_classes).astype(np.float64) for part in losses)
    return right, left


def best_sides(right: FloatArray, left: FloatArray) -> IndexArray:
    """The target side of every class with the smaller loss; right for equal losses, left for the first class.

    At least one class has the right as target side.
    """
    sides = np.where(right <= left, 1, -1)
    sides[0] = -1
    if not np.any(sides > 0):
        sides[1 + int(np.argmin(right[1:] - left[1:]))] = 1
    return sides


def best_labels(right: FloatArray, left: FloatArray, mass: FloatArray, goes_right: bool) -> IndexArray:
    """The two labels with the smallest loss.

    Label ``a`` of the left leaf saves the loss ``right[a]``, label ``b`` of the right leaf saves ``left[b]``. Of pairs
    with equal losses the one with the larger ``mass`` is taken, where the leaf to which a hyperplane without weights
    sends all samples (``goes_right``) counts twice; then the smaller left label.
    """
    K = len(mass)
    saved = right[:, None] + left[None, :]
    saved[np.arange(K), np.arange(K)] = -np.inf
    total = float(np.sum(right) + np.sum(left))
    heavy = (mass[:, None] + 2 * mass[None, :]) if goes_right else (2 * mass[:, None] + mass[None, :])
    heavy = np.where(saved >= np.max(saved) - _EQUAL * (1.0 + total), heavy, -np.inf)
    a, b = np.unravel_index(int(np.argmax(heavy)), heavy.shape)
    return np.array([a, b], dtype=np.int64)
