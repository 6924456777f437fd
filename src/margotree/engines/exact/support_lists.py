"""The supports that a tree node may use."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.problem import Problem
from margotree.problem.problem import FloatArray

Index = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class SupportList:
    """Supports of one tree node: columns (filled up with -1), sizes, penalties of the features beyond the budget."""

    cols: Index
    size: Index
    penalty: FloatArray


def list_supports(problem: Problem, limit: float, most: int, min_penalty: float = 0.0) -> list[SupportList | None]:
    """For every tree node, all supports of trees below ``limit``.

    It is None at nodes with a feature penalty and more than ``most`` supports, or with a penalty below ``min_penalty``.
    """
    lists: dict[tuple[int, int, float], SupportList | None] = {}
    for key in _keys(problem, limit):
        if key not in lists:
            long = problem.alpha is not None and (_length(problem.n_features, key) > most or 0.0 < key[2] < min_penalty)
            lists[key] = None if long else _list(problem.n_features, *key)
    return [lists[key] for key in _keys(problem, limit)]


def count_supports(problem: Problem) -> int:
    """The length of the longest list."""
    return max(_length(problem.n_features, key) for key in _keys(problem, math.inf))


def _length(n: int, key: tuple[int, int, float]) -> int:
    """The number of supports with these sizes."""
    return sum(math.comb(n, k) for k in range(key[0], key[1] + 1))


def _keys(problem: Problem, limit: float) -> list[tuple[int, int, float]]:
    """For every tree node the least and the largest size of a support, and the feature penalty.

    Smaller supports are left out: a larger one with the same penalty is never worse.
    """
    assert problem.budget is not None
    n = problem.n_features
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


def _list(n: int, low: int, high: int, alpha: float) -> SupportList:
    """The list of all supports with these sizes."""
    rows = [c for k in range(low, high + 1) for c in itertools.combinations(range(n), k)]
    cols = np.full((len(rows), max(1, high)), -1, np.int64)
    for r, c in enumerate(rows):
        cols[r, : len(c)] = c
    size = np.array([len(c) for c in rows], np.int64)
    return SupportList(cols=cols, size=size, penalty=np.asarray(alpha * (size - low), np.float64))
