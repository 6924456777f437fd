"""A tree whose upper splits send every sample both ways, in shares: all its hyperplanes at once by quasi-Newton steps.

The share that goes right is a sigmoid of the height times the split's sharpness.  What the tree costs is then smooth in
all hyperplanes together, so that a split can move and those below it move along.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.kernels.bundles import bundle
from margotree.engines.kernels.jit import inner, kernel
from margotree.engines.kernels.vectors import copy, dot

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: Shares smaller than this are none, and so are sigmoids this far out.
_TINY, _FAR = 1e-6, 14.0
#: Pairs of steps that the curvature is known from; halvings of a step.
_MEMORY, _HALVINGS = 8, 12
#: What a step must gain, as a share of what its slope promises; the steps end when this share of the value is gained.
_ENOUGH, _FLAT = 1e-4, 1e-5


@bundle
class Soft(NamedTuple):
    """Samples (rows) with their weights and classes; per node and class, the prices of lacking a margin on the right
    and on the left; sharpness per node; the width on which hinges are rounded."""

    Z: F8
    weight: F8
    code: I8
    plus: F8
    minus: F8
    sharp: F8
    width: float


@inner()
def _hinge(lacks: float, width: float) -> float:
    if lacks <= 0.0:
        return 0.0
    return lacks * lacks / (2.0 * width) if lacks < width else lacks - 0.5 * width


@inner()
def _bend(lacks: float, width: float) -> float:
    """The slope of the rounded hinge in what is lacking."""
    return min(max(lacks / width, 0.0), 1.0)


@inner()
def _cost(soft: Soft, theta: F8, grad: F8) -> float:
    """What the tree costs, and its gradient; ``theta`` has the weights of each node, then its offset."""
    m, p = soft.Z.shape
    nodes = soft.sharp.size
    upper, k = nodes // 2, p + 1
    h, right, reach = np.empty(nodes), np.empty(nodes), np.empty(nodes)
    pays, slope = np.empty(nodes), np.empty(nodes)
    cost = 0.0
    for t in range(nodes):
        w = theta[t * k : t * k + p]
        cost += 0.5 * dot(w, w)
        copy(w, grad[t * k : t * k + p])
        grad[t * k + p] = 0.0
    for i in range(m):
        z, c, weight = soft.Z[i], soft.code[i], soft.weight[i]
        reach[0] = 1.0
        for t in range(nodes):
            if reach[t] >= _TINY:
                h[t] = dot(z, theta[t * k : t * k + p]) + theta[t * k + p]
            if t < upper:
                right[t] = 0.0
                if reach[t] >= _TINY:
                    u = soft.sharp[t] * h[t]
                    right[t] = 1.0 if u > _FAR else (0.0 if u < -_FAR else 1.0 / (1.0 + np.exp(-u)))
                reach[2 * t + 1], reach[2 * t + 2] = reach[t] * (1.0 - right[t]), reach[t] * right[t]
        for t in range(nodes - 1, -1, -1):
            pays[t] = 0.0
            if reach[t] < _TINY:
                continue
            plus, minus = weight * soft.plus[t, c], weight * soft.minus[t, c]
            a, b = 1.0 - h[t], 1.0 + h[t]
            pays[t] = plus * _hinge(a, soft.width) + minus * _hinge(b, soft.width)
            slope[t] = minus * _bend(b, soft.width) - plus * _bend(a, soft.width)
            if t < upper:
                more = pays[2 * t + 2] - pays[2 * t + 1]
                pays[t] += pays[2 * t + 1] + right[t] * more
                slope[t] += soft.sharp[t] * right[t] * (1.0 - right[t]) * more
        cost += pays[0]
        for t in range(nodes):
            r = reach[t] * slope[t] if reach[t] >= _TINY else 0.0
            if r != 0.0:
                g = grad[t * k : t * k + p]
                for a in range(p):
                    g[a] += r * z[a]
                grad[t * k + p] += r
    return cost


@inner()
def _masked_cost(soft: Soft, theta: F8, free: F8, grad: F8) -> float:
    cost = _cost(soft, theta, grad)
    for a in range(grad.size):
        grad[a] *= free[a]
    return cost


@inner()
def _direction(grad: F8, S: F8, Y: F8, count: int, d: F8) -> None:
    """Minus the gradient times the inverse curvature that the last steps tell (limited-memory BFGS)."""
    for a in range(grad.size):
        d[a] = -grad[a]
    if count == 0:
        return
    share = np.empty(_MEMORY)
    first = max(0, count - _MEMORY)
    for j in range(count - 1, first - 1, -1):
        s, y = S[j % _MEMORY], Y[j % _MEMORY]
        share[j % _MEMORY] = dot(s, d) / dot(s, y)
        for a in range(d.size):
            d[a] -= share[j % _MEMORY] * y[a]
    s, y = S[(count - 1) % _MEMORY], Y[(count - 1) % _MEMORY]
    size = dot(s, y) / dot(y, y)
    for a in range(d.size):
        d[a] *= size
    for j in range(first, count):
        s, y = S[j % _MEMORY], Y[j % _MEMORY]
        more = share[j % _MEMORY] - dot(y, d) / dot(s, y)
        for a in range(d.size):
            d[a] += more * s[a]


@kernel()
def minimise(soft: Soft, theta: F8, free: F8, steps: int, flag: F8) -> float:
    """Lower the cost by at most so many steps from ``theta``, where ``free`` is 1, 0 elsewhere; returns the cost.

    Another thread may set ``flag[0]`` to have the work stop.
    """
    n = theta.size
    S, Y = np.empty((_MEMORY, n)), np.empty((_MEMORY, n))
    grad, d, there, slopes = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    cost = _masked_cost(soft, theta, free, grad)
    count = 0
    for _ in range(steps):
        if flag[0] != 0.0:
            break
        _direction(grad, S, Y, count, d)
        slope = dot(grad, d)
        if slope >= 0.0:  # what is remembered no longer fits
            if count == 0:
                break
            count = 0
            _direction(grad, S, Y, count, d)
            slope = dot(grad, d)
            if slope >= 0.0:
                break
        far = 1.0 if count > 0 else min(1.0, 1.0 / np.sqrt(dot(grad, grad)))
        now = np.inf
        for _ in range(_HALVINGS):
            for a in range(n):
                there[a] = theta[a] + far * d[a]
            now = _masked_cost(soft, there, free, slopes)
            if now <= cost + _ENOUGH * far * slope:
                break
            # Where a parabola through both values has its bottom, within bounds.
            far *= min(max(-0.5 * far * slope / (now - cost - far * slope), 0.1), 0.5)
        if not now < cost:
            break
        s, y = S[count % _MEMORY], Y[count % _MEMORY]
        for a in range(n):
            s[a], y[a] = there[a] - theta[a], slopes[a] - grad[a]
        if dot(s, y) > 1e-10 * dot(y, y):
            count += 1
        gain = cost - now
        copy(there, theta)
        copy(slopes, grad)
        cost = now
        if gain <= _FLAT * cost:
            break
    return cost
