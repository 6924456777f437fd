"""The candidate supports of one tree node with their lower bounds, which never fall."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels import listed_supports, partial_supports
from margotree.engines.exact.support_lists import SupportList
from margotree.problem.problem import FloatArray

Index = NDArray[np.int64]

#: A number of supports without effect as a limit.
_NO_LIMIT = np.int64(1_000_000_000)


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """The candidate supports of a node at one search node, their lower bounds, and the hyperplane of the best one.

    ``items`` has numbers of supports on a list, or rows with a decision for each feature: it must, may or must not be
    used. ``at`` is the position of the least bound.
    """

    items: NDArray[np.generic]
    lb: FloatArray
    at: int
    theta: FloatArray
    exact: bool

    @property
    def bound(self) -> float:
        """The least bound."""
        return float(self.lb[self.at])

    def one(self, p: int) -> Pool:
        """The pool with candidate ``p`` alone."""
        exact = self.exact and p == self.at
        return Pool(items=self.items[p : p + 1], lb=self.lb[p : p + 1], at=0, theta=self.theta, exact=exact)

    def below(self, target: float) -> Pool:
        """The pool without the candidates whose bounds reach ``target``, if they are many."""
        keep = self.lb < target
        if not keep[self.at] or np.count_nonzero(keep) > 0.8 * len(keep):
            return self
        at = int(np.count_nonzero(keep[: self.at]))
        return replace(self, items=self.items[keep], lb=self.lb[keep], at=at)


class Chooser(Protocol):
    """Computes pools of one tree node, for one thread.

    ``rounds`` limits the number of rounds of a thorough `tighten`.
    """

    rounds: float

    def pool(self) -> Pool:
        """All candidates, with the bounds that hold without samples."""

    def tighten(self, pool: Pool, index: Index, side: FloatArray, target: float, thorough: bool) -> Pool:
        """Raise the least bound for the samples ``index`` with these sides until it is exact or at least ``target``; if
        ``thorough``, as far as possible."""

    def decide(self, pool: Pool, min_penalty: float) -> list[Pool] | None:
        """The only candidate split by a feature with a penalty of at least ``min_penalty``; None if no feature is to be
        decided."""

    def columns(self, pool: Pool) -> Index:
        """The features that the best candidate may use."""

    def coefficients(self, pool: Pool) -> FloatArray:
        """The weights and the offset of the best candidate's hyperplane, on these features."""

    def rounded(self, pool: Pool) -> Index:
        """The features that the best candidate uses, after rounding."""


class ListChooser:
    """The chooser for supports on a list."""

    def __init__(
        self, samples: listed_supports.Samples, t: int, supports: SupportList, eps: float, tol: float, work: FloatArray
    ) -> None:
        self.samples, self.t, self.eps, self.tol, self.work = samples, np.int64(t), eps, tol, work
        self.rounds = math.inf
        #: Where a proof is written: a function that is used instead of `_search` and records what raises bounds.
        self.prove: Callable[[Pool, FloatArray, Index, FloatArray, float], tuple[int, bool] | None] | None = None
        count, width = supports.cols.shape
        self.table = listed_supports.Table(
            supports.cols, supports.size, supports.penalty, np.zeros((count, width + 1)), np.zeros(count)
        )

    def pool(self) -> Pool:
        penalty = self.table.penalty
        return Pool(
            items=np.arange(len(penalty)), lb=penalty.copy(), at=int(np.argmin(penalty)), theta=np.zeros(1), exact=False
        )

    def tighten(self, pool: Pool, index: Index, side: FloatArray, target: float, thorough: bool) -> Pool:
        lb = pool.lb.copy()
        found = None if self.prove is None else self.prove(pool, lb, index, side, target)
        at, exact = self._search(pool, lb, index, side, target) if found is None else found
        theta = self.table.theta[pool.items[at]].copy()
        return Pool(items=pool.items, lb=lb, at=at, theta=theta, exact=exact and bool(lb[at] < target)).below(target)

    def _search(self, pool: Pool, lb: FloatArray, index: Index, side: FloatArray, target: float) -> tuple[int, bool]:
        """Raise bounds; return the position of the least one, and whether it is exact."""
        at, done = listed_supports.search(
            self.samples, self.t, index, side, self.eps, self.table, pool.items, lb, target, self.tol, _NO_LIMIT,
            self.work,
        )  # fmt: skip
        return int(at), bool(done >= 0)

    def decide(self, pool: Pool, min_penalty: float) -> list[Pool] | None:
        return None

    def columns(self, pool: Pool) -> Index:
        s = int(pool.items[pool.at])
        return self.table.cols[s, : self.table.size[s]]

    def coefficients(self, pool: Pool) -> FloatArray:
        return pool.theta[: len(self.columns(pool)) + 1]

    def rounded(self, pool: Pool) -> Index:
        return self.columns(pool)


