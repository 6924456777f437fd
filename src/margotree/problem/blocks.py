"""Passes over many samples without a copy of all of them, and a sort of rows that skips columns without effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]

#: Bytes of one block of samples: few enough for the processor's cache.
_BLOCK_BYTES = 1 << 17


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Consecutive slices that cover all rows of a table, each of about a hundred kilobytes."""
    step = max(1, _BLOCK_BYTES // (8 * max(1, n_columns)))
    return (slice(k, k + step) for k in range(0, n_rows, step))


def decision_values(X: FloatArray, rows: IndexArray, w: FloatArray, b: float) -> FloatArray:
    """Return ``h = w.x + b`` of the given rows of ``X``."""
    used = np.flatnonzero(w)
    if len(used) <= 1:
        return X[rows, used[0]] * w[used[0]] + b if len(used) else np.full(len(rows), float(b))
    if len(rows) == len(X) and np.array_equal(rows, np.arange(len(X))):
        return X @ w + b
    h = np.empty(len(rows))
    for part in row_blocks(len(rows), X.shape[1]):
        h[part] = X[rows[part]] @ w
    return h + b


def standard_deviation(X: FloatArray) -> FloatArray:
    """The standard deviation of each column, without the copy of ``X`` that :func:`numpy.std` makes."""
    mean, squares = np.mean(X, axis=0), np.zeros(X.shape[1])
    for part in row_blocks(*X.shape):
        squares += np.sum((X[part] - mean) ** 2, axis=0)
    found: FloatArray = np.sqrt(squares / len(X))
    return found


def sort_rows(columns: Iterable[NDArray[Any]]) -> tuple[IndexArray, NDArray[np.bool_]]:
    """Sort rows by the first column, rows that are equal there by the second, and so on.

    A column is sorted only among rows that are equal in all columns before it. With numbers that rarely coincide, one
    column is enough.

    Returns
    -------
    order : array of int
        The row numbers in sorted order, as :func:`numpy.lexsort` gives them.
    new : array of bool
        Whether a row, in sorted order, differs from the row before it.
    """
    order, new = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    for k, column in enumerate(columns):
        if k == 0:
            order, new = np.arange(len(column)), np.arange(len(column)) == 0
        if new.all():
            break
        _refine(np.asarray(column), order, new)
    return order, new


def _refine(column: NDArray[Any], order: IndexArray, new: NDArray[np.bool_]) -> None:
    """Sort each group of equal rows by one more column, and mark in ``new`` where this column differs."""
    tied = np.flatnonzero(~new | np.append(~new[1:], False))  # rows with an equal neighbour
    group, value = np.cumsum(new[tied]), column[order[tied]]
    has_difference = np.zeros(int(group[-1]) + 1, dtype=bool)
    has_difference[group[1:][(group[1:] == group[:-1]) & (value[1:] != value[:-1])]] = True
    in_group = has_difference[group]
    tied, group, value = tied[in_group], group[in_group], value[in_group]
    within_group = np.lexsort((value, group))
    order[tied], value = order[tied[within_group]], value[within_group]
    new[tied[1:]] |= (group[1:] == group[:-1]) & (value[1:] != value[:-1])
