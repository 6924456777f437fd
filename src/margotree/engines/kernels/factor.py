"""Cholesky factor of the free items' Gram matrix, grown and shrunk one item at a time.

The matrix is ``H = X_F X_F' + rho c_F c_F'``: the Gram matrix of the points with their bias coordinate, positive
definite as long as the free points are affinely independent.  The ``rho`` term drops out of every direction that
keeps ``sum c mu`` fixed, so it changes conditioning and nothing else.
"""

from __future__ import annotations

import math

from numba import njit

from margotree.engines.kernels.state import F8, N_FREE, NodeState, dot

RHO = 1.0
#: Squared pivots below this share of the diagonal count as linear dependence.
DEPENDENT = 1e-11


@njit(cache=True, nogil=True)
def gram(state: NodeState, i: int, j: int) -> float:
    return dot(state.X[i], state.X[j]) + RHO * state.c[i] * state.c[j]


@njit(cache=True, nogil=True)
def solve_lower(L: F8, rhs: F8, k: int) -> None:
    """``rhs <- L^-1 rhs`` for the leading k rows."""
    for r in range(k):
        s = rhs[r]
        for q in range(r):
            s -= L[r, q] * rhs[q]
        rhs[r] = s / L[r, r]


@njit(cache=True, nogil=True)
def solve_upper(L: F8, rhs: F8, k: int) -> None:
    """``rhs <- L^-T rhs`` for the leading k rows."""
    for r in range(k - 1, -1, -1):
        s = rhs[r] / L[r, r]
        rhs[r] = s
        for q in range(r):
            rhs[q] -= L[r, q] * s


@njit(cache=True, nogil=True)
def append(state: NodeState, i: int, z: F8, pivot2: float) -> None:
    """Put item ``i`` last among the free ones; ``z`` is ``L^-1`` of its Gram column, ``pivot2`` its squared pivot."""
    k = state.cnt[N_FREE]
    for q in range(k):
        state.L[k, q] = z[q]
    state.L[k, k] = math.sqrt(pivot2)
    state.free[k] = i
    state.cnt[N_FREE] = k + 1


@njit(cache=True, nogil=True)
def drop(state: NodeState, p: int) -> None:
    """Take the p-th free item out; rotations restore the triangle."""
    L = state.L
    k = state.cnt[N_FREE]
    for r in range(p, k - 1):
        state.free[r] = state.free[r + 1]
        for q in range(r + 2):
            L[r, q] = L[r + 1, q]
    for r in range(p, k - 1):
        a = L[r, r]
        b = L[r, r + 1]
        rad = math.hypot(a, b)
        cs = a / rad
        sn = b / rad
        L[r, r] = rad
        for q in range(r + 1, k - 1):
            u = L[q, r]
            v = L[q, r + 1]
            L[q, r] = cs * u + sn * v
            L[q, r + 1] = cs * v - sn * u
    state.cnt[N_FREE] = k - 1
