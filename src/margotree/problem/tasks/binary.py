"""Two classes, -1 and +1: hinge losses toward the own class at every node."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.problem.blocks import FloatArray, IndexArray
from margotree.problem.tasks.base import NO_CHOICE, Choices, Items, Task, corners


class Binary(Task):
    """Two classes: at every node a sample of class +1 has the loss ``max(0, 1 - h)``, one of -1 ``max(0, 1 + h)``."""

    name = "binary"
    n_classes = 2

    def targets(self, y: ArrayLike) -> FloatArray:
        signs = np.array(y, dtype=np.float64).ravel()
        if not np.all(np.abs(signs) == 1.0):
            raise ValueError("y must hold -1 and +1 only")
        return signs

    def codes(self, y: NDArray[Any]) -> IndexArray:
        return (y > 0).astype(np.int64)

    def responses(self, y: NDArray[Any]) -> FloatArray:
        return np.column_stack([y < 0, y > 0]).astype(np.float64)

    def proof_losses(self) -> dict[str, Any]:
        return {"kind": "labels"}

    def class_penalties(self, choices: Choices) -> tuple[FloatArray, FloatArray]:
        n_nodes = len(choices.sides) + len(choices.labels)
        return np.tile([0.0, 1.0], (n_nodes, 1)), np.tile([1.0, 0.0], (n_nodes, 1))

    def items(
        self,
        y: NDArray[Any],
        *,
        last: bool,
        side: IndexArray | None = None,
        choice: IndexArray = NO_CHOICE,
    ) -> Items:
        r, l = corners(len(y))  # noqa: E741
        return Items(p=(y > 0).astype(np.float64), m=(y < 0).astype(np.float64), r=r, l=l)


BINARY = Binary()
