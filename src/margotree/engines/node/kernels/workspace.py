"""The workspace of node problems: a few arrays, divided into slots, that compiled code modifies in place.

A slot holds the dual state of one node problem, ``min 1/2 |w|^2 + sum_i loss_i(h_i)`` with ``h_i = w.x_i + c_i b``. The
dual has one multiplier ``mu_i`` per item, with ``w = sum mu_i x_i`` and ``sum c_i mu_i = 0``.  An item is a sample that
reaches the node, or one of the rows that bound a weight.  Every item has an orientation ``o_i`` such that a larger
multiplier goes with a larger margin: ``nu_i = o_i mu_i`` and ``g_i = o_i h_i``.  There are four kinds of items, each
with a monotone complementarity curve of ``nu`` against ``g``:

====== ======================================== ==========================================================
kind   sample                                   complementarity curve
====== ======================================== ==========================================================
SOFT   reaches the node, side undecided         nu = 0 where g > 1;  0..C at g = 1;  C where g < 1
RIGHT  must go to the side of its label         as SOFT while g > delta;  C..inf at g = delta
WRONG  must go against its label (o = side)     nu = -C where g > delta;  -C..inf at g = delta
FIRM   must have a margin of delta >= 1         nu = 0 where g > delta;  0..inf at g = delta
====== ======================================== ==========================================================

``delta`` is 0 for a sample sent right and ``eps`` for one sent left.  A sample that must lie on the side of its label
by 1 or more has no loss there, whatever its cost: it is FIRM, a plain hard row, as is a WRONG item with C = 0.

The tree search also reads the margins ``h`` of samples that are not items of a node.  If the items are few, only their
margins are updated at every step, and the others on request (`margins`).

With a feature penalty ``alpha`` for features beyond a budget, ``w`` and ``u = sum mu_i x_i`` differ.  With
``r = sqrt(2 alpha)`` a feature is OFF (``w = 0``) while ``|u| < r``, FULL (``w = u``) while ``|u| > r``, and at a KINK
(``w`` between 0 and ``u``) where ``|u| = r``.  ``r = 0`` marks a feature that is always used, ``r = inf`` one that is
not allowed.

Functions take ``(ws, s)``: the workspace, a struct that is passed by pointer, and a slot.  They read single entries,
``ws.f[s, NU, i]``, and create no views, because views take much longer to compile.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.numba_backend import inner, struct

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]


def index_constants(n: int) -> tuple[Any, ...]:
    """The indices 0 to n - 1, to name the rows of an array.

    They are NumPy integers: Numba would compile one version of a function for each plain ``int`` that it is called
    with.
    """
    return tuple(np.int64(k) for k in range(n))


# Rows of ``fixed``: coefficient of b (1 for samples, 0 for bounds on weights); upper bound on |x_i|; |x_i|^2 (never 0);
# label; from COST on two rows per tree node: C_t times the sample weight, and the corner of the loss.
C, NORM, NORM2, LABEL, COST, CORNER = index_constants(6)
# Fields of ``f``: orientation, delta, nu and h of an item; its current status requires LO <= h <= HI.  REST is the
# rounding error of NU: next to a multiplier of 1e17 a step of 1 is less than the rounding, and without REST the step
# would be lost.
O, DELTA, NU, H, LO, HI, REST = index_constants(7)  # noqa: E741
# Fields of ``g``: weights; L^-1 c_F; the |u| from which on a feature is used; the u of the multipliers that VALUE
# belongs to (with feature penalties: of the current ones); 1 for features that are FULL or at a KINK; single numbers;
# from FACTOR on the Cholesky factor of X_F X_F' + rho c_F c_F', F being the free items.
W, V, R, U, ON, NUM, FACTOR = index_constants(7)
# Entries of NUM: b, dual value, upper bound on |b|, penalty alpha of a feature, number of features without a penalty,
# and a part of the node's bound that no item has.
B, VALUE, REACH, ALPHA, BUDGET, CONSTANT = index_constants(6)
# Fields of ``k``: kind and status of every item; the items in the order in which they were added; the free items, whose
# margins are kept, in the order of the factor; how features are used; the features at a kink.
KIND, STATUS, ITEMS, FREE, USE, KINKS = index_constants(6)
# Fields of ``cnt``: items, free items, pivots so far, features at a kink, whether margins are stale, the tree node.
N_ITEMS, N_FREE, PIVOTS, N_KINKS, MARGINS_STALE, NODE = index_constants(6)
# Rows of ``work``: change of w so far; change of b and the stop flag; per unit of a step the changes of free
# multipliers, of w (with feature penalties), and of u (w without them); the Gram column of the entering item.
TOTAL, SCALARS, RATES, DW, DU, COLUMN, SCRATCH = index_constants(7)
# Entries of row SCALARS.
SHIFT, STOP = index_constants(2)

# Kinds of items.
SOFT, RIGHT, WRONG, FIRM = index_constants(4)
# Status of an item: its place on its complementarity curve.  A PENDING item has a multiplier inside a free segment but
# does not keep its margin yet; an OUT one takes no part.
AT_LOWER, AT_MARGIN, AT_COST, AT_HARD, PENDING_HARD, PENDING_MARGIN, OUT = index_constants(7)
# How a penalised feature is used.
OFF, KINK, FULL = index_constants(3)


@struct
class Workspace(NamedTuple):
    """Node problems over the same samples, one per slot."""

    X: F8  # (m, n): samples
    XT: F8  # (n, m): the same, one per column
    fixed: F8  # (row, m): constants of the items
    f: F8  # (slot, field, m)
    g: F8  # (slot, field, n + 2 or more)
    k: I8  # (slot, field, m or n + 2)
    cnt: I8  # (slot, field)
    work: F8  # (row, n + 2): scratch that all slots share
    with_penalties: bool  # whether node problems contain the feature penalties


def new_workspace(
    X: F8,
    c: F8,
    cost: F8,
    penalties: F8 | None = None,
    *,
    corner: F8 | None = None,
    with_penalties: bool = False,
    spares: int = 0,
    reach: float = np.inf,
) -> Workspace:
    """A workspace with one empty slot per row of ``cost`` (a tree node), and spare slots; `add_item` adds items.

    Parameters
    ----------
    X : array of shape (m, n)
        Samples, and below them the rows that bound weights.
    c : array of shape (m,)
        Coefficients of ``b``: 1 for samples, 0 for bounds on weights.
    cost : array of shape (T, m)
        Costs of margin violations at every tree node.
    corner : array of shape (T, m), optional
        The margins ``g`` from which on items have no loss; 1 by default.
    penalties : array of shape (T, 2), optional
        Penalty of a feature and number of features without one, per tree node.
    with_penalties : bool
        Whether the node problems contain the penalties; otherwise only bounds use them.
    spares : int
        Number of spare slots.
    reach : float
        Upper bound on ``|b|``.
    """
    (m, n), T = X.shape, len(cost)
    S, width = T + spares, max(n + 2, 6)
    squares = np.einsum("ij,ij->i", X, X)
    corners = np.ones((T, m)) if corner is None else corner
    losses = np.stack([cost, corners], axis=1).reshape(2 * T, m)
    ws = Workspace(
        X=X,
        XT=np.ascontiguousarray(X.T),
        fixed=np.vstack([c, np.sqrt(squares) * (1.0 + 1e-12), np.maximum(squares, 1e-12), np.zeros(m), losses]),
        f=np.zeros((S, 7, m)),
        g=np.zeros((S, FACTOR + n + 2, width)),
        k=np.zeros((S, 6, max(m, width)), np.int64),
        cnt=np.zeros((S, 6), np.int64),
        work=np.zeros((SCRATCH + (2 * n + 5 if with_penalties else 0), width)),
        with_penalties=with_penalties,
    )
    ws.k[:, STATUS] = OUT
    ws.f[:, LO], ws.f[:, HI] = -np.inf, np.inf
    ws.g[:, NUM, REACH] = reach
    ws.cnt[:T, NODE] = np.arange(T)
    if penalties is not None:
        ws.g[:T, NUM, [ALPHA, BUDGET]] = penalties
    if with_penalties:
        for s in range(T):
            ws.g[s, R, :n] = [threshold(ws.g[s, NUM, ALPHA], j) for j in range(n)]
    return ws


def weight_limit_rows(n: int, limit: float) -> F8:
    """The points of the hard rows that bound each weight from both sides.

    A limit below 1 is the unit of its rows, so that violations are measured relative to it.
    """
    rows: F8 = np.vstack([np.eye(n), np.eye(n)]) / min(1.0, limit)
    return rows


def scaled_weight_limit(limit: float) -> float:
    """The limit in the units of its rows."""
    return limit / min(1.0, limit)


def stop_flag(ws: Workspace) -> F8:
    """A view of one number; another thread sets it to 1 to stop work in this workspace early."""
    return ws.work[SCALARS, STOP : STOP + 1]


def threshold(alpha: float, j: int) -> float:
    """The ``|u|`` from which on feature ``j`` is used: ``sqrt(2 alpha)``, less a tiny amount that differs by feature.

    The differences break ties, so that pivots do not cycle.
    """
    return np.sqrt(2.0 * alpha) * (1.0 - 1e-9 * ((j * 0.6180339887498949) % 1.0))


compiled_threshold = inner(allocates=False)(threshold)


@inner(allocates=False)
def squared_norm(work: F8, row: int, n: int) -> float:
    """Squared length of a row of ``work``; four running sums overlap without a change of their order."""
    s0 = s1 = s2 = s3 = 0.0
    k = n - n % 4
    for j in range(0, k, 4):
        s0 += work[row, j] * work[row, j]
        s1 += work[row, j + 1] * work[row, j + 1]
        s2 += work[row, j + 2] * work[row, j + 2]
        s3 += work[row, j + 3] * work[row, j + 3]
    for j in range(k, n):
        s0 += work[row, j] * work[row, j]
    return (s0 + s1) + (s2 + s3)


@inner(allocates=False)
def copy_slot(ws: Workspace, source: int, target: int) -> None:
    """Copy slot ``source`` to slot ``target``."""
    # Plain loops: slice assignments do the same but take ten times as long to compile.
    f, g, k, cnt = ws.f, ws.g, ws.k, ws.cnt
    m, n = ws.X.shape
    nf = cnt[source, N_FREE]
    for field in range(7):
        for i in range(m):
            f[target, field, i] = f[source, field, i]
    for field in range(2):
        for i in range(m):
            k[target, field, i] = k[source, field, i]
    for q in range(cnt[source, N_ITEMS]):
        k[target, ITEMS, q] = k[source, ITEMS, q]
    for r in range(nf):
        k[target, FREE, r] = k[source, FREE, r]
        g[target, V, r] = g[source, V, r]
        for q in range(r + 1):
            g[target, FACTOR + r, q] = g[source, FACTOR + r, q]
    for j in range(n):
        g[target, W, j] = g[source, W, j]
        g[target, U, j] = g[source, U, j]
    for j in range(6):
        g[target, NUM, j] = g[source, NUM, j]
    for j in range(6):
        cnt[target, j] = cnt[source, j]
    if ws.with_penalties:
        for j in range(n):
            g[target, R, j] = g[source, R, j]
            g[target, ON, j] = g[source, ON, j]
            k[target, USE, j] = k[source, USE, j]
            k[target, KINKS, j] = k[source, KINKS, j]


@inner(allocates=False)
def clear(ws: Workspace, s: int) -> None:
    """Remove all items: w = 0, b = 0, and no feature decided."""
    m, n = ws.X.shape
    for i in range(m):
        ws.k[s, STATUS, i] = OUT
        ws.f[s, NU, i] = 0.0
        ws.f[s, REST, i] = 0.0
        ws.f[s, H, i] = 0.0
        ws.f[s, LO, i] = -np.inf
        ws.f[s, HI, i] = np.inf
    for j in range(n):
        ws.g[s, W, j] = 0.0
        ws.g[s, U, j] = 0.0
    ws.g[s, NUM, B] = 0.0
    ws.g[s, NUM, VALUE] = 0.0
    ws.g[s, NUM, CONSTANT] = 0.0
    ws.cnt[s, N_ITEMS] = 0
    ws.cnt[s, N_FREE] = 0
    ws.cnt[s, N_KINKS] = 0
    ws.cnt[s, MARGINS_STALE] = 0
    if ws.with_penalties:
        alpha = ws.g[s, NUM, ALPHA]
        for j in range(n):
            ws.g[s, R, j] = compiled_threshold(alpha, j)
            ws.g[s, ON, j] = 1.0 if alpha == 0.0 else 0.0
            ws.k[s, USE, j] = FULL if alpha == 0.0 else OFF


@inner(allocates=False)
def cost_of(ws: Workspace, s: int, i: int) -> float:
    """The cost of a margin violation of item ``i``; 0 for a FIRM item, which cannot violate its margin."""
    return 0.0 if ws.k[s, KIND, i] == FIRM else ws.fixed[COST + 2 * ws.cnt[s, NODE], i]


@inner(allocates=False)
def corner_of(ws: Workspace, s: int, i: int) -> float:
    """The margin from which on item ``i`` has no loss."""
    return ws.fixed[CORNER + 2 * ws.cnt[s, NODE], i]


@inner(allocates=False)
def set_nu(ws: Workspace, s: int, i: int, nu: float) -> None:
    """Set the multiplier of item ``i``."""
    ws.f[s, NU, i] = nu
    ws.f[s, REST, i] = 0.0


@inner(allocates=False)
def two_sum(a: float, b: float) -> tuple[float, float]:
    """The rounded sum of two numbers, and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@inner(allocates=False)
