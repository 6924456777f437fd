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

The search reads the margins ``h`` of samples that are not members, too, to see where they are headed.  Where members
are few, the others' margins are brought up to date only when they are asked for (`margins`).

Where features have a price ``alpha`` beyond a budget, ``w`` and ``u = sum mu_i x_i`` are no longer the same: with
``r = sqrt(2 alpha)`` a feature is OFF (``w = 0``) while ``|u| < r``, FULL (``w = u``) beyond, and at a KINK (``w``
anywhere between) where ``|u| = r``.  ``r = 0`` is a feature that is used whatever it does, ``r = inf`` one that may not
be used.  Without prices the arrays ``r``, ``u`` and so on are empty.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.kernels.jit import bare, bare_kernel

F8 = NDArray[np.float64]
I4 = NDArray[np.int32]
I1 = NDArray[np.int8]

# Kinds of items.
SOFT, RIGHT, WRONG = 0, 1, 2
# Where an item stands on its staircase.  A PENDING item has a multiplier inside a riser but is not yet solved for;
# an OUT one takes no part.
LOW, AT_MARGIN, MID, AT_HARD, PENDING_HARD, PENDING_MARGIN, OUT = 0, 1, 2, 3, 4, 5, 6
# How a priced feature is used.
OFF, KINK, FULL = 0, 1, 2
# Entries of ``num``, ``cnt`` and ``price``.
B, VALUE, REACH = 0, 1, 2
N_ITEMS, N_FREE, PIVOTS, N_KINKS, BEHIND = 0, 1, 2, 3, 4
ALPHA, BUDGET = 0, 1


class NodeState(NamedTuple):
    """Arrays of one node problem, indexed by sample."""

    X: F8  # samples, one a row
    XT: F8  # the same, one a column
    c: F8  # coefficient of b: 1 for samples, 0 for bounds on weights
    norm: F8  # |x_i|, from above
    cost: F8  # C_t times the sample's weight
    kind: I1
    status: I1
    o: F8
    delta: F8
    nu: F8
    h: F8
    lo: F8  # h must be at least this where the item stands now
    hi: F8  # and at most this
    items: I4  # the members, in the order they came
    free: I4  # items whose margin is pinned, in the order of the factor
    L: F8  # Cholesky factor of X_F X_F' + rho c_F c_F'
    v: F8  # L^-1 c_F
    w: F8
    num: F8  # b, dual value, how large |b| can be in a tree of interest
    cnt: NDArray[np.int64]  # items, free items, pivots so far, features at a kink, if margins are behind
    price: F8  # of a feature, and how many come without
    r: F8  # |u| from which on a feature is used
    u: F8
    use: I1
    on: F8  # 1 for features at a kink or in full use, else 0
    kinks: I4
    Z: F8  # scratch: L^-1 of the columns for b and the kinks, made orthogonal
    R: F8  # scratch: how they were


def new_state(
    X: F8, c: F8, cost: F8, price: tuple[float, int] | None = None, reach: float = np.inf
) -> NodeState:
    """An empty node problem over these samples; add items with :func:`add_item`.

    ``price`` is what a feature costs and how many come without, ``reach`` how large ``|b|`` can be.
    """
    m, n = X.shape
    cap = n + 2
    k = 0 if price is None else n
    return NodeState(
        X=X,
        XT=np.ascontiguousarray(X.T),
        c=c,
        norm=norms(X),
        cost=cost,
        kind=np.zeros(m, np.int8),
        status=np.full(m, OUT, np.int8),
        o=np.zeros(m),
        delta=np.zeros(m),
        nu=np.zeros(m),
        h=np.zeros(m),
        lo=np.full(m, -np.inf),
        hi=np.full(m, np.inf),
        items=np.zeros(m, np.int32),
        free=np.zeros(cap, np.int32),
        L=np.zeros((cap, cap)),
        v=np.zeros(cap),
        w=np.zeros(n),
        num=np.array([0.0, 0.0, reach]),
        cnt=np.zeros(5, np.int64),
        price=np.array([0.0, 0.0] if price is None else price, float),
        r=np.array([threshold(0.0 if price is None else price[0], j) for j in range(k)]),
        u=np.zeros(k),
        use=np.zeros(k, np.int8),
        on=np.zeros(k),
        kinks=np.zeros(k, np.int32),
        **scratch(k),
    )


def norms(X: F8) -> F8:
    """Lengths of the samples, from above."""
    lengths: F8 = np.sqrt(np.einsum("ij,ij->i", X, X)) * (1.0 + 1e-12)
    return lengths


