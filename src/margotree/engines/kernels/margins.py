"""Margins of samples: how they follow a change of (w, b), and whose is most out of place.

All samples have one, members or not.  Where members are few only theirs are kept up to date; the others' catch up when
somebody asks for them.
"""

from __future__ import annotations

from margotree.engines.kernels.jit import bare, bare_kernel
from margotree.engines.kernels.state import BEHIND, F8, N_ITEMS, B, NodeState

#: Members are few if there are so many times as many samples.
FEW = 3


@bare()
def _few(state: NodeState) -> bool:
    return bool(FEW * state.cnt[N_ITEMS] < state.h.size)


@bare()
def follow(state: NodeState, work: F8) -> None:
    """Move margins by the last change of w, which is row 0 of ``work``, and of b, work[1, 0]."""
    dw, db = work[0, : state.w.size], work[1, 0]
    if _few(state):
        _advance_members(state, dw, db)
        state.cnt[BEHIND] = 1
    else:
        _advance(state, dw, db)


@bare()
def _advance(state: NodeState, dw: F8, db: float) -> None:
    h, XT, c = state.h, state.XT, state.c
    m = h.size
    for i in range(m):
        h[i] += c[i] * db
    for j in range(dw.size):
        a = dw[j]
        if a != 0.0:
            for i in range(m):
                h[i] += a * XT[j, i]


@bare()
def _advance_members(state: NodeState, dw: F8, db: float) -> None:
    h, X, c, items = state.h, state.X, state.c, state.items
    for k in range(state.cnt[N_ITEMS]):
        i = items[k]
        h[i] += c[i] * db
    for j in range(dw.size):
        a = dw[j]
        if a != 0.0:
            for k in range(state.cnt[N_ITEMS]):
                i = items[k]
                h[i] += a * X[i, j]


@bare()
def recompute(state: NodeState) -> None:
    """All margins from w and b."""
    for i in range(state.h.size):
        state.h[i] = 0.0
    _advance(state, state.w, state.num[B])
    state.cnt[BEHIND] = 0


@bare_kernel()
def catch_up(state: NodeState) -> None:
    """Bring the margins of samples that are not members up to date."""
    if state.cnt[BEHIND]:
        recompute(state)


@bare()
def worst_item(state: NodeState, tol: float) -> int:
    """The item that violates its step most, or -1 if none does by more than ``tol``; PENDING ones always count."""
    h, lo, hi, items = state.h, state.lo, state.hi, state.items
    few = _few(state)
    n = state.cnt[N_ITEMS] if few else h.size
    worst = tol
    who = -1
    for k in range(n):
        i = items[k] if few else k
        size = max(lo[i] - h[i], h[i] - hi[i])
        if size > worst:
            worst = size
            who = i
    if who < 0:
        for k in range(n):
            i = items[k] if few else k
            if lo[i] == hi[i]:
                return i
    return who


@bare()
def any_item(state: NodeState, tol: float, first: int) -> int:
    """The next item from ``first`` on that violates its step."""
    m = state.h.size
    for k in range(m):
        i = (first + k) % m
        if max(state.lo[i] - state.h[i], state.h[i] - state.hi[i]) > tol or state.lo[i] == state.hi[i]:
            return i
    return -1
