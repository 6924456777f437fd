"""The dual state of one tree node's SVM, as a tuple of arrays that compiled code works on in place.

The node problem is ``min 1/2 |w|^2 + sum_i loss_i(h_i)`` with ``h_i = w.x_i + c_i b``.  Its dual has one number
``mu_i`` an item, ``w = sum mu_i x_i`` and ``sum c_i mu_i = 0``.  Every item is turned so that more of its multiplier
means a larger margin: ``nu_i = o_i mu_i`` and ``g_i = o_i h_i``.  There are three kinds of items, each a monotone
staircase of ``nu`` against ``g``:

====== ======================================== ==========================================================
kind   sample                                   staircase
====== ======================================== ==========================================================
SOFT   known to reach the node                  nu = 0 where g > 1;  0..C at g = 1;  C where g < 1
RIGHT  must go to the side of its label         as SOFT while g > delta;  C..inf at g = delta
WRONG  must go against its label (o = side)     nu = -C where g > delta;  -C..inf at g = delta
====== ======================================== ==========================================================

``delta`` is 0 for a sample sent right and ``eps`` for one sent left.  A WRONG item with C = 0 is a plain hard row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

F8 = NDArray[np.float64]
I4 = NDArray[np.int32]
I1 = NDArray[np.int8]

# Kinds of items.
SOFT, RIGHT, WRONG = 0, 1, 2
# Where an item stands on its staircase.  A PENDING item has a multiplier inside a riser but is not yet solved for.
LOW, AT_MARGIN, MID, AT_HARD, PENDING_HARD, PENDING_MARGIN = 0, 1, 2, 3, 4, 5
# Entries of ``num`` and ``cnt``.
B, VALUE = 0, 1
N_ITEMS, N_FREE, PIVOTS = 0, 1, 2


class NodeState(NamedTuple):
    """Arrays of one node problem; item arrays are indexed by sample, ``items`` lists those that take part."""

    X: F8  # samples, one a row
    c: F8  # coefficient of b: 1 for samples, 0 for bounds on weights
    cost: F8  # C_t times the sample's weight
    items: I4
    kind: I1
    status: I1
    o: F8
    delta: F8
    nu: F8
    h: F8
    free: I4  # items whose margin is pinned, in the order of the factor
    L: F8  # Cholesky factor of X_F X_F' + rho c_F c_F'
    w: F8
    num: F8  # b, dual value
    cnt: NDArray[np.int64]  # items, free items, pivots so far


def new_state(X: F8, c: F8, cost: F8) -> NodeState:
    """An empty node problem over these samples; add items with :func:`add_item`."""
    m, n = X.shape
    cap = n + 2
    return NodeState(
        X=X,
        c=c,
        cost=cost,
        items=np.zeros(m, np.int32),
        kind=np.zeros(m, np.int8),
        status=np.zeros(m, np.int8),
        o=np.zeros(m),
        delta=np.zeros(m),
        nu=np.zeros(m),
        h=np.zeros(m),
        free=np.zeros(cap, np.int32),
        L=np.zeros((cap, cap)),
        w=np.zeros(n),
        num=np.zeros(2),
        cnt=np.zeros(3, np.int64),
    )


@njit(cache=True, nogil=True)
def dot(a: F8, b: F8) -> float:
    """Inner product with four running sums, which the compiler turns into vector code without reordering ours."""
    n = a.size
    s0 = s1 = s2 = s3 = 0.0
    k = n - n % 4
    for j in range(0, k, 4):
        s0 += a[j] * b[j]
        s1 += a[j + 1] * b[j + 1]
        s2 += a[j + 2] * b[j + 2]
        s3 += a[j + 3] * b[j + 3]
    for j in range(k, n):
        s0 += a[j] * b[j]
    return (s0 + s1) + (s2 + s3)


@njit(cache=True, nogil=True)
def copy_state(source: NodeState, target: NodeState) -> None:
    """Make ``target`` equal to ``source``; both must belong to the same samples."""
    k = source.cnt[N_ITEMS]
    nf = source.cnt[N_FREE]
    target.items[:k] = source.items[:k]
    for p in range(k):
        i = source.items[p]
        target.kind[i] = source.kind[i]
        target.status[i] = source.status[i]
        target.o[i] = source.o[i]
        target.delta[i] = source.delta[i]
        target.nu[i] = source.nu[i]
        target.h[i] = source.h[i]
    target.free[:nf] = source.free[:nf]
    for r in range(nf):
        for s in range(r + 1):
            target.L[r, s] = source.L[r, s]
    target.w[:] = source.w
    target.num[:] = source.num
    target.cnt[:] = source.cnt


@njit(cache=True, nogil=True)
def add_item(state: NodeState, i: int, y: float) -> None:
    """Let sample ``i`` take part as a SOFT item with multiplier 0 (the dual value does not change)."""
    state.items[state.cnt[N_ITEMS]] = i
    state.cnt[N_ITEMS] += 1
    state.kind[i] = SOFT
    state.status[i] = LOW
    state.o[i] = y
    state.delta[i] = 0.0
    state.nu[i] = 0.0
    state.h[i] = dot(state.X[i], state.w) + state.c[i] * state.num[B]


@njit(cache=True, nogil=True)
def low_end(state: NodeState, i: int) -> float:
    """Multiplier on the lowest step of an item's staircase."""
    return -state.cost[i] if state.kind[i] == WRONG else 0.0


@njit(cache=True, nogil=True)
def dual_term(state: NodeState, i: int) -> float:
    """What item ``i`` adds to the dual value: ``min_h loss_i(h) + mu_i h``."""
    nu = state.nu[i]
    cost = state.cost[i]
    if state.kind[i] == WRONG:
        return cost * (1.0 + state.delta[i]) + state.delta[i] * nu
    if nu <= cost:
        return nu
    return cost + state.delta[i] * (nu - cost)
