"""A tree whose upper splits send every sample both ways, in shares: all its hyperplanes at once by gradient steps.

The share that goes right is a sigmoid of the height times the split's sharpness.  What the tree costs is then smooth in
all hyperplanes together, so that a split can move and those below it move along.  Steps on a few samples at a time cost
next to nothing, and their errors lead out of poor trees.

A step hears a block of samples, which lie side by side, feature by feature, so that the processor does the same for
many of them at once; there is nothing to decide for any one of them.  All has single precision but the numbers
themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.kernels.vectors import ANY_ORDER
from margotree.engines.numba_backend import inner, kernel, struct

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: So many samples are heard per step.
BLOCK = 64
#: Blocks hear each sample about as often as the others: where there are few, they are made of so many at least.
_HEARD = 1280
#: Of the samples of a block, per node: the share of them that comes by, what they pay from there on, heights, the share
#: that goes right, what the cost rises with their heights; and the prices of lacking a margin on the right and left.
REACH, PAYS, HEIGHT, RIGHT, SLOPE, PLUS, MINUS = range(7)
#: How much of the running means of gradients and of their squares is kept from step to step; a gradient of nothing.
_MEAN, _SQUARE, _NOTHING = np.float32(0.9), np.float32(0.98), np.float32(1e-12)
#: Numbers of single precision: others would make all that they meet twice as long.  Sigmoids are flat this far out.
_ZERO, _HALF, _ONE, _FAR = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(14.0)
#: The power series of the exponential function, and the part of the exponent that it is taken of.
_S2, _S3, _S4, _S5, _S6, _S7 = (np.float32(1.0 / k) for k in range(2, 8))
_SIXTEENTH = np.float32(1.0 / 16.0)


@struct
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


class Blocks(NamedTuple):
    """Blocks of samples as they are heard: features by sample, and weights by class and sample; which are filled in."""

    features: F4
    weights: F4
    filled: I8


@inner()
def new_blocks(soft: Soft) -> Blocks:
    """Room for all blocks, with none filled in."""
    m, p = soft.Z.shape
    count = 1 if m <= BLOCK else (m * ((_HEARD + m - 1) // m) + BLOCK - 1) // BLOCK
    blocks = Blocks(
        np.empty((count, p, BLOCK), np.float32), np.empty((count, soft.plus.shape[1], BLOCK), np.float32),
        np.empty(count, np.int64),
    )  # fmt: skip
    for k in range(count):
        blocks.filled[k] = 0
    return blocks


@inner()
def fill_in(soft: Soft, order: I8, k: int, blocks: Blocks) -> None:
    """The block of this number: the next samples in order, over and over; if there are too few, all of them once."""
    m, p = soft.Z.shape
    features, weights = blocks.features[k], blocks.weights[k]
    for c in range(weights.shape[0]):
        for i in range(BLOCK):
            weights[c, i] = _ZERO
    for i in range(BLOCK):
        row = order[(k * BLOCK + i) % m]
        z = soft.Z[row]
        for a in range(p):
            features[a, i] = z[a]
        if i < m:
            weights[soft.code[row], i] = np.float32(soft.weight[row])
    blocks.filled[k] = 1


@inner(fastmath=ANY_ORDER)
def _heights(features: F4, w: F4, b: np.float32, h: F4) -> None:
    """The samples' products with ``w``, and ``b`` more; four features at a time."""
    p = w.size
    for i in range(BLOCK):
        h[i] = b
    whole = p - p % 4
    for a in range(0, whole, 4):
        x, y, z, u = features[a], features[a + 1], features[a + 2], features[a + 3]
        of_x, of_y, of_z, of_u = w[a], w[a + 1], w[a + 2], w[a + 3]
        for i in range(BLOCK):
            h[i] += (of_x * x[i] + of_y * y[i]) + (of_z * z[i] + of_u * u[i])
    for a in range(whole, p):
        x, of_x = features[a], w[a]
        for i in range(BLOCK):
            h[i] += of_x * x[i]


@inner(fastmath=ANY_ORDER)
def _send_on(h: F4, sharp: np.float32, reach: F4, right: F4, to_left: F4, to_right: F4) -> None:
    """The shares of the samples that go right, and those that come by on either side."""
    for i in range(BLOCK):
        y = _SIXTEENTH * min(abs(sharp * h[i]), _FAR)
        # exp(-y) by its series, to the power of 16.
        e = _ONE - y * (_ONE - _S2 * y * (_ONE - _S3 * y * (_ONE - _S4 * y * (
            _ONE - _S5 * y * (_ONE - _S6 * y * (_ONE - _S7 * y))))))  # fmt: skip
        e *= e
        e *= e
        e *= e
        e *= e
        near = _ONE / (_ONE + e)
        share = near if h[i] >= _ZERO else _ONE - near
        right[i] = share
        to_right[i] = share * reach[i]
        to_left[i] = reach[i] - share * reach[i]


@inner(fastmath=ANY_ORDER)
def _prices(weights: F4, plus: F8, minus: F8, on_right: F4, on_left: F4) -> None:
    """What each sample pays for what it lacks, by its class."""
    for i in range(BLOCK):
        on_right[i] = on_left[i] = _ZERO
    for c in range(weights.shape[0]):
        some, dear, cheap = weights[c], np.float32(plus[c]), np.float32(minus[c])
        for i in range(BLOCK):
            on_right[i] += dear * some[i]
            on_left[i] += cheap * some[i]


