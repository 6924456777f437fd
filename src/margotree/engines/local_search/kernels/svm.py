"""An SVM at a cost linear in the samples: warm Newton steps on the smoothed hinge loss, from wide to narrow.

Every sample may be asked to lie on both sides of the margin at once, at two prices: that is how a node of a tree weighs
a sample's label against the side on which it is cheaper below.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.kernels.curvature import Curvature, new_curvature, newton_step
from margotree.engines.node.kernels.vectors import ANY_ORDER, add_four, copy, dot, fill, four_dots, nonzero, total
from margotree.engines.numba_backend import inner, kernel

F8 = NDArray[np.float64]

#: Newton steps of one width, evaluations of one line search.
_STEPS, _SEARCH = 40, 60
#: A line search ends when the derivative has dropped to this share; a width ends at this share of the value, or at the
#: greater one where the last width is so wide that only a direction is wanted.
_LEVEL, _FLAT, _FLAT_ROUGH, _ROUGH = 0.1, 1e-6, 1e-4, 5e-3
#: From width to width, and to the last one at once from less than so many times what comes before it; back to a greater
#: one, up to some size, if steps do not suffice for the first.
_SHRINK, _LAST, _WIDER, _WIDEST = 0.2, 2.0, 10.0, 1.0


@inner()
def heights(Z: F8, w: F8, b: float, h: F8) -> None:
    """``h = Z w + b``."""
    last = h.size - 1
    for i in range(0, h.size, 4):
        j, k, n = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        first, second, third, fourth = four_dots(Z[i], Z[j], Z[k], Z[n], w)
        h[i], h[j], h[k], h[n] = first + b, second + b, third + b, fourth + b


@inner(fastmath=ANY_ORDER)
def hinge_value(h: F8, cp: F8, cm: F8) -> float:
    """What the samples pay at these heights: ``cp`` for lacking a margin on the right, ``cm`` on the left."""
    t = 0.0
    for i in range(h.size):
        t += cp[i] * max(1.0 - h[i], 0.0) + cm[i] * max(1.0 + h[i], 0.0)
    return t


@inner(fastmath=ANY_ORDER)
def _bends(h: F8, cp: F8, cm: F8, delta: float, r: F8, q: F8) -> float:
    """Slope ``r`` of the smoothed loss in each height, and ``q``, its curvature times the width; returns their sum."""
    total = 0.0
    for i in range(h.size):
        right, left = 1.0 - h[i], 1.0 + h[i]
        lacks_right, lacks_left = min(max(right, 0.0), delta), min(max(left, 0.0), delta)
        r[i] = (cm[i] * lacks_left - cp[i] * lacks_right) / delta
        # On the rounding, what lacks is what was not cut off.
        q[i] = (cp[i] if lacks_right == right else 0.0) + (cm[i] if lacks_left == left else 0.0)
        total += q[i]
    return total


@inner(fastmath=ANY_ORDER)
def _slope_at(h: F8, dh: F8, cp: F8, cm: F8, delta: float, t: float) -> float:
    """Derivative of the smoothed loss along ``h + t dh``."""
    total = 0.0
    for i in range(h.size):
        at = h[i] + t * dh[i]
        total += dh[i] * (cm[i] * min(max(1.0 + at, 0.0), delta) - cp[i] * min(max(1.0 - at, 0.0), delta))
    return total / delta


@inner(fastmath=ANY_ORDER)
def _loss_at(h: F8, dh: F8, cp: F8, cm: F8, delta: float, t: float) -> float:
    """The smoothed loss at ``h + t dh``."""
    total = 0.0
    for i in range(h.size):
        at = h[i] + t * dh[i]
        right, left = max(1.0 - at, 0.0), max(1.0 + at, 0.0)
        # A parabola up to the width, and straight on beyond.
        near_right, near_left = min(right, delta), min(left, delta)
        total += cp[i] * near_right * (right - 0.5 * near_right) + cm[i] * near_left * (left - 0.5 * near_left)
    return total / delta


@inner()
def _how_far(h: F8, dh: F8, cp: F8, cm: F8, delta: float, ws: float, ss: float, start: float) -> float:
    """How far to go along a step: to where the derivative has dropped to a share of that at the start.

    Beyond the minimum, where it is positive, only as far as the value is less: a steep fall that is soon over, as where
    no sample lies on the rounding, may be followed by a long rise.
    """
    good, here = _LEVEL * abs(start), np.nan
    low, f_low, high = 0.0, start, 1.0
    f_high = ws + high * ss + _slope_at(h, dh, cp, cm, delta, high)
    for _ in range(_SEARCH):
        if f_high >= -good:
            break
        low, f_low = high, f_high
        high *= 4.0
        f_high = ws + high * ss + _slope_at(h, dh, cp, cm, delta, high)
    t, f = high, f_high
    for k in range(_SEARCH):
        if abs(f) <= good:
            if f <= 0.0:
                return t
            if np.isnan(here):
                here = _loss_at(h, dh, cp, cm, delta, 0.0)
            if _loss_at(h, dh, cp, cm, delta, t) + t * (ws + 0.5 * t * ss) < here:
                return t
        if f < 0.0:
            low, f_low = t, f
        else:
            high, f_high = t, f
        share = min(max(f_low / (f_low - f_high), 0.05), 0.95) if k % 2 == 0 else 0.5
        t = low + share * (high - low)
        f = ws + t * ss + _slope_at(h, dh, cp, cm, delta, t)
    return low


@inner()
def _slopes(Z: F8, r: F8, grad: F8, now: Curvature) -> None:
    """Add ``r`` times the rows (and a one for the offset) to ``grad``."""
    who, by = now.who, now.those
    for j in range(0, nonzero(r, who, by), 4):
        add_four(
            grad, Z[who[j]], Z[who[j + 1]], Z[who[j + 2]], Z[who[j + 3]], by[j], by[j + 1], by[j + 2], by[j + 3]
        )  # fmt: skip


@inner(fastmath=ANY_ORDER)
def _drift(h: F8, cp: F8, cm: F8, delta: float, to: float, r: F8) -> None:
    """How the slopes of the samples on a rounding change when its width does."""
    share = (to - delta) / (delta * delta)
    for i in range(h.size):
        s, t = 1.0 - h[i], 1.0 + h[i]
        r[i] = share * ((cp[i] * s if 0.0 < s < delta else 0.0) - (cm[i] * t if 0.0 < t < delta else 0.0))


@kernel()
def svm(Z: F8, cp: F8, cm: F8, theta: F8, wide: float, narrow: float, flag: F8) -> float:
    """Minimise ``1/2 |w|^2`` plus the hinges; ``theta`` holds ``w`` and ``b``, a first guess and then the result.

    Widths of the rounding go from ``wide`` to ``narrow``; the value returned is that of the hinges as they are, never
    more than the guess's.  Another thread may set ``flag[0]`` to have the work stop.
    """
    m, k = Z.shape
    plus, minus = total(cp), total(cm)
    if plus == 0.0 or minus == 0.0:
        fill(theta, 0.0)
        theta[k] = -1.0 if plus < minus else 1.0
        return 0.0
    flat = _FLAT if narrow < _ROUGH else _FLAT_ROUGH
    h, r, q = np.empty(m), np.empty(m), np.empty(m)
    grad, step = np.empty(k + 1), np.empty(k + 1)
    curvature = new_curvature(m, k)
    dh = curvature.those[:m]  # nobody's once a step is known
    w = theta[:k]
    heights(Z, w, theta[k], h)
    best, value = theta.copy(), 0.5 * dot(w, w) + hinge_value(h, cp, cm)
    delta = wide
    widest = wide  # so far
    while True:
        steps, flat_here, bend, ridge = 0, False, 0.0, 0.0
        while steps < _STEPS and flag[0] == 0.0:
            bend = _bends(h, cp, cm, delta, r, q)
            copy(w, grad)
            grad[k] = 0.0
            _slopes(Z, r, grad, curvature)
            ridge = 1e-12 * (plus + minus) if bend > 0.0 else (plus + minus) / (m * delta)
            newton_step(Z, q, delta, ridge, grad, curvature, False, step)
            start = dot(grad, step)
            if -start <= flat * (0.5 * dot(w, w) + hinge_value(h, cp, cm)):
                flat_here = True
                break
            heights(Z, step[:k], step[k], dh)
            far = _how_far(h, dh, cp, cm, delta, dot(w, step[:k]), dot(step[:k], step[:k]), start)
            if far == 0.0:
                break
            for a in range(k + 1):
                theta[a] += far * step[a]
            for i in range(m):
                h[i] += far * dh[i]
            steps += 1
        now = 0.5 * dot(w, w) + hinge_value(h, cp, cm)
        if now < value:
            value = now
            copy(theta, best)
        if flag[0] != 0.0:
            break
        if steps == _STEPS and delta == widest and widest < _WIDEST:
            # The guess was no good: from further off more samples are heard of.
            widest *= _WIDER
            delta = widest
            continue
        if delta <= narrow:
            break
        to = _SHRINK * delta if _SHRINK * delta > _LAST * narrow else narrow
        # Between two widths the solution moves on a straight line while no sample leaves the rounding.
        if flat_here and bend > 0.0:
            _drift(h, cp, cm, delta, to, r)
            fill(grad, 0.0)
            _slopes(Z, r, grad, curvature)
            newton_step(Z, q, delta, ridge, grad, curvature, True, step)
            for a in range(k + 1):
                theta[a] += step[a]
            heights(Z, w, theta[k], h)
        delta = to
    copy(best, theta)
    return value
