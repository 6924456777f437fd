"""SVMs by Newton's method on a smoothed hinge loss, on few features or with a price on features.

The loss ``max(0, s)`` of ``s = 1 - y h`` is rounded off over a width ``delta`` that shrinks from stage to stage.  At a
smoothed optimum the slopes of the losses are a feasible point of the exact dual, so every stage gives a valid lower
bound, and the last one the value to many digits.  The work of a step grows with the samples and not with their number
of kinks, which is what makes thousands of supports affordable.  Rows that must lie on one side are penalised by an
uncapped parabola, whose slope is their multiplier.

A feature with a price ``lam > 0`` may be used in part: its ``w^2 / 2`` becomes the perspective relaxation of
``w^2 / 2 + lam [w != 0]``, which is ``r |w|`` below ``r = sqrt(2 lam)`` and exact above.  The kink at 0 is rounded off
with the same width.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.kernels.jit import inner, kernel

F8 = NDArray[np.float64]

#: Widths of the rounding: first when nothing is known, first when warm, last; and the factor from stage to stage.
_COLD, _WARM, _LAST, _SHRINK = 1.0, 0.03, 1e-11, 0.1
#: Newton steps of one stage and evaluations of one line search.
_STEPS, _SEARCH = 40, 25
#: A line search ends when the derivative has dropped to this share.
_LEVEL = 0.3
#: A stage ends when the slope has dropped below this share of the costs.
_FLAT = 1e-9


class Small(NamedTuple):
    """The samples of one tree node on one support, and room to work in."""

    X: F8  # (n, k): all features of the members, one feature a row
    y: F8
    cost: F8
    side: F8  # +1 or -1 for members that must lie right or left, else 0
    s: F8  # lack of margin
    ds: F8  # its change along the step
    g: F8  # side * h, less what is asked for
    dg: F8


@inner()
def margins(small: Small, cols: NDArray[np.int64], theta: F8, eps: float) -> None:
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


@inner()
def slopes(
    small: Small, cols: NDArray[np.int64], lam: F8, theta: F8, delta: float, hard: float, grad: F8, H: F8
) -> float:
    """Gradient and Hessian of the smoothed value; returns the largest curvature of a single loss in ``b``."""
    d = cols.size
    x = np.empty(d)
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


@inner()
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


@inner()
def bend(w: float, lam: float, delta: float) -> float:
    """Curvature of a feature's smoothed penalty; a trace of it where the penalty is straight."""
    if lam == 0.0:
        return 1.0
    r = np.sqrt(2.0 * lam)
    size = abs(w)
    if size >= r:
        return 1.0
    return 1e-6 if size >= delta * r else 1.0 / delta


@inner()
def penalty(w: float, lam: float) -> float:
    """What a weight costs, with the features it is made of used in part."""
    if lam == 0.0:
        return 0.5 * w * w
    r = np.sqrt(2.0 * lam)
    return 0.5 * w * w + lam if abs(w) >= r else r * abs(w)


@inner()
def worth(g: float, lam: float) -> float:
    """What a feature takes from the dual: the penalty's conjugate."""
    return max(0.0, 0.5 * g * g - lam)


@inner()
def solve_step(H: F8, grad: F8, step: F8) -> None:
    """``step = -H^-1 grad`` by Cholesky factorisation in place; pivots are kept positive."""
    n = grad.size
    for c in range(n):
        for r in range(c, n):
            t = H[r, c]
            for q in range(c):
                t -= H[r, q] * H[c, q]
            if r == c:
                H[c, c] = np.sqrt(max(t, 1e-14 * (1.0 + H[c, c])))
            else:
                H[r, c] = t / H[c, c]
    for r in range(n):
        t = -grad[r]
        for q in range(r):
            t -= H[r, q] * step[q]
        step[r] = t / H[r, r]
    for r in range(n - 1, -1, -1):
        t = step[r]
        for q in range(r + 1, n):
            t -= H[q, r] * step[q]
        step[r] = t / H[r, r]


