"""The margins ``h = w.x + c b`` of samples: their update after a change of (w, b), and the search for violated items.

Every sample of the workspace has a margin (row H of ``f``), whether it is an item or not.  If there are few items, only
their margins are updated after each change; the margins of the other samples are then stale until they are requested.

The status of an item determines the range ``LO <= h <= HI`` of its margin (`workspace.set_status`).  An item is
violated if its margin is outside this range, or if it is PENDING; PENDING items are recognised by ``LO == HI``.

Arguments ``(ws, s)`` are the workspace and a slot, ``tol`` is the tolerance of violations.
"""

from __future__ import annotations

from margotree.engines.node.kernels.workspace import (
    HI,
    ITEMS,
    LO,
    MARGINS_STALE,
    N_ITEMS,
    NUM,
    SCALARS,
    SHIFT,
    TOTAL,
    B,
    C,
    H,
    W,
    Workspace,
)
from margotree.engines.numba_backend import inner

#: Only the margins of items are updated if there are more than this many samples per item.
LAZY_RATIO = 3


@inner(allocates=False)
def update_margins(ws: Workspace, s: int) -> None:
    """Update the margins (if there are few items, only theirs) by the last change of w and b.

    The changes are row TOTAL of ``work`` and SHIFT.
    """
    f, k, X, XT, fixed, work = ws.f, ws.k, ws.X, ws.XT, ws.fixed, ws.work
    m, n = X.shape
    db = work[SCALARS, SHIFT]
    n_items = ws.cnt[s, N_ITEMS]
    if LAZY_RATIO * n_items < m:
        for q in range(n_items):
            i = k[s, ITEMS, q]
            f[s, H, i] += fixed[C, i] * db
        for j in range(n):
            a = work[TOTAL, j]
            if a != 0.0:
                for q in range(n_items):
                    i = k[s, ITEMS, q]
                    f[s, H, i] += a * X[i, j]
        ws.cnt[s, MARGINS_STALE] = 1
        return
    for i in range(m):
        f[s, H, i] += fixed[C, i] * db
    for j in range(n):
        a = work[TOTAL, j]
        if a != 0.0:
            for i in range(m):
                f[s, H, i] += a * XT[j, i]


@inner(allocates=False)
def recompute(ws: Workspace, s: int) -> None:
    """Compute the margins of all samples from w and b."""
    f, g, XT, fixed = ws.f, ws.g, ws.XT, ws.fixed
    m, n = ws.X.shape
    b = g[s, NUM, B]
    for i in range(m):
        f[s, H, i] = fixed[C, i] * b
    for j in range(n):
        a = g[s, W, j]
        if a != 0.0:
            for i in range(m):
                f[s, H, i] += a * XT[j, i]
    ws.cnt[s, MARGINS_STALE] = 0


@inner(allocates=False)
def update_stale_margins(ws: Workspace, s: int) -> None:
    """Compute the margins of all samples if those of samples that are not items are stale."""
    if ws.cnt[s, MARGINS_STALE]:
        recompute(ws, s)


@inner(allocates=False)
def worst_item(ws: Workspace, s: int, tol: float) -> int:
    """The item whose margin is farthest outside its range.

    If no margin is outside by more than ``tol``, the first PENDING item; -1 if there is none either.
    """
    f, k = ws.f, ws.k
    m, n_items = ws.X.shape[0], ws.cnt[s, N_ITEMS]
    few = LAZY_RATIO * n_items < m
    worst = tol
    worst_index = -1
    if few:
        for q in range(n_items):
            i = k[s, ITEMS, q]
            size = max(f[s, LO, i] - f[s, H, i], f[s, H, i] - f[s, HI, i])
            if size > worst:
                worst = size
                worst_index = i
    else:
        for i in range(m):
            size = max(f[s, LO, i] - f[s, H, i], f[s, H, i] - f[s, HI, i])
            if size > worst:
                worst = size
                worst_index = i
    if worst_index < 0:
        for q in range(n_items if few else m):
            i = k[s, ITEMS, q] if few else q
            if f[s, LO, i] == f[s, HI, i]:
                return i
    return worst_index


@inner(allocates=False)
def next_violating_item(ws: Workspace, s: int, tol: float, first: int) -> int:
    """The next item, from ``first`` on and then from 0, whose margin is outside its range by more than ``tol`` or that
    is PENDING; -1 if there is none."""
    f, m = ws.f, ws.X.shape[0]
    for q in range(m):
        i = (first + q) % m
        off = max(f[s, LO, i] - f[s, H, i], f[s, H, i] - f[s, HI, i])
        if off > tol or f[s, LO, i] == f[s, HI, i]:
            return i
    return -1
