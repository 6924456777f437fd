"""Exact values of supports; the best one is the incumbent."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from margotree.engines.node.best_subset.relaxation import solve_relaxation
from margotree.engines.node.best_subset.samples import I1
from margotree.engines.node.best_subset.task import MAY, MUST, Task
from margotree.engines.node.svm import NodeSolution, solve_node
from margotree.problem.problem import FloatArray

Support = tuple[int, ...]

#: A support counts as solved if the relative gap of its SVM is at most this.
_SOLVED_GAP = 1e-8
#: Relative tolerance for rows and limits.
_ROW_TOLERANCE = 1e-9


class Supports:
    """Evaluates each support once and keeps the best; a support that cannot improve on it is abandoned early."""

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
        self.proved_bound = math.inf
        self.finished = True

    @property
    def target(self) -> float:
        """Supports and nodes with at least this value or bound are not of interest."""
        return self._below_best(self.gap)

    def _below_best(self, share: float) -> float:
        """The best value less a share of it."""
        return self.best - share * abs(self.best) if math.isfinite(self.best) else self.best

    def value(self, groups: Iterable[int]) -> float:
        """Value of the SVM on these groups including their penalties, or inf if it cannot improve on the best."""
        support = tuple(sorted(int(j) for j in groups))
        if support not in self.seen:
            self.seen[support] = self._solve(support)
        return self.seen[support]

    def _solve(self, support: Support) -> float:
        """Compute `value` and update the incumbent."""
        penalty = self.task.penalty(len(support))
        # Half the gap is reserved for rounding: what is cut off here is safely above the target.
        cutoff = self._below_best(0.5 * self.gap) - penalty
        if cutoff <= 0:
            return math.inf
        found = self._svm(support, cutoff)
        if not found.feasible and found.bound >= cutoff:
            return math.inf
        self.proved_bound = min(self.proved_bound, found.bound + penalty)
        if not found.feasible or found.value - found.bound > _SOLVED_GAP * abs(found.value):
            self.finished = False
        if found.feasible and found.value + penalty < self.best:
            self.best, self.support = found.value + penalty, support
            self.w, self.b = np.zeros(self.task.n_features), found.b
            columns = self.task.groups.columns(support)
            self.w[columns] = found.w[: len(columns)]
        return found.value + penalty if found.feasible else math.inf

    def _svm(self, support: Support, cutoff: float) -> NodeSolution:
        """The SVM on the features of a support."""
        task = self.task
        X, y, cost, corner, side = task.equal.restricted(task.groups.columns(support))
        if not support:
            X = np.zeros((len(y), 1))
        limit = None if math.isinf(task.limit) else task.limit
        found = solve_node(
            X, y, cost, corner=corner, side=side, eps=task.eps, inner=task.inner, max_weight=limit, cutoff=cutoff
        )
        if found.feasible or found.bound >= cutoff or not self._satisfies_rows(found, X, side):
            return found
        return replace(found, feasible=True)

    def _satisfies_rows(self, found: NodeSolution, X: FloatArray, side: I1) -> bool:
        """Whether a hyperplane that rounding left unfinished satisfies all rows and limits, as finished ones do."""
        w, task = np.abs(found.w), self.task
        h = X @ found.w + found.b
        slack = _ROW_TOLERANCE * (1.0 + abs(found.b) + float(np.sum(w)))
        right, left = h[side > 0] - task.inner, -h[side < 0] - task.inner - task.eps
        lowest = min(np.min(right, initial=0.0), np.min(left, initial=0.0))
        return bool(lowest >= -slack and np.max(w, initial=0.0) <= task.limit * (1.0 + _ROW_TOLERANCE))


def try_nested(supports: Supports, w: FloatArray, patience: int = 4) -> None:
    """Evaluate the nested supports of the largest weights, smallest first, until more groups give no improvement."""
    task = supports.task
    must = [int(j) for j in np.flatnonzero(task.kind == MUST)]
    size = task.groups.norms(w)
    ranked = [int(j) for j in np.argsort(-size, kind="stable") if size[j] != 0.0 and task.kind[j] == MAY]
    most = task.remaining(task.kind) if task.hard else len(ranked)
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
    """Local search: add, drop or swap a group while the value improves; moves with the smallest bound come first."""
    for _ in range(rounds):
        if supports.support is None or supports.task.stop():
            return
        before = supports.best
        for support in _promising_neighbours(supports)[:tries]:
            supports.value(support)
            if supports.best < before:
                break
        else:
            return


def _promising_neighbours(supports: Supports) -> list[Support]:
    """Neighbours of the incumbent with a bound below the target, smallest bound first.

    The bounds are those of a dual point of the incumbent.
    """
    task, support = supports.task, set(supports.support or ())
    kind = np.zeros(task.n_groups, np.int8)
    kind[list(support)] = MUST
    values = solve_relaxation(task, kind, None, 0.0, math.inf).values
    outside = [j for j in range(task.n_groups) if task.kind[j] == MAY and j not in support]
    inside = [j for j in support if task.kind[j] == MAY]
    size = len(support)
    base = supports.best - task.penalty(size)
    moves: list[tuple[float, set[int]]] = []
    if not task.hard or size < task.budget:
        moves += [(base - values[j] + task.penalty(size + 1), support | {j}) for j in outside]
    moves += [(base + values[i] + task.penalty(size - 1), support - {i}) for i in inside]
    moves += [(base + values[i] - values[j] + task.penalty(size), support - {i} | {j}) for i in inside for j in outside]
    target = supports.target
    kept = [(bound, tuple(sorted(s))) for bound, s in moves if bound < target]
    return [s for _, s in sorted(kept) if s not in supports.seen]
