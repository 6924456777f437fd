"""What a task defines, and the losses of samples as all algorithms use them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.problem.blocks import FloatArray, IndexArray
from margotree.problem.tasks.binaries import NO_VARIABLES, ChoiceVariables, ConditionalLosses

#: The choice at a node of a task that has none.
NO_CHOICE: IndexArray = np.zeros(0, dtype=np.int64)


class Items(NamedTuple):
    """The losses ``p max(0, r - h) + m max(0, h - l)`` of samples at a node, without ``C`` and sample weights.

    With ``squared`` they are ``p max(0, r - h)^2 + m max(0, h - l)^2``.

    Parameters
    ----------
    p, r : array of shape (n,)
        Penalty of a value ``h`` below the corner ``r``, and that corner.
    m, l : array of shape (n,)
        Penalty of a value ``h`` above the corner ``l``, and that corner.
    squared : bool
        Whether losses grow with the square of the distance from the corner.
    """

    p: FloatArray
    m: FloatArray
    r: FloatArray
    l: FloatArray  # noqa: E741
    squared: bool = False

    def loss(self, h: FloatArray) -> FloatArray:
        """The loss of every sample whose value at the node's hyperplane is ``h``."""
        below, above = self.r - h, h - self.l
        for excess in (below, above):
            np.maximum(0.0, excess, out=excess)
            if self.squared:
                excess *= excess
        below *= self.p  # both arrays are new; more of them would take much memory for many samples
        above *= self.m
        below += above
        return below

    def slope(self, h: FloatArray) -> FloatArray:
        """The derivative of :meth:`loss` with respect to ``h``; at a corner without square, 0."""
        below, above = np.maximum(0.0, self.r - h), np.maximum(0.0, h - self.l)
        if self.squared:
            return 2.0 * (self.m * above - self.p * below)
        return np.where(above > 0.0, self.m, 0.0) - np.where(below > 0.0, self.p, 0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Choices:
    """What is discrete in a tree besides its routing.

    Parameters
    ----------
    sides : array of shape (n_upper, n_classes)
        Target side of each class at each upper node, -1 (left) or +1 (right).
    labels : array of shape (n_last, 2)
        Class of the left and of the right leaf below each last-level node.

    For tasks without choices, such as two classes, the arrays have no columns.
    """

    sides: IndexArray
    labels: IndexArray

    @classmethod
    def none(cls, n_upper: int, n_last: int) -> Choices:
        """The choices of a task that has none."""
        return cls(sides=np.zeros((n_upper, 0), dtype=np.int64), labels=np.zeros((n_last, 0), dtype=np.int64))

    def at(self, t: int) -> IndexArray:
        """The choice at node ``t``: the sides of the classes or the two labels."""
        return self.sides[t] if t < len(self.sides) else self.labels[t - len(self.sides)]


class OneSided(NamedTuple):
    """The losses ``cost max(0, corner - label h)`` of rows; a sample with losses on both sides has two rows."""

    rows: IndexArray  # positions of the samples
    label: FloatArray  # +1 or -1
    corner: FloatArray
    cost: FloatArray


def one_sided(items: Items, cost: FloatArray) -> OneSided:
    """The losses of samples, times their ``cost``, one side per row: first those below a corner, then those above."""
    below, above = np.flatnonzero(items.p), np.flatnonzero(items.m)
    return OneSided(
        rows=np.concatenate([below, above]),
        label=np.repeat([1.0, -1.0], [len(below), len(above)]),
        corner=np.concatenate([items.r[below], -items.l[above]]),
        cost=np.concatenate([(items.p * cost)[below], (items.m * cost)[above]]),
    )


class Task(ABC):
    """What the targets are and which losses they have.

    A task has no state but its parameters. Everything else is in the :class:`~margotree.problem.Problem`.
    """

    #: The name in files and messages.
    name: str
    #: Number of classes; 0 where the target is a number.
    n_classes: int = 0
    #: Whether at upper nodes the penalty ``p`` is only for samples that go right, ``m`` only for those that go left.
    losses_follow_side: bool = False
    #: Whether the losses at the last level are squared, see :class:`Items`; those at upper nodes never are.
    squares_losses: bool = False
    #: Whether nodes have something discrete to choose, see :class:`Choices`.
    has_choices: bool = False

    @abstractmethod
    def targets(self, y: ArrayLike) -> NDArray[Any]:
        """Check the targets of a problem and return them as an array; ValueError says what is wrong."""

    @abstractmethod
    def items(
        self,
        y: NDArray[Any],
        *,
        last: bool,
        side: IndexArray | None = None,
        choice: IndexArray = NO_CHOICE,
    ) -> Items:
        """The losses of samples at a node.

        Parameters
        ----------
        y : array of shape (n,)
            Targets of the samples.
        last : bool
            Whether the node is on the last level.
        side : array of shape (n,), optional
            Side that each sample takes at an upper node, -1 or +1.
        choice : array, optional
            The choice at the node, see :meth:`Choices.at`.
        """

    @abstractmethod
    def codes(self, y: NDArray[Any]) -> IndexArray:
        """The class of every sample as a number from 0 on; 0 for all samples where the target is a number."""

    @abstractmethod
    def responses(self, y: NDArray[Any]) -> FloatArray:
        """Columns whose squared deviations from the means on the two sides measure the impurity of a split, as in CART.

        With one column per class, 1 for the samples of the class, this is the Gini impurity.
        """

    def initial_choices(self, n_upper: int, n_last: int) -> Choices:
        """Some allowed choices of a tree, in arrays that can be written to."""
        return Choices.none(n_upper, n_last)

    def random_choice(
        self, X: FloatArray, y: NDArray[Any], weight: FloatArray, rng: np.random.Generator
    ) -> IndexArray | None:
        """A choice for an upper node with these samples, drawn at random; None if they give no reason for a split."""
        return NO_CHOICE

    def random_choices(
        self, X: FloatArray, y: NDArray[Any], weight: FloatArray, depth: int, rng: np.random.Generator
    ) -> Choices:
        """The choices of a tree of this depth, drawn at random."""
        return Choices.none(2 ** (depth - 1) - 1, 2 ** (depth - 1))

    def upper_choices(
        self, X: FloatArray, y: NDArray[Any], weight: FloatArray, n_leaves: int, rng: np.random.Generator
    ) -> list[IndexArray]:
        """The choices for an upper node among which the greedy tree selects; empty if there is no reason for a split.

        ``n_leaves`` is the number of leaves below each child.
        """
        return [NO_CHOICE]

    def other_choices(
        self, choice: IndexArray, y: NDArray[Any], gain: FloatArray, rng: np.random.Generator
    ) -> list[IndexArray]:
        """Choices for an upper node that are worth a try besides the current one.

        ``gain`` is what each sample saves in the subtrees if it goes right instead of left.
        """
        return []

    def promising_last_choices(self, mass: FloatArray, current: IndexArray) -> list[tuple[IndexArray, float]]:
        """Choices for a last-level node that are worth a try, each with a lower bound on the losses (without ``C``).

        ``mass`` is the result of :meth:`mass` for its samples, ``current`` its choice; the bounds are in ascending
        order.
        """
        return [(NO_CHOICE, 0.0)]

    def class_penalties(self, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """The penalties ``p`` and ``m`` of :class:`Items` by node and class, for tasks where these determine them."""
        raise NotImplementedError(f"the losses of a {self.name} problem do not depend on classes")

    def check_choices(self, choices: Choices, n_upper: int, n_last: int) -> Choices:
        """Check choices for a tree of this size and return them; ValueError says what is wrong."""
        if choices.sides.size or choices.labels.size:
            raise ValueError(f"a {self.name} problem has no sides of classes and no labels to choose")
        return choices

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
        """The choice with the smallest loss at a node whose samples have the values ``h``.

        ``b`` is the offset of the hyperplane. ``mass`` is the result of :meth:`mass` for the samples at the node or, if
        there are none, at the nearest node above; it decides between choices of equal loss.
        """
        return NO_CHOICE

    def proof_losses(self) -> dict[str, Any] | None:
        """How a proof states the losses: the entry ``losses`` of its header (docs/proof.md).

        A task can have proofs if its items are of one of the kinds ``labels``, ``classes`` and ``intervals``. None, the
        default: no proof can be written.
        """
        return None

    def mass(self, y: NDArray[Any], weight: FloatArray) -> FloatArray:
        """Total weight per class of some samples; an empty array for tasks without classes."""
        return np.zeros(0)

    def conditional_losses(self, y: NDArray[Any], *, last: bool) -> ConditionalLosses:
        """All losses that samples can have at a node.

        By default those of :meth:`items`, for tasks without choices and without squared losses.
        """
        if self.squares_losses:
            raise ValueError(f"the squared losses of a {self.name} problem are not piecewise linear")
        right = self.items(y, last=last, side=np.ones(len(y), dtype=np.int64))
        left = right if last else self.items(y, last=last, side=np.full(len(y), -1))
        parts: list[tuple[IndexArray, float, FloatArray, FloatArray, int]] = []
        for label, (p, corner), (q, other) in (
            (1.0, (right.p, right.r), (left.p, left.r)),
            (-1.0, (right.m, -right.l), (left.m, -left.l)),
        ):
            same = (p == q) & (corner == other)
            for side, where, penalty, at in ((0, same, p, corner), (1, ~same, p, corner), (-1, ~same, q, other)):
                rows = np.flatnonzero(where & (penalty > 0))
                parts.append((rows, label, at[rows], penalty[rows], side))
        rows = np.concatenate([part[0] for part in parts])
        order = np.argsort(rows, kind="stable")
        size = [len(part[0]) for part in parts]
        return ConditionalLosses(
            rows=rows[order],
            label=np.repeat([part[1] for part in parts], size)[order],
            corner=np.concatenate([part[2] for part in parts])[order],
            penalty=np.concatenate([part[3] for part in parts])[order],
            side=np.repeat([part[4] for part in parts], size)[order],
            variable=np.full(len(rows), -1),
            value=np.zeros(len(rows), dtype=np.int64),
        )

    def choice_variables(self, *, last: bool) -> ChoiceVariables:
        """The choice at a node as binary variables."""
        return NO_VARIABLES

    def encode_choice(self, choice: IndexArray, *, last: bool) -> IndexArray:
        """The values of :meth:`choice_variables` for a choice."""
        return NO_CHOICE

    def decode_choice(self, values: FloatArray, *, last: bool) -> IndexArray:
        """The choice for values of :meth:`choice_variables`, which may be slightly off 0 and 1."""
        return NO_CHOICE

    def last_choices(self) -> list[IndexArray]:
        """The choices at a last-level node that :meth:`choice_variables` allows."""
        return [NO_CHOICE]

    def allowed_last_choice(self, choice: IndexArray) -> tuple[IndexArray, bool]:
        """The same choice at a last-level node as one of :meth:`last_choices`, and whether the hyperplane is reversed.

        Reversing exchanges the two leaves.
        """
        return choice, False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *sorted(vars(self).items())))


