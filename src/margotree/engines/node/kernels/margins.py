"""Margins of samples: how they follow a change of (w, b), and whose is most out of place.

All samples have one, members or not.  Where members are few only theirs are kept up to date; the others' catch up when
somebody asks for them.
"""

from __future__ import annotations

from margotree.engines.node.kernels.workspace import (
    BEHIND,
    HI,
    ITEMS,
    LO,
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

#: Members are few if there are so many times as many samples.
FEW = 3


@inner(allocates=False)
def follow(ws: Workspace, s: int) -> None:
    """Move margins by the last change of w, which is row TOTAL of the scratch, and of b."""
    f, k, X, XT, fixed, work = ws.f, ws.k, ws.X, ws.XT, ws.fixed, ws.work
    m, n = X.shape
    db = work[SCALARS, SHIFT]
    members = ws.cnt[s, N_ITEMS]
    if FEW * members < m:
        for q in range(members):
            i = k[s, ITEMS, q]
            f[s, H, i] += fixed[C, i] * db
        for j in range(n):
            a = work[TOTAL, j]
            if a != 0.0:
                for q in range(members):
                    i = k[s, ITEMS, q]
                    f[s, H, i] += a * X[i, j]
        ws.cnt[s, BEHIND] = 1
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
    """All margins from w and b."""
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
    ws.cnt[s, BEHIND] = 0


@inner(allocates=False)
def update_stale_margins(ws: Workspace, s: int) -> None:
    """Bring the margins of samples that are not members up to date."""
    if ws.cnt[s, BEHIND]:
        recompute(ws, s)


@inner(allocates=False)
def worst_item(ws: Workspace, s: int, tol: float) -> int:
    """The item that violates its step most, or -1 if none does by more than ``tol``; PENDING ones always count."""
    f, k = ws.f, ws.k
    m, members = ws.X.shape[0], ws.cnt[s, N_ITEMS]
    few = FEW * members < m
    worst = tol
    who = -1
    if few:
        for q in range(members):
            i = k[s, ITEMS, q]
            size = max(f[s, LO, i] - f[s, H, i], f[s, H, i] - f[s, HI, i])
            if size > worst:
                worst = size
                who = i
    else:
        for i in range(m):
            size = max(f[s, LO, i] - f[s, H, i], f[s, H, i] - f[s, HI, i])
            if size > worst:
                worst = size
                who = i
    if who < 0:
        for q in range(members if few else m):
            i = k[s, ITEMS, q] if few else q
            if f[s, LO, i] == f[s, HI, i]:
                return i
    return who


@inner(allocates=False)
def any_item(ws: Workspace, s: int, tol: float, first: int) -> int:
    """The next item from ``first`` on that violates its step."""
    f, m = ws.f, ws.X.shape[0]
    for q in range(m):
        i = (first + q) % m
        off = max(f[s, LO, i] - f[s, H, i], f[s, H, i] - f[s, HI, i])
        if off > tol or f[s, LO, i] == f[s, HI, i]:
            return i
    return -1
