"""The SVM with a smoothed hinge loss: its value, slopes and curvature, and the exact dual value of a smoothed optimum.

The loss ``max(0, s)`` of ``s = 1 - y h`` is rounded off over a width ``delta``.  At a smoothed optimum the slopes of
the losses are a feasible point of the exact dual, so their dual value is a valid lower bound.  Rows that must lie on
one side are penalised by an uncapped parabola, whose slope is their multiplier.

A feature with a price ``lam > 0`` may be used in part: its ``w^2 / 2`` becomes the perspective relaxation of
``w^2 / 2 + lam [w != 0]``, which is ``r |w|`` below ``r = sqrt(2 lam)`` and exact above.  The kink at 0 is rounded off
with the same width.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.kernels.safe_bounds import MORE, ROUNDOFF
from margotree.engines.node.kernels.workspace import two_sum
from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]


class NodeSamples(NamedTuple):
    """The samples of one tree node on one support, and room to work in."""

    X: F8  # (n, k): all features of the members, one feature per row
    y: F8
    cost: F8
    side: F8  # +1 or -1 for members that must lie right or left, else 0
    s: F8  # lack of margin
    ds: F8  # its change along the step
    g: F8  # side * h, less what is asked for
    dg: F8
    reach: float  # how large |b| can be in a tree of interest


@inner(allocates=False)
def margins(small: NodeSamples, cols: NDArray[np.int64], theta: F8, eps: float) -> None:
    """Fill in what every member lacks to its margin and to its side."""
    k = small.y.size
    d = cols.size
    b = theta[d]
    s, g = small.s, small.g
    for i in range(k):
        s[i] = b
    for r in range(d):
        w = theta[r]
        row = small.X[cols[r]]
        for i in range(k):
            s[i] += w * row[i]
    for i in range(k):
        h = s[i]
        s[i] = 1.0 - small.y[i] * h
        side = small.side[i]
        g[i] = (0.0 if side > 0 else eps) - side * h if side != 0.0 else -1.0


@inner(allocates=False)
def slopes(
    small: NodeSamples, cols: NDArray[np.int64], lam: F8, theta: F8, delta: float, hard: float, grad: F8, H: F8, x: F8
) -> float:
    """Gradient and Hessian of the smoothed value; returns the largest curvature of a single loss in ``b``.

    ``x`` is scratch.
    """
    d = cols.size
    for r in range(d + 1):
        grad[r] = pull(theta[r], lam[r], delta) if r < d else 0.0
        for q in range(d + 1):
            H[r, q] = 0.0
        if r < d:
            H[r, r] = bend(theta[r], lam[r], delta)
    bent = 0.0
    for i in range(small.y.size):
        mu = 0.0
        kappa = 0.0
        s = small.s[i]
        if s > 0.0:
            if s >= delta:
                mu = small.cost[i] * small.y[i]
            else:
                kappa = small.cost[i] / delta
                mu = kappa * s * small.y[i]
        g = small.g[i]
        if g > 0.0:
            mu += hard / delta * g * small.side[i]
            kappa += hard / delta
        if mu == 0.0:
            continue
        grad[d] -= mu
        for r in range(d):
            x[r] = small.X[cols[r], i]
            grad[r] -= mu * x[r]
        if kappa > 0.0:
            bent = max(bent, kappa)
            H[d, d] += kappa
            for r in range(d):
                z = kappa * x[r]
                H[d, r] += z
                for q in range(r + 1):
                    H[r, q] += z * x[q]
    return bent


@inner(allocates=False)
def drawn(small: NodeSamples, delta: float) -> float:
    """The sum of the losses' slopes."""
    total = 0.0
    for i in range(small.y.size):
        total += small.cost[i] * min(1.0, max(0.0, small.s[i] / delta))
    return total


@inner(allocates=False)
def pull(w: float, lam: float, delta: float) -> float:
    """Slope of a feature's smoothed penalty."""
    if lam == 0.0:
        return w
    r = np.sqrt(2.0 * lam)
    size = abs(w)
    if size >= r:
        return w
    if size >= delta * r:
        return r if w > 0 else -r
    return w / delta


@inner(allocates=False)
def bend(w: float, lam: float, delta: float) -> float:
    """Curvature of a feature's smoothed penalty; a trace of it where the penalty is straight."""
    if lam == 0.0:
        return 1.0
    r = np.sqrt(2.0 * lam)
    size = abs(w)
    if size >= r:
        return 1.0
    return 1e-6 if size >= delta * r else 1.0 / delta


@inner(allocates=False)
def penalty(w: float, lam: float) -> float:
    """What a weight costs, with the features it is made of used in part."""
    if lam == 0.0:
        return 0.5 * w * w
    r = np.sqrt(2.0 * lam)
    return 0.5 * w * w + lam if abs(w) >= r else r * abs(w)


