"""Entry points for kernels that only other kernels call: compiled once for all tests and their workers."""

from functools import wraps

import numpy as np

from margotree.engines.alternating.kernels import curvature, order, soft, sweep, turns
from margotree.engines.bnb.kernels import record
from margotree.engines.kernels import certain, factor, features, margins, pivot, priced, vectors
from margotree.engines.kernels import workspace as w
from margotree.engines.numba_backend import kernel
from margotree.engines.numba_backend.ahead_of_time import alone


def entry(function):
    """Compiled and kept; whoever comes first compiles, and other processes wait for that."""
    compiled = kernel()(function)

    @wraps(function)
    def call(*args):
        if compiled.signatures:
            return compiled(*args)
        with alone(f"tests:{function.__name__}"):
            return compiled(*args)

    return call


@entry
def add(ws, s, i, y):
    w.add_item(ws, s, i, y)


@entry
def run(ws, s, cutoff, pivots, tol):
    return priced.run(ws, s, cutoff, pivots, tol) if ws.priced else pivot.run(ws, s, cutoff, pivots, tol)


@entry
def harden(ws, source, target, i, side, delta):
    w.copy_slot(ws, source, target)
    pivot.harden(ws, target, i, side, delta)


@entry
def refresh(ws, s):
    pivot.refresh(ws, s)
    return pivot.primal_value(ws, s)


@entry
def catch_up(ws, s):
    margins.catch_up(ws, s)


@entry
def decide(ws, s, j, must):
    priced.decide(ws, s, j, must)
    margins.follow(ws, s)


@entry
def switch(ws, s, j):
    factor.switch(ws, s, j)


@entry
def rebuild(ws, s):
    factor.rebuild(ws, s)


@entry
def worth(ws, s):
    return features.worth(ws, s)


@entry
def bonus(ws, s):
    return features.bonus(ws, s)


@entry
def load(ws, routing, codes, floats):
    record.load_here(ws, routing, codes, floats)


@entry
def place(ordered, value):
    return vectors.place(ordered, value)


@entry
def descending(a):
    return vectors.descending(a)


@entry
def refilled(a, value):
    """The sum before, the same as a copy, and filled with a number."""
    before = vectors.total(a)
    copied = np.empty(a.size)
    vectors.copy(a, copied)
    vectors.fill(a, value)
    return before, copied


@entry
def sorted_times(times):
    n = times.size
    found = np.empty(n, np.int64)
    order.sort_times(times, found, np.empty(n, np.int64), np.empty(n // 2 + 2, np.int64))
    return found


@entry
def least_on_line(h, g, node, ww, wd, dd, eps):
    m = h.size
    times, kinds, whose = np.empty(4 * m), np.empty(4 * m, np.int8), np.empty(4 * m, np.int64)
    n = sweep.events(h, g, node.plus, node.minus, eps, times, kinds, whose)
    by_time = np.empty(n, np.int64)
    order.sort_times(times[:n], by_time, np.empty(n, np.int64), np.empty(n // 2 + 2, np.int64))
    return sweep.along(
        h, g, node.plus, node.minus, node.low, node.high, ww, wd, dd, eps, np.inf, times, kinds, whose, by_time
    )


@entry
def turned(node, h, by_distance, usable, chance, d):
    basis = np.empty((min(d.size, turns.HELD), d.size))
    return turns.turn(node.Z, h, node.low, node.high, by_distance, usable, chance, basis, d)


@entry
def soft_cost(tree, theta, grad):
    """What the samples of a soft tree pay, and its gradient, from those of batches."""
    blocks, order = soft.new_blocks(tree), np.arange(tree.Z.shape[0])
    room = np.empty((7, tree.sharp.size, soft.BLOCK), np.float32)
    part, rounded, cost = np.empty(theta.size, np.float32), np.empty(theta.size, np.float32), 0.0
    for a in range(theta.size):
        rounded[a] = theta[a]
        grad[a] = 0.0
    for k in range((order.size + soft.BLOCK - 1) // soft.BLOCK):
        soft.fill_in(tree, order, k, blocks)
        for i in range(max(0, order.size - k * soft.BLOCK), soft.BLOCK):  # these have been heard
            for c in range(blocks.weights.shape[1]):
                blocks.weights[k, c, i] = 0.0
        cost += soft.block_slopes(tree, blocks.features[k], blocks.weights[k], rounded, room, part)
        for a in range(theta.size):
            grad[a] += part[a]
    return cost


@entry
def newton_steps(Z, weights, deltas, ridge, grads, same, steps):
    """Steps one after the other, with the weights and gradients of each row of the arrays."""
    now = curvature.new_curvature(Z.shape[0], Z.shape[1])
    for n in range(len(deltas)):
        curvature.newton_step(Z, weights[n], deltas[n], ridge, grads[n], now, same[n], steps[n])


@entry
def nonzero(a, who, those):
    return vectors.nonzero(a, who, those)


@entry
def dual_value(ws, s):
    """What items add to the dual value, gamma, and how far off u may be."""
    return certain.recompute(ws, s)
