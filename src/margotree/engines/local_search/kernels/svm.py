"""A linear SVM, or support vector regression, in time linear in the number of samples.

Newton steps on the smoothed losses, warm-started, with a smoothing width that decreases. Every sample has two costs,
one per side: ``plus_cost`` times ``max(0, r - h)`` and ``minus_cost`` times ``max(0, h - l)``. For hinge losses the
corners ``r`` and ``l`` are 1 and -1; an upper node of a tree can weigh the label of a sample against its target side.
For regression they are the target less and plus the width of the tube.

The smoothed loss is a parabola up to a distance ``end`` from the corner and linear beyond: of the losses above, ``end``
is the smoothing width. Squared losses are such parabolas without an end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.kernels.curvature import Curvature, new_curvature, newton_step
from margotree.engines.node.kernels.vectors import ANY_ORDER, add_four, copy, dot, fill, four_dots, nonzero, total
from margotree.engines.numba_backend import inner, kernel

F8 = NDArray[np.float64]

#: Newton steps per width; evaluations per line search.
_MAX_STEPS, _MAX_SEARCH = 40, 60
#: A line search ends when the derivative has dropped to this share; a width ends when a step promises less than this
#: share of the value. The larger share is for a last width so large that only a direction is needed.
_SLOPE_SHARE, _TOL, _TOL_ROUGH, _ROUGH = 0.1, 1e-6, 1e-4, 5e-3
#: The width of a parabola that is the square of the distance from the corner.
_SQUARE_WIDTH = 0.5
#: The factor from width to width; from less than this multiple of the last width the last one is next. If the steps do
#: not suffice for the first width, it is multiplied by this factor, up to this width.
_WIDTH_FACTOR, _SKIP_BELOW, _WIDEN_FACTOR, _MAX_WIDTH = 0.2, 2.0, 10.0, 1.0


@inner()
def heights(Z: F8, w: F8, b: float, h: F8) -> None:
    """Write ``Z w + b`` to ``h``."""
    last = h.size - 1
    for i in range(0, h.size, 4):
        j, k, n = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        first, second, third, fourth = four_dots(Z[i], Z[j], Z[k], Z[n], w)
        h[i], h[j], h[k], h[n] = first + b, second + b, third + b, fourth + b


@inner(fastmath=ANY_ORDER)
def hinge_value(h: F8, plus_cost: F8, minus_cost: F8) -> float:
    """The hinge losses at the values ``h``: ``plus_cost`` is the penalty on the right, ``minus_cost`` on the left."""
    t = 0.0
    for i in range(h.size):
        t += plus_cost[i] * max(1.0 - h[i], 0.0) + minus_cost[i] * max(1.0 + h[i], 0.0)
    return t


@inner(fastmath=ANY_ORDER)
def _loss(h: F8, plus_cost: F8, minus_cost: F8, plus_corner: F8, minus_corner: F8) -> float:
    """The losses at the values ``h``."""
    t = 0.0
    for i in range(h.size):
        t += plus_cost[i] * max(plus_corner[i] - h[i], 0.0) + minus_cost[i] * max(h[i] - minus_corner[i], 0.0)
    return t


@inner(fastmath=ANY_ORDER)
def _squares(h: F8, plus_cost: F8, minus_cost: F8, plus_corner: F8, minus_corner: F8) -> float:
    """The squared losses at the values ``h``."""
    t = 0.0
    for i in range(h.size):
        t += plus_cost[i] * max(plus_corner[i] - h[i], 0.0) ** 2 + minus_cost[i] * max(h[i] - minus_corner[i], 0.0) ** 2
    return t


@inner(fastmath=ANY_ORDER)
def _derivatives(
    h: F8, plus_cost: F8, minus_cost: F8, plus_corner: F8, minus_corner: F8, delta: float, end: float, r: F8, q: F8
) -> float:
    """Write the slopes of the smoothed loss to ``r`` and its second derivatives times ``delta`` to ``q``.

    Both are with respect to ``h``; the sum of ``q`` is returned.
    """
    total = 0.0
    for i in range(h.size):
        right, left = plus_corner[i] - h[i], h[i] - minus_corner[i]
        right_loss, left_loss = min(max(right, 0.0), end), min(max(left, 0.0), end)
        r[i] = (minus_cost[i] * left_loss - plus_cost[i] * right_loss) / delta
        # On the smoothed part the clipped loss equals the loss.
        q[i] = (plus_cost[i] if right_loss == right else 0.0) + (minus_cost[i] if left_loss == left else 0.0)
        total += q[i]
    return total


@inner(fastmath=ANY_ORDER)
def _slope_at(
    h: F8, slope_h: F8, plus_cost: F8, minus_cost: F8, plus_corner: F8, minus_corner: F8, delta: float, end: float,
    t: float,
) -> float:  # fmt: skip
    """The derivative of the smoothed loss along ``h + t slope_h``."""
    total = 0.0
    for i in range(h.size):
        at = h[i] + t * slope_h[i]
        total += slope_h[i] * (
            minus_cost[i] * min(max(at - minus_corner[i], 0.0), end)
            - plus_cost[i] * min(max(plus_corner[i] - at, 0.0), end)
        )
    return total / delta


@inner(fastmath=ANY_ORDER)
def _loss_at(
    h: F8, slope_h: F8, plus_cost: F8, minus_cost: F8, plus_corner: F8, minus_corner: F8, delta: float, end: float,
    t: float,
) -> float:  # fmt: skip
    """The smoothed loss at ``h + t slope_h``."""
    total = 0.0
    for i in range(h.size):
        at = h[i] + t * slope_h[i]
        right, left = max(plus_corner[i] - at, 0.0), max(at - minus_corner[i], 0.0)
        near_right, near_left = min(right, end), min(left, end)
        total += plus_cost[i] * near_right * (right - 0.5 * near_right) + minus_cost[i] * near_left * (
            left - 0.5 * near_left
        )
    return total / delta


@inner()
def _step_length(
    h: F8,
    slope_h: F8,
    plus_cost: F8,
    minus_cost: F8,
    plus_corner: F8,
    minus_corner: F8,
    delta: float,
    end: float,
    ws: float,
    ss: float,
    start: float,
) -> float:
    """The length of a step: where the derivative has dropped to a share of its value ``start`` at length 0.

    ``ws`` and ``ss`` are the products of the step with the weights and with itself. Beyond the minimum, where the
    derivative is positive, a length is accepted only if the value is smaller than at length 0: where no sample lies on
    the smoothed part, a short steep descent may be followed by a long ascent.
    """
    goal, value_here = _SLOPE_SHARE * abs(start), np.nan
    low, f_low, high = 0.0, start, 1.0
    f_high = ws + high * ss + _slope_at(h, slope_h, plus_cost, minus_cost, plus_corner, minus_corner, delta, end, high)
    for _ in range(_MAX_SEARCH):
        if f_high >= -goal:
            break
        low, f_low = high, f_high
        high *= 4.0
        f_high = (
            ws + high * ss + _slope_at(h, slope_h, plus_cost, minus_cost, plus_corner, minus_corner, delta, end, high)
        )
    t, f = high, f_high
    for k in range(_MAX_SEARCH):
        if abs(f) <= goal:
            if f <= 0.0:
                return t
            if np.isnan(value_here):
                value_here = _loss_at(h, slope_h, plus_cost, minus_cost, plus_corner, minus_corner, delta, end, 0.0)
            if (
                _loss_at(h, slope_h, plus_cost, minus_cost, plus_corner, minus_corner, delta, end, t)
                + t * (ws + 0.5 * t * ss)
                < value_here
            ):
                return t
        if f < 0.0:
            low, f_low = t, f
        else:
            high, f_high = t, f
        share = min(max(f_low / (f_low - f_high), 0.05), 0.95) if k % 2 == 0 else 0.5
        t = low + share * (high - low)
        f = ws + t * ss + _slope_at(h, slope_h, plus_cost, minus_cost, plus_corner, minus_corner, delta, end, t)
    return low


@inner()
def _add_gradient(Z: F8, r: F8, grad: F8, curvature: Curvature) -> None:
    """Add the sum of the rows of ``Z`` (with a 1 appended for the offset) with weights ``r`` to ``grad``."""
    rows, values = curvature.rows, curvature.values
    for j in range(0, nonzero(r, rows, values), 4):
        add_four(
            grad,
            Z[rows[j]],
            Z[rows[j + 1]],
            Z[rows[j + 2]],
            Z[rows[j + 3]],
            values[j],
            values[j + 1],
            values[j + 2],
            values[j + 3],
        )


@inner(fastmath=ANY_ORDER)
def _slope_change(
    h: F8, plus_cost: F8, minus_cost: F8, plus_corner: F8, minus_corner: F8, delta: float, next_delta: float, r: F8
) -> None:
    """Write to ``r`` how the slopes of the samples on the smoothed part change when the width does."""
    share = (next_delta - delta) / (delta * delta)
    for i in range(h.size):
        s, t = plus_corner[i] - h[i], h[i] - minus_corner[i]
        r[i] = share * (
            (plus_cost[i] * s if 0.0 < s < delta else 0.0) - (minus_cost[i] * t if 0.0 < t < delta else 0.0)
        )


@inner()
def _beyond_all(cost: F8, corner: F8, default: float) -> float:
    """The largest corner of the samples with a cost, or ``default``."""
    most, found = default, False
    for i in range(cost.size):
        if cost[i] > 0.0 and (corner[i] > most or not found):
            most, found = corner[i], True
    return most


@inner()
def _value(w: F8, h: F8, plus_cost: F8, minus_cost: F8, plus_corner: F8, minus_corner: F8, squared: bool) -> float:
    """The objective of the weights ``w`` at the values ``h``, with the losses themselves."""
    if squared:
        return 0.5 * dot(w, w) + _squares(h, plus_cost, minus_cost, plus_corner, minus_corner)
    return 0.5 * dot(w, w) + _loss(h, plus_cost, minus_cost, plus_corner, minus_corner)


@kernel()
def svm(
    Z: F8,
    plus_cost: F8,
    minus_cost: F8,
    plus_corner: F8,
    minus_corner: F8,
    theta: F8,
    first_width: float,
    last_width: float,
    squared: bool,
    flag: F8,
) -> float:
    """Minimise ``1/2 |w|^2`` plus the losses, or plus the squared losses.

    Parameters
    ----------
    Z : array of shape (m, k)
        The samples.
    plus_cost, minus_cost : arrays of length m
        Penalties of a value below the first corner and of a value above the second one.
    plus_corner, minus_corner : arrays of length m
        The corners.
    theta : array of length k + 1
        ``w`` and ``b``: an initial guess, overwritten with the result.
    first_width, last_width : float
        The first and the last width of the smoothing.
    squared : bool
        Whether losses are squared; they are not smoothed then.
    flag : array of length 1
        Another thread may set ``flag[0]`` to stop the computation.

    Returns
    -------
    float
        The objective of the result with the losses themselves; it is never larger than that of the guess.
    """
    m, k = Z.shape
    plus, minus = total(plus_cost), total(minus_cost)
    if plus == 0.0 or minus == 0.0:
        fill(theta, 0.0)
        theta[k] = (
            _beyond_all(plus_cost, plus_corner, 1.0) if plus >= minus else -_beyond_all(minus_cost, -minus_corner, 1.0)
        )
        return 0.0
    tol = _TOL if last_width < _ROUGH or squared else _TOL_ROUGH
    h, r, q = np.empty(m), np.empty(m), np.empty(m)
    grad, step = np.empty(k + 1), np.empty(k + 1)
    curvature = new_curvature(m, k)
    slope_h = curvature.values[:m]  # this work array is free between steps
    w = theta[:k]
    heights(Z, w, theta[k], h)
    best, value = theta.copy(), _value(w, h, plus_cost, minus_cost, plus_corner, minus_corner, squared)
    delta = _SQUARE_WIDTH if squared else first_width
    widest = delta  # the largest width so far
    while True:
        end = np.inf if squared else delta
        steps, converged, total_curvature, ridge = 0, False, 0.0, 0.0
        while steps < _MAX_STEPS and flag[0] == 0.0:
            total_curvature = _derivatives(h, plus_cost, minus_cost, plus_corner, minus_corner, delta, end, r, q)
            copy(w, grad)
            grad[k] = 0.0
            _add_gradient(Z, r, grad, curvature)
            ridge = 1e-12 * (plus + minus) if total_curvature > 0.0 else (plus + minus) / (m * delta)
            newton_step(Z, q, delta, ridge, grad, curvature, False, step)
            start = dot(grad, step)
            if -start <= tol * _value(w, h, plus_cost, minus_cost, plus_corner, minus_corner, squared):
                converged = True
                break
            heights(Z, step[:k], step[k], slope_h)
            length = _step_length(
                h,
                slope_h,
                plus_cost,
                minus_cost,
                plus_corner,
                minus_corner,
                delta,
                end,
                dot(w, step[:k]),
                dot(step[:k], step[:k]),
                start,
            )
            if length == 0.0:
                break
            for a in range(k + 1):
                theta[a] += length * step[a]
            for i in range(m):
                h[i] += length * slope_h[i]
            steps += 1
        now = _value(w, h, plus_cost, minus_cost, plus_corner, minus_corner, squared)
        if now < value:
            value = now
            copy(theta, best)
        if flag[0] != 0.0 or squared:
            break
        if steps == _MAX_STEPS and delta == widest and widest < _MAX_WIDTH:
            # The guess was poor: with a larger width more samples contribute to the Hessian.
            widest *= _WIDEN_FACTOR
            delta = widest
            continue
        if delta <= last_width:
            break
        next_delta = _WIDTH_FACTOR * delta if _WIDTH_FACTOR * delta > _SKIP_BELOW * last_width else last_width
        # Between two widths the solution moves on a straight line while no sample leaves the smoothed part.
        if converged and total_curvature > 0.0:
            _slope_change(h, plus_cost, minus_cost, plus_corner, minus_corner, delta, next_delta, r)
            fill(grad, 0.0)
            _add_gradient(Z, r, grad, curvature)
            newton_step(Z, q, delta, ridge, grad, curvature, True, step)
            for a in range(k + 1):
                theta[a] += step[a]
            heights(Z, w, theta[k], h)
        delta = next_delta
    copy(best, theta)
    return value
