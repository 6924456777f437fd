"""The constants of the MIP formulation: the paper's, or derived ones that provably cut off no optimum.

Why the derived constants are valid
-----------------------------------
Let ``U`` be the objective of a known tree and take an optimal tree (one exists: finitely many routings, and for each a
convex problem whose minimum is attained).  Keep its routing and change only offsets and unused nodes, as follows.  The
objective does not increase, so the result is optimal too, and it satisfies the constants.

*Weights.*  The node terms share no variable and none is negative.  Let ``(v, b*)`` be the SVM of the root on all
samples, without routing, and ``L`` a lower bound on its value.  The root term is ``f(w, b) = 1/2|w|^2 + hinge terms``,
which is strongly convex in ``w``, so ``f(w, b) >= f(v, b*) + 1/2|w - v|^2``.  All other terms sum to at most ``U - L``.
Hence, with ``r = sqrt(2 (U - L))``,

    |w_0 - v| <= r      and      |w_t| <= r  for every other node,

with or without budgets; if ``v`` is known only to a duality gap ``d``, the radius of the root grows by ``sqrt(2 d)``.
At a last-level node, an SVM without routing rows, ``w = sum_i alpha_i y_i x_i`` with ``0 <= alpha_i <= C_t weight_i``
and ``sum_i alpha_i y_i = 0``: a difference of two points of the samples' hull, times at most
``k = C_t min(weight of class -1, weight of class +1)``.  So ``|w_tj| <= k range_j`` and ``|w_t| <= k diameter``;
features outside a support or limited by ``max_weight`` have smaller weights.  ``max_weight`` is a bound by itself, too.

*Offsets.*  Let the samples ``I_t`` reach node ``t``.  Any two samples differ in ``h`` by ``w.(x_i - x_j)``, at most
``c.(x_i - x_j) + r |x_i - x_j|`` for ``w`` within ``r`` of ``c``; let ``up_i`` and ``down_i`` be the largest rise from
and to sample ``i`` over all ``j``.  One sample of ``I_t`` with known ``h`` then bounds all others:

- upper node, both sides used: ``h >= 0`` somewhere and ``h <= -eps`` somewhere, so ``-down_i <= h_i <= up_i - eps``;
- upper node, all go right: if ``h > 1`` everywhere, lower ``b`` until the smallest ``h`` is 1 (the loss of class +1
  stays 0, that of class -1 decreases): some ``h`` lies in [0, 1];
- upper node, all go left: likewise some ``h`` lies in [-max(1, eps), -eps];
- last level, both classes have a positive weight: the cost is convex and piecewise linear in ``b`` and increases in
  both directions, so some kink ``y_j h_j = 1`` is a minimum; one class, or no sample: ``w = 0, b = +-1``.

So ``-max(1, eps) - down_i <= h_t(x_i) <= 1 + up_i`` in every case, for every sample, whether it reaches ``t`` or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

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

    ``M_xi`` switches the margin rows off, ``M_right`` and ``M_left`` the routing rows (of upper nodes); ``w_low`` and
    ``w_high`` bound the weights and, with budgets, switch them off.  ``restriction`` is empty for constants that cut
    off no optimum; ``lower_bound`` is a lower bound on the optimum that was found while they were derived.
    """

    w_low: FloatArray
    w_high: FloatArray
    b_low: FloatArray
    b_high: FloatArray
    xi_high: FloatArray
    M_xi: FloatArray
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
        M_xi=np.full((nodes, samples), PAPER_M_XI),
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
    far = farthest_distances(problem.X)
    regions, lower_bound = _weight_regions(problem, upper, float(np.max(far)), time_limit)
    h_low, h_high = np.empty((2, problem.n_nodes, problem.n_samples))
    b_low, b_high = np.empty((2, problem.n_nodes))
    norms = np.linalg.norm(problem.X, axis=1)
    for t, region in enumerate(regions):
        up, down = largest_increases(problem.X, region, far)
        below = max(1.0, problem.eps) if t in topology.upper(problem.depth) else 1.0
        h_low[t], h_high[t] = -below - down, 1.0 + up
        straight = problem.X @ region.center
        b_low[t] = np.max(h_low[t] - straight - region.radius * norms)
        b_high[t] = np.min(h_high[t] - straight + region.radius * norms)
    M_xi = 1.0 + np.where(problem.y > 0, -h_low, h_high)
    return Constants(
        w_low=np.array([region.low for region in regions]),
        w_high=np.array([region.high for region in regions]),
        b_low=b_low,
        b_high=b_high,
        xi_high=M_xi,
        M_xi=M_xi,
        M_right=-h_low,
        M_left=h_high + problem.eps,
        lower_bound=lower_bound,
    )


def _weight_regions(
    problem: Problem, upper: float, diameter: float, time_limit: float
) -> tuple[list[WeightRegion], float]:
    """The region of every node's weights, and a lower bound on the optimum."""
    upper = upper + SLACK * (1.0 + abs(upper))
    root = solve_node(problem.X, problem.y, problem.C[0] * problem.weight, eps=problem.eps, time_limit=time_limit)
    lower_bound = max(0.0, float(root.bound))
    rest = math.sqrt(2.0 * max(0.0, upper - lower_bound))
    around_root = (np.asarray(root.w), rest + math.sqrt(2.0 * max(0.0, root.value - lower_bound)))
    zero = np.zeros(problem.n_features)
    regions = []
    for t in range(problem.n_nodes):
        balls = [(zero, rest)] if t else [(zero, math.sqrt(2.0 * upper)), around_root]
        regions.append(intersect(balls + _balls_of_node(problem, t, diameter), _box_of_node(problem, t)))
    return regions, lower_bound


def _largest_multiplier_sum(problem: Problem, t: int) -> float:
    """The factor ``k`` of the module's docstring: the largest sum of the multipliers of one class."""
    return float(problem.C[t]) * min(float(np.sum(problem.weight[problem.y == side])) for side in (-1, 1))


def _balls_of_node(problem: Problem, t: int, diameter: float) -> list[tuple[FloatArray, float]]:
    """Balls (center, radius) that contain the weights of a node, from its own parameters."""
    zero, balls = np.zeros(problem.n_features), []
    if t in topology.last(problem.depth):
        balls.append((zero, _largest_multiplier_sum(problem, t) * diameter))
    if problem.max_weight is not None:
        most = problem.n_features if problem.model != "hfs" or problem.budget is None else int(problem.budget[t])
        balls.append((zero, problem.max_weight * math.sqrt(most)))
    return balls


def _box_of_node(problem: Problem, t: int) -> FloatArray:
    """Upper bounds on the absolute weights of a node, from its own parameters."""
    most = np.full(problem.n_features, math.inf if problem.max_weight is None else problem.max_weight)
    if t in topology.last(problem.depth):
        most = np.minimum(most, _largest_multiplier_sum(problem, t) * np.ptp(problem.X, axis=0))
    return most


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


def largest_increases(X: FloatArray, region: WeightRegion, far: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``up_i`` and ``down_i``: the largest increase of ``h`` from any sample to ``i``, and from ``i`` to any sample."""
    straight = X @ region.center
    if len(X) > _PAIRWISE or not np.any(region.center):
        return straight - straight.min() + region.radius * far, straight.max() - straight + region.radius * far
    apart = region.radius * cdist(X, X)
    step = straight[:, None] - straight[None, :]
    return np.max(step + apart, axis=1), np.max(apart - step, axis=1)
