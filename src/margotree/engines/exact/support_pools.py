"""What is still open about one tree node's features: a pool of candidates with lower bounds that only rise."""

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

#: Supports of a list solved at one search node, at most: as good as all.
_NO_LIMIT = np.int64(1_000_000_000)


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """Candidates for the features of a node, their lower bounds, and the hyperplane of the least one.

    ``items`` are numbers of supports on the list, or rows that say of each feature if it must, may or never be used.
    """

    items: NDArray[np.generic]
    lb: FloatArray
    at: int
    theta: FloatArray
    exact: bool

    @property
    def bound(self) -> float:
        return float(self.lb[self.at])

    def one(self, p: int) -> Pool:
        """The pool of candidate ``p`` alone."""
        exact = self.exact and p == self.at
        return Pool(items=self.items[p : p + 1], lb=self.lb[p : p + 1], at=0, theta=self.theta, exact=exact)

    def below(self, target: float) -> Pool:
        """Without the candidates that reach ``target``, if they are many."""
        keep = self.lb < target
        if not keep[self.at] or np.count_nonzero(keep) > 0.8 * len(keep):
            return self
        at = int(np.count_nonzero(keep[: self.at]))
        return replace(self, items=self.items[keep], lb=self.lb[keep], at=at)


class Chooser(Protocol):
    """Knows the candidates of one tree node; belongs to one thread.  ``rounds`` limits a thorough look."""

    rounds: float

    def pool(self) -> Pool: ...

    def tighten(self, pool: Pool, index: Index, side: FloatArray, target: float, thorough: bool) -> Pool: ...

    def decide(self, pool: Pool, min_penalty: float) -> list[Pool] | None: ...

    def columns(self, pool: Pool) -> Index: ...

    def coefficients(self, pool: Pool) -> FloatArray: ...

    def rounded(self, pool: Pool) -> Index: ...


class ListChooser:
    """All supports on a list."""

    def __init__(
        self, samples: listed_supports.Samples, t: int, supports: SupportList, eps: float, tol: float, work: FloatArray
    ) -> None:
        self.samples, self.t, self.eps, self.tol, self.work = samples, np.int64(t), eps, tol, work
        self.rounds = math.inf
        #: Where a proof is written: what searches instead, and takes down what raises bounds.
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
        """Raise bounds; returns the position of the least, and whether it is exact."""
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
    """Supports in a tree of partly decided ones, where a list would be too long."""

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
        count, n = pool.items.shape
        decisions = np.zeros((count + self.most, n), np.int8)
        lb = np.full(count + self.most, np.inf)
        thetas = np.zeros((count + self.most, n + 1))
        decisions[:count], lb[:count], thetas[:count] = pool.items, pool.lb, pool.theta
        count, at, exact = partial_supports.search(
            self.samples, self.t, index, side, self.eps, decisions, lb, thetas, np.int64(count), self.budget, self.alpha,
            target, self.tol, np.int64(self.most), self.work,
        )  # fmt: skip
        found = Pool(
            items=decisions[:count].copy(), lb=lb[:count].copy(), at=int(at), theta=thetas[at].copy(), exact=bool(exact)
        )
        return found.below(target)

    def decide(self, pool: Pool, min_penalty: float) -> list[Pool] | None:
        """The one candidate split in two at a feature it may use: with it and without; None if nothing is to decide.

        Only if a feature costs at least ``min_penalty``, and until so few are left that placed samples imply others.
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
            lb = np.maximum(pool.lb, partial_supports.penalty(items[0], self.budget, self.alpha))
            parts.append(replace(pool, items=items, lb=lb, exact=False))
        return parts

    def columns(self, pool: Pool) -> Index:
        return np.flatnonzero(pool.items[pool.at] != partial_supports.NEVER)

    def coefficients(self, pool: Pool) -> FloatArray:
        columns = self.columns(pool)
        return pool.theta[np.append(columns, len(pool.theta) - 1)]

    def rounded(self, pool: Pool) -> Index:
        decision, w = pool.items[pool.at], np.abs(pool.theta[:-1])
        # An exact candidate has no weights but those it uses.
        whole = (decision == partial_supports.MAY) & (w > (0.0 if pool.exact else 0.5 * np.sqrt(2.0 * self.alpha)))
        return np.flatnonzero((decision == partial_supports.MUST) | whole)
