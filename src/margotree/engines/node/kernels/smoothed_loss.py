"""The SVM with a smoothed hinge loss: value, derivatives, and the exact dual value of a smoothed optimum.

The loss ``max(0, s)`` of the violation ``s = 1 - y h`` is smoothed over a width ``delta``.  At a smoothed optimum the
slopes of the losses are a feasible point of the exact dual, so their dual value is a valid lower bound.  Hard rows are
penalised by a quadratic function without a limit, whose slope is their multiplier.

A feature with a penalty ``lam > 0`` may be used in part: its ``w^2 / 2`` becomes the perspective relaxation of
``w^2 / 2 + lam [w != 0]``, which is ``r |w|`` below ``r = sqrt(2 lam)`` and exact above.  The kink at 0 is smoothed
over the same width.

Arguments: ``samples`` are those of the node, ``cols`` the features (rows of ``samples.X``), ``lam`` their penalties,
``theta`` their weights followed by the offset, ``hard`` the factor of the penalty for violated hard rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.kernels.safe_bounds import EXTRA_OPERATIONS, ROUNDOFF
from margotree.engines.node.kernels.workspace import two_sum
from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]

#: Samples whose squared lengths are below this are one point, which no band divides.
_POINT = 1e-60


class NodeSamples(NamedTuple):
    """The samples of one tree node, with scratch arrays."""

    X: F8  # (n, k): all features, one per row
    y: F8
    cost: F8
    corner: F8  # the loss is 0 from y h = corner on
    side: F8  # +1 or -1 for samples that must lie right or left, else 0
    violation: F8  # corner - y h
    violation_rate: F8  # its change per unit of a step
    row_violation: F8  # eps - side * h or -side * h at hard rows (positive: violated), -1 elsewhere
    row_violation_rate: F8
    reach: float  # upper bound on |b| (`safe_bounds.offset_reach`)


@inner(allocates=False)
def row_weight(X: F8, cols: NDArray[np.int64], cost: F8, side: F8, eps: float) -> float:
    """The weight of the parabola that penalises violated hard rows, times its width.

    It is the largest cost or, if that is more, the multiplier that a band requires: a hyperplane with samples of length
    ``R`` on both sides of a band of ``eps`` has weights of about ``eps / R``, and its rows have multipliers of about
    ``eps / R^2``. Where all costs are far below that, a parabola of their size leaves samples inside the band at any
    width.
    """
    weight = 1e-12
    longest = 0.0
    has_rows = False
    for i in range(cost.size):
        weight = max(weight, cost[i])
        has_rows = has_rows or side[i] != 0.0
    if not has_rows:
        return weight
    for i in range(cost.size):
        square = 0.0
        for r in range(cols.size):
            square += X[cols[r], i] * X[cols[r], i]
        longest = max(longest, square)
    return max(weight, eps / longest) if longest > _POINT else weight


@inner(allocates=False)
def fill_violations(samples: NodeSamples, cols: NDArray[np.int64], theta: F8, eps: float) -> None:
    """Compute the margin violations and the violations of hard rows."""
    k = samples.y.size
    d = cols.size
    b = theta[d]
    s, g = samples.violation, samples.row_violation
    for i in range(k):
        s[i] = b
    for r in range(d):
        w = theta[r]
        row = samples.X[cols[r]]
        for i in range(k):
            s[i] += w * row[i]
    for i in range(k):
        h = s[i]
        s[i] = samples.corner[i] - samples.y[i] * h
        side = samples.side[i]
        g[i] = (0.0 if side > 0 else eps) - side * h if side != 0.0 else -1.0


@inner(allocates=False)
def gradient_and_hessian(
    samples: NodeSamples, cols: NDArray[np.int64], lam: F8, theta: F8, delta: float, hard: float, grad: F8, H: F8, x: F8
) -> float:
    """Gradient and Hessian of the smoothed value; returns the largest curvature of a single loss in ``b``.

    ``x`` is scratch.
    """
    d = cols.size
    for r in range(d + 1):
        grad[r] = penalty_slope(theta[r], lam[r], delta) if r < d else 0.0
        for q in range(d + 1):
            H[r, q] = 0.0
        if r < d:
            H[r, r] = penalty_curvature(theta[r], lam[r], delta)
    largest_curvature = 0.0
    for i in range(samples.y.size):
        mu = 0.0
        kappa = 0.0
        s = samples.violation[i]
        if s > 0.0:
            if s >= delta:
                mu = samples.cost[i] * samples.y[i]
            else:
                kappa = samples.cost[i] / delta
                mu = kappa * s * samples.y[i]
        g = samples.row_violation[i]
        if g > 0.0:
            mu += hard / delta * g * samples.side[i]
            kappa += hard / delta
        if mu == 0.0:
            continue
        grad[d] -= mu
        for r in range(d):
            x[r] = samples.X[cols[r], i]
            grad[r] -= mu * x[r]
        if kappa > 0.0:
            largest_curvature = max(largest_curvature, kappa)
            H[d, d] += kappa
            for r in range(d):
                z = kappa * x[r]
                H[d, r] += z
                for q in range(r + 1):
                    H[r, q] += z * x[q]
    return largest_curvature


@inner(allocates=False)
def sum_of_multipliers(samples: NodeSamples, delta: float) -> float:
    """The sum of the slopes of the losses."""
    total = 0.0
    for i in range(samples.y.size):
        total += samples.cost[i] * min(1.0, max(0.0, samples.violation[i] / delta))
    return total


@inner(allocates=False)
def penalty_slope(w: float, lam: float, delta: float) -> float:
    """Slope of the smoothed penalty of a feature with weight ``w``."""
    if lam == 0.0:
        return w
    r = np.sqrt(2.0 * lam)
    size = abs(w)
    if size >= r:
        return w
    if size >= delta * r:
        return r if w > 0 else -r
    return w / delta


@inner(allocates=False)
def penalty_curvature(w: float, lam: float, delta: float) -> float:
    """Curvature of the smoothed penalty of a feature; a tiny positive number where the penalty is straight."""
    if lam == 0.0:
        return 1.0
    r = np.sqrt(2.0 * lam)
    size = abs(w)
    if size >= r:
        return 1.0
    return 1e-6 if size >= delta * r else 1.0 / delta


@inner(allocates=False)
def penalty(w: float, lam: float) -> float:
    """The perspective relaxation of ``w^2 / 2 + lam [w != 0]``."""
    if lam == 0.0:
        return 0.5 * w * w
    r = np.sqrt(2.0 * lam)
    return 0.5 * w * w + lam if abs(w) >= r else r * abs(w)


@inner(allocates=False)
def penalty_conjugate(g: float, lam: float) -> float:
    """The conjugate of `penalty`: what a feature subtracts from the dual value."""
    return max(0.0, 0.5 * g * g - lam)


@inner(allocates=False)
def directional_derivative(
    samples: NodeSamples, lam: F8, theta: F8, step: F8, t: float, delta: float, hard: float
) -> float:
    """Derivative of the smoothed value along ``step``, at the share ``t`` of it."""
    total = 0.0
    for r in range(lam.size):
        total += step[r] * penalty_slope(theta[r] + t * step[r], lam[r], delta)
    for i in range(samples.y.size):
        s = samples.violation[i] + t * samples.violation_rate[i]
        if s > 0.0:
            total += samples.cost[i] * samples.violation_rate[i] * min(1.0, s / delta)
        g = samples.row_violation[i] + t * samples.row_violation_rate[i]
        if g > 0.0:
            total += hard / delta * g * samples.row_violation_rate[i]
    return total


@inner(allocates=False)
def balancing_sample(samples: NodeSamples, delta: float, residual: float, balancer: int, balance: float) -> int:
    """The first sample whose multiplier has enough range to absorb ``residual`` of the sum of all; -1 if there is none.

    The multiplier of sample ``balancer`` has absorbed ``balance`` before.
    """
    for i in range(samples.y.size):
        nu = samples.cost[i] * min(1.0, max(0.0, samples.violation[i] / delta))
        if i == balancer:
            nu = min(max(nu - samples.y[i] * balance, 0.0), samples.cost[i])
        if (nu if samples.y[i] * residual > 0.0 else samples.cost[i] - nu) >= 2.0 * abs(residual):
            return i
    return -1


@inner(allocates=False)
def dual_value(
    samples: NodeSamples, cols: NDArray[np.int64], lam: F8, delta: float, hard: float, eps: float, w: F8
) -> float:
    """Exact dual value of the slopes of the losses, balanced by one sample; -inf if no sample can balance them.

    The largest possible rounding error is subtracted, as in `safe_bounds`.  ``w`` is scratch.
    """
    d = cols.size
    k = samples.y.size
    balance = 0.0
    for i in range(k):
        s = samples.violation[i]
        if s > 0.0:
            balance += samples.y[i] * samples.cost[i] * min(1.0, s / delta)
        if samples.row_violation[i] > 0.0:
            balance += samples.side[i] * hard / delta * samples.row_violation[i]
    balancer, best_weight = -1, -1.0
    if balance != 0.0:
        for i in range(k):
            nu = samples.cost[i] * min(1.0, max(0.0, samples.violation[i] / delta))
            space = nu if samples.y[i] * balance > 0.0 else samples.cost[i] - nu
            # Prefer samples near the margin: a change of their multiplier hardly changes the value.
            if space >= abs(balance):
                weight = 1.0 / (1e-12 + abs(samples.violation[i] - 0.5 * delta))
                if weight > best_weight:
                    best_weight = weight
                    balancer = i
        if balancer < 0:
            return -np.inf
    total = terms = sum_of_mu = balance_error = offsets = size = 0.0
    for r in range(d):
        w[r] = 0.0
    for i in range(k):
        nu = samples.cost[i] * min(1.0, max(0.0, samples.violation[i] / delta))
        if i == balancer:
            nu = min(max(nu - samples.y[i] * balance, 0.0), samples.cost[i])
        mu = samples.y[i] * nu
        total += nu * samples.corner[i]
        terms += nu * abs(samples.corner[i])
        sum_of_mu, more = two_sum(sum_of_mu, mu)
        balance_error += more
        offsets += nu
        if samples.row_violation[i] > 0.0:
            held = hard / delta * samples.row_violation[i]
            sum_of_mu, more = two_sum(sum_of_mu, samples.side[i] * held)
            balance_error += more
            offsets += held
            mu += samples.side[i] * held
            if samples.side[i] < 0:
                total += held * eps
                terms += held * eps
        if mu != 0.0:
            square = 0.0
            for r in range(d):
                x = samples.X[cols[r], i]
                w[r] += mu * x
                square += x * x
            size += abs(mu) * np.sqrt(square)
    taken = 0.0
    for r in range(d):
        taken += penalty_conjugate(w[r], lam[r])
    gamma = ROUNDOFF * (k + d + EXTRA_OPERATIONS)
    off = gamma * size
    # The multipliers of the evaluated point add up to exactly 0: a sample absorbs the residual, as in `safe_bounds`.
    residual = sum_of_mu + balance_error
    residual_sample = balancing_sample(samples, delta, residual, balancer, balance) if residual != 0.0 else -1
    if residual_sample >= 0:
        square = 0.0
        for r in range(d):
            square += samples.X[cols[r], residual_sample] ** 2
        off += 2.0 * abs(residual) * np.sqrt(square)
        total -= 2.0 * abs(residual) * max(1.0, abs(samples.corner[residual_sample]))
        residual = 0.0
    square = 0.0
    for r in range(d):
        square += w[r] * w[r]
    unbalanced = abs(residual) + gamma * gamma * offsets
    lost = gamma * (terms + square) + 2.0 * off * (np.sqrt(square) + off)
    return total - taken - lost - (unbalanced * samples.reach if unbalanced > 0.0 else 0.0)


@inner(allocates=False)
def primal_value(samples: NodeSamples, lam: F8, theta: F8) -> float:
    """Value with the exact hinge losses and the relaxed feature penalties; hard rows are not checked."""
    total = 0.0
    for r in range(lam.size):
        total += penalty(theta[r], lam[r])
    for i in range(samples.y.size):
        if samples.violation[i] > 0.0:
            total += samples.cost[i] * samples.violation[i]
    return total
