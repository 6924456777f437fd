"""Enumeration of the univariate trees of any depth; most are excluded by bounds.

The docstring of :mod:`margotree.baselines.oct.kernels` defines ``best`` and ``relaxed`` and derives the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margotree.baselines.oct import kernels
from margotree.baselines.oct.merged_samples import FloatArray, IndexArray
from margotree.baselines.oct.problem import OctProblem

#: Costs that differ by less than this share of the baseline are equal.
SLACK = 1e-9


@dataclass(frozen=True)
class RankSplit:
    """A split of one feature: larger ranks go right.  ``left`` and ``right`` are its subtrees; None is a leaf."""

    feature: int
    rank: int
    left: RankSplit | None = None
    right: RankSplit | None = None


class Enumeration:
    """The enumeration for one problem, from a first cutoff.

    ``progress`` holds the cost of the best tree so far and the number of subsets visited, ``best`` that tree (None
    until a tree below the first cutoff is found); :meth:`halt` ends the enumeration from another thread.
    """

    def __init__(self, problem: OctProblem, cutoff: float) -> None:
        self.points = problem.points
        self.depth = problem.depth
        self.min_leaf = problem.min_leaf_tolerant
        self.split_cost = problem.alpha * problem.baseline_error
        self.slack = SLACK * problem.baseline_error
        self.progress = np.array([cutoff, 0.0])
        self.best: RankSplit | None = None
        self._stop = np.zeros(1, dtype=np.uint8)
        self._work = np.zeros((int(self.points.n_values.max()), problem.n_classes + 1))

    @property
    def halted(self) -> bool:
        return bool(self._stop[0])

    def halt(self) -> None:
        self._stop[0] = 1

    def run(self) -> None:
        """Enumerate all trees."""
        cost, _, tree = self._best_tree(self.depth, np.arange(len(self.points.X)), float(self.progress[0]))
        if tree is not None:
            self.best, self.progress[0] = tree, cost

    def _best_tree(self, depth: int, rows: IndexArray, cutoff: float) -> tuple[float, float, RankSplit | None]:
        """The smaller of ``cutoff`` and ``best(rows, depth)``, a bound on ``relaxed(rows, depth)``, and the tree."""
        self.progress[1] += 1
        data = (rows, self.points.rank, self.points.class_weight, self.points.weight, self.min_leaf, self.split_cost)
        if depth == 1:
            split = np.zeros(2, dtype=np.int64)
            cost, bound = kernels.best_stump(*data, self._work, split, self._stop)
            return cost, bound, _rank_split(split)
        if depth == 2:
            splits = np.full((3, 2), -1, dtype=np.int64)
            progress = self.progress if depth == self.depth else self.progress.copy()
            cost, bound = kernels.best_depth_two(*data, cutoff, self.slack, self._work, splits, progress, self._stop)
            self.progress[1] = progress[1]
            return cost, bound, _rank_split(splits[0], _rank_split(splits[1]), _rank_split(splits[2]))
        return self._best_split(depth, rows, cutoff)

    def _best_split(self, depth: int, rows: IndexArray, cutoff: float) -> tuple[float, float, RankSplit | None]:
        """As :meth:`_best_tree`, for depth 3 and more: try every threshold of every feature at the root."""
        cost, bound, tree = self._best_tree(1, rows, cutoff)
        best, tree = (cost, tree) if cost < cutoff else (cutoff, None)
        if bound <= self.split_cost:
            return best, bound, tree
        for j in range(self.points.rank.shape[1]):
            order, ends, passed = self._thresholds(rows, j)
            cumulative_weight = np.cumsum(self.points.weight[order])
            left_bound = right_bound = passed_weight = 0.0
            for i, weight in zip(ends, passed, strict=True):
                if self.halted:
                    return best, 0.0, tree
                passed_weight += weight
                known_bound = self.split_cost + left_bound + max(0.0, right_bound - passed_weight)
                if known_bound >= best - self.slack or not self._large_enough(cumulative_weight, i):
                    bound = min(bound, known_bound)
                    continue
                child_cutoff = best - self.split_cost
                left, left_bound, left_tree = self._best_tree(depth - 1, order[:i], child_cutoff)
                right_bound, passed_weight = max(0.0, right_bound - passed_weight), 0.0
                if left < child_cutoff - self.slack:
                    right, right_bound, right_tree = self._best_tree(depth - 1, order[i:], child_cutoff - left)
                    if self.split_cost + left + right < best - self.slack:
                        best = self.split_cost + left + right
                        tree = RankSplit(j, int(self.points.rank[order[i - 1], j]), left_tree, right_tree)
                        self._record(depth, best, tree)
                bound = min(bound, self.split_cost + left_bound + right_bound)
        return best, 0.0 if self.halted else bound, tree

    def _thresholds(self, rows: IndexArray, j: int) -> tuple[IndexArray, IndexArray, FloatArray]:
        """The rows sorted by feature ``j``, the positions of the thresholds, and the weight from one to the next."""
        rank = self.points.rank[rows, j]
        by_rank = np.argsort(rank, kind="stable")
        ends = 1 + np.flatnonzero(np.diff(rank[by_rank]))
        cumulative = np.cumsum(self.points.class_weight[rows[by_rank]].sum(axis=1))[ends - 1]
        return rows[by_rank], ends, np.diff(cumulative, prepend=0.0)

    def _large_enough(self, cumulative_weight: FloatArray, i: int) -> bool:
        """Whether both sides of the threshold at position ``i`` hold at least ``min_leaf``."""
        return bool(
            cumulative_weight[i - 1] >= self.min_leaf
            and cumulative_weight[-1] - cumulative_weight[i - 1] >= self.min_leaf
        )

    def _record(self, depth: int, cost: float, tree: RankSplit) -> None:
        if depth == self.depth:
            self.progress[0], self.best = cost, tree


def _rank_split(split: IndexArray, left: RankSplit | None = None, right: RankSplit | None = None) -> RankSplit | None:
    return None if split[0] < 0 else RankSplit(int(split[0]), int(split[1]), left, right)
