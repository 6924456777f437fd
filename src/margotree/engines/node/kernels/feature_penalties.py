"""What features with a price cost a node, and how they are used: off, at a kink, or in full."""

from __future__ import annotations

import numpy as np

from margotree.engines.node.kernels import cholesky, safe_bounds
from margotree.engines.node.kernels.workspace import (
    ALPHA,
    BUDGET,
    FULL,
    KINK,
    KINKS,
    N_KINKS,
    NUM,
    OFF,
    ON,
    USE,
    VALUE,
    R,
    U,
    W,
    Workspace,
    square,
)
from margotree.engines.numba_backend import inner

# -- cost --------------------------------------------------------------------------------------------------------------


@inner(allocates=False)
def places(ws: Workspace, s: int) -> int:
    """How many of the features that are not decided come without a price."""
    free = int(ws.g[s, NUM, BUDGET])
    for j in range(ws.X.shape[1]):
        free -= ws.g[s, R, j] == 0.0
    return free


@inner(allocates=False)
def value(ws: Workspace, s: int) -> float:
    """The tree node's part of the bound: its dual value and what prices are sure to add."""
    if ws.priced:
        return worth(ws, s)
    return ws.g[s, NUM, VALUE] + bonus(ws, s)


@inner(allocates=False)
def worth(ws: Workspace, s: int) -> float:
    """A lower bound on the node: the dual value with the best price per feature between 0 and alpha.

    That price is alpha unless fewer features than the budget allows are worth it; then the features with the largest
    ``u`` within the budget pay nothing.
    """
    free = places(ws, s)
    return ws.g[s, NUM, VALUE] - ws.g[s, NUM, ALPHA] * free + budget_discount(ws, s, free)


@inner(allocates=False)
def budget_discount(ws: Workspace, s: int, free: int) -> float:
    """What alpha is more than ``u^2 / 2``, for the ``free`` largest ``|u|`` of features that are not decided.

    Where prices are left out of the node problem no feature is decided.
    """
    g, n, alpha = ws.g, ws.X.shape[1], ws.g[s, NUM, ALPHA]
    total = 0.0
    ceiling = np.inf
    while free > 0 and alpha > 0.0:
        most = -1.0
        ties = 0
        for j in range(n):
            size = abs(g[s, U, j])
            if (not ws.priced or 0.0 < g[s, R, j] < np.inf) and most <= size < ceiling:
                ties = ties + 1 if size == most else 1
                most = size
        if ties == 0:
            return total + free * alpha
        total += min(ties, free) * max(0.0, alpha - 0.5 * most * most)
        free -= ties
        ceiling = most
    return total


@inner(allocates=False)
def bonus(ws: Workspace, s: int) -> float:
    """What prices add to the dual value of a point that was found without them; 0 where the node problem knows them.

    The budget goes to the largest ``u``; every other feature takes back ``u^2 / 2`` or, if that is less, pays alpha.
    """
    g, alpha = ws.g, ws.g[s, NUM, ALPHA]
    if ws.priced or alpha <= 0.0:
        return 0.0
    total = -alpha * g[s, NUM, BUDGET]
    for j in range(ws.X.shape[1]):
        total += min(0.5 * g[s, U, j] * g[s, U, j], alpha)
    return max(0.0, total + budget_discount(ws, s, int(g[s, NUM, BUDGET])))


@inner(allocates=False)
def add_up(ws: Workspace, s: int) -> float:
    """The dual value from scratch, with its rounding taken off; u follows."""
    g, n = ws.g, ws.X.shape[1]
    total, gamma, off = safe_bounds.recompute(ws, s)
    if ws.priced:
        size2 = 0.0
        for j in range(n):
            u, r = g[s, U, j], g[s, R, j]
            if r < np.inf:
                total -= max(0.0, 0.5 * (u * u - r * r))
                size2 += u * u
        return total - safe_bounds.taken_off(size2, gamma, off) - gamma * g[s, NUM, ALPHA] * n
    size2 = square(g[s], U, n)
    return total - 0.5 * size2 - safe_bounds.taken_off(size2, gamma, off)


# -- use ---------------------------------------------------------------------------------------------------------------


@inner(allocates=False)
def from_kink(ws: Workspace, s: int, j: int, use: int) -> None:
    """Take feature ``j`` off the list of kinks."""
    k = ws.k
    k[s, USE, j] = use
    ws.g[s, ON, j] = 1.0 if use == FULL else 0.0
    q = 0
    for a in range(ws.cnt[s, N_KINKS]):
        if k[s, KINKS, a] != j:
            k[s, KINKS, q] = k[s, KINKS, a]
            q += 1
    ws.cnt[s, N_KINKS] = q


@inner(allocates=False)
def pass_end(ws: Workspace, s: int, j: int, fuller: bool) -> None:
    """Feature ``j`` has come to an end of where it was; it goes on at its kink, or from it."""
    g, k, cnt = ws.g, ws.k, ws.cnt
    before = g[s, ON, j]
    if k[s, USE, j] != KINK:
        g[s, U, j] = g[s, R, j] if g[s, U, j] > 0.0 else -g[s, R, j]
        g[s, W, j] = g[s, U, j] if k[s, USE, j] == FULL else 0.0
        g[s, ON, j] = 1.0
        k[s, USE, j] = KINK
        k[s, KINKS, cnt[s, N_KINKS]] = j
        cnt[s, N_KINKS] += 1
    else:
        from_kink(ws, s, j, FULL if fuller else OFF)
        g[s, W, j] = g[s, U, j] if fuller else 0.0
    if g[s, ON, j] != before:
        cholesky.switch(ws, s, j)


@inner(allocates=False)
def derive(ws: Workspace, s: int) -> None:
    """Say of every feature how it is used, from ``u``; those marked as at a kink keep their ``w`` if they are there."""
    g, k, cnt = ws.g, ws.k, ws.cnt
    cnt[s, N_KINKS] = 0
    for j in range(ws.X.shape[1]):
        size, r = abs(g[s, U, j]), g[s, R, j]
        if k[s, USE, j] == KINK and abs(size - r) <= 1e-9 * (1.0 + r):
            k[s, KINKS, cnt[s, N_KINKS]] = j
            cnt[s, N_KINKS] += 1
        elif size > r or r == 0.0:
            k[s, USE, j] = FULL
            g[s, W, j] = g[s, U, j]
        else:
            k[s, USE, j] = OFF
            g[s, W, j] = 0.0
        g[s, ON, j] = 0.0 if k[s, USE, j] == OFF else 1.0
