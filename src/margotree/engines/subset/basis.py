"""The working set of the active-set method, turned so that steps keep what must be kept.

A step ``d`` of the free multipliers must leave ``y.a`` and the kinks alone: ``W'd = 0`` where the columns of ``W`` are
``y_F`` and ``A_F,j`` for the features on their kink.  With an orthogonal ``Q = [Y Z]`` that turns ``W`` into a triangle
over zeros, all such steps are ``d = Z u``.  What the method needs of the free rows is kept turned by ``Q`` as well:
``T = Q' [A_F, p_F, y_F]`` gives the curvature along ``Z``, the change of ``g``, and, in its upper part, the triangle.
Rows and columns come and go by rotations and reflections.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.kernels.jit import inner
from margotree.engines.subset.rows import Rows
from margotree.problem.problem import FloatArray

I8 = NDArray[np.int64]

# Entries of ``n``.
N_FREE, N_COLUMNS = 0, 1
#: Columns whose part outside the others is smaller than this share of them count as dependent.
_DEPENDENT = 1e-9


class Basis(NamedTuple):
    """``free`` lists the free rows, ``column`` the columns of T that are held fixed: that of ``y``, then kinks."""

    free: I8
    column: I8
    Qt: FloatArray  # row k is column k of Q
    T: FloatArray  # one column per feature, then p, then y
    n: I8  # how many free rows and fixed columns there are


def new_basis(n_free: int, n_features: int) -> Basis:
    """Room for this many free rows."""
    return Basis(
        np.zeros(n_free, np.int64),
        np.zeros(n_features + 1, np.int64),
        np.zeros((n_free, n_free)),
        np.zeros((n_free, n_features + 2)),
        np.zeros(2, np.int64),
    )


@inner
def _rotate(M: FloatArray, p: int, q: int, c: float, s: float, length: int) -> None:
    for k in range(length):
        u = M[p, k]
        v = M[q, k]
        M[p, k] = c * u + s * v
        M[q, k] = c * v - s * u


@inner
def _turn(basis: Basis, p: int, q: int, to_p: float, to_zero: float) -> None:
    """Rotate rows p and q such that a column with these two entries there has nothing left in row q."""
    if to_zero == 0.0:
        return
    radius = math.hypot(to_p, to_zero)
    _rotate(basis.Qt, p, q, to_p / radius, to_zero / radius, basis.n[N_FREE])
    _rotate(basis.T, p, q, to_p / radius, to_zero / radius, basis.T.shape[1])


@inner
def _gather(basis: Basis, v: FloatArray, first: int, target: int) -> None:
    """Reflect the rows from ``first`` on such that a column with entries ``v`` there has all its length in one row."""
    size = 0.0
    for k in range(v.size):
        size += v[k] * v[k]
    at = target - first
    if size == v[at] * v[at]:
        return
    length = math.sqrt(size)
    v[at] += length if v[at] > 0.0 else -length
    scale = 1.0 / (length * abs(v[at]))
    _reflect(basis.T, v, first, scale, basis.T.shape[1])
    _reflect(basis.Qt, v, first, scale, basis.n[N_FREE])


@inner
def _reflect(M: FloatArray, v: FloatArray, first: int, scale: float, width: int) -> None:
    """``M <- (1 - scale v v') M`` on the rows from ``first`` on."""
    s = np.zeros(width)
    for k in range(v.size):
        row = M[first + k]
        for q in range(width):
            s[q] += v[k] * row[q]
    for k in range(v.size):
        row = M[first + k]
        share = scale * v[k]
        for q in range(width):
            row[q] -= share * s[q]


@inner
def clear(basis: Basis) -> None:
    """No free row and nothing fixed but ``y``, which is ready for the first row."""
    basis.n[N_FREE] = 0
    basis.n[N_COLUMNS] = 1
    basis.column[0] = basis.T.shape[1] - 1


@inner
def add_row(rows: Rows, basis: Basis, i: int) -> None:
    """Free row ``i``."""
    f = basis.n[N_FREE]
    T = basis.T
    width = T.shape[1]
    for k in range(f):
        basis.Qt[k, f] = 0.0
        basis.Qt[f, k] = 0.0
    basis.Qt[f, f] = 1.0
    for j in range(width - 2):
        T[f, j] = rows.A[i, j]
    T[f, width - 2] = rows.p[i]
    T[f, width - 1] = rows.y[i]
    basis.free[f] = i
    basis.n[N_FREE] = f + 1
    if f > 0:
        for k in range(basis.n[N_COLUMNS]):
            j = basis.column[k]
            _turn(basis, k, f, T[k, j], T[f, j])


@inner
def remove_row(basis: Basis, p: int) -> None:
    """Take the p-th free row out."""
    last = basis.n[N_FREE] - 1
    columns = basis.n[N_COLUMNS]
    Qt = basis.Qt
    # Turn until column p of Qt is the last unit vector: the rows of Z first, then upwards, which keeps the triangle.
    if columns < last:
        _gather(basis, Qt[columns : last + 1, p].copy(), columns, last)
    for k in range(min(columns, last) - 1, -1, -1):
        _turn(basis, last, k, Qt[last, p], Qt[k, p])
    basis.free[p] = basis.free[last]
    for k in range(last):
        Qt[k, p] = Qt[k, last]
    basis.n[N_FREE] = last


@inner
def add_column(basis: Basis, j: int) -> bool:
    """Hold feature ``j`` on its kink; False, and nothing done, if the free rows cannot tell it from the others."""
    f = basis.n[N_FREE]
    c = basis.n[N_COLUMNS]
    T = basis.T
    size = 0.0
    tail = 0.0
    for k in range(f):
        size += T[k, j] * T[k, j]
        if k >= c:
            tail += T[k, j] * T[k, j]
    if c >= f or tail <= _DEPENDENT * _DEPENDENT * size:
        return False
    _gather(basis, T[c:f, j].copy(), c, c)
    basis.column[c] = j
    basis.n[N_COLUMNS] = c + 1
    return True


@inner
def remove_column(basis: Basis, j: int) -> None:
    """Let feature ``j`` leave its kink."""
    c = basis.n[N_COLUMNS] - 1
    at = 1
    while basis.column[at] != j:
        at += 1
    for k in range(at, c):
        basis.column[k] = basis.column[k + 1]
    basis.n[N_COLUMNS] = c
    for k in range(at, c):
        j = basis.column[k]
        _turn(basis, k, k + 1, basis.T[k, j], basis.T[k + 1, j])


@inner
def solve_triangle(basis: Basis, x: FloatArray) -> None:
    """From turned right-hand sides to the multipliers of the fixed columns: first ``b``, then the kink weights."""
    c = basis.n[N_COLUMNS]
    for k in range(c - 1, -1, -1):
        s = x[k]
        for q in range(k + 1, c):
            s -= basis.T[k, basis.column[q]] * x[q]
        x[k] = s / basis.T[k, basis.column[k]]
