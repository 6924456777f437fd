"""Dual values with their rounding taken off: what a node problem costs at least, whatever arithmetic did.

A dual value is recomputed from the multipliers, each brought back into its range, and lowered by a bound on the error
of computing it.  With ``k`` items and unit roundoff ``2^-53`` a sum of products is off by at most ``gamma`` times the
sum of their sizes, ``gamma`` being about ``k 2^-53``; so ``u = sum mu_i x_i`` is off by at most
``gamma sum |mu_i| |x_i|``.  What is taken off covers that, the sums of terms, and the offset: ``sum c_i mu_i`` is not 0
to the last digit.  It is added up with what its additions round off, and an item with room takes what it comes to; what
is known of the sum no better than to ``gamma^2`` counts against ``b``, which lies within `offset_reach` in some best
tree.
"""

from __future__ import annotations

import math

import numpy as np

from margotree.engines.node.kernels.workspace import (
    DELTA,
    F8,
    ITEMS,
    KIND,
    N_ITEMS,
    NORM,
    NU,
    NUM,
    REACH,
    RIGHT,
    SOFT,
    WRONG,
    C,
    O,
    U,
    Workspace,
    cost_of,
    two_sum,
)
from margotree.engines.numba_backend import inner

#: Twice the unit roundoff: what it is more pays for the rounding of these very sums.
ROUNDOFF = 2.3e-16
#: Operations on a value outside its sums: samples centred, costs multiplied, values of nodes added up.
MORE = 64


def offset_reach(X: F8, limit: float, eps: float) -> float:
    """A bound on ``|b|`` at the nodes of some best tree of value below ``limit``; samples ``X`` are centred.

    Such a tree has ``1/2 |w|^2 < limit``, so ``|w.x|`` is at most ``R sqrt(2 limit)`` with ``R`` the length of the
    longest sample.  An offset beyond that by more than 1 (or ``eps``) leaves all samples on one side, outside of margin
    and band, and may as well be smaller.
    """
    longest = math.sqrt(float(np.max(np.einsum("ij,ij->i", X, X), initial=0.0)))
    return (max(1.0, eps) + longest * math.sqrt(2.0 * max(limit, 0.0))) * (1.0 + 1e-9)


@inner(allocates=False)
def in_range(ws: Workspace, s: int, i: int) -> float:
    """The multiplier of an item, brought back into its range."""
    nu, cost, kind = ws.f[s, NU, i], cost_of(ws, s, i), ws.k[s, KIND, i]
    if kind >= WRONG:
        return max(nu, -cost)
    return min(max(nu, 0.0), cost) if kind != RIGHT else max(nu, 0.0)


@inner(allocates=False)
def takes(ws: Workspace, s: int, rest: float) -> int:
    """The first member whose multiplier has room to take ``rest`` from the sum of all; -1 if none has."""
    for q in range(ws.cnt[s, N_ITEMS]):
        i = ws.k[s, ITEMS, q]
        if ws.fixed[C, i] == 0.0:
            continue
        nu, cost, kind = in_range(ws, s, i), cost_of(ws, s, i), ws.k[s, KIND, i]
        below = nu + cost if kind >= WRONG else nu
        above = np.inf if kind != SOFT else cost - nu
        if (below if ws.f[s, O, i] * rest > 0.0 else above) >= 2.0 * abs(rest):
            return i
    return -1


@inner(allocates=False)
def recompute(ws: Workspace, s: int) -> tuple[float, float, float]:
    """Field U <- u, the sum of mu_i x_i; returns what items add to the dual value at least, gamma, and how far off u
    may be.

    The point that is valued is the one whose multipliers add up to 0 exactly: one of them takes the rest.
    """
    X, f, g, fixed = ws.X, ws.f, ws.g, ws.fixed
    n, members = X.shape[1], ws.cnt[s, N_ITEMS]
    for j in range(n):
        g[s, U, j] = 0.0
    total = terms = balance = low = offsets = size = 0.0
    for q in range(members):
        i = ws.k[s, ITEMS, q]
        cost, delta, kind = cost_of(ws, s, i), f[s, DELTA, i], ws.k[s, KIND, i]
        nu = in_range(ws, s, i)
        if kind >= WRONG:
            total += cost * (1.0 + delta) + delta * nu
            terms += cost * (1.0 + abs(delta)) + abs(delta * nu)
        else:
            term = nu if nu <= cost else cost + delta * (nu - cost)
            total += term
            terms += term
        if nu == 0.0:
            continue
        mu = f[s, O, i] * nu
        balance, off = two_sum(balance, fixed[C, i] * mu)
        low += off
        offsets += fixed[C, i] * abs(nu)
        size += fixed[NORM, i] * abs(nu)
        for j in range(n):
            g[s, U, j] += mu * X[i, j]
    gamma = ROUNDOFF * (members + n + MORE)
    rest = balance + low
    taker = takes(ws, s, rest) if rest != 0.0 else -1
    if taker >= 0:
        # Its term changes by the rest times max(1, delta) at most, and u by the rest times its length.
        total -= 2.0 * abs(rest) * max(1.0, abs(f[s, DELTA, taker]))
        off = gamma * size + 2.0 * abs(rest) * fixed[NORM, taker]
        rest = 0.0
    else:
        off = gamma * size
    # What is left of the sum: the rounding of what rounding left over.
    unbalanced = abs(rest) + gamma * gamma * offsets
    total -= gamma * terms + (unbalanced * g[s, NUM, REACH] if unbalanced > 0.0 else 0.0)
    return total, gamma, off


@inner(allocates=False)
def taken_off(square: float, gamma: float, off: float) -> float:
    """What rounding may have added by way of u: ``square`` is ``|u|^2`` of the features that count."""
    return gamma * square + 2.0 * off * (np.sqrt(square) + off)


@inner(allocates=False)
def exact_sum(y: F8, v: F8) -> tuple[float, bool]:
    """The sum of ``y_i v_i``, correctly rounded, and whether it is: what two additions round off is added up, too."""
    high = low = 0.0
    exact = True
    for i in range(y.size):
        high, off = two_sum(high, y[i] * v[i])
        low, off = two_sum(low, off)
        exact &= off == 0.0
    return high + low, exact
