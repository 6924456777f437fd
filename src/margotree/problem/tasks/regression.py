"""Numeric targets: last-level hyperplanes are linear support vector regressions, upper ones have a margin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.problem.blocks import FloatArray, IndexArray
from margotree.problem.tasks.base import NO_CHOICE, Choices, Items, Task, corners


class Regression(Task):
    """Numeric targets.

    At a last-level node ``h(x)`` is the prediction, with the epsilon-insensitive loss ``max(0, |y - h| - epsilon)``. At
    an upper node the loss is ``max(0, 1 - s h)``, where ``s`` is the side that the sample takes: -1 or +1.

    Parameters
    ----------
    epsilon : float
        Errors up to this size have no loss.
    """

    name = "regression"
    losses_follow_side = True

    def __init__(self, epsilon: float = 0.0) -> None:
        if not (np.isfinite(epsilon) and epsilon >= 0.0):
            raise ValueError(f"epsilon must be a finite number and not negative, got {epsilon!r}")
        self.epsilon = float(epsilon)

    def targets(self, y: ArrayLike) -> FloatArray:
        targets = np.array(y, dtype=np.float64).ravel()
        if not np.all(np.isfinite(targets)):
            raise ValueError("targets must not contain NaN or infinity")
        return targets

    def codes(self, y: NDArray[Any]) -> IndexArray:
        return np.zeros(len(y), dtype=np.int64)

    def class_penalties(self, choices: Choices) -> tuple[FloatArray, FloatArray]:
        n_nodes = len(choices.sides) + len(choices.labels)
        return np.ones((n_nodes, 1)), np.ones((n_nodes, 1))

    def responses(self, y: NDArray[Any]) -> FloatArray:
        # A constant changes no deviation; large ones would only add rounding errors.
        return (y - np.median(y))[:, None]

    def items(
        self,
        y: NDArray[Any],
        *,
        last: bool,
        side: IndexArray | None = None,
        choice: IndexArray = NO_CHOICE,
    ) -> Items:
        if last:
            both = np.ones(len(y))
            return Items(p=both, m=both, r=y - self.epsilon, l=y + self.epsilon)
        assert side is not None
        r, l = corners(len(y))  # noqa: E741
        return Items(p=(side > 0).astype(np.float64), m=(side < 0).astype(np.float64), r=r, l=l)

    def proof_losses(self) -> dict[str, Any] | None:
        return {"kind": "intervals", "below": 1.0, "above": 1.0, "under": self.epsilon, "over": self.epsilon}


class SquaredRegression(Regression):
    """:class:`Regression` with the loss ``max(0, |y - h| - epsilon)^2`` at last-level nodes."""

    name = "squared_regression"
    squares_losses = True

    def items(
        self,
        y: NDArray[Any],
        *,
        last: bool,
        side: IndexArray | None = None,
        choice: IndexArray = NO_CHOICE,
    ) -> Items:
        return super().items(y, last=last, side=side, choice=choice)._replace(squared=last)

    def proof_losses(self) -> None:
        return None