@bare_kernel()
def threshold(alpha: float, j: int) -> float:
    """The |u| from which on feature ``j`` is used: a hair less than it costs, and never the same, against circles."""
    return np.sqrt(2.0 * alpha) * (1.0 - 1e-9 * ((j * 0.6180339887498949) % 1.0))


def scratch(n: int) -> dict[str, F8]:
    """Room for directions where ``n`` features have prices; states may share it."""
    return {"Z": np.zeros((n + 1, n + 2)), "R": np.zeros((n + 4, n + 2))}


@bare()
def dot(a: F8, b: F8) -> float:
    """Inner product with four running sums, so that additions overlap without the compiler reordering ours."""
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


@bare()
def copy_state(source: NodeState, target: NodeState) -> None:
    """Make ``target`` equal to ``source``; both must belong to the same samples."""
    # Plain loops: slice assignments do the same but take ten times as long to compile.
    nf = source.cnt[N_FREE]
    for i in range(source.h.size):
        target.kind[i] = source.kind[i]
        target.status[i] = source.status[i]
        target.o[i] = source.o[i]
        target.delta[i] = source.delta[i]
        target.nu[i] = source.nu[i]
        target.h[i] = source.h[i]
        target.lo[i] = source.lo[i]
        target.hi[i] = source.hi[i]
    for k in range(source.cnt[N_ITEMS]):
        target.items[k] = source.items[k]
    for r in range(nf):
        target.free[r] = source.free[r]
        target.v[r] = source.v[r]
        for s in range(r + 1):
            target.L[r, s] = source.L[r, s]
    for j in range(source.w.size):
        target.w[j] = source.w[j]
    for k in range(source.num.size):
        target.num[k] = source.num[k]
    for k in range(source.cnt.size):
        target.cnt[k] = source.cnt[k]
    for j in range(source.r.size):
        target.r[j] = source.r[j]
        target.u[j] = source.u[j]
        target.use[j] = source.use[j]
        target.on[j] = source.on[j]
        target.kinks[j] = source.kinks[j]


@bare()
def clear(state: NodeState) -> None:
    """Take all items out: w = 0, b = 0, and nothing known of features."""
    for i in range(state.h.size):
        state.status[i] = OUT
        state.nu[i] = 0.0
        state.h[i] = 0.0
        state.lo[i] = -np.inf
        state.hi[i] = np.inf
    for j in range(state.w.size):
        state.w[j] = 0.0
    state.num[B] = 0.0
    state.num[VALUE] = 0.0
    state.cnt[N_ITEMS] = 0
    state.cnt[N_FREE] = 0
    state.cnt[N_KINKS] = 0
    state.cnt[BEHIND] = 0
    free = state.price[ALPHA] == 0.0
    for j in range(state.r.size):
        state.r[j] = threshold(state.price[ALPHA], j)
        state.u[j] = 0.0
        state.use[j] = FULL if free else OFF
        state.on[j] = 1.0 if free else 0.0


@bare()
def stand(state: NodeState, i: int, status: int) -> None:
    """Put item ``i`` on a step or riser: its multiplier snaps to a step's value, and the range for ``h`` follows."""
    state.status[i] = status
    low, high = -np.inf, np.inf  # of g
    if status == LOW:
        wrong = state.kind[i] == WRONG
        state.nu[i] = -state.cost[i] if wrong else 0.0
        low = state.delta[i] if wrong else 1.0
    elif status == MID:
        state.nu[i] = state.cost[i]
        high = 1.0
        if state.kind[i] == RIGHT:
            low = state.delta[i]
    elif status == PENDING_HARD:
        low = high = state.delta[i]
    elif status == PENDING_MARGIN:
        low = high = 1.0
    if state.o[i] > 0:
        state.lo[i], state.hi[i] = low, high
    else:
        state.lo[i], state.hi[i] = -high, -low


@bare()
def put_off(state: NodeState, i: int, hard: bool) -> None:
    """Leave an item with a multiplier inside a riser to be solved for later."""
    stand(state, i, PENDING_HARD if hard else PENDING_MARGIN)


@bare_kernel()
def add_item(state: NodeState, i: int, y: float) -> None:
    """Let sample ``i`` take part as a SOFT item with multiplier 0 (the dual value does not change)."""
    state.items[state.cnt[N_ITEMS]] = i
    state.cnt[N_ITEMS] += 1
    state.h[i] = dot(state.X[i], state.w) + state.c[i] * state.num[B]
    state.kind[i] = SOFT
    state.o[i] = y
    state.delta[i] = 0.0
    stand(state, i, LOW)