@inner()
def slope_along(small: Small, lam: F8, theta: F8, step: F8, t: float, delta: float, hard: float) -> float:
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


@inner()
def line_search(
    small: Small, cols: NDArray[np.int64], lam: F8, theta: F8, step: F8, delta: float, hard: float, start: float
) -> float:
    """How far to go along the step: to where the derivative is a small share of what it was at the ``start``."""
    k = small.y.size
    d = cols.size
    for i in range(k):
        small.ds[i] = step[d]
    for r in range(d):
        row = small.X[cols[r]]
        for i in range(k):
            small.ds[i] += step[r] * row[i]
    for i in range(k):
        dh = small.ds[i]
        small.ds[i] = -small.y[i] * dh
        small.dg[i] = -small.side[i] * dh
    good = _LEVEL * abs(start)
    low, f_low = 0.0, start
    high = 1.0
    f_high = slope_along(small, lam, theta, step, high, delta, hard)
    tries = 0
    while f_high < -good and tries < _SEARCH:
        low, f_low = high, f_high
        high *= 4.0
        f_high = slope_along(small, lam, theta, step, high, delta, hard)
        tries += 1
    if f_high <= good:
        return high
    t = high
    for _ in range(_SEARCH):
        # Secant, kept off the ends so that the bracket shrinks by a tenth at least.
        share = f_low / (f_low - f_high)
        share = min(max(share, 0.05), 0.95)
        t = low + share * (high - low)
        f = slope_along(small, lam, theta, step, t, delta, hard)
        if abs(f) <= good:
            return t
        if f < 0.0:
            low, f_low = t, f
        else:
            high, f_high = t, f
    return low if low > 0.0 else t


@inner()
def dual_value(small: Small, cols: NDArray[np.int64], lam: F8, delta: float, hard: float, eps: float, w: F8) -> float:
    """Exact dual value of the losses' slopes, balanced on one member; -inf if no member can balance them."""
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
    total = 0.0
    for r in range(d):
        w[r] = 0.0
    for i in range(k):
        nu = small.cost[i] * min(1.0, max(0.0, small.s[i] / delta))
        if i == who:
            nu = min(max(nu - small.y[i] * balance, 0.0), small.cost[i])
        mu = small.y[i] * nu
        total += nu
        if small.g[i] > 0.0:
            held = hard / delta * small.g[i]
            mu += small.side[i] * held
            if small.side[i] < 0:
                total += held * eps
        if mu != 0.0:
            for r in range(d):
                w[r] += mu * small.X[cols[r], i]
    taken = 0.0
    for r in range(d):
        taken += worth(w[r], lam[r])
    return total - taken - 1e-13 * (total + taken)


@inner()
def primal_value(small: Small, lam: F8, theta: F8) -> float:
    total = 0.0
    for r in range(lam.size):
        total += penalty(theta[r], lam[r])
    for i in range(small.y.size):
        if small.s[i] > 0.0:
            total += small.cost[i] * small.s[i]
    return total


@inner()
def small_svm(
    small: Small,
    cols: NDArray[np.int64],
    lam: F8,
    theta: F8,
    eps: float,
    target: float,
    tol: float,
    warm: bool,
    flag: F8,
) -> tuple[float, bool]:
    """Lower bound on the SVM value on features ``cols``, and whether it is within ``tol`` of it or at least ``target``.

    ``lam`` holds the features' prices, 0 for those that are used anyway; ``theta`` the weights and the offset: a first
    guess where ``warm``, the solution on return.  Another thread may set ``flag[0]`` to stop the work early.
    """
    if warm:
        bound, done = _stages(small, cols, lam, theta, eps, target, tol, _WARM, _SHRINK, flag)
        if done or flag[0] != 0.0:
            return bound, done
    for r in range(theta.size):
        theta[r] = 0.0
    bound, done = _stages(small, cols, lam, theta, eps, target, tol, _COLD, _SHRINK, flag)
    if not done and flag[0] == 0.0:
        # Rare: from wide to narrow in small steps.
        for r in range(theta.size):
            theta[r] = 0.0
        again, done = _stages(small, cols, lam, theta, eps, target, tol, 100.0 * _COLD, 0.5, flag)
        bound = max(bound, again)
    return bound, done