class PartialChooser:
    """The chooser for partly decided supports, where a list would be too long."""

    def __init__(
        self,
        samples: listed_supports.Samples,
        t: int,
        budget: int,
        alpha: float,
        eps: float,
        tol: float,
        most: int,
        work: FloatArray,
    ) -> None:
        self.samples, self.t, self.eps, self.tol, self.work = samples, np.int64(t), eps, tol, work
        self.budget, self.alpha, self.most = np.int64(budget), alpha, most
        self.rounds = math.inf

    def pool(self) -> Pool:
        n = len(self.samples.X)
        decisions = np.full((1, n), partial_supports.MAY, np.int8)
        return Pool(items=decisions, lb=np.zeros(1), at=0, theta=np.zeros(n + 1), exact=False)

    def tighten(self, pool: Pool, index: Index, side: FloatArray, target: float, thorough: bool) -> Pool:
        for k in itertools.count(1):
            before, pool = pool, self._tighten(pool, index, side, target)
            stuck = pool.bound <= before.bound and len(pool.lb) == len(before.lb)
            if pool.exact or pool.bound >= target or not thorough or stuck or self.work[1, 1]:
                break
            if k >= self.rounds:
                break
        return pool

    def _tighten(self, pool: Pool, index: Index, side: FloatArray, target: float) -> Pool:
        """One round of `tighten`."""
        count, n = pool.items.shape
        decisions = np.zeros((count + self.most, n), np.int8)
        lb = np.full(count + self.most, np.inf)
        thetas = np.zeros((count + self.most, n + 1))
        decisions[:count], lb[:count], thetas[:count] = pool.items, pool.lb, pool.theta
        count, at, exact = partial_supports.search(
            self.samples, self.t, index, side, self.eps, decisions, lb, thetas, np.int64(count), self.budget,
            self.alpha, target, self.tol, np.int64(self.most), self.work,
        )  # fmt: skip
        found = Pool(
            items=decisions[:count].copy(), lb=lb[:count].copy(), at=int(at), theta=thetas[at].copy(), exact=bool(exact)
        )
        return found.below(target)

    def decide(self, pool: Pool, min_penalty: float) -> list[Pool] | None:
        """The candidate split in two at a feature that it may use: with it and without it; None if no feature is to be
        decided.

        Features are decided only if one costs at least ``min_penalty``, and until at most two are left, with which
        placed samples imply the sides of others.
        """
        decision = pool.items[pool.at]
        may = np.flatnonzero(decision == partial_supports.MAY)
        if self.alpha < min_penalty or not len(may) or np.count_nonzero(decision != partial_supports.NEVER) <= 2:
            return None
        size = np.abs(pool.theta[may])
        if not np.any(size):
            size = np.abs(self.samples.X[may] @ (self.samples.cost[self.t] * self.samples.y))
        j = may[np.argmax(size)]
        parts = []
        for what in (partial_supports.MUST, partial_supports.NEVER):
            items = pool.items.copy()
            items[0, j] = what
            lb = np.maximum(pool.lb, partial_supports.penalty_of(items[0], self.budget, self.alpha))
            parts.append(replace(pool, items=items, lb=lb, exact=False))
        return parts

    def columns(self, pool: Pool) -> Index:
        return np.flatnonzero(pool.items[pool.at] != partial_supports.NEVER)

    def coefficients(self, pool: Pool) -> FloatArray:
        columns = self.columns(pool)
        return pool.theta[np.append(columns, len(pool.theta) - 1)]

    def rounded(self, pool: Pool) -> Index:
        decision, w = pool.items[pool.at], np.abs(pool.theta[:-1])
        # The nonzero weights of an exact candidate are those that it uses.
        whole = (decision == partial_supports.MAY) & (w > (0.0 if pool.exact else 0.5 * np.sqrt(2.0 * self.alpha)))
        return np.flatnonzero((decision == partial_supports.MUST) | whole)
