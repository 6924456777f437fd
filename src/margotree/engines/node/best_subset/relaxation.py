"""Lower bounds on many supports at once: the perspective relaxation with the best penalty for the budget.

With a penalty ``lam`` on every feature that may be used, the relaxation over the share of each feature has the dual

    max  total - sum_{j must} v(u_j) - sum_{j may} max(0, v(u_j) - lam),   u = sum_i mu_i x_i,  v(u) = u^2 / 2

where ``total`` is the dual value of the multipliers ``mu`` without features.  Every dual point gives a lower bound,
even if the relaxation is not solved to the end.  For groups of features, ``v`` of a group is the sum over its features;
the kernel, which knows penalties of single features, gets the penalty of a group divided among them, each time by the
``u`` of the time before.
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
from margotree.engines.node.kernels.workspace import NU, NUM, PIVOTS, STATUS, USE, VALUE, B, R, U, W
from margotree.engines.node.svm import constant_split, infeasible_above
from margotree.problem.problem import FloatArray

#: The budget counts as met if the sum of the shares is within this relative distance.
_SHARE_TOLERANCE = 0.02
#: The division of the penalties of groups counts as settled if the last one raised the bound by at most this share.
_SETTLED = 1e-3
#: Shares closer to 0 or 1 than this are rounding errors.
_SHARE_ROUNDING = 1e-9
#: Pivots between two checks of the limits (fewer for large problems: the second number over the entries of X), and
#: largest number of pivots of one relaxation per row and column of X.
_CHUNK, _CHUNK_NUMBERS, _MAX_PIVOTS = 2000, 2e8, 50


class Point(NamedTuple):
    """Where a relaxation ended: multipliers and status of items; thresholds, use, weights of features; the offset."""

    nu: FloatArray
    status: I1
    r: FloatArray
    use: I1
    w: FloatArray
    b: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Dual:
    """A dual point: its value without features, ``u``, and what each group subtracts from the value when it is used.

    ``contradictory`` says that no hyperplane satisfies all rows.
    """

    total: float
    u: FloatArray
    values: FloatArray
    point: Point
    contradictory: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Relaxed:
    """A search node with its bound.

    ``share[j]`` is the share of group j that the relaxation uses, ``values[j]`` what the group subtracts from
    ``total``, ``lam`` the penalty of the relaxation, ``u`` the dual vector.  ``point_bound`` is the bound of this dual
    point; ``bound`` may come from another.
    """

    kind: I1
    bound: float
    point_bound: float
    lam: float
    share: FloatArray
    values: FloatArray
    total: float
    point: Point
    u: FloatArray


def relax(
    task: Task, kind: I1, start: Point | None, lam: float, target: float, rounds: int, u: FloatArray | None = None
) -> Relaxed:
    """Bound all supports that ``kind`` allows, starting where another relaxation ended.

    Every penalty up to ``alpha`` gives a valid bound.  With the best one the shares add up to the budget, or it is
    ``alpha`` itself; at most ``rounds`` penalties are tried.  The work ends once the bound reaches ``target``.
    Penalties of groups are first divided by ``u``.
    """
    left = task.remaining(kind)
    may = kind == MAY
    low, high, bound = 0.0, math.inf, -math.inf
    if left <= 0:
        lam, rounds = task.alpha, 1 if task.groups.single else rounds
    for attempt in range(rounds):
        lam = min(lam, task.alpha)
        dual = solve_relaxation(task, kind, start, lam, target + (lam * left if left else 0.0), u)
        start, u = dual.point, dual.u
        share = _shares(task.groups.norms(start.w), kind, lam)
        point_bound = subset_bound(dual.total, dual.values, kind, task.budget, task.alpha)
        before, bound = bound, max(bound, math.inf if dual.contradictory else min(point_bound, task.valid_below))
        used = float(np.sum(share[may]))
        fits = abs(used - left) <= _SHARE_TOLERANCE * max(left, 1) or (used > left and lam >= task.alpha)
        # A better division of the penalties of groups can still raise the bound.
        settled = task.groups.single or bound <= before + _SETTLED * abs(bound)
        if bound >= target or (fits and settled) or attempt == rounds - 1 or (left <= 0 and settled) or task.stop():
            break
        if not fits and left > 0:
            low, high = (lam, high) if used > left else (low, lam)
            lam = _next_penalty(lam, used / left, low, high)
    return Relaxed(
        kind=kind,
        bound=bound,
        point_bound=point_bound,
        lam=lam,
        share=share,
        values=dual.values,
        total=dual.total,
        point=dual.point,
        u=dual.u,
    )


def solve_relaxation(
    task: Task, kind: I1, start: Point | None, lam: float, cutoff: float, divided_by: FloatArray | None = None
) -> Dual:
    """Solve the relaxation for one penalty, or stop at a dual point whose value passes ``cutoff``.

    Penalties of groups are divided by the dual vector ``divided_by``.  It starts from ``start``, or from the current
    state of the workspace if that is None.
    """
    ws, items, n = task.ws, task.items, task.n_features
    if not len(items.y):
        nothing = Point(np.zeros(0), np.zeros(0, np.int8), np.zeros(n), np.zeros(n, np.int8), np.zeros(n), 1.0)
        return Dual(total=0.0, u=np.zeros(n), values=np.zeros(task.n_groups), point=nothing)
    if start is not None:
        _restore(task, start)
    reach = infeasible_above(items.cost, cutoff)
    decided = kind[task.groups.of_feature]
    r = task.groups.thresholds(lam, divided_by)
    r[decided == MUST], r[decided == NEVER] = 0.0, math.inf
    chunk = int(min(_CHUNK, 1 + _CHUNK_NUMBERS / ws.X.size))
    most = ws.cnt[0, PIVOTS] + _MAX_PIVOTS * sum(ws.X.shape) + 1000
    while True:
        before = ws.cnt[0, PIVOTS]
        outcome = entry_points.relax(ws, items.y, items.side, items.delta, r, min(cutoff, reach), np.int64(chunk))
        done = ws.cnt[0, PIVOTS]
        if outcome != STALLED or done < before + chunk or done >= most or task.stop():
            break
    u, value = ws.g[0, U, :n].copy(), float(ws.g[0, NUM, VALUE])
    used = np.isfinite(r)
    total = value + float(np.sum(np.maximum(0.0, 0.5 * (u[used] ** 2 - r[used] ** 2))))
    return Dual(
        total=total,
        u=u,
        values=task.groups.sums(0.5 * u * u),
        point=_current_point(task),
        contradictory=bool(outcome == INFEASIBLE or value >= reach),
    )


def _current_point(task: Task) -> Point:
    """The state of the workspace."""
    f, g, k, m, n = task.ws.f, task.ws.g, task.ws.k, len(task.items.y), task.n_features
    status, use = k[0, STATUS, :m].astype(np.int8), k[0, USE, :n].astype(np.int8)
    return Point(f[0, NU].copy(), status, g[0, R, :n].copy(), use, g[0, W, :n].copy(), float(g[0, NUM, B]))


def _restore(task: Task, point: Point) -> None:
    """Set the state of the workspace."""
    f, g, k, m, n = task.ws.f, task.ws.g, task.ws.k, len(task.items.y), task.n_features
    f[0, NU], k[0, STATUS, :m], k[0, USE, :n] = point.nu, point.status, point.use
    g[0, R, :n], g[0, W, :n], g[0, NUM, B] = point.r, point.w, point.b


def _next_penalty(lam: float, excess: float, low: float, high: float) -> float:
    """The next penalty to try, between one that is too small (``low``) and one that is too large (``high``).

    The shares are about proportional to 1 / sqrt(penalty); ``excess`` is their sum over the remaining budget.
    """
    guess = lam * min(max(excess * excess, 0.1), 10.0)
    if low < guess < high:
        return guess
    return math.sqrt(low * high) if low > 0 else 0.5 * high


def _shares(norms: FloatArray, kind: I1, lam: float) -> FloatArray:
    """The share of every group that the relaxation uses, from the norm of its weights."""
    full_weight = math.sqrt(2.0 * lam)
    share = np.clip(norms / full_weight, 0.0, 1.0) if full_weight > 0 else np.ones(len(norms))
    share[share < _SHARE_ROUNDING] = 0.0
    share[share > 1.0 - _SHARE_ROUNDING] = 1.0
    share[kind == MUST] = 1.0
    share[kind == NEVER] = 0.0
    return share


def first_penalty(task: Task) -> float:
    """A penalty of the right magnitude, from the values of features at a hyperplane without weights.

    The multipliers of samples with a loss there, or at their corner, are at their cost; those of the label with the
    larger sum are scaled down to balance the labels.
    """
    X, y, cost, corner, _ = task.samples
    cost = np.where(corner - y * constant_split(y, cost, corner)[0] >= 0.0, cost, 0.0)
    right, left = (float(np.sum(cost[y == s])) for s in (1.0, -1.0))
    both = min(right, left)
    if both <= 0.0:
        return min(1.0, task.alpha)
    u = (y * cost * np.where(y > 0, both / right, both / left)) @ X
    values = np.sort(task.groups.sums(0.5 * u**2)[task.kind != NEVER])[::-1]
    place = min(max(1, task.remaining(task.kind)), len(values)) - 1
    lam = float(values[place]) if len(values) else 0.0
    return lam if lam > 0 else min(1.0, task.alpha)
