"""Cholesky factor of the free items' Gram matrix, grown and shrunk one item at a time.

The matrix is ``H = X_F X_F' + rho c_F c_F'``: the Gram matrix of the points with their bias coordinate, positive
definite as long as the free points are affinely independent.  The ``rho`` term drops out of every direction that
keeps ``sum c mu`` fixed, so it changes conditioning and nothing else.  ``v = L^-1 c_F`` is kept along with ``L``.
Where features have prices, those that are off take no part in ``X_F``.
"""

from __future__ import annotations

import math

from margotree.engines.kernels.jit import bare
from margotree.engines.kernels.state import AT_HARD, F8, N_FREE, NodeState, dot, put_off

RHO = 1.0
#: Squared pivots below this share of the diagonal count as linear dependence.
DEPENDENT = 1e-11
#: What a feature leaves of a factor when it is switched off; below this share the factor is built anew.
LITTLE = 1e-5


@bare()
def gram(state: NodeState, i: int, j: int) -> float:
    rest = RHO * state.c[i] * state.c[j]
    if state.r.size:
        return masked_dot(state.X, i, j, state.on) + rest
    return dot(state.X[i], state.X[j]) + rest


@bare()
def masked_dot(X: F8, i: int, k: int, on: F8) -> float:
    """Inner product of two samples in the features that are on."""
    s0 = s1 = 0.0
    n = on.size
    even = n - n % 2
    for j in range(0, even, 2):
        s0 += X[i, j] * X[k, j] * on[j]
        s1 += X[i, j + 1] * X[k, j + 1] * on[j + 1]
    if even < n:
        s0 += X[i, even] * X[k, even] * on[even]
    return s0 + s1


@bare()
def gram_column(state: NodeState, e: int, out: F8) -> None:
    """``out`` <- Gram entries of item ``e`` with all free items."""
    X, c, free, on = state.X, state.c, state.free, state.on
    n = X.shape[1]
    k = n - n % 2
    for p in range(state.cnt[N_FREE]):
        f = free[p]
        if on.size:
            out[p] = masked_dot(X, f, e, on) + RHO * c[f] * c[e]
            continue
        s0 = s1 = 0.0
        for j in range(0, k, 2):
            s0 += X[f, j] * X[e, j]
            s1 += X[f, j + 1] * X[e, j + 1]
        if k < n:
            s0 += X[f, k] * X[e, k]
        out[p] = s0 + s1 + RHO * c[f] * c[e]


@bare()
def solve_lower(L: F8, rhs: F8, k: int) -> None:
    """``rhs <- L^-1 rhs`` for the leading k rows."""
    for r in range(k):
        s0 = rhs[r]
        s1 = 0.0
        even = r - r % 2
        for q in range(0, even, 2):
            s0 -= L[r, q] * rhs[q]
            s1 -= L[r, q + 1] * rhs[q + 1]
        if even < r:
            s0 -= L[r, even] * rhs[even]
        rhs[r] = (s0 + s1) / L[r, r]


@bare()
def solve_upper(L: F8, rhs: F8, k: int) -> None:
    """``rhs <- L^-T rhs`` for the leading k rows."""
    for r in range(k - 1, -1, -1):
        s = rhs[r] / L[r, r]
        rhs[r] = s
        for q in range(r):
            rhs[q] -= L[r, q] * s


@bare()
def append(state: NodeState, i: int, z: F8, pivot2: float) -> None:
    """Put item ``i`` last among the free ones; ``z`` is ``L^-1`` of its Gram column, ``pivot2`` its squared pivot."""
    k = state.cnt[N_FREE]
    root = math.sqrt(pivot2)
    s = state.c[i]
    for q in range(k):
        state.L[k, q] = z[q]
        s -= z[q] * state.v[q]
    state.L[k, k] = root
    state.v[k] = s / root
    state.free[k] = i
    state.cnt[N_FREE] = k + 1


@bare()
def drop(state: NodeState, p: int) -> None:
    """Take the p-th free item out; rotations of the columns restore the triangle."""
    L, v = state.L, state.v
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
            left = L[q, r]
            right = L[q, r + 1]
            L[q, r] = cs * left + sn * right
            L[q, r + 1] = cs * right - sn * left
        left = v[r]
        right = v[r + 1]
        v[r] = cs * left + sn * right
        v[r + 1] = cs * right - sn * left
    state.cnt[N_FREE] = k - 1


@bare()
def switch(state: NodeState, j: int, x: F8) -> None:
    """Follow feature ``j``, which has just been switched on or off: a change of rank one.  ``x`` is scratch."""
    k = state.cnt[N_FREE]
    for p in range(k):
        x[p] = state.X[state.free[p], j]
    if state.on[j] == 1.0:
        _raise(state.L, state.v, x, k)
        return
    solve_lower(state.L, x, k)
    left = 1.0
    for p in range(k):
        left -= x[p] * x[p]
    if left > LITTLE:
        _lower(state.L, state.v, x, k, math.sqrt(left))
    else:
        rebuild(state, x)


@bare()
def _raise(L: F8, v: F8, x: F8, k: int) -> None:
    """``L L' + x x'``: rotations of the columns with ``x`` bring it to nothing."""
    t = 0.0
    for r in range(k):
        rad = math.hypot(L[r, r], x[r])
        cs = L[r, r] / rad
        sn = x[r] / rad
        L[r, r] = rad
        for q in range(r + 1, k):
            left = L[q, r]
            L[q, r] = cs * left + sn * x[q]
            x[q] = cs * x[q] - sn * left
        left = v[r]
        v[r] = cs * left + sn * t
        t = cs * t - sn * left


@bare()
def _lower(L: F8, v: F8, p: F8, k: int, root: float) -> None:
    """``L L' - x x'`` with ``p = L^-1 x`` and ``root = sqrt(1 - p.p)``: rotations bring ``x`` out of the columns."""
    t = 0.0
    for r in range(k):
        t -= p[r] * v[r]
    t /= root
    for r in range(k - 1, -1, -1):
        rad = math.hypot(root, p[r])
        cs = root / rad
        sn = p[r] / rad
        root = rad
        p[r] = 0.0  # from here on: the column that x comes out to
        for q in range(r, k):
            left = L[q, r]
            L[q, r] = cs * left - sn * p[q]
            p[q] = cs * p[q] + sn * left
        left = v[r]
        v[r] = cs * left - sn * t
        t = cs * t + sn * left


@bare()
def rebuild(state: NodeState, z: F8) -> None:
    """Build the factor anew from the free items; dependent ones become PENDING.  ``z`` is scratch."""
    k = state.cnt[N_FREE]
    state.cnt[N_FREE] = 0
    for p in range(k):
        i = state.free[p]
        q = state.cnt[N_FREE]
        gram_column(state, i, z)
        solve_lower(state.L, z, q)
        h_ii = gram(state, i, i)
        pivot2 = h_ii
        for r in range(q):
            pivot2 -= z[r] * z[r]
        if pivot2 > DEPENDENT * h_ii:
            append(state, i, z, pivot2)
        else:
            put_off(state, i, state.status[i] == AT_HARD)
