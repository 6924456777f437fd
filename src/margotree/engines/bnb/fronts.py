"""What is still open about one tree node's features: a front of candidates with lower bounds that only rise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margotree.engines.bnb.kernels import grow as growing
from margotree.engines.bnb.kernels import refine as listing
from margotree.engines.bnb.menu import Menu
from margotree.problem.problem import FloatArray

Index = NDArray[np.int64]

#: Supports of a list solved at one search node, at most: as good as all.
_ALL = np.int64(1_000_000_000)


@dataclass(frozen=True, kw_only=True, eq=False)
class Front:
    """Candidates for the features of a node, their lower bounds, and the hyperplane of the least one.

    ``items`` are numbers of supports on a menu, or rows that say of each feature if it must, may or never be used.
    """

    items: NDArray[np.generic]
    lb: FloatArray
    at: int
    theta: FloatArray
    exact: bool

    @property
    def bound(self) -> float:
        return float(self.lb[self.at])

    def one(self, p: int) -> Front:
        """The front of candidate ``p`` alone."""
        exact = self.exact and p == self.at
        return Front(items=self.items[p : p + 1], lb=self.lb[p : p + 1], at=0, theta=self.theta, exact=exact)

    def below(self, target: float) -> Front:
        """Without the candidates that reach ``target``, if they are many."""
        keep = self.lb < target
        if not keep[self.at] or np.count_nonzero(keep) > 0.8 * len(keep):
            return self
        at = int(np.count_nonzero(keep[: self.at]))
        return replace(self, items=self.items[keep], lb=self.lb[keep], at=at)


class Chooser(Protocol):
    """Knows the candidates of one tree node; belongs to one thread.  ``rounds`` limits a thorough look."""

    rounds: float

    def front(self) -> Front: ...

    def refine(self, front: Front, members: Index, side: FloatArray, target: float, thorough: bool) -> Front: ...

    def decide(self, front: Front, dear: float) -> list[Front] | None: ...

    def columns(self, front: Front) -> Index: ...

    def coefficients(self, front: Front) -> FloatArray: ...

    def rounded(self, front: Front) -> Index: ...


class Lister:
    """All supports on a list."""

    def __init__(self, samples: listing.Samples, t: int, menu: Menu, eps: float, tol: float, work: FloatArray) -> None:
        self.samples, self.t, self.eps, self.tol, self.work = samples, np.int64(t), eps, tol, work
        self.rounds = math.inf
        #: Where a proof is written: takes down what raised the bounds of a front, and lowers those it cannot prove.
        self.prove: Callable[[Front, FloatArray, Index, FloatArray], None] | None = None
        count, width = menu.cols.shape
        self.table = listing.Table(
            menu.cols, menu.size, menu.price, np.zeros((count, width + 1)), np.zeros(count, np.int8)
        )

    def front(self) -> Front:
        price = self.table.price
        return Front(
            items=np.arange(len(price)), lb=price.copy(), at=int(np.argmin(price)), theta=np.zeros(1), exact=False
        )

    def refine(self, front: Front, members: Index, side: FloatArray, target: float, thorough: bool) -> Front:
        lb = front.lb.copy()
        at, done = listing.refine(
            self.samples, self.t, members, side, self.eps, self.table, front.items, lb, target, self.tol, _ALL,
            self.work,
        )  # fmt: skip
        theta = self.table.theta[front.items[at]].copy()
        exact = bool(done >= 0 and lb[at] < target)
        if self.prove is not None:
            self.prove(front, lb, members, side)
            exact, at = exact and bool(at == np.argmin(lb)), int(np.argmin(lb))
        return Front(items=front.items, lb=lb, at=int(at), theta=theta, exact=exact).below(target)

    def decide(self, front: Front, dear: float) -> list[Front] | None:
        return None

    def columns(self, front: Front) -> Index:
        s = int(front.items[front.at])
        return self.table.cols[s, : self.table.size[s]]

    def coefficients(self, front: Front) -> FloatArray:
        return front.theta[: len(self.columns(front)) + 1]

    def rounded(self, front: Front) -> Index:
        return self.columns(front)


class Grower:
    """Supports in a tree of partly decided ones, where a list would be too long."""

    def __init__(
        self,
        samples: listing.Samples,
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

    def front(self) -> Front:
        n = len(self.samples.X)
        kinds = np.full((1, n), growing.MAY, np.int8)
        return Front(items=kinds, lb=np.zeros(1), at=0, theta=np.zeros(n + 1), exact=False)

    def refine(self, front: Front, members: Index, side: FloatArray, target: float, thorough: bool) -> Front:
        for k in itertools.count(1):
            before, front = front, self._refine(front, members, side, target)
            stuck = front.bound <= before.bound and len(front.lb) == len(before.lb)
            if front.exact or front.bound >= target or not thorough or stuck or self.work[1, 1]:
                break
            if k >= self.rounds:
                break
        return front

    def _refine(self, front: Front, members: Index, side: FloatArray, target: float) -> Front:
        count, n = front.items.shape
        kinds = np.zeros((count + self.most, n), np.int8)
        lb = np.full(count + self.most, np.inf)
        thetas = np.zeros((count + self.most, n + 1))
        kinds[:count], lb[:count], thetas[:count] = front.items, front.lb, front.theta
        count, at, exact = growing.grow(
            self.samples, self.t, members, side, self.eps, kinds, lb, thetas, np.int64(count), self.budget, self.alpha,
            target, self.tol, np.int64(self.most), self.work,
        )  # fmt: skip
        found = Front(
            items=kinds[:count].copy(), lb=lb[:count].copy(), at=int(at), theta=thetas[at].copy(), exact=bool(exact)
        )
        return found.below(target)

    def decide(self, front: Front, dear: float) -> list[Front] | None:
        """The one candidate split in two at a feature it may use: with it and without; None if nothing is to decide.

        Only if a feature costs at least ``dear``, and until so few are left that placed samples imply others.
        """
        kind = front.items[front.at]
        may = np.flatnonzero(kind == growing.MAY)
        if self.alpha < dear or not len(may) or np.count_nonzero(kind != growing.NEVER) <= 2:
            return None
        size = np.abs(front.theta[may])
        if not np.any(size):
            size = np.abs(self.samples.X[may] @ (self.samples.cost[self.t] * self.samples.y))
        j = may[np.argmax(size)]
        parts = []
        for what in (growing.MUST, growing.NEVER):
            items = front.items.copy()
            items[0, j] = what
            lb = np.maximum(front.lb, growing.price(items[0], self.budget, self.alpha))
            parts.append(replace(front, items=items, lb=lb, exact=False))
        return parts

    def columns(self, front: Front) -> Index:
        return np.flatnonzero(front.items[front.at] != growing.NEVER)

    def coefficients(self, front: Front) -> FloatArray:
        columns = self.columns(front)
        return front.theta[np.append(columns, len(front.theta) - 1)]

    def rounded(self, front: Front) -> Index:
        kind, w = front.items[front.at], np.abs(front.theta[:-1])
        # An exact candidate has no weights but those it uses.
        whole = (kind == growing.MAY) & (w > (0.0 if front.exact else 0.5 * np.sqrt(2.0 * self.alpha)))
        return np.flatnonzero((kind == growing.MUST) | whole)
