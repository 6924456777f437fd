"""The constants of the MIP formulation: the paper's, or derived ones that provably cut off no optimum.

Why the derived constants are valid
-----------------------------------
Let ``U`` be the objective of a known tree and take an optimal tree (one exists: finitely many routings, and for each a
convex problem whose minimum is attained).  Keep its routing and change only offsets and unused nodes, as follows.  The
objective does not increase, so the result is optimal too, and it satisfies the constants.

*Weights.*  The node terms share no variable and none is negative.  Let ``(v, b*)`` be the optimum of the root on the
losses that all samples have there for every routing and choice, without routing, and ``L`` a lower bound on its value
(``v = 0`` and ``L = 0`` if there are no such losses).  The root term is at least
``f(w, b) = 1/2|w|^2 + these losses``, which is strongly convex in ``w``, so ``f(w, b) >= f(v, b*) + 1/2|w - v|^2``.
All other terms sum to at most ``U - L``.  Hence, with ``r = sqrt(2 (U - L))``,

    |w_0 - v| <= r      and      |w_t| <= r  for every other node,

with or without budgets; if ``v`` is known only to a duality gap ``d``, the radius of the root grows by ``sqrt(2 d)``.
At a last-level node there are no routing rows, and ``w = sum_i (alpha_i - beta_i) x_i`` with multipliers
``0 <= alpha_i <= C_t weight_i p_i`` and ``0 <= beta_i <= C_t weight_i m_i`` of equal sums: a difference of two points
of the samples' hull, times at most ``k = C_t min(sum weight_i p_i, sum weight_i m_i)``, the largest one over the
choices at the node.  So ``|w_tj| <= k range_j`` and ``|w_t| <= k diameter``; features outside a support or limited by
``max_weight`` have smaller weights.  ``max_weight`` is a bound by itself, too.

*Offsets.*  Let the samples ``I_t`` reach node ``t``.  Any two samples differ in ``h`` by ``w.(x_i - x_j)``, at most
``c.(x_i - x_j) + r |x_i - x_j|`` for ``w`` within ``r`` of ``c``.  One sample ``j`` with a known range of ``h`` then
bounds all others.  Let ``r_0`` be the largest corner ``r`` of the losses at upper nodes, or 0 if that is larger, and
``l_0`` the smallest corner ``l``, or ``-eps`` if that is smaller:

- upper node, both sides used: ``h >= 0`` somewhere and ``h <= -eps`` somewhere;
- upper node, all go right: if ``h > r_0`` everywhere, lower ``b`` until the smallest ``h`` is ``r_0`` (losses below
  corners stay 0, those above decrease): some ``h`` lies in [0, r_0];
- upper node, all go left: likewise some ``h`` lies in [l_0, -eps];
- last level, losses below and above corners: the cost is convex and piecewise linear in ``b`` and increases in both
  directions, so a minimum has some sample ``j`` of ``I_t`` at its own corner, ``h_j = r_j`` or ``h_j = l_j``;
- last level, losses on one side only or none: ``w = 0``, and ``b`` is the corner of a sample, too.

The first three cases give ``l_0 <= h_j <= r_0`` for some ``j``; in each case the bounds hold for every sample, whether
it reaches ``t`` or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from margotree.engines.mip.losses import LevelLosses, Losses
from margotree.engines.node.svm import solve_node
from margotree.problem import Problem, topology

FloatArray = NDArray[np.float64]

PAPER_M_XI, PAPER_M_H, PAPER_M_W = 50.0, 100.0, 50.0

#: Relative and absolute slack on U, so that rounding cannot make a valid constant invalid.
SLACK = 1e-7

#: Above this number of samples the bounding box replaces pairwise distances, which would take too long.
_PAIRWISE = 3000


@dataclass(frozen=True, kw_only=True, eq=False)
class Constants:
    """Bounds and big-M constants by node (first axis) and by feature or sample (second axis).

    ``M_below`` and ``M_above`` switch the rows of losses below and above corners off, ``M_right`` and ``M_left`` the
    routing rows (of upper nodes); ``w_low`` and ``w_high`` bound the weights and, with budgets, switch them off.
    ``xi_high`` bounds the losses.  ``restriction`` is empty for constants that cut
    off no optimum; ``lower_bound`` is a lower bound on the optimum that was found while they were derived.
    """

    w_low: FloatArray
    w_high: FloatArray
    b_low: FloatArray
    b_high: FloatArray
    xi_high: FloatArray
    M_below: FloatArray
    M_above: FloatArray
    M_right: FloatArray
    M_left: FloatArray
    restriction: str = ""
    lower_bound: float = 0.0


def paper_constants(problem: Problem) -> Constants:
    """The paper's ``M_xi = M_w = 50`` and ``M_H = 100``; they may cut off true optima, but reproduce its numbers."""
    nodes, samples, n = problem.n_nodes, problem.n_samples, problem.n_features
    names = f"M_xi = {PAPER_M_XI:g}, M_H = {PAPER_M_H:g}"
    w_most = math.inf if problem.max_weight is None else problem.max_weight
    if problem.budget is not None:
        w_most = min(w_most, PAPER_M_W)
        names += f", M_w = {PAPER_M_W:g}"
    return Constants(
        w_low=np.full((nodes, n), -w_most),
        w_high=np.full((nodes, n), w_most),
        b_low=np.full(nodes, -math.inf),
        b_high=np.full(nodes, math.inf),
        xi_high=np.full((nodes, samples), math.inf),
        M_below=np.full((nodes, samples), PAPER_M_XI),
        M_above=np.full((nodes, samples), PAPER_M_XI),
        M_right=np.full((nodes, samples), PAPER_M_H),
        M_left=np.full((nodes, samples), PAPER_M_H),
        restriction=f"the paper's big-M constants {names}",
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightRegion:
    """A region that contains the weights of a node: ``|w - center| <= radius`` and ``low <= w <= high``."""

    center: FloatArray
    radius: float
    low: FloatArray
    high: FloatArray


def derived_constants(problem: Problem, upper: float, time_limit: float = math.inf) -> Constants:
    """Constants that some optimal tree satisfies, from the data and the objective ``upper`` of a known tree.

    They are larger if the root's SVM cannot be solved within ``time_limit`` seconds.
    """
    far, losses = farthest_distances(problem.X), Losses.of(problem)
    regions, lower_bound = _weight_regions(problem, losses, upper, float(np.max(far)), time_limit)
    ranges = [_known_range(losses.at(t), problem, last=t >= problem.n_upper) for t in range(problem.n_nodes)]
    h_low, h_high = np.empty((2, problem.n_nodes, problem.n_samples))
    b_low, b_high = np.empty((2, problem.n_nodes))
    norms = np.linalg.norm(problem.X, axis=1)
    for t, region in enumerate(regions):
        h_low[t], h_high[t] = value_bounds(problem.X, region, far, *ranges[t])
        straight = problem.X @ region.center
        b_low[t] = np.max(h_low[t] - straight - region.radius * norms)
        b_high[t] = np.min(h_high[t] - straight + region.radius * norms)
    M_below, M_above = largest_losses(losses, h_low, h_high)
    return Constants(
        w_low=np.array([region.low for region in regions]),
        w_high=np.array([region.high for region in regions]),
        b_low=b_low,
        b_high=b_high,
        xi_high=np.maximum(M_below, M_above),
        M_below=M_below,
        M_above=M_above,
        M_right=-h_low,
        M_left=h_high + problem.eps,
        lower_bound=lower_bound,
    )


def largest_losses(losses: Losses, h_low: FloatArray, h_high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The largest losses below and above corners, by node and sample, for decision values in these ranges."""
    M_below, M_above = np.zeros(h_low.shape), np.zeros(h_low.shape)
    for t in range(len(h_low)):
        level = losses.at(t)
        under, rows = level.label > 0, level.rows
        most = level.ratio * (level.corner + np.where(under, -h_low[t, rows], h_high[t, rows]))
        np.maximum.at(M_below[t], rows[under], most[under])
        np.maximum.at(M_above[t], rows[~under], most[~under])
    return M_below, M_above


def _known_range(losses: LevelLosses, problem: Problem, *, last: bool) -> tuple[FloatArray, FloatArray]:
    """Ranges, by sample ``j``, of which one contains ``h_j`` (see *Offsets*); empty for samples without losses."""
    n = problem.n_samples
    if not last:
        lowest, highest = upper_range(losses, problem.eps)
        return np.full(n, lowest), np.full(n, highest)
    low, high = np.full(n, math.inf), np.full(n, -math.inf)
    corner = losses.label * losses.corner
    np.minimum.at(low, losses.rows, corner)
    np.maximum.at(high, losses.rows, corner)
    return low, high


def upper_range(losses: LevelLosses, eps: float) -> tuple[float, float]:
    """``l_0`` and ``r_0`` of the module's docstring."""
    below = losses.label > 0
    return -float(np.max(losses.corner[~below], initial=eps)), float(np.max(losses.corner[below], initial=0.0))


def _weight_regions(
    problem: Problem, losses: Losses, upper: float, diameter: float, time_limit: float
) -> tuple[list[WeightRegion], float]:
    """The region of every node's weights, and a lower bound on the optimum."""
    upper = upper + SLACK * (1.0 + abs(upper))
    v, lower_bound, gap = _unrouted_root(problem, losses.at(0), time_limit)
    rest = math.sqrt(2.0 * max(0.0, upper - lower_bound))
    around_root = (v, rest + math.sqrt(2.0 * gap))
    zero = np.zeros(problem.n_features)
    most = _largest_multiplier_sum(problem)
    regions = []
    for t in range(problem.n_nodes):
        balls = [(zero, rest)] if t else [(zero, math.sqrt(2.0 * upper)), around_root]
        k = float(problem.C[t]) * most if t in topology.last(problem.depth) else math.inf
        regions.append(intersect(balls + _balls_of_node(problem, t, k * diameter), _box_of_node(problem, k)))
    return regions, lower_bound


def _unrouted_root(problem: Problem, losses: LevelLosses, time_limit: float) -> tuple[FloatArray, float, float]:
    """Weights of the root for the losses that all samples have there, a lower bound on its value, and the gap."""
    k = np.flatnonzero((losses.side == 0) & (losses.variable < 0))
    if not len(k):
        return np.zeros(problem.n_features), 0.0, 0.0
    rows = losses.rows[k]
    cost = problem.C[0] * problem.weight[rows] * losses.penalty[k]
    root = solve_node(
        problem.X[rows], losses.label[k], cost, corner=losses.corner[k], eps=problem.eps, time_limit=time_limit
    )
    lower_bound = max(0.0, float(root.bound))
    return np.asarray(root.w), lower_bound, max(0.0, root.value - lower_bound)


def _largest_multiplier_sum(problem: Problem) -> float:
    """The factor ``k`` of the module's docstring for ``C_t = 1``."""
    sums = []
    for choice in problem.task.last_choices():
        items = problem.task.items(problem.y, last=True, choice=choice)
        sums.append(min(float(problem.weight @ items.p), float(problem.weight @ items.m)))
    return max(sums)


def _balls_of_node(problem: Problem, t: int, radius: float) -> list[tuple[FloatArray, float]]:
    """Balls (center, radius) that contain the weights of a node, from its own parameters."""
    zero = np.zeros(problem.n_features)
    balls = [(zero, radius)] if radius < math.inf else []
    if problem.max_weight is not None:
        sizes = np.sort(np.bincount(problem.group_of))[::-1]
        most = problem.n_groups if problem.model != "hfs" or problem.budget is None else int(problem.budget[t])
        balls.append((zero, problem.max_weight * math.sqrt(float(np.sum(sizes[:most])))))
    return balls


def _box_of_node(problem: Problem, k: float) -> FloatArray:
    """Upper bounds on the absolute weights of a node, from its own parameters."""
    most = np.full(problem.n_features, math.inf if problem.max_weight is None else problem.max_weight)
    return most if k == math.inf else np.minimum(most, k * np.ptp(problem.X, axis=0))


def intersect(balls: list[tuple[FloatArray, float]], box: FloatArray) -> WeightRegion:
    """The smallest of the balls and the smallest box around all of them, widened slightly against rounding."""
    low = np.max([-box] + [center - radius for center, radius in balls], axis=0)
    high = np.min([box] + [center + radius for center, radius in balls], axis=0)
    center, radius = min(balls, key=lambda ball: ball[1])
    slack = SLACK * (1.0 + radius + np.abs(center))
    return WeightRegion(center=center, radius=radius * (1.0 + SLACK) + SLACK, low=low - slack, high=high + slack)


def farthest_distances(X: FloatArray) -> FloatArray:
    """Distance of every sample to the farthest other sample; an upper bound on it if there are very many samples."""
    if len(X) > _PAIRWISE:
        corner = np.maximum(X - X.min(axis=0), X.max(axis=0) - X)
        return np.asarray(np.linalg.norm(corner, axis=1))
    return np.asarray(np.max(cdist(X, X), axis=1))


def value_bounds(
    X: FloatArray, region: WeightRegion, far: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds on ``h`` of every sample if ``low_j <= h_j <= high_j`` for some sample ``j``."""
    if not np.any(low <= high):
        low, high = np.zeros_like(low), np.zeros_like(high)  # no losses: h = 0 everywhere
    straight = X @ region.center
    equal = np.all(low == low[0]) and np.all(high == high[0])
    if len(X) > _PAIRWISE or (equal and not np.any(region.center)):
        radius = region.radius * far
        return np.min(low) + straight - straight.max() - radius, np.max(high) + straight - straight.min() + radius
    apart = region.radius * cdist(X, X)
    step = straight[:, None] - straight[None, :]
    return np.min(low + step - apart, axis=1), np.max(high + step + apart, axis=1)
