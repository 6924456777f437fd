"""Dual values with their rounding taken off: what a node problem costs at least, whatever arithmetic did.

A dual value is recomputed from the multipliers, each brought back into its range, and lowered by a bound on the error
of computing it.  With ``k`` items and unit roundoff ``2^-53`` a sum of products is off by at most ``gamma`` times the
sum of their sizes, ``gamma`` being about ``k 2^-53``; so ``u = sum mu_i x_i`` is off by at most
``gamma sum |mu_i| |x_i|``.  What is taken off covers that, the sums of terms, and the offset: ``sum c_i mu_i`` is not 0
to the last digit, and ``b`` lies within `offset_reach` in some best tree.
"""

from __future__ import annotations

import math

import numpy as np

from margotree.engines.kernels.workspace import (
    COST,
    DELTA,
    F8,
    ITEMS,
    KIND,
    N_ITEMS,
    NODE,
    NORM,
    NU,
    NUM,
    REACH,
    RIGHT,
    WRONG,
    C,
    O,
    Workspace,
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
def recompute(ws: Workspace, s: int, field: int) -> tuple[float, float, float]:
    """Field W or U <- u, the sum of mu_i x_i; returns what items add to the dual value at least, gamma, and how far off
    u may be."""
    X, f, g, fixed = ws.X, ws.f, ws.g, ws.fixed
    n, members, cost_row = X.shape[1], ws.cnt[s, N_ITEMS], COST + ws.cnt[s, NODE]
    for j in range(n):
        g[s, field, j] = 0.0
    total = terms = balance = offsets = size = 0.0
    for q in range(members):
        i = ws.k[s, ITEMS, q]
        nu, cost, delta, kind = f[s, NU, i], fixed[cost_row, i], f[s, DELTA, i], ws.k[s, KIND, i]
        if kind == WRONG:
            nu = max(nu, -cost)
            total += cost * (1.0 + delta) + delta * nu
            terms += cost * (1.0 + abs(delta)) + abs(delta * nu)
        else:
            nu = max(nu, 0.0)
            if nu > cost and kind != RIGHT:
                nu = cost
            term = nu if nu <= cost else cost + delta * (nu - cost)
            total += term
            terms += term
        if nu == 0.0:
            continue
        mu = f[s, O, i] * nu
        balance += fixed[C, i] * mu
        offsets += fixed[C, i] * abs(nu)
        size += fixed[NORM, i] * abs(nu)
        for j in range(n):
            g[s, field, j] += mu * X[i, j]
    gamma = ROUNDOFF * (members + n + MORE)
    unbalanced = abs(balance) + gamma * offsets
    total -= gamma * terms + (unbalanced * g[s, NUM, REACH] if unbalanced > 0.0 else 0.0)
    return total, gamma, gamma * size


@inner(allocates=False)
def taken_off(square: float, gamma: float, off: float) -> float:
    """What rounding may have added by way of u: ``square`` is ``|u|^2`` of the features that count."""
    return gamma * square + 2.0 * off * (np.sqrt(square) + off)


@inner(allocates=False)
def two_sum(a: float, b: float) -> tuple[float, float]:
    """The rounded sum of two numbers, and what was rounded off."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


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
