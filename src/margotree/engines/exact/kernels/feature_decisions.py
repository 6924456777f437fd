"""Features with a penalty as candidates for branching, with estimates of what a decision adds to the bound."""

from __future__ import annotations

import numpy as np

from margotree.engines.exact.kernels.routing import (
    ACCURACY,
    ESTIMATE,
    OTHER_ACCURACY,
    OTHER_ESTIMATE,
    SCORE,
    SLOT,
    Routing,
)
from margotree.engines.node.kernels.feature_penalties import unpenalised_features
from margotree.engines.node.kernels.workspace import ALPHA, FULL, I8, KINK, NUM, USE, R, U, W, Workspace
from margotree.engines.numba_backend import inner

#: Shares of a feature closer than this to 0 or 1 are whole.
WHOLE = 1e-6


@inner(allocates=False)
def least_u_in_budget(ws: Workspace, s: int) -> float:
    """The least ``|u|`` among the features that take the places of the budget which no decided feature takes; infinite
    if there are none."""
    g, alpha, free = ws.g, ws.g[s, NUM, ALPHA], unpenalised_features(ws, s)
    least = np.inf
    if free <= 0 or alpha == 0.0:
        return least
    for _ in range(free):
        most = 0.0
        for j in range(ws.X.shape[1]):
            size = abs(g[s, U, j])
            if 0.0 < g[s, R, j] < np.inf and size < least:
                most = max(most, size)
        if most <= WHOLE * np.sqrt(2.0 * alpha):
            break
        least = most
    return least


@inner(allocates=False)
def share(ws: Workspace, s: int, j: int) -> float:
    """The share of an undecided feature that the relaxation uses, between 0 and 1."""
    return abs(ws.g[s, W, j]) / ws.g[s, R, j] if ws.k[s, USE, j] == KINK else 0.0


@inner(allocates=False)
def is_headed_to_use(ws: Workspace, s: int, j: int) -> bool:
    """Whether a feature is closer to being used than to not being used: the side it is headed for."""
    return ws.k[s, USE, j] != KINK or share(ws, s, j) >= 0.5


@inner(allocates=False)
def rank(rt: Routing, i: int, cand: I8, found: int) -> int:
    """Insert candidate ``i`` by its score, best first, if there is space; return the number of candidates."""
    mine = rt.score[SCORE, i]
    p = min(found, cand.size)
    if p == cand.size and rt.score[SCORE, cand[p - 1]] >= mine:
        return found
    if p == cand.size:
        p -= 1
    else:
        found += 1
    while p > 0 and rt.score[SCORE, cand[p - 1]] < mine:
        cand[p] = cand[p - 1]
        p -= 1
    cand[p] = i
    return found


@inner(allocates=False)
def choose_features(ws: Workspace, rt: Routing, cand: I8, found: int, begin: int, end: int) -> int:
    """Rank the undecided features of the tree nodes from ``begin`` to ``end`` together with ``found`` candidates.

    The bound can rise if a feature is used in part, or not used although the budget has a place for it.
    """
    m, n = ws.X.shape
    g, score = ws.g, rt.score
    for t in range(begin, end):
        s = rt.at[SLOT, t]
        alpha, shortest = g[s, NUM, ALPHA], least_u_in_budget(ws, s)
        for j in range(n):
            r, u = g[s, R, j], g[s, U, j]
            if not 0.0 < r < np.inf or ws.k[s, USE, j] == FULL:
                continue
            z = share(ws, s, j)
            if not (z < 1.0 - WHOLE and (z > WHOLE or abs(u) >= shortest)):
                continue
            i = m + n * t + j
            if ws.k[s, USE, j] != KINK:
                z = 0.5 * u * u / alpha
            score[ESTIMATE, i] = alpha * max(min(z, 1.0 - z), WHOLE)
            score[OTHER_ESTIMATE, i] = alpha * max(z, 1.0 - z)
            score[SCORE, i] = (
                score[ESTIMATE, i] * score[ACCURACY, i] * score[OTHER_ESTIMATE, i] * score[OTHER_ACCURACY, i]
            )
            found = rank(rt, i, cand, found)
    return found
