"""SVMs by Newton's method on the smoothed loss with decreasing widths, on few features or with feature penalties.

The work of a step is proportional to the number of samples, whatever the number of kinks; therefore thousands of
supports can be solved.  Every width ends with a valid bound, the last one with the value to many digits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.kernels.smoothed_loss import (
    F8,
    NodeSamples,
    directional_derivative,
    dual_value,
    fill_violations,
    gradient_and_hessian,
    primal_value,
    row_weight,
    sum_of_multipliers,
)
from margotree.engines.numba_backend import inner, kernel

#: Widths of the smoothing: the first one from a cold start and from a warm start, and the last one; and the factor from
#: one width to the next.
_COLD_WIDTH, _WARM_WIDTH, _LAST_WIDTH, _SHRINK = 1.0, 0.03, 1e-11, 0.1
#: Newton steps per width; evaluations of a line search while its step grows, and between two ends. Where no loss is
#: curved only ``|w|^2 / 2`` is, and a step is as long as the costs are large: ``log2 C`` halvings lead back to where
#: losses are curved.
_NEWTON_STEPS, _GROWTH_STEPS, _SEARCH_STEPS = 40, 25, 100
#: A line search ends when the derivative has dropped to this share.
_SLOPE_SHARE = 0.3
#: A width is solved when the slope is below this share of the multipliers, or of the costs where it is a rounding
#: error.
_FLAT_SLOPE, _SLOPE_ROUNDING = 1e-9, 4e-16
#: First width per unit of cost, where this is larger: the multipliers of samples at their margins are the cost times
#: the rounding error of a violation, over the width.
_COLD_PER_COST = 1e-10
#: The largest share of the band by which rows may be violated at a node that counts as solved.
_ROW_VIOLATION = 1e-3
#: Values of SVMs in standard units below this need not be exact in every digit.
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
    samples: NodeSamples, cols: NDArray[np.int64], lam: F8, theta: F8, step: F8, delta: float, hard: float, start: float
) -> float:
    """The step length at which the derivative along ``step`` is a small share of ``start``, its value at 0."""
    k = samples.y.size
    d = cols.size
    for i in range(k):
        samples.violation_rate[i] = step[d]
    for r in range(d):
        row = samples.X[cols[r]]
        for i in range(k):
            samples.violation_rate[i] += step[r] * row[i]
    for i in range(k):
        dh = samples.violation_rate[i]
        samples.violation_rate[i] = -samples.y[i] * dh
        samples.row_violation_rate[i] = -samples.side[i] * dh
    good = _SLOPE_SHARE * abs(start)
    low, f_low = 0.0, start
    high = 1.0
    f_high = directional_derivative(samples, lam, theta, step, high, delta, hard)
    tries = 0
    while f_high < -good and tries < _GROWTH_STEPS:
        low, f_low = high, f_high
        high *= 4.0
        f_high = directional_derivative(samples, lam, theta, step, high, delta, hard)
        tries += 1
    if f_high <= good:
        return high
    t = high
    for _ in range(_SEARCH_STEPS):
        # Secant, kept away from the ends so that the bracket shrinks by a twentieth at least.
        share = f_low / (f_low - f_high)
        share = min(max(share, 0.05), 0.95)
        t = low + share * (high - low)
        f = directional_derivative(samples, lam, theta, step, t, delta, hard)
        if abs(f) <= good:
            return t
        if f < 0.0:
            low, f_low = t, f
        else:
            high, f_high = t, f
    return low if low > 0.0 else t


@inner()
def svm_on_features(
    samples: NodeSamples,
    cols: NDArray[np.int64],
    lam: F8,
    theta: F8,
    eps: float,
    target: float,
    tol: float,
    warm: bool,
    flag: F8,
) -> tuple[float, bool, float]:
    """Lower bound on the value of the SVM on the features ``cols``.

    Parameters
    ----------
    lam : array
        Penalties of the features, 0 for features that are used in any case.
    theta : array
        Weights and offset: the start if ``warm``, the solution on return.
    eps : float
        Distance of hard rows on the left side from the hyperplane.
    target : float
        The work ends when the bound reaches it.
    tol : float
        Relative gap at which the work ends.
    flag : array of one number
        Another thread sets it to 1 to end the work early.

    Returns
    -------
    bound, done, width
        The bound; whether it reaches ``target`` or is within ``tol`` of the value; the last width of the smoothing.
    """
    if warm:
        bound, done, width = _stages(samples, cols, lam, theta, eps, target, tol, _WARM_WIDTH, _SHRINK, flag)
        if done or flag[0] != 0.0:
            return bound, done, width
    for r in range(theta.size):
        theta[r] = 0.0
    cold = _COLD_WIDTH
    for i in range(samples.y.size):
        cold = max(cold, _COLD_PER_COST * samples.cost[i])
    bound, done, width = _stages(samples, cols, lam, theta, eps, target, tol, cold, _SHRINK, flag)
    if not done and flag[0] == 0.0:
        # Rare: decrease the width in smaller steps.
        for r in range(theta.size):
            theta[r] = 0.0
        again, done, width = _stages(samples, cols, lam, theta, eps, target, tol, 100.0 * cold, 0.5, flag)
        bound = max(bound, again)
    return bound, done, width


@inner()
def _stages(
    samples: NodeSamples,
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
    """Solve for decreasing widths, from ``delta`` on; arguments and results as in `svm_on_features`."""
    d = cols.size
    grad = np.empty(d + 1)
    step = np.empty(d + 1)
    H = np.empty((d + 1, d + 1))
    w = np.empty(d)
    total = 0.0
    for i in range(samples.y.size):
        total += samples.cost[i]
    hard = row_weight(samples.X, cols, samples.cost, samples.side, eps)
    mean = max(total / max(1, samples.y.size), 1e-300)
    allowed_violation = min(_ROW_VIOLATION, 0.5 * np.sqrt(tol))
    bound = 0.0
    while True:
        fill_violations(samples, cols, theta, eps)
        for _ in range(_NEWTON_STEPS):
            if flag[0] != 0.0:
                return bound, False, delta
            if gradient_and_hessian(samples, cols, lam, theta, delta, hard, grad, H, step) == 0.0:
                H[d, d] = mean / delta
            size = 0.0
            for r in range(d + 1):
                size = max(size, abs(grad[r]))
            if size <= min(
                _FLAT_SLOPE * total,
                max(_FLAT_SLOPE * sum_of_multipliers(samples, delta), _SLOPE_ROUNDING * hard / delta),
            ):
                break
            solve_step(H, grad, step)
            start = 0.0
            for r in range(d + 1):
                start += grad[r] * step[r]
            if start >= 0.0:
                break
            t = line_search(samples, cols, lam, theta, step, delta, hard, start)
            for r in range(d + 1):
                theta[r] += t * step[r]
            for i in range(samples.y.size):
                samples.violation[i] += t * samples.violation_rate[i]
                samples.row_violation[i] += t * samples.row_violation_rate[i]
        bound = max(bound, dual_value(samples, cols, lam, delta, hard, eps, w))
        if bound >= target:
            return bound, True, delta
        # Violations of rows times their multipliers belong to the smoothed value, whose own error is quadratic: a
        # violation by a share of the band makes the value smaller by the square of that share.
        far = row_loss = 0.0
        for i in range(samples.y.size):
            if samples.row_violation[i] > 0.0:
                far = max(far, samples.row_violation[i])
                row_loss += hard / delta * samples.row_violation[i] * samples.row_violation[i]
        value = primal_value(samples, lam, theta) + row_loss
        solved = value - bound <= tol * (1e-6 * min(total, _LARGE) + abs(value))
        if solved and far <= 1e-9 + allowed_violation * eps:
            return bound, True, delta
        if delta * shrink < _LAST_WIDTH:
            return bound, False, delta
        extrapolate(samples, cols, lam, theta, delta, hard, delta * shrink, step)
        delta *= shrink


@inner()
def extrapolate(
    samples: NodeSamples,
    cols: NDArray[np.int64],
    lam: F8,
    theta: F8,
    delta: float,
    hard: float,
    next_delta: float,
    step: F8,
) -> None:
    """Move the solution of one width to that of the next: between kinks the path of solutions is straight."""
    d = cols.size
    grad = np.empty(d + 1)
    H = np.empty((d + 1, d + 1))
    if gradient_and_hessian(samples, cols, lam, theta, delta, hard, grad, H, step) == 0.0:
        return
    for r in range(d + 1):
        grad[r] = 0.0
    for i in range(samples.y.size):
        s = samples.violation[i]
        shift = 0.0
        if s > 0.0 and s < delta:
            shift = samples.cost[i] * s * samples.y[i]
        if samples.row_violation[i] > 0.0:
            shift += hard * samples.row_violation[i] * samples.side[i]
        if shift != 0.0:
            shift *= (next_delta - delta) / (delta * delta)
            grad[d] += shift
            for r in range(d):
                grad[r] += shift * samples.X[cols[r], i]
    for r in range(d):
        if lam[r] > 0.0 and abs(theta[r]) < delta * np.sqrt(2.0 * lam[r]):
            grad[r] -= theta[r] * (next_delta - delta) / (delta * delta)
    solve_step(H, grad, step)
    for r in range(d + 1):
        theta[r] += step[r]


@kernel()
def solve_plain(
    X: F8, y: F8, cost: F8, corner: F8, theta: F8, tol: float, flag: F8, reach: float
) -> tuple[float, bool]:
    """The node problem on all features (one per row of ``X``): a lower bound, and whether it is within ``tol``."""
    k, n = y.size, X.shape[0]
    samples = NodeSamples(X, y, cost, corner, np.zeros(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k), reach)
    bound, done, _ = svm_on_features(samples, np.arange(n), np.zeros(n), theta, 0.0, np.inf, tol, False, flag)
    return bound, done
