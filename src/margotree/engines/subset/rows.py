"""The constraint rows of one node problem, in the form that the compiled code of this folder works on.

Every row asks for ``A_i.w + y_i b >= p_i`` and has a multiplier ``0 <= a_i <= cost_i``.  A sample gives the soft row
``y_i (x_i.w + b) >= 1`` with its cost; a sample with a prescribed side gives one more row of infinite cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.problem.blocks import sort_rows
from margotree.problem.problem import FloatArray


class Rows(NamedTuple):
    """Rows over all features; features are centred, which moves ``b`` and nothing else."""

    A: FloatArray  # (rows, n)
    At: FloatArray  # its transpose
    y: FloatArray
    p: FloatArray
    cost: FloatArray


def centre(X: FloatArray) -> FloatArray:
    """What is subtracted from every sample; 0 if there is none."""
    middle: FloatArray = np.sum(X, axis=0) / max(1, len(X))
    return middle


def make_rows(
    X: FloatArray, y: FloatArray, cost: FloatArray, side: NDArray[np.int8], corners: tuple[float, float]
) -> Rows:
    """Rows of a node problem, equal ones merged; ``corners``: how far right or left a sample with a side must lie."""
    centred = X - centre(X)
    placed = np.flatnonzero(side)
    turn = side[placed].astype(np.float64)
    rows = _rows(
        np.vstack([centred * y[:, None], centred[placed] * turn[:, None]]),
        np.concatenate([y, turn]),
        np.concatenate([np.ones(len(y)), np.where(turn > 0, corners[0], corners[1])]),
        np.concatenate([cost, np.full(len(placed), np.inf)]),
    )
    rows = _some(rows, rows.cost > 0)
    if not len(rows.y):
        return rows
    order, new = sort_rows([*rows.A.T, rows.y, rows.p])
    which = np.empty_like(order)
    which[order] = np.cumsum(new) - 1
    return _merged(rows, rows.A, order[new], which)


def _rows(A: FloatArray, y: FloatArray, p: FloatArray, cost: FloatArray) -> Rows:
    A = np.ascontiguousarray(A)
    return Rows(A, np.ascontiguousarray(A.T), y, p, cost)


def _some(rows: Rows, keep: NDArray[np.bool_]) -> Rows:
    return _rows(rows.A[keep], rows.y[keep], rows.p[keep], rows.cost[keep])


def _merged(rows: Rows, A: FloatArray, first: NDArray[np.int64], which: NDArray[np.int64]) -> Rows:
    """One row for each group: ``first`` is a member of every group, ``which`` the group of every row."""
    cost: FloatArray = np.bincount(which, weights=rows.cost).astype(np.float64)
    return _rows(A[first], rows.y[first], rows.p[first], cost)


class Grouping:
    """Finds equal rows on a few features fast, for data whose features take few values."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._codes = []
        self._sizes = []
        _, kind = np.unique(np.column_stack([rows.y, rows.p]), axis=0, return_inverse=True)
        self._base = kind.ravel().astype(np.int64)
        self._kinds = int(self._base.max()) + 1 if len(self._base) else 1
        # A row of label -1 holds -x: turn it back, so that the codes speak of x.
        for column in (rows.A * rows.y[:, None]).T:
            values, code = np.unique(column, return_inverse=True)
            self._codes.append(code.ravel().astype(np.int64))
            self._sizes.append(len(values))

    def on(self, support: NDArray[np.int64]) -> Rows:
        """The rows restricted to ``support``, equal ones merged if that at least halves them."""
        A = self.rows.A[:, support]
        cells = float(self._kinds) * float(np.prod([float(self._sizes[j]) for j in support]))
        if 2 * cells > len(A):
            return _rows(A, self.rows.y, self.rows.p, self.rows.cost)
        key = self._base
        for j in support:
            key = key * self._sizes[j] + self._codes[j]
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        return _merged(self.rows, A, first, which.ravel())
