"""Rows to leaves in compiled code, for predictions on many rows (:mod:`margotree.tree.routing`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.numba_backend import kernel

F8 = NDArray[np.float64]


@kernel(fastmath={"reassoc", "contract"})  # any order of summation is within the rounding allowed for
def leaves_by_row(X: F8, W: F8, level: F8, length: F8, fixed: F8, rounding: float, depth: int) -> NDArray[np.int64]:
    """The leaf of each row; -1 where a height is too near 0 to be sure of, or is no number."""
    n, p = X.shape
    leaf = np.empty(n, dtype=np.int64)
    for i in range(n):
        square, height = 0.0, 0.0
        for j in range(p):
            square += X[i, j] * X[i, j]
            height += W[0, j] * X[i, j]
        size, at = np.sqrt(square), 0
        for k in range(depth):
            if k > 0:
                height = 0.0
                for j in range(p):
                    height += W[at, j] * X[i, j]
            height -= level[at]
            if not abs(height) > rounding * (length[at] * size + fixed[at]):
                at = -1
                break
            at = 2 * at + (2 if height >= 0.0 else 1)
        leaf[i] = at
    return leaf


def route_tiny() -> None:
    """Route one row, to have the kernel compiled."""
    row, one = np.zeros((1, 1)), np.zeros(1)
    leaves_by_row(row, row, one, one, one, 1.0, 1)
