"""Every univariate tree of any depth, most of them by their bounds alone; the kernels' docstring says why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margotree.baselines.oct import kernels
from margotree.baselines.oct.merged_samples import FloatArray, IndexArray
from margotree.baselines.oct.problem import OctProblem

#: Costs that differ by less than this share of the baseline are equal.
SLACK = 1e-9


@dataclass(frozen=True)
class Cut:
    """A split by feature and level with what lies below it; None stands for a leaf."""

    feature: int
    level: int
    left: Cut | None = None
    right: Cut | None = None


class Enumeration:
    """The search itself, on one problem.

    ``live`` holds the cost of the best tree so far and the number of subsets looked at, ``best`` that tree (None while
    it is the one whose cost was given as the first ceiling); :meth:`halt` ends the search from another thread.
    """

    def __init__(self, problem: OctProblem, ceiling: float) -> None:
        self.points = problem.points
        self.depth = problem.depth
        self.min_leaf = problem.enough
        self.price = problem.alpha * problem.baseline
        self.slack = SLACK * problem.baseline
        self.live = np.array([ceiling, 0.0])
        self.best: Cut | None = None
        self._stop = np.zeros(1, dtype=np.uint8)
        self._work = np.zeros((int(self.points.n_levels.max()), problem.n_classes + 1))

    @property
    def halted(self) -> bool:
        return bool(self._stop[0])

    def halt(self) -> None:
        self._stop[0] = 1

    def run(self) -> None:
        """Look at all trees."""
        cost, _, tree = self._tree(self.depth, np.arange(len(self.points.X)), float(self.live[0]))
        if tree is not None:
            self.best, self.live[0] = tree, cost

    def _tree(self, depth: int, rows: IndexArray, ceiling: float) -> tuple[float, float, Cut | None]:
        """The smaller of ``ceiling`` and ``best(rows, depth)``, a bound on ``free(rows, depth)``, and the tree."""
        self.live[1] += 1
        data = (rows, self.points.level, self.points.loss, self.points.count, self.min_leaf, self.price)
        if depth == 1:
            split = np.zeros(2, dtype=np.int64)
            cost, bound = kernels.stump(*data, self._work, split, self._stop)
            return cost, bound, _cut(split)
        if depth == 2:
            splits = np.full((3, 2), -1, dtype=np.int64)
            live = self.live if depth == self.depth else self.live.copy()
            cost, bound = kernels.pair(*data, ceiling, self.slack, self._work, splits, live, self._stop)
            self.live[1] = live[1]
            return cost, bound, _cut(splits[0], _cut(splits[1]), _cut(splits[2]))
        return self._split(depth, rows, ceiling)

    def _split(self, depth: int, rows: IndexArray, ceiling: float) -> tuple[float, float, Cut | None]:
        cost, bound, tree = self._tree(1, rows, ceiling)
        best, tree = (cost, tree) if cost < ceiling else (ceiling, None)
        if bound <= self.price:
            return best, bound, tree
        for j in range(self.points.level.shape[1]):
            order, ends, moving = self._thresholds(rows, j)
            held = np.cumsum(self.points.count[order])
            left_bound = right_bound = moved = 0.0
            for i, weight in zip(ends, moving, strict=True):
                if self.halted:
                    return best, 0.0, tree
                moved += weight
                known = self.price + left_bound + max(0.0, right_bound - moved)
                if known >= best - self.slack or not self._large_enough(held, i):
                    bound = min(bound, known)
                    continue
                room = best - self.price
                left, left_bound, left_tree = self._tree(depth - 1, order[:i], room)
                right_bound, moved = max(0.0, right_bound - moved), 0.0
                if left < room - self.slack:
                    right, right_bound, right_tree = self._tree(depth - 1, order[i:], room - left)
                    if self.price + left + right < best - self.slack:
                        best = self.price + left + right
                        tree = Cut(j, int(self.points.level[order[i - 1], j]), left_tree, right_tree)
                        self._tell(depth, best, tree)
                bound = min(bound, self.price + left_bound + right_bound)
        return best, 0.0 if self.halted else bound, tree

    def _thresholds(self, rows: IndexArray, j: int) -> tuple[IndexArray, IndexArray, FloatArray]:
        """The rows along feature ``j``, where a threshold may lie, and the weight passed from one to the next."""
        level = self.points.level[rows, j]
        by_level = np.argsort(level, kind="stable")
        ends = 1 + np.flatnonzero(np.diff(level[by_level]))
        passed = np.cumsum(self.points.loss[rows[by_level]].sum(axis=1))[ends - 1]
        return rows[by_level], ends, np.diff(passed, prepend=0.0)

    def _large_enough(self, held: FloatArray, i: int) -> bool:
        """Whether both sides of a threshold hold enough; ``held`` adds up the weights along the feature."""
        return bool(held[i - 1] >= self.min_leaf and held[-1] - held[i - 1] >= self.min_leaf)

    def _tell(self, depth: int, cost: float, tree: Cut) -> None:
        if depth == self.depth:
            self.live[0], self.best = cost, tree


def _cut(split: IndexArray, left: Cut | None = None, right: Cut | None = None) -> Cut | None:
    return None if split[0] < 0 else Cut(int(split[0]), int(split[1]), left, right)
