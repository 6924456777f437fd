"""Supports and their exact values; the best one is the incumbent."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from margotree.engines.node.best_subset.relaxation import climb
from margotree.engines.node.best_subset.samples import I1
from margotree.engines.node.best_subset.task import MAY, MUST, Task
from margotree.engines.node.svm import NodeSolution, solve_node
from margotree.problem.problem import FloatArray

Support = tuple[int, ...]

#: A support counts as solved if its value and bound agree to this share.
_AGREE = 1e-8
#: Rows and limits count as obeyed up to this share.
_SLACK = 1e-9


class Supports:
    """Evaluates each support once and keeps the best; a support that cannot beat it is given up early."""

    def __init__(self, task: Task, cutoff: float, gap: float) -> None:
        self.task = task
        self.gap = gap
        self.best = cutoff
        self.support: Support | None = None
        #: Hyperplane of the best support.
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

    def value(self, features: Iterable[int]) -> float:
        """Value of the SVM on these features with their price, or inf where it cannot beat the best."""
        support = tuple(sorted(int(j) for j in features))
        if support not in self.seen:
            self.seen[support] = self._solve(support)
        return self.seen[support]

    def _solve(self, support: Support) -> float:
        price = self.task.price(len(support))
        # Half the gap is kept for rounding, so that what is cut off here lies safely above the target.
        cutoff = self._below_best(0.5 * self.gap) - price
        if cutoff <= 0:
            return math.inf
        found = self._svm(support, cutoff)
        if not found.feasible and found.bound >= cutoff:
            return math.inf
        self.proved = min(self.proved, found.bound + price)
        if not found.feasible or found.value - found.bound > _AGREE * abs(found.value):
            self.finished = False
        if found.feasible and found.value + price < self.best:
            self.best, self.support = found.value + price, support
            self.w, self.b = np.zeros(self.task.n_features), found.b
            self.w[list(support)] = found.w[: len(support)]
        return found.value + price if found.feasible else math.inf

    def _svm(self, support: Support, cutoff: float) -> NodeSolution:
        task = self.task
        X, y, cost, side = task.groups.on(np.array(support, dtype=np.int64))
        if not support:
            X = np.zeros((len(y), 1))
        limit = None if math.isinf(task.limit) else task.limit
        found = solve_node(X, y, cost, side=side, eps=task.eps, inner=task.inner, max_weight=limit, cutoff=cutoff)
        if found.feasible or found.bound >= cutoff or not self._obeys(found, X, side):
            return found
        return replace(found, feasible=True)

    def _obeys(self, found: NodeSolution, X: FloatArray, side: I1) -> bool:
        """Whether a hyperplane that rounding left unfinished lies within all rows and limits, as finished ones do."""
        w, task = np.abs(found.w), self.task
        h = X @ found.w + found.b
        slack = _SLACK * (1.0 + abs(found.b) + float(np.sum(w)))
        right, left = h[side > 0] - task.inner, -h[side < 0] - task.inner - task.eps
        lowest = min(np.min(right, initial=0.0), np.min(left, initial=0.0))
        return bool(lowest >= -slack and np.max(w, initial=0.0) <= task.limit * (1.0 + _SLACK))


def try_nested(supports: Supports, w: FloatArray, patience: int = 4) -> None:
    """Evaluate the supports of the largest weights, from none upwards, until more features stop paying."""
    task = supports.task
    must = [int(j) for j in np.flatnonzero(task.kind == MUST)]
    ranked = [int(j) for j in np.argsort(-np.abs(w), kind="stable") if w[j] != 0.0 and task.kind[j] == MAY]
    most = task.left(task.kind) if task.hard else len(ranked)
    supports.value(must)
    misses = 0
    for k in range(1, min(most, len(ranked)) + 1):
        if task.stop():
            return
        before = supports.best
        supports.value(must + ranked[:k])
        misses = 0 if supports.best < before else misses + 1
        if not task.hard and misses > patience and supports.support is not None:
            return


def improve(supports: Supports, rounds: int = 50, tries: int = 30) -> None:
    """Local search: add, drop or swap a feature while that pays, the most promising moves first."""
    for _ in range(rounds):
        if supports.support is None or supports.task.stop():
            return
        before = supports.best
        for support in _promising(supports)[:tries]:
            supports.value(support)
            if supports.best < before:
                break
        else:
            return


def _promising(supports: Supports) -> list[Support]:
    """Neighbours of the incumbent that its dual point does not rule out, by what that point promises."""
    task, now = supports.task, set(supports.support or ())
    kind = np.zeros(task.n_features, np.int8)
    kind[list(now)] = MUST
    values = climb(task, kind, None, 0.0, math.inf).values
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
