"""Safe dual values: lower bounds on a node problem that hold whatever the rounding errors of the arithmetic.

A dual value is recomputed from the multipliers, each clipped to its range, and lowered by a bound on the rounding error
of the computation.  With ``k`` items and unit roundoff ``2^-53`` a sum of products is off by at most ``gamma`` times
the sum of their absolute values, with ``gamma`` about ``k 2^-53``; so ``u = sum mu_i x_i`` is off by at most
``gamma sum |mu_i| |x_i|``.  The subtracted amount covers this error, the sums of terms, and the offset: the computed
``sum c_i mu_i`` is not exactly 0.  This sum is added up together with its rounding errors, and an item whose multiplier
has enough range absorbs it; the remaining uncertainty of the sum, of order ``gamma^2``, counts against ``b``, which is
within `offset_reach` in some best tree.
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
    corner_of,
    cost_of,
    two_sum,
)
from margotree.engines.numba_backend import inner

#: Twice the unit roundoff, and a little more, which covers the rounding errors of the correction itself.
ROUNDOFF = 2.3e-16
#: Number of operations on a value outside its sums: centring of samples, products of costs, sums over nodes.
EXTRA_OPERATIONS = 64


def offset_reach(X: F8, limit: float, eps: float, corner: float = 1.0) -> float:
    """An upper bound on ``|b|`` at the nodes of some best tree with an objective below ``limit``; ``X`` is centred.

    Such a tree has ``1/2 |w|^2 < limit``, so ``|w.x|`` is at most ``R sqrt(2 limit)`` with ``R`` the length of the
    longest sample.  An offset that is larger by more than ``corner``, the largest size of a corner (or by ``eps``),
    leaves all samples on one side, outside margin and band, and can be reduced.
    """
    longest = math.sqrt(float(np.max(np.einsum("ij,ij->i", X, X), initial=0.0)))
    return (max(corner, eps) + longest * math.sqrt(2.0 * max(limit, 0.0))) * (1.0 + 1e-9)


@inner(allocates=False)
def clipped_multiplier(ws: Workspace, s: int, i: int) -> float:
    """The multiplier of an item, clipped to its range."""
    nu, cost, kind = ws.f[s, NU, i], cost_of(ws, s, i), ws.k[s, KIND, i]
    if kind >= WRONG:
        return max(nu, -cost)
    return min(max(nu, 0.0), cost) if kind != RIGHT else max(nu, 0.0)


@inner(allocates=False)
def balancing_item(ws: Workspace, s: int, residual: float) -> int:
    """The first item whose multiplier can absorb ``residual`` of the sum of all multipliers; -1 if there is none."""
    for q in range(ws.cnt[s, N_ITEMS]):
        i = ws.k[s, ITEMS, q]
        if ws.fixed[C, i] == 0.0:
            continue
        nu, cost, kind = clipped_multiplier(ws, s, i), cost_of(ws, s, i), ws.k[s, KIND, i]
        below = nu + cost if kind >= WRONG else nu
        above = np.inf if kind != SOFT else cost - nu
        if (below if ws.f[s, O, i] * residual > 0.0 else above) >= 2.0 * abs(residual):
            return i
    return -1


@inner(allocates=False)
def recompute(ws: Workspace, s: int) -> tuple[float, float, float]:
    """Set field U to ``u = sum mu_i x_i`` and bound the items' part of the dual value from below.

    Returns this bound, gamma, and a bound on the error of ``u``.  The multipliers of the evaluated point add up to
    exactly 0: one of them absorbs the residual.
    """
    X, f, g, fixed = ws.X, ws.f, ws.g, ws.fixed
    n, n_items = X.shape[1], ws.cnt[s, N_ITEMS]
    for j in range(n):
        g[s, U, j] = 0.0
    total = terms = balance = balance_error = offsets = size = 0.0
    for q in range(n_items):
        i = ws.k[s, ITEMS, q]
        cost, delta, kind = cost_of(ws, s, i), f[s, DELTA, i], ws.k[s, KIND, i]
        corner, nu = corner_of(ws, s, i), clipped_multiplier(ws, s, i)
        if kind >= WRONG:
            total += cost * (corner + delta) + delta * nu
            terms += cost * (abs(corner) + abs(delta)) + abs(delta * nu)
        else:
            term = nu * corner if nu <= cost else cost * corner + delta * (nu - cost)
            total += term
            terms += abs(corner) * min(nu, cost) + (abs(delta) * (nu - cost) if nu > cost else 0.0)
        if nu == 0.0:
            continue
        mu = f[s, O, i] * nu
        balance, off = two_sum(balance, fixed[C, i] * mu)
        balance_error += off
        offsets += fixed[C, i] * abs(nu)
        size += fixed[NORM, i] * abs(nu)
        for j in range(n):
            g[s, U, j] += mu * X[i, j]
    gamma = ROUNDOFF * (n_items + n + EXTRA_OPERATIONS)
    residual = balance + balance_error
    taker = balancing_item(ws, s, residual) if residual != 0.0 else -1
    if taker >= 0:
        # Its term changes by at most the residual times this size, and u by the residual times its length.
        largest = max(1.0, abs(corner_of(ws, s, taker)), abs(f[s, DELTA, taker]))
        total -= 2.0 * abs(residual) * largest
        off = gamma * size + 2.0 * abs(residual) * fixed[NORM, taker]
        residual = 0.0
    else:
        off = gamma * size
    # The remaining uncertainty of the sum: rounding errors of rounding errors.
    unbalanced = abs(residual) + gamma * gamma * offsets
    total -= gamma * terms + (unbalanced * g[s, NUM, REACH] if unbalanced > 0.0 else 0.0)
    return total, gamma, off


@inner(allocates=False)
def rounding_allowance(square: float, gamma: float, off: float) -> float:
    """The largest rounding error of ``|u|^2 / 2`` due to errors of ``u``; ``square`` is ``|u|^2``."""
    return gamma * square + 2.0 * off * (np.sqrt(square) + off)


@inner(allocates=False)
def exact_sum(y: F8, v: F8) -> tuple[float, bool]:
    """The sum of ``y_i v_i`` with compensated additions, and whether it is correctly rounded."""
    high = low = 0.0
    exact = True
    for i in range(y.size):
        high, off = two_sum(high, y[i] * v[i])
        low, off = two_sum(low, off)
        exact &= off == 0.0
    return high + low, exact
