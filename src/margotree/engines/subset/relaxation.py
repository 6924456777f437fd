"""Lower bounds over many supports at once: the perspective relaxation with the best price found for its budget."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from margotree.engines.subset.active_set import INFEASIBLE
from margotree.engines.subset.bounds import feature_values, subset_bound
from margotree.engines.subset.point import I1, KINK, LIMIT, MAY, MUST, NEVER, QUAD, Point
from margotree.engines.subset.task import Task, climb
from margotree.problem.problem import FloatArray

#: The budget counts as met when the shares add up to it within this share.
_NEAR = 0.02


@dataclass(frozen=True, kw_only=True, eq=False)
class Relaxed:
    """A bounded part of the problem: ``share[j]`` is how much of feature j the relaxation uses, ``values[j]`` what that
    feature takes from the dual, ``lam`` the price at which they were found."""

    kind: I1
    bound: float
    lam: float
    share: FloatArray
    values: FloatArray
    point: Point


def relax(task: Task, kind: I1, point: Point, lam: float, target: float, rounds: int) -> Relaxed:
    """Bound all supports that ``kind`` allows; ``point`` is a warm start and is changed.

    Every price up to ``alpha`` gives a valid bound.  The best one makes the shares add up to the budget, or is
    ``alpha`` itself; ``rounds`` prices are tried.  The work ends once the bound reaches ``target``.
    """
    left = task.left(kind)
    may = kind == MAY
    low, high, bound = 0.0, math.inf, -math.inf
    if left <= 0:
        lam, rounds = task.alpha, 1
    for turn in range(rounds):
        lam = min(lam, task.alpha)
        outcome = climb(task, task.rows, point, kind, lam, target + (lam * left if left else 0.0))
        values = feature_values(point.g, task.limit)
        share = _shares(point, kind, lam, task.limit)
        bound = max(bound, subset_bound(task.rows, point.a, values, kind, task.budget, task.alpha))
        if outcome == INFEASIBLE:
            bound = math.inf
        used = float(np.sum(share[may]))
        fits = abs(used - left) <= _NEAR * max(left, 1) or (used > left and lam >= task.alpha)
        if bound >= target or fits or left <= 0 or turn == rounds - 1 or task.stop():
            break
        low, high = (lam, high) if used > left else (low, lam)
        lam = _next_price(lam, used / left, low, high)
    return Relaxed(kind=kind, bound=bound, lam=lam, share=share, values=values, point=point)


def _next_price(lam: float, excess: float, low: float, high: float) -> float:
    """Shares shrink about with the root of the price; stay between prices known to be too low and too high."""
    guess = lam * min(max(excess * excess, 0.1), 10.0)
    if low < guess < high:
        return guess
    return math.sqrt(low * high) if low > 0 else 0.5 * high


def _shares(point: Point, kind: I1, lam: float, limit: float) -> FloatArray:
    whole = (kind == MUST) | (point.feature == QUAD) | (point.feature == LIMIT)
    share = np.where(whole, 1.0, 0.0)
    kink = point.feature == KINK
    if np.any(kink):
        share[kink] = np.clip(np.abs(point.w[kink]) / min(math.sqrt(2.0 * lam), limit), 0.0, 1.0)
    return share


def first_price(task: Task) -> float:
    """A price of the right size: what the last feature within the budget is worth when all rows count in full."""
    cost = np.where(np.isfinite(task.rows.cost), task.rows.cost, 0.0)
    right, left = (float(np.sum(cost[task.rows.y == s])) for s in (1.0, -1.0))
    both = min(right, left)
    if both <= 0.0:
        return min(1.0, task.alpha)
    a = cost * np.where(task.rows.y > 0, both / right, both / left)
    values = np.sort(feature_values(task.rows.A.T @ a, task.limit)[task.kind != NEVER])[::-1]
    place = min(max(1, task.left(task.kind)), len(values)) - 1
    lam = float(values[place]) if len(values) else 0.0
    return lam if lam > 0 else min(1.0, task.alpha)
