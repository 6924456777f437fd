"""Passes over many samples that neither copy all of them nor sort them by columns that decide nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]

#: Bytes of samples looked at together: so few that they stay near the processor and in memory the process has already.
_BYTES = 1 << 17


def blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """The rows of a table in consecutive slices of a hundred kilobytes or so; one slice if they are few."""
    step = max(1, _BYTES // (8 * max(1, n_columns)))
    return (slice(k, k + step) for k in range(0, n_rows, step))


def heights(X: FloatArray, rows: IndexArray, w: FloatArray, b: float) -> FloatArray:
    """``h = w.x + b`` of some rows of ``X``."""
    used = np.flatnonzero(w)
    if len(used) <= 1:
        return X[rows, used[0]] * w[used[0]] + b if len(used) else np.full(len(rows), float(b))
    if len(rows) == len(X) and np.array_equal(rows, np.arange(len(X))):
        return X @ w + b
    h = np.empty(len(rows))
    for part in blocks(len(rows), X.shape[1]):
        h[part] = X[rows[part]] @ w
    return h + b


def sort_rows(columns: Iterable[NDArray[Any]]) -> tuple[IndexArray, NDArray[np.bool_]]:
    """The order of the rows by their first column, equals by the second and so on, and which of them, in that order,
    differ from the one before.

    The same order as that of :func:`numpy.lexsort`, but a column is sorted only among rows that all columns before it
    leave equal: with numbers that rarely coincide, that is one column and not all of them.
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
    """Sort each group of equal rows by one more column, and part it where that differs."""
    at = np.flatnonzero(~new | np.append(~new[1:], False))  # rows that have an equal
    group, value = np.cumsum(new[at]), column[order[at]]
    busy = np.zeros(int(group[-1]) + 1, dtype=bool)
    busy[group[1:][(group[1:] == group[:-1]) & (value[1:] != value[:-1])]] = True
    here = busy[group]
    at, group, value = at[here], group[here], value[here]
    by = np.lexsort((value, group))
    order[at], value = order[at[by]], value[by]
    new[at[1:]] |= (group[1:] == group[:-1]) & (value[1:] != value[:-1])
