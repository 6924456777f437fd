"""Feature penalties of a node: their part of the bound, and how features are used (OFF, at a KINK, or FULL)."""

from __future__ import annotations

import numpy as np

from margotree.engines.node.kernels import cholesky, safe_bounds
from margotree.engines.node.kernels.workspace import (
    ALPHA,
    BUDGET,
    CONSTANT,
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
    squared_norm,
)
from margotree.engines.numba_backend import inner

# -- cost --------------------------------------------------------------------------------------------------------------


@inner(allocates=False)
def unpenalised_features(ws: Workspace, s: int) -> int:
    """The number of undecided features without a penalty: the budget less the features that must be used."""
    free = int(ws.g[s, NUM, BUDGET])
    for j in range(ws.X.shape[1]):
        free -= ws.g[s, R, j] == 0.0
    return free


@inner(allocates=False)
def node_bound(ws: Workspace, s: int) -> float:
    """The tree node's part of the bound: its dual value, a lower bound on its feature penalties, and its constant."""
    if ws.with_penalties:
        return penalised_bound(ws, s) + ws.g[s, NUM, CONSTANT]
    return ws.g[s, NUM, VALUE] + penalty_bound(ws, s) + ws.g[s, NUM, CONSTANT]


@inner(allocates=False)
def penalised_bound(ws: Workspace, s: int) -> float:
    """A lower bound on the node: the dual value for the best penalty per feature between 0 and alpha.

    The best penalty is alpha unless fewer undecided features than the budget reach it; then the features with the
    largest ``|u|`` within the budget have no penalty.
    """
    free = unpenalised_features(ws, s)
    return ws.g[s, NUM, VALUE] - ws.g[s, NUM, ALPHA] * free + budget_discount(ws, s, free)


@inner(allocates=False)
def budget_discount(ws: Workspace, s: int, free: int) -> float:
    """The sum of ``alpha - u^2 / 2``, where positive, over the ``free`` undecided features with the largest ``|u|``.

    Without penalties in the node problem all features are undecided.
    """
    g, n, alpha = ws.g, ws.X.shape[1], ws.g[s, NUM, ALPHA]
    total = 0.0
    ceiling = np.inf
    while free > 0 and alpha > 0.0:
        most = -1.0
        ties = 0
        for j in range(n):
            size = abs(g[s, U, j])
            if (not ws.with_penalties or 0.0 < g[s, R, j] < np.inf) and most <= size < ceiling:
                ties = ties + 1 if size == most else 1
                most = size
        if ties == 0:
            return total + free * alpha
        total += min(ties, free) * max(0.0, alpha - 0.5 * most * most)
        free -= ties
        ceiling = most
    return total


@inner(allocates=False)
def penalty_bound(ws: Workspace, s: int) -> float:
    """A lower bound on the feature penalties for a dual point that was found without them, else 0.

    The budget covers the features with the largest ``|u|``; every other feature adds ``u^2 / 2`` or alpha, whichever is
    smaller.
    """
    g, alpha = ws.g, ws.g[s, NUM, ALPHA]
    if ws.with_penalties or alpha <= 0.0:
        return 0.0
    total = -alpha * g[s, NUM, BUDGET]
    for j in range(ws.X.shape[1]):
        total += min(0.5 * g[s, U, j] * g[s, U, j], alpha)
    return max(0.0, total + budget_discount(ws, s, int(g[s, NUM, BUDGET])))


@inner(allocates=False)
def safe_dual_value(ws: Workspace, s: int) -> float:
    """The dual value, recomputed and with its possible rounding error subtracted; updates field U."""
    g, n = ws.g, ws.X.shape[1]
    total, gamma, off = safe_bounds.recompute(ws, s)
    if ws.with_penalties:
        size2 = 0.0
        for j in range(n):
            u, r = g[s, U, j], g[s, R, j]
            if r < np.inf:
                total -= max(0.0, 0.5 * (u * u - r * r))
                size2 += u * u
        return total - safe_bounds.rounding_allowance(size2, gamma, off) - gamma * g[s, NUM, ALPHA] * n
    size2 = squared_norm(g[s], U, n)
    return total - 0.5 * size2 - safe_bounds.rounding_allowance(size2, gamma, off)


# -- use ---------------------------------------------------------------------------------------------------------------


@inner(allocates=False)
def leave_kink(ws: Workspace, s: int, j: int, use: int) -> None:
    """Remove feature ``j`` from the features at a kink; ``use`` is OFF or FULL."""
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
def pass_breakpoint(ws: Workspace, s: int, j: int, fuller: bool) -> None:
    """Change the use of feature ``j``, which has reached the end of its current one: it enters or leaves its kink."""
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
        leave_kink(ws, s, j, FULL if fuller else OFF)
        g[s, W, j] = g[s, U, j] if fuller else 0.0
    if g[s, ON, j] != before:
        cholesky.switch(ws, s, j)


@inner(allocates=False)
def derive_uses(ws: Workspace, s: int) -> None:
    """Derive the use of every feature from ``u``; features at their kinks keep their ``w``."""
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
