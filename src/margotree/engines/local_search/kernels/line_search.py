"""Exact minima of a node's reduced problem on a line.

The reduced problem of an upper node is ``1/2 |w|^2`` plus hinge losses plus the subtree cost of each sample,
``left_cost`` or ``right_cost``. In one dimension it is piecewise quadratic with jumps; the intervals in which a sample
lies in the band are excluded.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.kernels.vectors import count_less
from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: A sample whose value changes by less than this per unit of time counts as constant; the ends of a line.
_MIN_SLOPE, _INFINITY = 1e-12, 1e300


@inner()
def _slope(q_plus: F8, mass_plus: F8, q_minus: F8, mass_minus: F8, s: float, b: float) -> float:
    """The slope in ``b`` of the hinge losses at ``s q + b``; masses are cumulative costs of the sorted samples."""
    plus_slope = mass_plus[count_less(q_plus, (1.0 - b) / s)]
    minus_slope = mass_minus[q_minus.size] - mass_minus[count_less(q_minus, (-1.0 - b) / s)]
    return minus_slope - plus_slope


@inner()
def _best_offset(q_plus: F8, mass_plus: F8, q_minus: F8, mass_minus: F8, s: float) -> float:
    """The offset with the smallest hinge losses at the length ``s``, by bisection of their slope."""
    low = min(1.0 - s * q_plus[q_plus.size - 1], -1.0 - s * q_minus[q_minus.size - 1]) - 1.0
    high = max(1.0 - s * q_plus[0], -1.0 - s * q_minus[0]) + 1.0
    for _ in range(50):
        b = 0.5 * (low + high)
        if _slope(q_plus, mass_plus, q_minus, mass_minus, s, b) < 0.0:
            low = b
        else:
            high = b
    return 0.5 * (low + high)


@inner()
def _by_label(q: F8, cost: F8, order: I8) -> tuple[F8, F8, F8]:
    """Sort the samples with a cost: projections, cumulative costs, and cumulative products of cost and projection."""
    count = 0
    for j in range(order.size):
        i = order[j]
        if cost[i] > 0.0:
            count += 1
    at, mass, moment = np.empty(count), np.empty(count + 1), np.empty(count + 1)
    mass[0] = moment[0] = 0.0
    k = 0
    for j in range(order.size):
        i = order[j]
        if cost[i] > 0.0:
            at[k] = q[i]
            mass[k + 1] = mass[k] + cost[i]
            moment[k + 1] = moment[k] + cost[i] * q[i]
            k += 1
    return at, mass, moment


@inner()
def thresholds(
    q: F8,
    order: I8,
    plus_cost: F8,
    minus_cost: F8,
    left_cost: F8,
    right_cost: F8,
    ww: float,
    lengths: F8,
    eps: float,
    best: float,
) -> tuple[float, float, float]:
    """The best threshold on a line, at each of several lengths of ``w``.

    Parameters
    ----------
    q : array of length m
        Projections of the samples on a direction.
    order : array of length m
        Sorts ``q``.
    plus_cost, minus_cost : arrays of length m
        Penalties of hinge losses on the right and on the left.
    left_cost, right_cost : arrays of length m
        Subtree costs.
    ww : float
        The squared length of the direction.
    lengths : array
        The factors ``s`` of the direction to try.
    eps : float
        The width of the band; every threshold between two samples at least ``eps`` apart is considered.
    best : float
        Only values below this one count.

    Returns
    -------
    s, b, value
        The values of the samples are ``s q + b``; ``(0, 0, best)`` if no threshold is better than ``best``.
    """
    m = q.size
    q_plus, mass_plus, moment_plus = _by_label(q, plus_cost, order)
    q_minus, mass_minus, moment_minus = _by_label(q, minus_cost, order)
    best_s, best_b = 0.0, 0.0
    if q_plus.size == 0 or q_minus.size == 0:
        return best_s, best_b, best
    n_plus, n_minus = q_plus.size, q_minus.size
    below_all = 0.0
    ranked, extra = np.empty(m), np.empty(m)  # in order: projections, left minus right subtree costs
    for k in range(m):
        i = order[k]
        ranked[k], extra[k] = q[i], left_cost[i] - right_cost[i]
        below_all += right_cost[i]
    for length in range(lengths.size):
        s = lengths[length]
        star = _best_offset(q_plus, mass_plus, q_minus, mass_minus, s)
        a = count_less(q_plus, (1.0 - star) / s)
        c = count_less(q_minus, (-1.0 - star) / s)
        least = mass_plus[a] * (1.0 - star) - s * moment_plus[a]
        least += (mass_minus[n_minus] - mass_minus[c]) * (1.0 + star)
        least += s * (moment_minus[n_minus] - moment_minus[c])
        fixed = 0.5 * s * s * ww
        below = below_all
        # Offsets decrease as the threshold increases, so the positions among both labels only increase.
        a = c = 0
        for k in range(m + 1):
            if k > 0:
                below += extra[k - 1]
            if fixed + below + least >= best:
                continue
            b = star
            if k < m:
                b = max(b, -s * ranked[k])
            if k > 0:
                top = -eps - s * ranked[k - 1]
                if b > top:
                    b = top
                    if k < m and b < -s * ranked[k]:
                        continue
            while a < n_plus and s * q_plus[a] + b < 1.0:
                a += 1
            while c < n_minus and s * q_minus[c] + b <= -1.0:
                c += 1
            value = fixed + below + mass_plus[a] * (1.0 - b) - s * moment_plus[a]
            value += (mass_minus[n_minus] - mass_minus[c]) * (1.0 + b)
            value += s * (moment_minus[n_minus] - moment_minus[c])
            if value < best:
                best_s, best_b, best = s, b, value
    return best_s, best_b, best


@inner()
def thresholds_by_side(
    q: F8,
    order: I8,
    plus_cost: F8,
    minus_cost: F8,
    left_cost: F8,
    right_cost: F8,
    ww: float,
    lengths: F8,
    eps: float,
    best: float,
) -> tuple[float, float, float]:
    """:func:`thresholds` where samples on the right have ``plus_cost`` only, and those on the left ``minus_cost`` only.

    For each division of the samples the hinge losses are convex in the offset. The best offset does not increase from
    one division to the next, so that all of them are found in one pass over the corners.
    """
    m = q.size
    best_s, best_b = 0.0, 0.0
    ranked = np.empty(m)
    plus, plus_moment = np.zeros(m + 1), np.zeros(m + 1)  # cumulative costs and their moments, in order
    minus, minus_moment = np.zeros(m + 1), np.zeros(m + 1)
    subtree = np.empty(m + 1)
    subtree[0] = 0.0
    for k in range(m):
        i = order[k]
        ranked[k] = q[i]
        plus[k + 1], plus_moment[k + 1] = plus[k] + plus_cost[i], plus_moment[k] + plus_cost[i] * q[i]
        minus[k + 1], minus_moment[k + 1] = minus[k] + minus_cost[i], minus_moment[k] + minus_cost[i] * q[i]
        subtree[0] += right_cost[i]
    for k in range(m):
        i = order[k]
        subtree[k + 1] = subtree[k] + left_cost[i] - right_cost[i]
    for length in range(lengths.size):
        s = lengths[length]
        fixed = 0.5 * s * s * ww
        if fixed >= best:
            continue
        # Samples before a violate the margin on the right, those from c on the margin on the left.
        b, a, c = 1.0 - s * ranked[0], 0, 0
        for k in range(m + 1):
            low = -s * ranked[k] if k < m else -np.inf
            if k > 0:
                top = -eps - s * ranked[k - 1]
                if top < low:
                    continue
                b = min(b, top)
            while True:
                while a < m and s * ranked[a] + b < 1.0:
                    a += 1
                while c < m and s * ranked[c] + b <= -1.0:
                    c += 1
                # The slope to the left of b: positive if a smaller offset is better.
                if b <= low or (minus[k] - minus[min(c, k)]) - (plus[max(a, k)] - plus[k]) <= 0.0:
                    break
                # The next corner counts as passed, also where rounding places it at or above b.
                at_a = 1.0 - s * ranked[a] if a < m else -np.inf
                at_c = -1.0 - s * ranked[c] if c < k else -np.inf
                if max(at_a, at_c) <= low:
                    b = low
                elif at_a >= at_c:
                    b = min(b, at_a)
                    a += 1
                else:
                    b = min(b, at_c)
                    c += 1
            on_right, on_left = max(a, k), min(c, k)
            value = fixed + subtree[k] + (plus[on_right] - plus[k]) * (1.0 - b)
            value -= s * (plus_moment[on_right] - plus_moment[k])
            value += (minus[k] - minus[on_left]) * (1.0 + b) + s * (minus_moment[k] - minus_moment[on_left])
            if value < best:
                best_s, best_b, best = s, b, value
    return best_s, best_b, best


@inner()
def events(
    h: F8, g: F8, plus_cost: F8, minus_cost: F8, eps: float, times: F8, kinds: NDArray[np.int8], sample: I8
) -> int:
    """The events on the line ``h + t g``; returns their number.

    An event is the time ``t`` at which a ``sample`` passes 1 (kind 0), -1 (kind 1), 0 (kind 2) or ``-eps`` (kind 3).
    """
    n = 0
    for i in range(h.size):
        value, slope = h[i], g[i]
        if abs(slope) < _MIN_SLOPE:
            continue
        if plus_cost[i] > 0.0:
            times[n], kinds[n], sample[n] = (1.0 - value) / slope, 0, i
            n += 1
        if minus_cost[i] > 0.0:
            times[n], kinds[n], sample[n] = (-1.0 - value) / slope, 1, i
            n += 1
        times[n], kinds[n], sample[n] = -value / slope, 2, i
        n += 1
        times[n], kinds[n], sample[n] = (-eps - value) / slope, 3, i
        n += 1
    return n


@inner()
def least_on_line(
    h: F8,
    g: F8,
    plus_cost: F8,
    minus_cost: F8,
    left_cost: F8,
    right_cost: F8,
    ww: float,
    wd: float,
    dd: float,
    eps: float,
    best: float,
    times: F8,
    kinds: NDArray[np.int8],
    sample: I8,
    order: I8,
    by_side: bool,
) -> tuple[float, float]:
    """The step ``t`` with the smallest value on the line ``h + t g``, and the value.

    They are ``(0, best)`` if no value is below ``best``. ``ww``, ``wd`` and ``dd`` are the products of ``w`` and its
    direction ``d`` with each other; ``order`` sorts the times of the :func:`events`.
    """
    fixed, slope, subtree, in_band = 0.0, 0.0, 0.0, 0
    for i in range(h.size):
        # The state at t = -infinity, where samples that move have h = -inf or inf.
        at, by = h[i], g[i]
        if abs(by) < _MIN_SLOPE:
            if not by_side or at >= 0.0:
                fixed += plus_cost[i] * max(0.0, 1.0 - at)
            if not by_side or at < 0.0:
                fixed += minus_cost[i] * max(0.0, 1.0 + at)
            subtree += right_cost[i] if at >= 0.0 else left_cost[i]
            in_band += 1 if at < 0.0 and at > -eps else 0
        elif by > 0.0:
            if not by_side:
                fixed += plus_cost[i] * (1.0 - at)
                slope -= plus_cost[i] * by
            subtree += left_cost[i]
        else:
            if not by_side:
                fixed += minus_cost[i] * (1.0 + at)
                slope += minus_cost[i] * by
            subtree += right_cost[i]
    n = order.size
    best_t = 0.0
    for e in range(n + 1):
        if in_band == 0:
            first = -_INFINITY if e == 0 else times[order[e - 1]]
            last = _INFINITY if e == n else times[order[e]]
            total_slope = slope + wd
            if dd > 0.0:
                t = min(max(-total_slope / dd, first), last)
            else:
                t = first if total_slope > 0.0 else last
                if abs(t) >= _INFINITY:
                    t = last if total_slope > 0.0 else first
            if abs(t) < _INFINITY:
                value = 0.5 * ww + t * (wd + 0.5 * dd * t) + fixed + slope * t + subtree
                if value < best:
                    best_t, best = t, value
        if e == n:
            break
        i, kind = sample[order[e]], kinds[order[e]]
        at, by = h[i], g[i]
        up = 1.0 if by > 0.0 else -1.0
        if kind == 0:  # passes 1: the loss on the right ends, or begins
            fixed -= up * plus_cost[i] * (1.0 - at)
            slope += up * plus_cost[i] * by
        elif kind == 1:  # passes -1
            fixed += up * minus_cost[i] * (1.0 + at)
            slope += up * minus_cost[i] * by
        elif kind == 2:  # passes 0: out of the band to the right, or into it
            subtree += up * (right_cost[i] - left_cost[i])
            if by_side:  # the loss on one side ends, that on the other begins
                fixed += up * (plus_cost[i] * (1.0 - at) - minus_cost[i] * (1.0 + at))
                slope -= up * (plus_cost[i] + minus_cost[i]) * by
            in_band -= 1 if by > 0.0 else -1
        else:  # passes -eps
            in_band += 1 if by > 0.0 else -1
    return best_t, best