def move_nu(ws: Workspace, s: int, i: int, change: float) -> None:
    """Change the multiplier of item ``i`` and keep the rounding error in REST."""
    ws.f[s, NU, i], ws.f[s, REST, i] = two_sum(ws.f[s, NU, i], ws.f[s, REST, i] + change)


@inner(allocates=False)
def set_status(ws: Workspace, s: int, i: int, status: int) -> None:
    """Set the status of item ``i``: its multiplier moves to the bound of that status, and LO and HI are updated."""
    f, kind = ws.f, ws.k[s, KIND, i]
    ws.k[s, STATUS, i] = status
    low, high = -np.inf, np.inf  # of g
    if status == AT_LOWER:
        set_nu(ws, s, i, -cost_of(ws, s, i) if kind >= WRONG else 0.0)
        low = f[s, DELTA, i] if kind >= WRONG else corner_of(ws, s, i)
    elif status == AT_COST:
        set_nu(ws, s, i, ws.fixed[COST + 2 * ws.cnt[s, NODE], i])
        high = corner_of(ws, s, i)
        if kind == RIGHT:
            low = f[s, DELTA, i]
    elif status == PENDING_HARD:
        low = high = f[s, DELTA, i]
    elif status == PENDING_MARGIN:
        low = high = corner_of(ws, s, i)
    if f[s, O, i] > 0:
        f[s, LO, i], f[s, HI, i] = low, high
    else:
        f[s, LO, i], f[s, HI, i] = -high, -low