@inner()
def _stages(
    small: Small,
    cols: NDArray[np.int64],
    lam: F8,
    theta: F8,
    eps: float,
    target: float,
    tol: float,
    delta: float,
    shrink: float,
    flag: F8,
) -> tuple[float, bool]:
    """Solve for narrower and narrower widths, from ``delta``."""
    d = cols.size
    grad = np.empty(d + 1)
    step = np.empty(d + 1)
    H = np.empty((d + 1, d + 1))
    w = np.empty(d)
    total = 0.0
    hard = 0.0
    for i in range(small.y.size):
        total += small.cost[i]
        hard = max(hard, small.cost[i])
    hard = max(hard, 1e-12)
    mean = max(total / max(1, small.y.size), 1e-300)
    bound = 0.0
    while True:
        margins(small, cols, theta, eps)
        for _ in range(_STEPS):
            if flag[0] != 0.0:
                return bound, False
            if slopes(small, cols, lam, theta, delta, hard, grad, H) == 0.0:
                H[d, d] = mean / delta
            size = 0.0
            for r in range(d + 1):
                size = max(size, abs(grad[r]))
            if size <= _FLAT * total:
                break
            solve_step(H, grad, step)
            start = 0.0
            for r in range(d + 1):
                start += grad[r] * step[r]
            if start >= 0.0:
                break
            t = line_search(small, cols, lam, theta, step, delta, hard, start)
            for r in range(d + 1):
                theta[r] += t * step[r]
            for i in range(small.y.size):
                small.s[i] += t * small.ds[i]
                small.g[i] += t * small.dg[i]
        bound = max(bound, dual_value(small, cols, lam, delta, hard, eps, w))
        if bound >= target:
            return bound, True
        far = 0.0
        for i in range(small.y.size):
            far = max(far, small.g[i])
        value = primal_value(small, lam, theta)
        if value - bound <= tol * (1e-6 * total + abs(value)) and far <= 1e-9 + 1e-3 * eps:
            return bound, True
        if delta * shrink < _LAST:
            return bound, False
        follow(small, cols, lam, theta, delta, hard, delta * shrink, step)
        delta *= shrink


@inner()
def follow(
    small: Small, cols: NDArray[np.int64], lam: F8, theta: F8, delta: float, hard: float, to: float, step: F8
) -> None:
    """Move the solution of one width to that of the next: the path between them is straight while no kink is met."""
    d = cols.size
    grad = np.empty(d + 1)
    H = np.empty((d + 1, d + 1))
    if slopes(small, cols, lam, theta, delta, hard, grad, H) == 0.0:
        return
    for r in range(d + 1):
        grad[r] = 0.0
    for i in range(small.y.size):
        s = small.s[i]
        drawn = 0.0
        if s > 0.0 and s < delta:
            drawn = small.cost[i] * s * small.y[i]
        if small.g[i] > 0.0:
            drawn += hard * small.g[i] * small.side[i]
        if drawn != 0.0:
            drawn *= (to - delta) / (delta * delta)
            grad[d] += drawn
            for r in range(d):
                grad[r] += drawn * small.X[cols[r], i]
    for r in range(d):
        if lam[r] > 0.0 and abs(theta[r]) < delta * np.sqrt(2.0 * lam[r]):
            grad[r] -= theta[r] * (to - delta) / (delta * delta)
    solve_step(H, grad, step)
    for r in range(d + 1):
        theta[r] += step[r]


@kernel()
def solve_plain(X: F8, y: F8, cost: F8, theta: F8, tol: float, flag: F8) -> tuple[float, bool]:
    """The SVM of all samples on all features (one a row of ``X``): lower bound, and whether it is within ``tol``."""
    k, n = y.size, X.shape[0]
    small = Small(X, y, cost, np.zeros(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k))
    return small_svm(small, np.arange(n), np.zeros(n), theta, 0.0, np.inf, tol, False, flag)
