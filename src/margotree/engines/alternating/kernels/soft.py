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
from margotree.engines.kernels.vectors import add_four, copy, dot, fill, four_dots, pad

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: Shares smaller than this are none, and so are sigmoids this far out.
_TINY, _FAR = 1e-6, 14.0
#: So many samples are sent down at a time: few enough to stay at hand.
_BLOCK = 128  # a multiple of four
# Of samples on their way, per node: their share that comes by and what it pays from there on (by sample); of those who
# come by, heights, the share of them that goes right, and what the cost rises with their heights.
REACH, PAYS, HEIGHT, RIGHT, SLOPE = range(5)
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
    """A parabola up to the width, and straight on beyond."""
    near = min(max(lacks, 0.0), width)
    return near * (max(lacks, 0.0) - 0.5 * near) / width


@inner()
def _bend(lacks: float, width: float) -> float:
    """The slope of the rounded hinge in what is lacking."""
    return min(max(lacks / width, 0.0), 1.0)


@inner()
def _heights(Z: F8, who: I8, w: F8, b: float, h: F8) -> None:
    """The heights of some rows."""
    for j in range(0, who[_BLOCK], 4):
        first, second, third, fourth = four_dots(Z[who[j]], Z[who[j + 1]], Z[who[j + 2]], Z[who[j + 3]], w)
        h[j], h[j + 1], h[j + 2], h[j + 3] = first + b, second + b, third + b, fourth + b


@inner()
def _add_slopes(Z: F8, who: I8, slope: F8, grad: F8) -> None:
    """Add some rows (and a one for the offset) times their slopes."""
    for j in range(0, who[_BLOCK], 4):
        add_four(
            grad, Z[who[j]], Z[who[j + 1]], Z[who[j + 2]], Z[who[j + 3]],
            slope[j], slope[j + 1], slope[j + 2], slope[j + 3],
        )  # fmt: skip


@inner()
def _send_down(soft: Soft, Z: F8, theta: F8, who: I8, room: F8) -> None:
    """Who comes by each node (their number is the last entry), in what share, and at what height."""
    n, p = Z.shape
    nodes, k = soft.sharp.size, p + 1
    fill(room[REACH, 0], 1.0)
    for t in range(nodes):
        reach, those, h, right, count = room[REACH, t], who[t], room[HEIGHT, t], room[RIGHT, t], 0
        for i in range(n):
            if reach[i] >= _TINY:
                those[count] = i
                count += 1
        those[_BLOCK] = count
        pad(those, count)
        _heights(Z, those, theta[t * k : t * k + p], theta[t * k + p], h)
        if t >= nodes // 2:
            continue
        to_left, to_right = room[REACH, 2 * t + 1], room[REACH, 2 * t + 2]
        fill(to_left, 0.0)
        fill(to_right, 0.0)
        for j in range(count):
            u, i = soft.sharp[t] * h[j], those[j]
            right[j] = 1.0 if u > _FAR else (0.0 if u < -_FAR else 1.0 / (1.0 + np.exp(-u)))
            to_left[i], to_right[i] = reach[i] * (1.0 - right[j]), reach[i] * right[j]


@inner()
def _pay(soft: Soft, start: int, who: I8, room: F8) -> float:
    """What the samples from ``start`` on pay, and what that rises with their heights."""
    nodes, cost = soft.sharp.size, 0.0
    for t in range(nodes - 1, -1, -1):
        those, h, right, slope, pays = who[t], room[HEIGHT, t], room[RIGHT, t], room[SLOPE, t], room[PAYS, t]
        fill(pays, 0.0)
        fill(slope, 0.0)
        for j in range(those[_BLOCK]):
            i = those[j]
            c, weight = soft.code[start + i], soft.weight[start + i]
            plus, minus = weight * soft.plus[t, c], weight * soft.minus[t, c]
            a, b = 1.0 - h[j], 1.0 + h[j]
            pays[i] = plus * _hinge(a, soft.width) + minus * _hinge(b, soft.width)
            rises = minus * _bend(b, soft.width) - plus * _bend(a, soft.width)
            if t < nodes // 2:
                more = room[PAYS, 2 * t + 2, i] - room[PAYS, 2 * t + 1, i]
                pays[i] += room[PAYS, 2 * t + 1, i] + right[j] * more
                rises += soft.sharp[t] * right[j] * (1.0 - right[j]) * more
            slope[j] = room[REACH, t, i] * rises
            if t == 0:
                cost += pays[i]
    return cost


@inner()
def _cost(soft: Soft, theta: F8, grad: F8) -> float:
    """What the tree costs, and its gradient; ``theta`` has the weights of each node, then its offset."""
    m, p = soft.Z.shape
    nodes, k = soft.sharp.size, p + 1
    who, room, cost = np.empty((nodes, _BLOCK + 1), np.int64), np.empty((5, nodes, _BLOCK)), 0.0
    for t in range(nodes):
        w = theta[t * k : t * k + p]
        cost += 0.5 * dot(w, w)
        copy(w, grad[t * k : t * k + p])
        grad[t * k + p] = 0.0
    for start in range(0, m, _BLOCK):
        Z = soft.Z[start : min(start + _BLOCK, m)]
        _send_down(soft, Z, theta, who, room)
        cost += _pay(soft, start, who, room)
        for t in range(nodes):
            _add_slopes(Z, who[t], room[SLOPE, t], grad[t * k : (t + 1) * k])
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
