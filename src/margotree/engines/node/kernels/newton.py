"""SVMs by Newton's method on the smoothed loss, from wide to narrow, on few features or with a price on features.

The work of a step grows with the samples and not with their number of kinks, which is what makes thousands of supports
affordable.  Every width ends with a valid bound, the last one with the value to many digits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.kernels.smoothed_loss import (
    F8,
    NodeSamples,
    drawn,
    dual_value,
    margins,
    primal_value,
    slope_along,
    slopes,
)
from margotree.engines.numba_backend import inner, kernel

#: Widths of the rounding: first when nothing is known, first when warm, last; and the factor from stage to stage.
_COLD, _WARM, _LAST, _SHRINK = 1.0, 0.03, 1e-11, 0.1
#: Newton steps of one stage and evaluations of one line search.
_STEPS, _SEARCH = 40, 25
#: A line search ends when the derivative has dropped to this share.
_LEVEL = 0.3
#: A stage ends when the slope has dropped below this share of the multipliers, or of the costs where it is rounding.
_FLAT, _ROUNDED = 1e-9, 4e-16
#: Where costs are larger than the inverse of this, the first width grows with them: the multipliers of samples at their
#: margins are the costs times what rounding leaves of a violation, over the width.
_STEEP = 1e-10
#: The value of an SVM in standard units that counts as large: smaller ones need not be exact in every digit.
_LARGE = 1.0


@inner(allocates=False)
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


@inner(allocates=False)
def line_search(
    small: NodeSamples, cols: NDArray[np.int64], lam: F8, theta: F8, step: F8, delta: float, hard: float, start: float
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
def svm_on_features(
    small: NodeSamples,
    cols: NDArray[np.int64],
    lam: F8,
    theta: F8,
    eps: float,
    target: float,
    tol: float,
    warm: bool,
    flag: F8,
) -> tuple[float, bool, float]:
    """Lower bound on the SVM value on features ``cols``, whether it is within ``tol`` of it or at least ``target``, and
    the width of the rounding at the end.

    ``lam`` holds the features' prices, 0 for those that are used anyway; ``theta`` the weights and the offset: a first
    guess where ``warm``, the solution on return.  Another thread may set ``flag[0]`` to stop the work early.
    """
    if warm:
        bound, done, width = _stages(small, cols, lam, theta, eps, target, tol, _WARM, _SHRINK, flag)
        if done or flag[0] != 0.0:
            return bound, done, width
    for r in range(theta.size):
        theta[r] = 0.0
    cold = _COLD
    for i in range(small.y.size):
        cold = max(cold, _STEEP * small.cost[i])
    bound, done, width = _stages(small, cols, lam, theta, eps, target, tol, cold, _SHRINK, flag)
    if not done and flag[0] == 0.0:
        # Rare: from wide to narrow in small steps.
        for r in range(theta.size):
            theta[r] = 0.0
        again, done, width = _stages(small, cols, lam, theta, eps, target, tol, 100.0 * cold, 0.5, flag)
        bound = max(bound, again)
    return bound, done, width


@inner()
def _stages(
    small: NodeSamples,
    cols: NDArray[np.int64],
    lam: F8,
    theta: F8,
    eps: float,
    target: float,
    tol: float,
    delta: float,
    shrink: float,
    flag: F8,
) -> tuple[float, bool, float]:
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
                return bound, False, delta
            if slopes(small, cols, lam, theta, delta, hard, grad, H, step) == 0.0:
                H[d, d] = mean / delta
            size = 0.0
            for r in range(d + 1):
                size = max(size, abs(grad[r]))
            if size <= min(_FLAT * total, max(_FLAT * drawn(small, delta), _ROUNDED * hard / delta)):
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
            return bound, True, delta
        far = 0.0
        for i in range(small.y.size):
            far = max(far, small.g[i])
        value = primal_value(small, lam, theta)
        if value - bound <= tol * (1e-6 * min(total, _LARGE) + abs(value)) and far <= 1e-9 + 1e-3 * eps:
            return bound, True, delta
        if delta * shrink < _LAST:
            return bound, False, delta
        follow(small, cols, lam, theta, delta, hard, delta * shrink, step)
        delta *= shrink


@inner()
def follow(
    small: NodeSamples, cols: NDArray[np.int64], lam: F8, theta: F8, delta: float, hard: float, to: float, step: F8
) -> None:
    """Move the solution of one width to that of the next: the path between them is straight while no kink is met."""
    d = cols.size
    grad = np.empty(d + 1)
    H = np.empty((d + 1, d + 1))
    if slopes(small, cols, lam, theta, delta, hard, grad, H, step) == 0.0:
        return
    for r in range(d + 1):
        grad[r] = 0.0
    for i in range(small.y.size):
        s = small.s[i]
        shift = 0.0
        if s > 0.0 and s < delta:
            shift = small.cost[i] * s * small.y[i]
        if small.g[i] > 0.0:
            shift += hard * small.g[i] * small.side[i]
        if shift != 0.0:
            shift *= (to - delta) / (delta * delta)
            grad[d] += shift
            for r in range(d):
                grad[r] += shift * small.X[cols[r], i]
    for r in range(d):
        if lam[r] > 0.0 and abs(theta[r]) < delta * np.sqrt(2.0 * lam[r]):
            grad[r] -= theta[r] * (to - delta) / (delta * delta)
    solve_step(H, grad, step)
    for r in range(d + 1):
        theta[r] += step[r]


@kernel()
def solve_plain(X: F8, y: F8, cost: F8, theta: F8, tol: float, flag: F8, reach: float) -> tuple[float, bool]:
    """The SVM of all samples on all features (one per row of ``X``): lower bound, and whether it is within ``tol``."""
    k, n = y.size, X.shape[0]
    small = NodeSamples(X, y, cost, np.zeros(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k), reach)
    bound, done, _ = svm_on_features(small, np.arange(n), np.zeros(n), theta, 0.0, np.inf, tol, False, flag)
    return bound, done
