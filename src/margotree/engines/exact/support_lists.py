"""The supports that a tree node may use."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.best_subset.groups import FeatureGroups
from margotree.problem import Problem
from margotree.problem.problem import FloatArray

Index = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class SupportList:
    """Supports of one tree node: columns (filled up with -1), their numbers, penalties of what is beyond the budget.

    Where features form groups, supports are sets of groups, and have all features of these.
    """

    cols: Index
    size: Index
    penalty: FloatArray


def list_supports(problem: Problem, limit: float, most: int, min_penalty: float = 0.0) -> list[SupportList | None]:
    """For every tree node, all supports of trees below ``limit``.

    It is None at nodes with a feature penalty and more than ``most`` supports, or with a penalty below ``min_penalty``;
    where features form groups it is always a list.
    """
    lists: dict[tuple[int, int, float], SupportList | None] = {}
    for key in _keys(problem, limit):
        if key not in lists:
            long = problem.alpha is not None and (_length(problem.n_groups, key) > most or 0.0 < key[2] < min_penalty)
            lists[key] = None if long and problem.groups is None else _list(problem.group_of, *key)
    return [lists[key] for key in _keys(problem, limit)]


def count_supports(problem: Problem, limit: float = math.inf) -> int:
    """The length of the longest list of the supports of trees below ``limit``."""
    return max(_length(problem.n_groups, key) for key in _keys(problem, limit))


def _length(n: int, key: tuple[int, int, float]) -> int:
    """The number of supports with these sizes."""
    return sum(math.comb(n, k) for k in range(key[0], key[1] + 1))


def _keys(problem: Problem, limit: float) -> list[tuple[int, int, float]]:
    """For every tree node the least and the largest size of a support, and the feature penalty.

    Smaller supports are left out: a larger one with the same penalty is never worse.
    """
    assert problem.budget is not None
    n = problem.n_groups
    keys = []
    for t in range(problem.n_nodes):
        low = high = min(int(problem.budget[t]), n)
        alpha = 0.0 if problem.alpha is None else float(problem.alpha[t])
        if problem.alpha is not None and alpha == 0.0:
            low = high = n
        elif problem.alpha is not None:
            high = n if limit / alpha >= n - low else low + int(limit / alpha)
        keys.append((low, high, alpha))
    return keys


def _list(group_of: Index, low: int, high: int, alpha: float) -> SupportList:
    """The list of all supports with these numbers of groups."""
    groups = FeatureGroups(len(group_of), group_of)
    supports = [c for k in range(low, high + 1) for c in itertools.combinations(range(groups.n_groups), k)]
    rows = [groups.columns(c) for c in supports]
    size = np.array([len(c) for c in rows], np.int64)
    cols = np.full((len(rows), max(1, int(np.max(size)))), -1, np.int64)
    for r, c in enumerate(rows):
        cols[r, : len(c)] = c
    n_groups = np.array([len(c) for c in supports], np.int64)
    return SupportList(cols=cols, size=size, penalty=np.asarray(alpha * (n_groups - low), np.float64))