@inner(allocates=False)
def set_pending(ws: Workspace, s: int, i: int, hard: bool) -> None:
    """Mark an item whose multiplier lies inside a free segment as PENDING: it is solved for later."""
    set_status(ws, s, i, PENDING_HARD if hard else PENDING_MARGIN)


@inner(allocates=False)
def add_item(ws: Workspace, s: int, i: int, y: float) -> None:
    """Add sample ``i`` with label ``y`` as a SOFT item with multiplier 0; the dual value does not change."""
    X, g, n = ws.X, ws.g, ws.X.shape[1]
    s0 = s1 = s2 = s3 = 0.0
    k = n - n % 4
    for j in range(0, k, 4):
        s0 += X[i, j] * g[s, W, j]
        s1 += X[i, j + 1] * g[s, W, j + 1]
        s2 += X[i, j + 2] * g[s, W, j + 2]
        s3 += X[i, j + 3] * g[s, W, j + 3]
    for j in range(k, n):
        s0 += X[i, j] * g[s, W, j]
    ws.k[s, ITEMS, ws.cnt[s, N_ITEMS]] = i
    ws.cnt[s, N_ITEMS] += 1
    ws.f[s, H, i] = (s0 + s1) + (s2 + s3) + ws.fixed[C, i] * g[s, NUM, B]
    ws.f[s, O, i] = y
    ws.f[s, DELTA, i] = 0.0
    ws.k[s, KIND, i] = SOFT
    set_status(ws, s, i, AT_LOWER)
