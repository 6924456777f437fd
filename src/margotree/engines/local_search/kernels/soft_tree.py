"""Gradient steps for a soft tree: all its hyperplanes at once.

Upper splits send every sample both ways; the share that goes right is a sigmoid of the value ``h`` times the inverse
temperature ``beta`` of the split. The objective is then smooth in all hyperplanes together, so that a split can move
while those in its subtrees follow. Each Adam step uses a small block of samples: this takes little time, and the noise
of the gradients helps to leave poor local minima.

A block is stored feature by feature, so that the same instruction processes many samples at once, without branches.
Everything but the parameters is in single precision.
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

#: The number of samples per step.
BLOCK = 64
#: Blocks use every sample about equally often: where samples are few, the blocks hold at least this number in all.
_MIN_CYCLE = 1280
#: The rows of the work array, per node, for the samples of a block: the share that reaches the node, the loss from
#: there on, the value, the share that goes right, the slope of the loss, and the penalties on the right and on the
#: left.
REACH, LOSS, VALUE, RIGHT, SLOPE, PLUS, MINUS = range(7)
#: The decay rates of the running means of gradients and of their squares; the smallest denominator.
_MEAN, _SQUARE, _TINY = np.float32(0.9), np.float32(0.98), np.float32(1e-12)
#: Constants in single precision, since others would promote the arrays; sigmoids are constant beyond this argument.
_ZERO, _HALF, _ONE, _FLAT_BEYOND = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(14.0)
#: The coefficients of the power series of the exponential function, and the factor of its argument.
_S2, _S3, _S4, _S5, _S6, _S7 = (np.float32(1.0 / k) for k in range(2, 8))
_SIXTEENTH = np.float32(1.0 / 16.0)


@struct
class Soft(NamedTuple):
    """A soft tree and its samples.

    ``Z``, ``weight`` and ``code`` are the samples (rows), their weights and classes; ``plus`` and ``minus`` are the
    penalties of hinge losses on the right and on the left, per node and class; ``beta`` is the inverse temperature per
    node; ``width`` is the width of the smoothing of the hinge loss. ``plus_corner`` and ``minus_corner`` are the
    corners of each sample at the last level, ``last_width`` the width of the smoothing there. If ``by_side`` is set,
    ``plus`` is at upper nodes only for the share of a sample that goes right, ``minus`` only for the rest.
    """

    Z: F4
    weight: F8
    code: I8
    plus: F8
    minus: F8
    beta: F8
    width: float
    plus_corner: F8
    minus_corner: F8
    last_width: float
    by_side: bool


class Blocks(NamedTuple):
    """Blocks of samples: features by sample, weights by class and sample, corners, whether the block is filled in."""

    features: F4
    weights: F4
    corners: F4
    filled: I8


@inner()
def new_blocks(soft: Soft) -> Blocks:
    """Memory for all blocks, none of them filled in."""
    m, p = soft.Z.shape
    count = 1 if m <= BLOCK else (m * ((_MIN_CYCLE + m - 1) // m) + BLOCK - 1) // BLOCK
    blocks = Blocks(
        np.empty((count, p, BLOCK), np.float32), np.empty((count, soft.plus.shape[1], BLOCK), np.float32),
        np.empty((count, 2, BLOCK), np.float32), np.empty(count, np.int64),
    )  # fmt: skip
    for k in range(count):
        blocks.filled[k] = 0
    return blocks


@inner()
def fill_in(soft: Soft, order: I8, k: int, blocks: Blocks) -> None:
    """Fill in block ``k`` with the next samples of ``order``, which repeats cyclically.

    If there are fewer samples than a block has places, each has its weight only once.
    """
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
        blocks.corners[k, 0, i], blocks.corners[k, 1, i] = soft.plus_corner[row], soft.minus_corner[row]
        if i < m:
            weights[soft.code[row], i] = np.float32(soft.weight[row])
    blocks.filled[k] = 1


@inner(fastmath=ANY_ORDER)
def _values(features: F4, w: F4, b: np.float32, h: F4) -> None:
    """Write the products of the samples with ``w``, plus ``b``, to ``h``; four features at a time."""
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
def _route(h: F4, beta: np.float32, reach: F4, right: F4, to_left: F4, to_right: F4) -> None:
    """Write the shares of the samples that go right, and the shares that reach the left and the right child."""
    for i in range(BLOCK):
        y = _SIXTEENTH * min(abs(beta * h[i]), _FLAT_BEYOND)
        # exp(-y) by its series, to the power of 16.
        e = _ONE - y * (_ONE - _S2 * y * (_ONE - _S3 * y * (_ONE - _S4 * y * (
            _ONE - _S5 * y * (_ONE - _S6 * y * (_ONE - _S7 * y))))))  # fmt: skip
        e *= e
        e *= e
        e *= e
        e *= e
        larger = _ONE / (_ONE + e)
        share = larger if h[i] >= _ZERO else _ONE - larger
        right[i] = share
        to_right[i] = share * reach[i]
        to_left[i] = reach[i] - share * reach[i]


@inner(fastmath=ANY_ORDER)
def _penalties(weights: F4, plus: F8, minus: F8, on_right: F4, on_left: F4) -> None:
    """Write the penalties of the hinge losses of each sample on the right and on the left."""
    for i in range(BLOCK):
        on_right[i] = on_left[i] = _ZERO
    for c in range(weights.shape[0]):
        class_weight, on_plus, on_minus = weights[c], np.float32(plus[c]), np.float32(minus[c])
        for i in range(BLOCK):
            on_right[i] += on_plus * class_weight[i]
            on_left[i] += on_minus * class_weight[i]


@inner(fastmath=ANY_ORDER)
def _smoothed_hinge(h: F4, on_right: F4, on_left: F4, width: np.float32, loss: F4, slope: F4) -> None:
    """Write the smoothed hinge losses, quadratic up to the width and linear beyond, and their slopes."""
    scale = _ONE / width
    for i in range(BLOCK):
        right_loss, left_loss = max(_ONE - h[i], _ZERO), max(_ONE + h[i], _ZERO)
        clipped_right, clipped_left = min(right_loss, width), min(left_loss, width)
        loss[i] = scale * (
            on_right[i] * clipped_right * (right_loss - _HALF * clipped_right)
            + on_left[i] * clipped_left * (left_loss - _HALF * clipped_left)
        )
        slope[i] = scale * (on_left[i] * clipped_left - on_right[i] * clipped_right)


@inner(fastmath=ANY_ORDER)
def _smoothed_loss(
    h: F4, below: F4, above: F4, on_right: F4, on_left: F4, width: np.float32, loss: F4, slope: F4
) -> None:
    """:func:`_smoothed_hinge` with the corners ``below`` and ``above`` instead of 1 and -1."""
    scale = _ONE / width
    for i in range(BLOCK):
        right_loss, left_loss = max(below[i] - h[i], _ZERO), max(h[i] - above[i], _ZERO)
        clipped_right, clipped_left = min(right_loss, width), min(left_loss, width)
        loss[i] = scale * (
            on_right[i] * clipped_right * (right_loss - _HALF * clipped_right)
            + on_left[i] * clipped_left * (left_loss - _HALF * clipped_left)
        )
        slope[i] = scale * (on_left[i] * clipped_left - on_right[i] * clipped_right)


@inner(fastmath=ANY_ORDER)
def _smoothed_hinge_by_side(
    h: F4, on_right: F4, on_left: F4, right: F4, beta: np.float32, width: np.float32, loss: F4, slope: F4
) -> None:
    """:func:`_smoothed_hinge` where the first loss is for the share that goes right, the second one for the rest."""
    scale = _ONE / width
    for i in range(BLOCK):
        right_loss, left_loss = max(_ONE - h[i], _ZERO), max(_ONE + h[i], _ZERO)
        clipped_right, clipped_left = min(right_loss, width), min(left_loss, width)
        if_right = scale * on_right[i] * clipped_right * (right_loss - _HALF * clipped_right)
        if_left = scale * on_left[i] * clipped_left * (left_loss - _HALF * clipped_left)
        share = right[i]
        loss[i] = share * if_right + (_ONE - share) * if_left
        slope[i] = scale * ((_ONE - share) * on_left[i] * clipped_left - share * on_right[i] * clipped_right)
        slope[i] += beta * share * (_ONE - share) * (if_right - if_left)


@inner(fastmath=ANY_ORDER)
def _add_subtree_losses(beta: np.float32, right: F4, on_left: F4, on_right: F4, loss: F4, slope: F4) -> None:
    """Add the losses in the two subtrees, weighted by the shares, and their slopes with respect to the value."""
    for i in range(BLOCK):
        share, difference = right[i], on_right[i] - on_left[i]
        loss[i] += on_left[i] + share * difference
        slope[i] += beta * share * (_ONE - share) * difference


@inner(fastmath=ANY_ORDER)
def _gradient(features: F4, slope: F4, reach: F4, grad: F4) -> None:
    """Write the gradient of a node's weights and offset; slopes are weighted by the shares that reach the node."""
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
def block_slopes(soft: Soft, features: F4, weights: F4, corners: F4, theta: F4, work: F4, grad: F4) -> float:
    """The loss of a block; its gradient with respect to ``theta`` is written to ``grad``.

    ``theta`` has the weights and the offset of one node after the other; ``work`` is a work array.
    """
    nodes, p, width = soft.beta.size, features.shape[0], np.float32(soft.width)
    k, upper = p + 1, nodes // 2
    for i in range(BLOCK):
        work[REACH, 0, i] = _ONE
    for t in range(nodes):
        h = work[VALUE, t]
        _values(features, theta[t * k : t * k + p], theta[t * k + p], h)
        if t < upper:
            _route(
                h, np.float32(soft.beta[t]), work[REACH, t], work[RIGHT, t], work[REACH, 2 * t + 1],
                work[REACH, 2 * t + 2],
            )  # fmt: skip
    for t in range(nodes - 1, -1, -1):
        loss, slope = work[LOSS, t], work[SLOPE, t]
        _penalties(weights, soft.plus[t], soft.minus[t], work[PLUS, t], work[MINUS, t])
        h, plus, minus = work[VALUE, t], work[PLUS, t], work[MINUS, t]
        if t >= upper:
            _smoothed_loss(h, corners[0], corners[1], plus, minus, np.float32(soft.last_width), loss, slope)
        elif soft.by_side:
            _smoothed_hinge_by_side(h, plus, minus, work[RIGHT, t], np.float32(soft.beta[t]), width, loss, slope)
        else:
            _smoothed_hinge(h, plus, minus, width, loss, slope)
        if t < upper:
            _add_subtree_losses(
                np.float32(soft.beta[t]), work[RIGHT, t], work[LOSS, 2 * t + 1], work[LOSS, 2 * t + 2], loss, slope
            )
        _gradient(features, slope, work[REACH, t], grad[t * k : (t + 1) * k])
    cost = 0.0
    for i in range(BLOCK):
        cost += work[LOSS, 0, i]
    return cost