@inner(allocates=False)
def worth(g: float, lam: float) -> float:
    """What a feature takes from the dual: the penalty's conjugate."""
    return max(0.0, 0.5 * g * g - lam)


@inner(allocates=False)
def slope_along(small: NodeSamples, lam: F8, theta: F8, step: F8, t: float, delta: float, hard: float) -> float:
    """Derivative of the smoothed value along the step, at a share ``t`` of it."""
    total = 0.0
    for r in range(lam.size):
        total += step[r] * pull(theta[r] + t * step[r], lam[r], delta)
    for i in range(small.y.size):
        s = small.s[i] + t * small.ds[i]
        if s > 0.0:
            total += small.cost[i] * small.ds[i] * min(1.0, s / delta)
        g = small.g[i] + t * small.dg[i]
        if g > 0.0:
            total += hard / delta * g * small.dg[i]
    return total


@inner(allocates=False)
def takes(small: NodeSamples, delta: float, rest: float, who: int, balance: float) -> int:
    """The first member whose multiplier has room to take ``rest`` from the sum of all, after member ``who`` has taken
    the ``balance``; -1 if none has."""
    for i in range(small.y.size):
        nu = small.cost[i] * min(1.0, max(0.0, small.s[i] / delta))
        if i == who:
            nu = min(max(nu - small.y[i] * balance, 0.0), small.cost[i])
        if (nu if small.y[i] * rest > 0.0 else small.cost[i] - nu) >= 2.0 * abs(rest):
            return i
    return -1


@inner(allocates=False)
def dual_value(
    small: NodeSamples, cols: NDArray[np.int64], lam: F8, delta: float, hard: float, eps: float, w: F8
) -> float:
    """Exact dual value of the losses' slopes, balanced on one member; -inf if no member can balance them.

    What rounding may have added at most is taken off, as `certain` does it.
    """
    d = cols.size
    k = small.y.size
    balance = 0.0
    for i in range(k):
        s = small.s[i]
        if s > 0.0:
            balance += small.y[i] * small.cost[i] * min(1.0, s / delta)
        if small.g[i] > 0.0:
            balance += small.side[i] * hard / delta * small.g[i]
    who, room = -1, -1.0
    if balance != 0.0:
        for i in range(k):
            nu = small.cost[i] * min(1.0, max(0.0, small.s[i] / delta))
            space = nu if small.y[i] * balance > 0.0 else small.cost[i] - nu
            # Prefer members near the margin: moving their multiplier is almost free.
            if space >= abs(balance):
                near = 1.0 / (1e-12 + abs(small.s[i] - 0.5 * delta))
                if near > room:
                    room = near
                    who = i
        if who < 0:
            return -np.inf
    total = sum_of_mu = low = offsets = size = 0.0
    for r in range(d):
        w[r] = 0.0
    for i in range(k):
        nu = small.cost[i] * min(1.0, max(0.0, small.s[i] / delta))
        if i == who:
            nu = min(max(nu - small.y[i] * balance, 0.0), small.cost[i])
        mu = small.y[i] * nu
        total += nu
        sum_of_mu, more = two_sum(sum_of_mu, mu)
        low += more
        offsets += nu
        if small.g[i] > 0.0:
            held = hard / delta * small.g[i]
            sum_of_mu, more = two_sum(sum_of_mu, small.side[i] * held)
            low += more
            offsets += held
            mu += small.side[i] * held
            if small.side[i] < 0:
                total += held * eps
        if mu != 0.0:
            square = 0.0
            for r in range(d):
                x = small.X[cols[r], i]
                w[r] += mu * x
                square += x * x
            size += abs(mu) * np.sqrt(square)
    taken = 0.0
    for r in range(d):
        taken += worth(w[r], lam[r])
    gamma = ROUNDOFF * (k + d + MORE)
    off = gamma * size
    # The point that is valued adds up to 0 exactly: a member with room takes the rest, as in `certain.recompute`.
    rest = sum_of_mu + low
    taker = takes(small, delta, rest, who, balance) if rest != 0.0 else -1
    if taker >= 0:
        square = 0.0
        for r in range(d):
            square += small.X[cols[r], taker] ** 2
        off += 2.0 * abs(rest) * np.sqrt(square)
        total -= 2.0 * abs(rest)
        rest = 0.0
    square = 0.0
    for r in range(d):
        square += w[r] * w[r]
    unbalanced = abs(rest) + gamma * gamma * offsets
    lost = gamma * (total + square) + 2.0 * off * (np.sqrt(square) + off)
    return total - taken - lost - (unbalanced * small.reach if unbalanced > 0.0 else 0.0)


@inner(allocates=False)
def primal_value(small: NodeSamples, lam: F8, theta: F8) -> float:
    total = 0.0
    for r in range(lam.size):
        total += penalty(theta[r], lam[r])
    for i in range(small.y.size):
        if small.s[i] > 0.0:
            total += small.cost[i] * small.s[i]
    return total
