"""A tree whose upper splits send every sample both ways, in shares: all its hyperplanes at once by gradient steps.

The share that goes right is a sigmoid of the height times the split's sharpness.  What the tree costs is then smooth in
all hyperplanes together, so that a split can move and those below it move along.  Steps on a few samples at a time cost
next to nothing, and their errors lead out of poor trees.  Samples and their slopes have single precision.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.kernels.bundles import bundle
from margotree.engines.kernels.jit import inner, kernel
from margotree.engines.kernels.vectors import ANY_ORDER, fill, pad

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: Shares smaller than this are none, and so are sigmoids this far out.
_TINY, _FAR = 1e-6, 14.0
#: So many samples are sent down at a time, and heard per step.
BLOCK = 64  # a multiple of four
# Of samples on their way, per node: their share that comes by and what it pays from there on (by sample); of those who
# come by, heights, the share of them that goes right, and what the cost rises with their heights.
REACH, PAYS, HEIGHT, RIGHT, SLOPE = range(5)
#: How much of the running means of gradients and of their squares is kept from step to step; a gradient of nothing.
_MEAN, _SQUARE, _NOTHING = 0.9, 0.98, 1e-12


@bundle
class Soft(NamedTuple):
    """Samples (rows) with their weights and classes; per node and class, the prices of lacking a margin on the right
    and on the left; sharpness per node; the width on which hinges are rounded."""

    Z: F4
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


@inner(fastmath=ANY_ORDER)
def _heights(Z: F4, rows: I8, who: I8, w: F4, b: float, h: F8) -> None:
    """The heights of those of the rows ``who`` come by, four at a time."""
    zero = np.float32(0.0)
    for j in range(0, who[BLOCK], 4):
        z, y, x, u = Z[rows[who[j]]], Z[rows[who[j + 1]]], Z[rows[who[j + 2]]], Z[rows[who[j + 3]]]
        of_z, of_y, of_x, of_u = zero, zero, zero, zero
        for a in range(w.size):
            of_z += z[a] * w[a]
            of_y += y[a] * w[a]
            of_x += x[a] * w[a]
            of_u += u[a] * w[a]
        h[j], h[j + 1], h[j + 2], h[j + 3] = of_z + b, of_y + b, of_x + b, of_u + b


@inner(fastmath=ANY_ORDER)
def _add_slopes(Z: F4, rows: I8, who: I8, slope: F8, grad: F4) -> None:
    """Add those of the rows ``who`` come by (and a one for the offset) times their slopes."""
    k = Z.shape[1]
    for j in range(0, who[BLOCK], 4):
        z, y, x, u = Z[rows[who[j]]], Z[rows[who[j + 1]]], Z[rows[who[j + 2]]], Z[rows[who[j + 3]]]
        rz, ry, rx, ru = (
            np.float32(slope[j]), np.float32(slope[j + 1]), np.float32(slope[j + 2]), np.float32(slope[j + 3])
        )  # fmt: skip
        for a in range(k):
            grad[a] += (rz * z[a] + ry * y[a]) + (rx * x[a] + ru * u[a])
        grad[k] += (rz + ry) + (rx + ru)


@inner()
def _send_down(soft: Soft, rows: I8, theta: F4, who: I8, room: F8) -> None:
    """Which of the rows come by each node (their number is the last entry), in what share, and at what height."""
    n, p = rows.size, soft.Z.shape[1]
    nodes, k = soft.sharp.size, p + 1
    fill(room[REACH, 0], 1.0)
    for t in range(nodes):
        reach, those, h, right, count = room[REACH, t], who[t], room[HEIGHT, t], room[RIGHT, t], 0
        for i in range(n):
            if reach[i] >= _TINY:
                those[count] = i
                count += 1
        those[BLOCK] = count
        pad(those, count)
        _heights(soft.Z, rows, those, theta[t * k : t * k + p], theta[t * k + p], h)
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
def _pay(soft: Soft, rows: I8, who: I8, room: F8) -> float:
    """What the rows pay, and what that rises with their heights."""
    nodes, cost = soft.sharp.size, 0.0
    for t in range(nodes - 1, -1, -1):
        those, h, right, slope, pays = who[t], room[HEIGHT, t], room[RIGHT, t], room[SLOPE, t], room[PAYS, t]
        fill(pays, 0.0)
        fill(slope, 0.0)
        for j in range(those[BLOCK]):
            i = those[j]
            c, weight = soft.code[rows[i]], soft.weight[rows[i]]
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
def batch_slopes(soft: Soft, rows: I8, theta: F4, who: I8, room: F8, grad: F4) -> float:
    """What the rows (:data:`BLOCK` at most) pay; ``grad`` becomes what that rises with every number of ``theta``, which
    has the weights of each node, then its offset."""
    k = soft.Z.shape[1] + 1
    for a in range(grad.size):
        grad[a] = 0.0
    _send_down(soft, rows, theta, who, room)
    cost = _pay(soft, rows, who, room)
    for t in range(soft.sharp.size):
        _add_slopes(soft.Z, rows, who[t], room[SLOPE, t], grad[t * k : (t + 1) * k])
    return cost


@inner(fastmath=ANY_ORDER)
def _step(theta: F8, grad: F4, pull: F8, far: F8, times: float, done: int, state: F8, rounded: F4) -> None:
    """One step along the running means of the gradients (``times`` those given, and what ``pull`` adds)."""
    first, second = 1.0 / (1.0 - _MEAN**done), 1.0 / (1.0 - _SQUARE**done)
    mean, square = state[0], state[1]
    for a in range(theta.size):
        g = times * grad[a] + pull[a] * theta[a]
        mean[a] = _MEAN * mean[a] + (1.0 - _MEAN) * g
        square[a] = _SQUARE * square[a] + (1.0 - _SQUARE) * g * g
        theta[a] -= far[a] * (first * mean[a]) / (np.sqrt(second * square[a]) + _NOTHING)
        rounded[a] = theta[a]


@kernel()
def learn(soft: Soft, order: I8, theta: F8, pull: F8, far: F8, steps: int, state: F8, done: int, flag: F8) -> int:
    """So many steps from ``theta`` (of each node its weights, then its offset), each on the next :data:`BLOCK` samples
    in this order, over and over.

    Half of ``pull`` times the square of each number counts as well.  A step goes about as ``far`` as given for each
    number, the less the less its gradients agree with each other (Adam).  ``state`` has their running means and those
    of their squares and is kept from call to call, as is the number of steps ``done``, which is returned.  Another
    thread may set ``flag[0]`` to have the work stop.
    """
    m, nodes = order.size, soft.sharp.size
    who, room = np.empty((nodes, BLOCK + 1), np.int64), np.empty((5, nodes, BLOCK))
    grad, rounded = np.empty(theta.size, np.float32), np.empty(theta.size, np.float32)
    for a in range(theta.size):
        rounded[a] = theta[a]
    rows = np.empty(min(BLOCK, m), np.int64)
    for _ in range(steps):
        if flag[0] != 0.0:
            break
        for i in range(rows.size):
            rows[i] = order[(done * rows.size + i) % m]
        batch_slopes(soft, rows, rounded, who, room, grad)
        done += 1
        _step(theta, grad, pull, far, m / rows.size, done, state, rounded)
    return done
