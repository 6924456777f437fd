"""The working set of the active-set method, factored so that steps keep what must be kept.

A step ``d`` of the free multipliers must leave ``y.a`` and the kinks alone: ``W'd = 0`` where the columns of ``W`` are
``y_F`` and ``A_F,j`` for the features on their kink.  The factorisation ``W = Q [R; 0]`` with orthogonal ``Q = [Y Z]``
gives all such steps as ``d = Z u``, and the multipliers of the constraints (``b`` and the kink weights) from ``R``.
Rows and columns come and go by plane rotations.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.subset.compiled import inner
from margotree.engines.subset.rows import Rows
from margotree.problem.problem import FloatArray

I8 = NDArray[np.int64]

N_FREE, N_COLUMNS = 0, 1
#: Columns whose part outside the others is smaller than this share of them count as dependent.
_DEPENDENT = 1e-9


class Basis(NamedTuple):
    """``free`` lists the free rows and ``column`` the kink features; column 0 belongs to ``b``."""

    free: I8
    column: I8
    Qt: FloatArray  # row k is column k of Q
    R: FloatArray
    work: FloatArray  # scratch vectors
    n: I8  # how many free rows and columns there are


def new_basis(n_free: int, n_columns: int) -> Basis:
    """Room for this many free rows and kink features."""
    n_columns = n_columns + 1
    return Basis(
        np.zeros(n_free, np.int64),
        np.zeros(n_columns, np.int64),
        np.zeros((n_free, n_free)),
        np.zeros((n_free, n_columns)),
        np.zeros((4, max(n_free, n_columns))),
        np.zeros(2, np.int64),
    )


@inner
def _rotate(M: FloatArray, p: int, q: int, c: float, s: float, first: int, last: int) -> None:
    for k in range(first, last):
        u = M[p, k]
        v = M[q, k]
        M[p, k] = c * u + s * v
        M[q, k] = c * v - s * u


@inner
def _mix(basis: Basis, p: int, q: int, c: float, s: float) -> None:
    """Rotate columns p and q of Q, and the same rows of R, from column ``p`` of R on."""
    _rotate(basis.Qt, p, q, c, s, 0, basis.n[N_FREE])
    _rotate(basis.R, p, q, c, s, min(p, q), basis.n[N_COLUMNS])


@inner
def clear(basis: Basis) -> None:
    basis.n[:] = 0


@inner
def add_row(rows: Rows, basis: Basis, i: int) -> None:
    """Free row ``i``."""
    f = basis.n[N_FREE]
    Qt = basis.Qt
    R = basis.R
    basis.free[f] = i
    for k in range(f):
        Qt[k, f] = 0.0
        Qt[f, k] = 0.0
    Qt[f, f] = 1.0
    if f == 0:
        basis.n[N_COLUMNS] = 1
        R[0, 0] = rows.y[i]
        basis.n[N_FREE] = 1
        return
    columns = basis.n[N_COLUMNS]
    R[f, 0] = rows.y[i]
    for k in range(1, columns):
        R[f, k] = rows.A[i, basis.column[k]]
    basis.n[N_FREE] = f + 1
    for k in range(columns):
        radius = math.hypot(R[k, k], R[f, k])
        if R[f, k] != 0.0:
            _mix(basis, k, f, R[k, k] / radius, R[f, k] / radius)


@inner
def remove_row(basis: Basis, p: int) -> None:
    """Take the p-th free row out."""
    last = basis.n[N_FREE] - 1
    columns = basis.n[N_COLUMNS]
    Qt = basis.Qt
    if last == 0:
        clear(basis)
        return
    for k in range(columns):
        basis.R[last, k] = 0.0
    # Turn Q until row p of it is the last unit vector; the columns of Z first, so that R keeps its triangle.
    for step in range(last):
        k = columns + step if columns + step < last else last - 1 - step
        radius = math.hypot(Qt[last, p], Qt[k, p])
        if Qt[k, p] != 0.0:
            c = Qt[last, p] / radius
            s = Qt[k, p] / radius
            _rotate(Qt, last, k, c, s, 0, last + 1)
            if k < columns:
                _rotate(basis.R, last, k, c, s, k, columns)
    basis.free[p] = basis.free[last]
    for k in range(last):
        Qt[k, p] = Qt[k, last]
    basis.n[N_FREE] = last


@inner
def add_column(rows: Rows, basis: Basis, j: int) -> bool:
    """Hold feature ``j`` on its kink; False, and nothing done, if the free rows cannot tell it from the others."""
    f = basis.n[N_FREE]
    c = basis.n[N_COLUMNS]
    Qt = basis.Qt
    turned = basis.work[0]
    size = 0.0
    tail = 0.0
    for k in range(f):
        s = 0.0
        for q in range(f):
            s += Qt[k, q] * rows.A[basis.free[q], j]
        turned[k] = s
        size += s * s
        if k >= c:
            tail += s * s
    if c >= f or tail <= _DEPENDENT * _DEPENDENT * size:
        return False
    for k in range(f - 1, c, -1):
        radius = math.hypot(turned[k - 1], turned[k])
        if turned[k] != 0.0:
            _rotate(Qt, k - 1, k, turned[k - 1] / radius, turned[k] / radius, 0, f)
            turned[k - 1] = radius
    for k in range(c + 1):
        basis.R[k, c] = turned[k]
    basis.column[c] = j
    basis.n[N_COLUMNS] = c + 1
    return True


@inner
def remove_column(basis: Basis, j: int) -> None:
    """Let feature ``j`` leave its kink."""
    c = basis.n[N_COLUMNS] - 1
    R = basis.R
    at = 1
    while basis.column[at] != j:
        at += 1
    for k in range(at, c):
        basis.column[k] = basis.column[k + 1]
        for r in range(k + 2):
            R[r, k] = R[r, k + 1]
    basis.n[N_COLUMNS] = c
    for k in range(at, c):
        radius = math.hypot(R[k, k], R[k + 1, k])
        if R[k + 1, k] != 0.0:
            _mix(basis, k, k + 1, R[k, k] / radius, R[k + 1, k] / radius)


@inner
def multipliers(basis: Basis, target: FloatArray, out: FloatArray) -> None:
    """The ``out`` (first ``b``, then kink weights) with ``W out`` nearest to ``target``, one entry a free row."""
    f = basis.n[N_FREE]
    c = basis.n[N_COLUMNS]
    for k in range(c):
        s = 0.0
        for q in range(f):
            s += basis.Qt[k, q] * target[q]
        out[k] = s
    for k in range(c - 1, -1, -1):
        s = out[k]
        for q in range(k + 1, c):
            s -= basis.R[k, q] * out[q]
        out[k] = s / basis.R[k, k]
