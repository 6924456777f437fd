"""The leaf of every row in compiled code, for predictions on many rows (:mod:`margotree.tree.routing`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.numba_backend import kernel

F8 = NDArray[np.float64]


@kernel(fastmath={"reassoc", "contract"})  # the error bound holds for any order of summation
def leaves_by_row(X: F8, W: F8, level: F8, length: F8, fixed: F8, rounding: float, depth: int) -> NDArray[np.int64]:
    """The leaf of each row; -1 where a decision value is too near 0 to be certain, or is NaN.

    Parameters
    ----------
    X : array of shape (rows, features)
        The rows.
    W, level : arrays
        Weights of every node, and the value that a row's ``w.x`` is compared with.
    length, fixed : arrays
        Per node the factors of the bound on the rounding error: ``rounding * (length |x| + fixed)``.
    rounding : float
        The relative rounding error.
    depth : int
        The depth of the tree.
    """
    n, p = X.shape
    leaf = np.empty(n, dtype=np.int64)
    for i in range(n):
        squared_norm, height = 0.0, 0.0
        for j in range(p):
            squared_norm += X[i, j] * X[i, j]
            height += W[0, j] * X[i, j]
        length_of_row, at = np.sqrt(squared_norm), 0
        for k in range(depth):
            if k > 0:
                height = 0.0
                for j in range(p):
                    height += W[at, j] * X[i, j]
            height -= level[at]
            if not abs(height) > rounding * (length[at] * length_of_row + fixed[at]):
                at = -1
                break
            at = 2 * at + (2 if height >= 0.0 else 1)
        leaf[i] = at
    return leaf


def route_tiny() -> None:
    """Route one row, so that the kernel is compiled."""
    row, one = np.zeros((1, 1)), np.zeros(1)
    leaves_by_row(row, row, one, one, one, 1.0, 1)
