"""Supports and their exact values; the best one is the incumbent."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from margotree.engines.subset.active_set import CUT, INFEASIBLE, OPTIMAL
from margotree.engines.subset.bounds import feature_values
from margotree.engines.subset.point import MAY, MUST, VALUE, B, Point, new_point
from margotree.engines.subset.rows import Rows
from margotree.engines.subset.task import COARSE, Task, climb
from margotree.problem.problem import FloatArray

Support = tuple[int, ...]

#: Margins are made right to these tolerances in turn, until the values agree to this relative difference.
_TOLERANCES, _AGREE = (COARSE, 1e-12, 1e-14), 1e-10


class Supports:
    """Evaluates each support once and keeps the best; a support that cannot beat it is given up early."""

    def __init__(self, task: Task, cutoff: float, gap: float) -> None:
        self.task = task
        self.gap = gap
        self.best = cutoff
        self.support: Support | None = None
        #: Hyperplane of the best support, for centred features.
        self.w = np.zeros(task.n_features)
        self.b = 1.0
        self.seen: dict[Support, float] = {}
        #: Lower bound on all supports whose SVM was solved, and whether each solution was finished.
        self.proved = math.inf
        self.finished = True

    @property
    def target(self) -> float:
        """Whatever is at least this is not worth looking at."""
        return self._below_best(self.gap)

    def _below_best(self, share: float) -> float:
        return self.best - share * abs(self.best) if math.isfinite(self.best) else self.best

    def value(self, features: Iterable[int], warm: Point | None = None) -> float:
        """Value of the SVM on these features with their price, or inf where it cannot beat the best."""
        support = tuple(sorted(int(j) for j in features))
        if support not in self.seen:
            self.seen[support] = self._solve(support, warm)
        return self.seen[support]

    def _solve(self, support: Support, warm: Point | None) -> float:
        price = self.task.price(len(support))
        # Half the gap is kept for rounding, so that what is cut off here lies safely above the target.
        cutoff = self._below_best(0.5 * self.gap) - price
        if cutoff <= 0:
            return math.inf
        rows, point = self._start(support, warm)
        outcome, value = solve_support(self.task, rows, point, cutoff)
        if outcome in (CUT, INFEASIBLE):
            return math.inf
        self.proved = min(self.proved, point.num[VALUE] + price)
        if outcome != OPTIMAL:
            self.finished = False
            return math.inf
        if value + price < self.best:
            self.best, self.support = value + price, support
            self.w, self.b = self._on_all_features(support, point.w), float(point.num[B])
        return value + price

    def _on_all_features(self, support: Support, weights: FloatArray) -> FloatArray:
        w = np.zeros(self.task.n_features)
        w[list(support)] = weights
        return w

    def _start(self, support: Support, warm: Point | None) -> tuple[Rows, Point]:
        rows = self.task.groups.on(np.array(support, dtype=np.int64))
        point = new_point(len(rows.y), len(support))
        if warm is not None and len(warm.a) == len(rows.y):
            point.a[:] = warm.a
            point.row[:] = warm.row
        return rows, point


def solve_support(task: Task, rows: Rows, point: Point, cutoff: float) -> tuple[int, float]:
    """Outcome and value of the SVM that uses all columns of ``rows``, refined until primal and dual values agree."""
    kind = np.full(len(point.w), MUST, np.int8)
    for tol in _TOLERANCES:
        outcome = climb(task, rows, point, kind, 0.0, cutoff, tol)
        value = primal_value(rows, point.w, float(point.num[B]))
        if outcome != OPTIMAL or value - point.num[VALUE] <= _AGREE * abs(value):
            break
    return outcome, value


def primal_value(rows: Rows, w: FloatArray, b: float) -> float:
    soft = np.isfinite(rows.cost)
    lack = np.maximum(0.0, rows.p - rows.A @ w - rows.y * b)
    return 0.5 * float(w @ w) + float(rows.cost[soft] @ lack[soft])


def try_nested(supports: Supports, w: FloatArray, warm: Point, patience: int = 4) -> None:
    """Evaluate the supports of the largest weights, from none upwards, until more features stop paying."""
    task = supports.task
    must = [int(j) for j in np.flatnonzero(task.kind == MUST)]
    ranked = [int(j) for j in np.argsort(-np.abs(w), kind="stable") if w[j] != 0.0 and task.kind[j] == MAY]
    most = task.left(task.kind) if task.hard else len(ranked)
    supports.value(must, warm)
    misses = 0
    for k in range(1, min(most, len(ranked)) + 1):
        if task.stop():
            return
        before = supports.best
        supports.value(must + ranked[:k], warm)
        misses = 0 if supports.best < before else misses + 1
        if not task.hard and misses > patience and supports.support is not None:
            return


def improve(supports: Supports, rounds: int = 50, tries: int = 30) -> None:
    """Local search: add, drop or swap a feature while that pays, the most promising moves first."""
    for _ in range(rounds):
        if supports.support is None or supports.task.stop():
            return
        before = supports.best
        point = _dual_point(supports)
        for support in _promising(supports, point)[:tries]:
            supports.value(support, point)
            if supports.best < before:
                break
        else:
            return


def _dual_point(supports: Supports) -> Point:
    task = supports.task
    kind = np.zeros(task.n_features, np.int8)
    kind[list(supports.support or ())] = MUST
    point = new_point(len(task.rows.y), task.n_features)
    climb(task, task.rows, point, kind, 0.0, math.inf)
    return point


def _promising(supports: Supports, point: Point) -> list[Support]:
    """Neighbours of the incumbent that its dual point does not rule out, by what that point promises."""
    task = supports.task
    values = feature_values(point.g, task.limit)
    now = set(supports.support or ())
    outside = [j for j in range(task.n_features) if task.kind[j] == MAY and j not in now]
    inside = [j for j in now if task.kind[j] == MAY]
    size = len(now)
    base = supports.best - task.price(size)
    moves: list[tuple[float, set[int]]] = []
    if not task.hard or size < task.budget:
        moves += [(base - values[j] + task.price(size + 1), now | {j}) for j in outside]
    moves += [(base + values[i] + task.price(size - 1), now - {i}) for i in inside]
    moves += [(base + values[i] - values[j] + task.price(size), now - {i} | {j}) for i in inside for j in outside]
    target = supports.target
    kept = [(hope, tuple(sorted(s))) for hope, s in moves if hope < target]
    return [s for _, s in sorted(kept) if s not in supports.seen]