@inner(fastmath=ANY_ORDER)
def _step(
    theta: F8,
    grad: F4,
    decay: F4,
    step_length: F4,
    scale: np.float32,
    first: np.float32,
    second: np.float32,
    state: F4,
    rounded: F4,
) -> None:
    """One Adam step with the gradient ``scale * grad + decay * theta``.

    ``first`` and ``second`` are the bias corrections of the running means; ``rounded`` becomes ``theta`` in single
    precision.
    """
    mean, square = state[0], state[1]
    for a in range(theta.size):
        gradient = scale * grad[a] + decay[a] * rounded[a]
        mean[a] = _MEAN * mean[a] + (_ONE - _MEAN) * gradient
        square[a] = _SQUARE * square[a] + (_ONE - _SQUARE) * gradient * gradient
        theta[a] -= step_length[a] * (first * mean[a]) / (np.sqrt(second * square[a]) + _TINY)
        rounded[a] = theta[a]


@kernel()
def learn(
    soft: Soft, order: I8, theta: F8, decay: F4, step_length: F4, steps: int, state: F4, done: int, flag: F8
) -> int:
    """Train a soft tree with Adam.

    Parameters
    ----------
    soft : Soft
        The tree and its samples.
    order : array of length m
        The order of the samples; each step uses the next :data:`BLOCK` of them, cyclically (after some cycles from the
        first block again).
    theta : array
        The weights and the offset of one node after the other; overwritten.
    decay : array
        Half of ``decay`` times the square of each parameter is part of the objective.
    step_length : array
        The length of a first step for each parameter; later steps are shorter the less the gradients agree.
    steps : int
        The number of steps.
    state : array of shape (2, len(theta))
        The running means of the gradients and of their squares, kept from call to call.
    done : int
        The number of steps of previous calls.
    flag : array of length 1
        Another thread may set ``flag[0]`` to stop the training.

    Returns
    -------
    int
        The number of steps so far, including ``done``.
    """
    m, nodes = order.size, soft.beta.size
    blocks, work = new_blocks(soft), np.empty((7, nodes, BLOCK), np.float32)
    grad, rounded = np.empty(theta.size, np.float32), np.empty(theta.size, np.float32)
    scale = np.float32(m / min(m, BLOCK))
    for a in range(theta.size):
        rounded[a] = theta[a]
    for _ in range(steps):
        if flag[0] != 0.0:
            break
        k = done % blocks.filled.size
        if blocks.filled[k] == 0:
            fill_in(soft, order, k, blocks)
        block_slopes(soft, blocks.features[k], blocks.weights[k], blocks.corners[k], rounded, work, grad)
        done += 1
        first, second = _ONE / (_ONE - _MEAN**done), _ONE / (_ONE - _SQUARE**done)
        _step(theta, grad, decay, step_length, scale, np.float32(first), np.float32(second), state, rounded)
    return done
