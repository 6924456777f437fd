"""Piecewise linear losses below squared ones, for bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.problem.blocks import FloatArray, IndexArray
from margotree.problem.tasks.base import NO_CHOICE, Choices, Items, Task


class Tangents(Task):
    """A task with squared losses at the last level, with tangents of its losses in their place.

    Targets are rows: those of the task, and ``p, m, r, l`` of the sample at last-level nodes (:func:`tangents`).
    """

    name = "tangents"

    def __init__(self, task: Task) -> None:
        self.task = task
        self.losses_follow_side = task.losses_follow_side

    def targets(self, y: ArrayLike) -> FloatArray:
        return np.array(y, dtype=np.float64).reshape(-1, 5)

    def codes(self, y: NDArray[Any]) -> IndexArray:
        return self.task.codes(y[:, 0])

    def class_penalties(self, choices: Choices) -> tuple[FloatArray, FloatArray]:
        return self.task.class_penalties(choices)

    def responses(self, y: NDArray[Any]) -> FloatArray:
        return self.task.responses(y[:, 0])

    def items(
        self,
        y: NDArray[Any],
        *,
        last: bool,
        side: IndexArray | None = None,
        choice: IndexArray = NO_CHOICE,
    ) -> Items:
        if not last:
            return self.task.items(y[:, 0], last=False, side=side, choice=choice)
        return Items(*np.ascontiguousarray(y[:, 1:].T))


def tangents(task: Task, y: FloatArray, below: FloatArray, above: FloatArray) -> tuple[Tangents, FloatArray]:
    """The task with tangents at errors ``below`` and ``above`` of each sample, and the targets of its samples.

    A square is above its tangent, ``t^2 >= 2 a max(0, t - a / 2)``. Penalties are rounded down and corners outwards, so
    that no loss is larger than the squared one.
    """
    p, m, r, l, _ = task.items(y, last=True)  # noqa: E741
    down = 1.0 - 4.0 * float(np.finfo(np.float64).eps)
    rows = (
        y,
        2.0 * below * p * down,
        2.0 * above * m * down,
        np.nextafter(r - 0.5 * below, -np.inf),
        np.nextafter(l + 0.5 * above, np.inf),
    )
    found = np.column_stack(rows)
    found.setflags(write=False)
    return Tangents(task), found