@inner(fastmath=ANY_ORDER)
def _lack(h: F4, on_right: F4, on_left: F4, width: np.float32, pays: F4, slope: F4) -> None:
    """What samples pay for what they lack, a parabola up to the width and straight on beyond, and its slope."""
    by = _ONE / width
    for i in range(BLOCK):
        a, b = max(_ONE - h[i], _ZERO), max(_ONE + h[i], _ZERO)
        near_a, near_b = min(a, width), min(b, width)
        pays[i] = by * (on_right[i] * near_a * (a - _HALF * near_a) + on_left[i] * near_b * (b - _HALF * near_b))
        slope[i] = by * (on_left[i] * near_b - on_right[i] * near_a)


@inner(fastmath=ANY_ORDER)
def _pay_below(sharp: np.float32, right: F4, on_left: F4, on_right: F4, pays: F4, slope: F4) -> None:
    """Add what samples pay in the two subtrees, and how that changes with the shares that go there."""
    for i in range(BLOCK):
        share, more = right[i], on_right[i] - on_left[i]
        pays[i] += on_left[i] + share * more
        slope[i] += sharp * share * (_ONE - share) * more


@inner(fastmath=ANY_ORDER)
def _add_up(features: F4, slope: F4, reach: F4, grad: F4) -> None:
    """The gradient in a node's weights and offset, from the slopes of those who come by."""
    p, total = features.shape[0], _ZERO
    for i in range(BLOCK):
        slope[i] *= reach[i]
        total += slope[i]
    for a in range(p):
        x, t = features[a], _ZERO
        for i in range(BLOCK):
            t += x[i] * slope[i]
        grad[a] = t
    grad[p] = total


@inner()
def block_slopes(soft: Soft, features: F4, weights: F4, theta: F4, room: F4, grad: F4) -> float:
    """What a block pays; ``grad`` becomes what that rises with every number of ``theta``, which has the weights of each
    node, then its offset."""
    nodes, p, width = soft.sharp.size, features.shape[0], np.float32(soft.width)
    k, upper = p + 1, nodes // 2
    for i in range(BLOCK):
        room[REACH, 0, i] = _ONE
    for t in range(nodes):
        h = room[HEIGHT, t]
        _heights(features, theta[t * k : t * k + p], theta[t * k + p], h)
        if t < upper:
            _send_on(
                h, np.float32(soft.sharp[t]), room[REACH, t], room[RIGHT, t], room[REACH, 2 * t + 1],
                room[REACH, 2 * t + 2],
            )  # fmt: skip
    for t in range(nodes - 1, -1, -1):
        pays, slope = room[PAYS, t], room[SLOPE, t]
        _prices(weights, soft.plus[t], soft.minus[t], room[PLUS, t], room[MINUS, t])
        _lack(room[HEIGHT, t], room[PLUS, t], room[MINUS, t], width, pays, slope)
        if t < upper:
            _pay_below(
                np.float32(soft.sharp[t]), room[RIGHT, t], room[PAYS, 2 * t + 1], room[PAYS, 2 * t + 2], pays, slope
            )
        _add_up(features, slope, room[REACH, t], grad[t * k : (t + 1) * k])
    cost = 0.0
    for i in range(BLOCK):
        cost += room[PAYS, 0, i]
    return cost


@inner(fastmath=ANY_ORDER)
def _step(
    theta: F8, grad: F4, pull: F4, far: F4, times: np.float32, first: np.float32, second: np.float32, state: F4,
    rounded: F4,
) -> None:  # fmt: skip
    """One step along the running means of the gradients (``times`` those given, and what ``pull`` adds), which are
    ``first`` and ``second`` times what is kept of them."""
    mean, square = state[0], state[1]
    for a in range(theta.size):
        g = times * grad[a] + pull[a] * rounded[a]
        mean[a] = _MEAN * mean[a] + (_ONE - _MEAN) * g
        square[a] = _SQUARE * square[a] + (_ONE - _SQUARE) * g * g
        theta[a] -= far[a] * (first * mean[a]) / (np.sqrt(second * square[a]) + _NOTHING)
        rounded[a] = theta[a]


@kernel()
def learn(soft: Soft, order: I8, theta: F8, pull: F4, far: F4, steps: int, state: F4, done: int, flag: F8) -> int:
    """So many steps from ``theta`` (of each node its weights, then its offset), each on the next :data:`BLOCK` samples
    in this order, over and over (nearly: after some rounds from the first again).

    Half of ``pull`` times the square of each number counts as well.  A step goes about as ``far`` as given for each
    number, the less the less its gradients agree with each other (Adam).  ``state`` has their running means and those
    of their squares and is kept from call to call, as is the number of steps ``done``, which is returned.  Another
    thread may set ``flag[0]`` to have the work stop.
    """
    m, nodes = order.size, soft.sharp.size
    blocks, room = new_blocks(soft), np.empty((7, nodes, BLOCK), np.float32)
    grad, rounded = np.empty(theta.size, np.float32), np.empty(theta.size, np.float32)
    times = np.float32(m / min(m, BLOCK))
    for a in range(theta.size):
        rounded[a] = theta[a]
    for _ in range(steps):
        if flag[0] != 0.0:
            break
        k = done % blocks.filled.size
        if blocks.filled[k] == 0:
            fill_in(soft, order, k, blocks)
        block_slopes(soft, blocks.features[k], blocks.weights[k], rounded, room, grad)
        done += 1
        first, second = _ONE / (_ONE - _MEAN**done), _ONE / (_ONE - _SQUARE**done)
        _step(theta, grad, pull, far, times, np.float32(first), np.float32(second), state, rounded)
    return done