def corners(n: int) -> tuple[FloatArray, FloatArray]:
    """The corners of hinge losses: ``r`` = 1 and ``l`` = -1 for every sample, as read-only views of one number."""
    return np.broadcast_to(np.float64(1.0), n), np.broadcast_to(np.float64(-1.0), n)


def check_items(task: Task, y: NDArray[Any]) -> None:
    """ValueError if a task without choices has losses that the algorithms do not know."""
    if task.has_choices:
        return
    right, left = np.ones(len(y), dtype=np.int64), np.full(len(y), -1, dtype=np.int64)
    last, *upper = task.items(y, last=True), *(task.items(y, last=False, side=side) for side in (right, left))
    if bool(last.squared) != task.squares_losses or any(items.squared for items in upper):
        raise ValueError(
            f"a {task.name} problem has squared losses at all last-level nodes if squares_losses is set, and at no "
            "other node"
        )
    for items in (last, *upper):
        if not all(np.all(np.isfinite(part)) for part in items[:4]):
            raise ValueError(f"the penalties and corners of a {task.name} problem must be finite")
        if np.any((items.p < 0.0) | (items.m < 0.0)):
            raise ValueError(f"the penalties p and m of a {task.name} problem must not be negative")
        if np.any((items.p > 0.0) & (items.m > 0.0) & (items.r > items.l)):
            raise ValueError(
                f"the losses of a {task.name} problem must not overlap: the corner r, below which the penalty is p, "
                "is at most the corner l, above which it is m"
            )
