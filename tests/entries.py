"""Entry points for kernels that only other kernels call: compiled once for all tests and their workers."""

from functools import wraps

import numpy as np

from margotree.engines.exact.kernels import node_record
from margotree.engines.local_search.kernels import curvature, edge_directions, line_search, soft_tree, sorting
from margotree.engines.node.kernels import (
    active_set,
    cholesky,
    feature_penalties,
    margins,
    penalised_active_set,
    safe_bounds,
    vectors,
)
from margotree.engines.node.kernels import workspace as w
from margotree.engines.numba_backend import kernel
from margotree.engines.numba_backend.ahead_of_time import compile_lock


def entry(function):
    """Compile a function and cache it; the first process compiles, the others wait for it."""
    compiled = kernel()(function)

    @wraps(function)
    def call(*args):
        if compiled.signatures:
            return compiled(*args)
        with compile_lock(f"tests:{function.__name__}"):
            return compiled(*args)

    return call


@entry
def add(ws, s, i, y):
    w.add_item(ws, s, i, y)


@entry
def run(ws, s, cutoff, pivots, tol):
    return (
        penalised_active_set.run(ws, s, cutoff, pivots, tol)
        if ws.with_penalties
        else active_set.run(ws, s, cutoff, pivots, tol)
    )


@entry
def add_hard_row(ws, source, target, i, side, delta):
    w.copy_slot(ws, source, target)
    active_set.add_hard_row(ws, target, i, side, delta)


@entry
def refresh(ws, s):
    active_set.refresh(ws, s)
    return active_set.primal_value(ws, s)


@entry
def update_stale_margins(ws, s):
    margins.update_stale_margins(ws, s)


@entry
def decide(ws, s, j, must):
    penalised_active_set.decide(ws, s, j, must)
    margins.update_margins(ws, s)


@entry
def switch(ws, s, j):
    cholesky.switch(ws, s, j)


@entry
def rebuild(ws, s):
    cholesky.rebuild(ws, s)


@entry
def penalised_bound(ws, s):
    return feature_penalties.penalised_bound(ws, s)


@entry
def penalty_bound(ws, s):
    return feature_penalties.penalty_bound(ws, s)


@entry
def load(ws, routing, codes, floats):
    node_record.load_record(ws, routing, codes, floats)


@entry
def count_less(ordered, value):
    return vectors.count_less(ordered, value)


@entry
def argsort_descending(a):
    return vectors.argsort_descending(a)


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
    sorting.sort_times(times, found, np.empty(n, np.int64), np.empty(n // 2 + 2, np.int64))
    return found


@entry
def least_on_line(h, g, node, ww, wd, dd, eps):
    m = h.size
    times, kinds, sample = np.empty(4 * m), np.empty(4 * m, np.int8), np.empty(4 * m, np.int64)
    n = line_search.events(h, g, node.plus_cost, node.minus_cost, eps, times, kinds, sample)
    by_time = np.empty(n, np.int64)
    sorting.sort_times(times[:n], by_time, np.empty(n, np.int64), np.empty(n // 2 + 2, np.int64))
    return line_search.least_on_line(
        h, g, node.plus_cost, node.minus_cost, node.left_cost, node.right_cost, ww, wd, dd, eps, np.inf, times, kinds,
        sample, by_time, node.by_side,
    )  # fmt: skip


@entry
def edge_direction(node, h, by_distance, usable, uniforms, d):
    basis = np.empty((min(d.size, edge_directions.MAX_KEPT), d.size))
    return edge_directions.edge_direction(
        node.Z, h, node.left_cost, node.right_cost, by_distance, usable, uniforms, basis, d
    )


@entry
def soft_cost(tree, theta, grad):
    """The loss of a soft tree and its gradient, summed over blocks."""
    blocks, order = soft_tree.new_blocks(tree), np.arange(tree.Z.shape[0])
    work = np.empty((7, tree.beta.size, soft_tree.BLOCK), np.float32)
    part, rounded, cost = np.empty(theta.size, np.float32), np.empty(theta.size, np.float32), 0.0
    for a in range(theta.size):
        rounded[a] = theta[a]
        grad[a] = 0.0
    for k in range((order.size + soft_tree.BLOCK - 1) // soft_tree.BLOCK):
        soft_tree.fill_in(tree, order, k, blocks)
        for i in range(max(0, order.size - k * soft_tree.BLOCK), soft_tree.BLOCK):  # these have been used before
            for c in range(blocks.weights.shape[1]):
                blocks.weights[k, c, i] = 0.0
        cost += soft_tree.block_slopes(
            tree, blocks.features[k], blocks.weights[k], blocks.corners[k], rounded, work, part
        )
        for a in range(theta.size):
            grad[a] += part[a]
    return cost


@entry
def newton_steps(Z, weights, deltas, ridge, grads, same, steps):
    """Newton steps one after the other, with the weights and gradients of each row of the arrays."""
    state = curvature.new_curvature(Z.shape[0], Z.shape[1])
    for n in range(len(deltas)):
        curvature.newton_step(Z, weights[n], deltas[n], ridge, grads[n], state, same[n], steps[n])


@entry
def nonzero(a, who, those):
    return vectors.nonzero(a, who, those)


@entry
def dual_value(ws, s):
    """What items add to the dual value, gamma, and how far off u may be."""
    return safe_bounds.recompute(ws, s)
