"""Exact minima of a node's reduced problem on a line.

The reduced problem of an upper node is ``1/2 |w|^2`` plus hinges plus what each sample pays below: ``low`` on the left,
``high`` on the right.  In one dimension it is made of parabolas between jumps, and the pieces on which a sample lies in
the band are left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.kernels.vectors import place
from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: Samples that move less than this do not move; ends of a line.
_STILL, _FAR = 1e-12, 1e300


@inner()
def _slope(q_plus: F8, mass_plus: F8, q_minus: F8, mass_minus: F8, s: float, b: float) -> float:
    """Slope in ``b`` of the hinges at heights ``s q + b``; masses are sums over the samples before each place."""
    lacking = mass_plus[place(q_plus, (1.0 - b) / s)]
    beyond = mass_minus[q_minus.size] - mass_minus[place(q_minus, (-1.0 - b) / s)]
    return beyond - lacking


@inner()
def _cheapest_offset(q_plus: F8, mass_plus: F8, q_minus: F8, mass_minus: F8, s: float) -> float:
    """The offset with the least hinges at the length ``s``, by bisection of their slope."""
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
    """Of the samples with a cost, in order: projections, and sums of cost and of cost times projection before each."""
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
    q: F8, order: I8, cp: F8, cm: F8, low: F8, high: F8, ww: float, lengths: F8, eps: float, best: float
) -> tuple[float, float, float]:
    """The best length ``s`` and offset ``b`` of heights ``s q + b``, and the value; ``(0, 0, best)`` if none beats it.

    ``q`` are projections on some direction whose squared length is ``ww``, ``order`` sorts them; ``cp`` and ``cm`` are
    the prices of lacking a margin on the right and on the left.  Every threshold between two samples at least ``eps``
    apart is considered.
    """
    m = q.size
    q_plus, mass_plus, moment_plus = _by_label(q, cp, order)
    q_minus, mass_minus, moment_minus = _by_label(q, cm, order)
    best_s, best_b = 0.0, 0.0
    if q_plus.size == 0 or q_minus.size == 0:
        return best_s, best_b, best
    n_plus, n_minus = q_plus.size, q_minus.size
    below_all = 0.0
    at, turns = np.empty(m), np.empty(m)  # in order: projections, and what a sample pays more on the left than right
    for k in range(m):
        i = order[k]
        at[k], turns[k] = q[i], low[i] - high[i]
        below_all += high[i]
    for length in range(lengths.size):
        s = lengths[length]
        star = _cheapest_offset(q_plus, mass_plus, q_minus, mass_minus, s)
        a = place(q_plus, (1.0 - star) / s)
        c = place(q_minus, (-1.0 - star) / s)
        least = mass_plus[a] * (1.0 - star) - s * moment_plus[a]
        least += (mass_minus[n_minus] - mass_minus[c]) * (1.0 + star)
        least += s * (moment_minus[n_minus] - moment_minus[c])
        fixed = 0.5 * s * s * ww
        below = below_all
        # Offsets fall as the threshold rises, so the places among both labels only move up.
        a = c = 0
        for k in range(m + 1):
            if k > 0:
                below += turns[k - 1]
            if fixed + below + least >= best:
                continue
            b = star
            if k < m:
                b = max(b, -s * at[k])
            if k > 0:
                top = -eps - s * at[k - 1]
                if b > top:
                    b = top
                    if k < m and b < -s * at[k]:
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
def events(h: F8, g: F8, cp: F8, cm: F8, eps: float, times: F8, kinds: NDArray[np.int8], whose: I8) -> int:
    """When samples pass a margin (kinds 0 and 1), 0 (kind 2) and ``-eps`` (kind 3) on ``h + t g``; returns how many."""
    n = 0
    for i in range(h.size):
        at, by = h[i], g[i]
        if abs(by) < _STILL:
            continue
        if cp[i] > 0.0:
            times[n], kinds[n], whose[n] = (1.0 - at) / by, 0, i
            n += 1
        if cm[i] > 0.0:
            times[n], kinds[n], whose[n] = (-1.0 - at) / by, 1, i
            n += 1
        times[n], kinds[n], whose[n] = -at / by, 2, i
        n += 1
        times[n], kinds[n], whose[n] = (-eps - at) / by, 3, i
        n += 1
    return n


@inner()
def along(
    h: F8, g: F8, cp: F8, cm: F8, low: F8, high: F8, ww: float, wd: float, dd: float, eps: float, best: float,
    times: F8, kinds: NDArray[np.int8], whose: I8, order: I8,
) -> tuple[float, float]:  # fmt: skip
    """How far to go along heights ``h + t g``, and the value there; ``(0, best)`` if nowhere beats it.

    ``ww``, ``wd`` and ``dd`` are the products of ``w`` and its direction ``d`` with each other; ``order`` sorts the
    times of the :func:`events`.
    """
    fixed, slope, below, caught = 0.0, 0.0, 0.0, 0
    for i in range(h.size):
        # The state far to the left, where moving samples have h = -inf or inf.
        at, by = h[i], g[i]
        if abs(by) < _STILL:
            fixed += cp[i] * max(0.0, 1.0 - at) + cm[i] * max(0.0, 1.0 + at)
            below += high[i] if at >= 0.0 else low[i]
            caught += 1 if at < 0.0 and at > -eps else 0
        elif by > 0.0:
            fixed += cp[i] * (1.0 - at)
            slope -= cp[i] * by
            below += low[i]
        else:
            fixed += cm[i] * (1.0 + at)
            slope += cm[i] * by
            below += high[i]
    n = order.size
    best_t = 0.0
    for e in range(n + 1):
        if caught == 0:
            first = -_FAR if e == 0 else times[order[e - 1]]
            last = _FAR if e == n else times[order[e]]
            tilt = slope + wd
            if dd > 0.0:
                t = min(max(-tilt / dd, first), last)
            else:
                t = first if tilt > 0.0 else last
                if abs(t) >= _FAR:
                    t = last if tilt > 0.0 else first
            if abs(t) < _FAR:
                value = 0.5 * ww + t * (wd + 0.5 * dd * t) + fixed + slope * t + below
                if value < best:
                    best_t, best = t, value
        if e == n:
            break
        i, kind = whose[order[e]], kinds[order[e]]
        at, by = h[i], g[i]
        up = 1.0 if by > 0.0 else -1.0
        if kind == 0:  # passes 1: the price on the right ends, or begins
            fixed -= up * cp[i] * (1.0 - at)
            slope += up * cp[i] * by
        elif kind == 1:  # passes -1
            fixed += up * cm[i] * (1.0 + at)
            slope += up * cm[i] * by
        elif kind == 2:  # passes 0: out of the band to the right, or into it
            below += up * (high[i] - low[i])
            caught -= 1 if by > 0.0 else -1
        else:  # passes -eps
            caught += 1 if by > 0.0 else -1
    return best_t, best
