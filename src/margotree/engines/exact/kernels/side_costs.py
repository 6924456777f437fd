"""Estimated cost of an undecided sample on both sides of its node, from the current hyperplanes."""

from __future__ import annotations

from margotree.engines.exact.kernels.routing import (
    ACCURACY,
    BOTH,
    BY_SIDE,
    ESTIMATE,
    OPEN,
    OTHER_ACCURACY,
    OTHER_ESTIMATE,
    PLACE,
    SCORE,
    SLOT,
    TOL,
    Routing,
    child_by_margin,
    in_band,
)
from margotree.engines.node.kernels.workspace import CORNER, COST, N_ITEMS, NORM2, NU, H, O, Workspace
from margotree.engines.numba_backend import inner

#: The cost, as a share of C, where it is not known: at an empty node, and of a sample inside a band.
NOMINAL = 1e-2
#: The smallest gain, so that a candidate without a gain on one side is ranked by the other.
FLOOR = 1e-6


@inner(allocates=False)
def loss_at(ws: Workspace, rt: Routing, t: int, i: int, side: float) -> float:
    """The loss of sample ``i`` at tree node ``t``, where it takes this side, with the best choices."""
    fixed, code = ws.fixed, rt.guess[t, rt.group[i]]
    h = ws.f[rt.at[SLOT, t], H, i]
    total = 0.0
    if code == BOTH:
        second = rt.samples + i
        hinge = fixed[CORNER + 2 * t, second] + h
        total = fixed[COST + 2 * t, second] * hinge if hinge > TOL else 0.0
        code = 1
    label = side if code == BY_SIDE else float(code)
    hinge = fixed[CORNER + 2 * t, i] - label * h
    return total + fixed[COST + 2 * t, i] * hinge if hinge > TOL else total


@inner(allocates=False)
def path_cost(ws: Workspace, rt: Routing, t: int, i: int) -> float:
    """The loss of sample ``i`` at ``t`` and on its path below, with the current hyperplanes."""
    total = 0.0
    while t < rt.T:
        s = rt.at[SLOT, t]
        cost = ws.fixed[COST + 2 * t, i]
        if ws.cnt[s, N_ITEMS] == ws.X.shape[0] - rt.items:
            return total + NOMINAL * cost
        h = ws.f[s, H, i]
        child = child_by_margin(t, h)
        total += loss_at(ws, rt, t, i, 1.0 if child == 2 * t + 2 else -1.0)
        if 2 * t + 1 < rt.T and in_band(h, rt.eps):
            total += NOMINAL * cost
        t = child
    return total


@inner(allocates=False)
def estimate(ws: Workspace, rt: Routing) -> None:
    """Compute estimates and scores of all samples.

    A sample that reaches the last level without further cost has the score -1.
    """
    score, fixed = rt.score, ws.fixed
    for i in range(rt.samples):
        t = rt.at[PLACE, i]
        score[SCORE, i] = -1.0
        if t >= rt.T // 2:
            continue
        s, code = rt.at[SLOT, t], rt.code[t, rt.group[i]]
        now, cost = ws.f[s, H, i], fixed[COST + 2 * t, i]
        child = child_by_margin(t, now)
        side = 1.0 if child == 2 * t + 2 else -1.0
        same = path_cost(ws, rt, child, i)
        if in_band(now, rt.eps):
            same += NOMINAL * cost
        if code == BY_SIDE:
            same += loss_at(ws, rt, t, i, side)
        if same == 0.0:
            continue
        # On the other side: the loss of a sample sent against its label, and the cost of moving the hyperplane.
        flip = path_cost(ws, rt, 4 * t + 3 - child, i) + 0.5 * now * now / fixed[NORM2, i]
        if code == BY_SIDE:
            flip += loss_at(ws, rt, t, i, -side)
        elif code != OPEN and side == code:
            flip += cost - (ws.f[s, NU, i] if ws.f[s, O, i] == code else 0.0)
        score[ESTIMATE, i] = same
        score[OTHER_ESTIMATE, i] = flip + FLOOR * cost
        score[SCORE, i] = same * score[ACCURACY, i] * score[OTHER_ESTIMATE, i] * score[OTHER_ACCURACY, i]
