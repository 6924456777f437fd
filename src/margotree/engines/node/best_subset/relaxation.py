"""Lower bounds over many supports at once: the perspective relaxation with the best price found for its budget.

With a price ``lam`` on every feature that may be used, the relaxation over how much of each is used has the dual

    max  total - sum_{j must} v(u_j) - sum_{j may} max(0, v(u_j) - lam),   u = sum_i mu_i x_i,  v(u) = u^2 / 2

where ``total`` is what the multipliers ``mu`` are worth without features.  Every dual point gives a lower bound,
whatever was left undone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from margotree.engines.node.best_subset.bounds import subset_bound
from margotree.engines.node.best_subset.samples import I1
from margotree.engines.node.best_subset.task import MAY, MUST, NEVER, Task
from margotree.engines.node.kernels import entry_points
from margotree.engines.node.kernels.ratio_test import INFEASIBLE, STALLED
from margotree.engines.node.kernels.workspace import NU, NUM, PIVOTS, STATUS, USE, VALUE, B, R, U, W, threshold
from margotree.engines.node.svm import out_of_reach
from margotree.problem.problem import FloatArray

#: The budget counts as met when the shares add up to it within this share.
_NEAR = 0.02
#: Shares closer to nothing or all than this are rounding.
_TRACE = 1e-9
#: Pivots between two looks at the clock (fewer where they are long: so many numbers in all), and at most for one
#: relaxation (times its size).
_CHUNK, _CHUNK_NUMBERS, _MOST = 2000, 2e8, 50


class Point(NamedTuple):
    """Where a relaxation ended: multipliers of items and where they stand; for features thresholds, how they are used,
    and weights; the offset."""

    nu: FloatArray
    status: I1
    r: FloatArray
    use: I1
    w: FloatArray
    b: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Dual:
    """What a point proves: its worth without features and ``u``; ``contradictory`` if no hyperplane obeys all rows."""

    total: float
    u: FloatArray
    point: Point
    contradictory: bool = False

    @property
    def values(self) -> FloatArray:
        """What each feature takes from the total when it is used."""
        taken: FloatArray = 0.5 * self.u * self.u
        return taken


@dataclass(frozen=True, kw_only=True, eq=False)
class Relaxed:
    """A bounded part of the problem: ``share[j]`` is how much of feature j the relaxation uses, ``values[j]`` what that
    feature takes from the dual's ``total``, ``lam`` the price at which they were found.  ``own`` is what this dual
    point proves; ``bound`` may come from another."""

    kind: I1
    bound: float
    own: float
    lam: float
    share: FloatArray
    values: FloatArray
    total: float
    point: Point


def relax(task: Task, kind: I1, start: Point | None, lam: float, target: float, rounds: int) -> Relaxed:
    """Bound all supports that ``kind`` allows, beginning where another relaxation ended.

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
        dual = climb(task, kind, start, lam, target + (lam * left if left else 0.0))
        start = dual.point
        share = _shares(start.w, kind, lam)
        own = subset_bound(dual.total, dual.values, kind, task.budget, task.alpha)
        bound = max(bound, math.inf if dual.contradictory else min(own, task.claims))
        used = float(np.sum(share[may]))
        fits = abs(used - left) <= _NEAR * max(left, 1) or (used > left and lam >= task.alpha)
        if bound >= target or fits or left <= 0 or turn == rounds - 1 or task.stop():
            break
        low, high = (lam, high) if used > left else (low, lam)
        lam = _next_price(lam, used / left, low, high)
    return Relaxed(
        kind=kind, bound=bound, own=own, lam=lam, share=share, values=dual.values, total=dual.total, point=dual.point
    )


def climb(task: Task, kind: I1, start: Point | None, lam: float, cutoff: float) -> Dual:
    """The relaxation at one price, or a dual point whose value passes ``cutoff``; None begins where the last ended."""
    ws, items, n = task.ws, task.items, task.n_features
    if not len(items.y):
        nothing = Point(np.zeros(0), np.zeros(0, np.int8), np.zeros(n), np.zeros(n, np.int8), np.zeros(n), 1.0)
        return Dual(total=0.0, u=np.zeros(n), point=nothing)
    if start is not None:
        _restore(task, start)
    reach = out_of_reach(items.cost, cutoff)
    r = np.array([threshold(lam, j) if k == MAY else 0.0 if k == MUST else math.inf for j, k in enumerate(kind)])
    chunk = int(min(_CHUNK, 1 + _CHUNK_NUMBERS / ws.X.size))
    most = ws.cnt[0, PIVOTS] + _MOST * sum(ws.X.shape) + 1000
    while True:
        before = ws.cnt[0, PIVOTS]
        outcome = entry_points.relax(ws, items.y, items.side, items.delta, r, min(cutoff, reach), np.int64(chunk))
        done = ws.cnt[0, PIVOTS]
        if outcome != STALLED or done < before + chunk or done >= most or task.stop():
            break
    u, value = ws.g[0, U, :n].copy(), float(ws.g[0, NUM, VALUE])
    used = np.isfinite(r)
    total = value + float(np.sum(np.maximum(0.0, 0.5 * (u[used] ** 2 - r[used] ** 2))))
    return Dual(total=total, u=u, point=_at_hand(task), contradictory=bool(outcome == INFEASIBLE or value >= reach))


def _at_hand(task: Task) -> Point:
    f, g, k, m, n = task.ws.f, task.ws.g, task.ws.k, len(task.items.y), task.n_features
    status, use = k[0, STATUS, :m].astype(np.int8), k[0, USE, :n].astype(np.int8)
    return Point(f[0, NU].copy(), status, g[0, R, :n].copy(), use, g[0, W, :n].copy(), float(g[0, NUM, B]))


def _restore(task: Task, point: Point) -> None:
    f, g, k, m, n = task.ws.f, task.ws.g, task.ws.k, len(task.items.y), task.n_features
    f[0, NU], k[0, STATUS, :m], k[0, USE, :n] = point.nu, point.status, point.use
    g[0, R, :n], g[0, W, :n], g[0, NUM, B] = point.r, point.w, point.b


def _next_price(lam: float, excess: float, low: float, high: float) -> float:
    """Shares shrink about with the root of the price; stay between prices known to be too low and too high."""
    guess = lam * min(max(excess * excess, 0.1), 10.0)
    if low < guess < high:
        return guess
    return math.sqrt(low * high) if low > 0 else 0.5 * high


def _shares(w: FloatArray, kind: I1, lam: float) -> FloatArray:
    whole = math.sqrt(2.0 * lam)
    share = np.clip(np.abs(w) / whole, 0.0, 1.0) if whole > 0 else np.ones(len(w))
    share[share < _TRACE] = 0.0
    share[share > 1.0 - _TRACE] = 1.0
    share[kind == MUST] = 1.0
    share[kind == NEVER] = 0.0
    return share


def first_price(task: Task) -> float:
    """A price of the right size: what the last feature within the budget is worth when all samples count in full."""
    X, y, cost, _ = task.samples
    right, left = (float(np.sum(cost[y == s])) for s in (1.0, -1.0))
    both = min(right, left)
    if both <= 0.0:
        return min(1.0, task.alpha)
    u = (y * cost * np.where(y > 0, both / right, both / left)) @ X
    values = np.sort(0.5 * u[task.kind != NEVER] ** 2)[::-1]
    place = min(max(1, task.left(task.kind)), len(values)) - 1
    lam = float(values[place]) if len(values) else 0.0
    return lam if lam > 0 else min(1.0, task.alpha)
