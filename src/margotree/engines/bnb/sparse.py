"""The side of the search that knows feature budgets: records are partial routings with the supports still possible.

Every tree node keeps a list of supports with lower bounds; the least of them is the node's part of the bound.  An upper
node's list is split up, one support a record, before samples are placed at it: it then lives in few features, where
one placed sample decides about many.  Nodes of the last level keep their lists: which support is best for the samples
that have arrived is a question to the node, not to the search.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from margotree.engines.bnb.kernels import refine as supports
from margotree.engines.bnb.kernels import scout
from margotree.engines.bnb.menu import Menu
from margotree.engines.bnb.search import CUTOFF, STOP, Dive, Record
from margotree.engines.polish import polish
from margotree.problem import Problem, Splits, evaluate
from margotree.problem.problem import FloatArray

Index = NDArray[np.int64]

#: Node values are exact up to this share, or this share of the gap asked for.
_ACCURACY, _OF_GAP = 2e-6, 0.02
#: A settled node's tree must come out at its bound up to so many times that, or the node stays on the books.
_SETTLED = 10.0
#: Supports solved for one tree node at one search node, at most.
_MOST = np.int64(1_000_000)
#: Codes are kept for features with at most so many values.
_LEVELS = 16


@dataclass(frozen=True, kw_only=True)
class SparseTactics:
    """What a dive does; the defaults are the measured best (docs/engine.md)."""

    candidates: int = 12
    steps: int = 100
    #: Share of the steps at which the routing at hand is completed to a tree.
    complete: int = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class Front:
    """What is left of a menu: supports by number, lower bounds, and the hyperplane of the least one."""

    ids: Index
    lb: FloatArray
    at: int
    theta: FloatArray
    exact: bool

    @property
    def bound(self) -> float:
        return float(self.lb[self.at])

    @property
    def support(self) -> int:
        return int(self.ids[self.at])


@dataclass(frozen=True, kw_only=True, eq=False)
class Partial:
    """A search node in hand."""

    place: Index
    fronts: tuple[Front, ...]

    @property
    def bound(self) -> float:
        return sum(front.bound for front in self.fronts)


class SparseBrancher:
    """Makes records and workers for one problem with feature budgets."""

    def __init__(
        self, problem: Problem, menus: list[Menu], tactics: SparseTactics | None = None, gap: float = 1e-4
    ) -> None:
        self.problem = problem
        self.tol = min(_ACCURACY, max(_OF_GAP * gap, 1e-11))
        self.tactics = tactics or SparseTactics()
        self.menus = menus
        self.centre = problem.X.mean(axis=0)
        X = problem.X - self.centre
        code, levels = _codes(problem.X)
        self.samples = supports.Samples(
            np.ascontiguousarray(X.T), np.array(problem.y), np.outer(problem.C, problem.weight), code, levels
        )
        self.last = problem.n_nodes // 2

    def root(self) -> Record:
        fronts = tuple(
            Front(
                ids=np.arange(len(menu.size)),
                lb=menu.price.copy(),
                at=int(np.argmin(menu.price)),
                theta=np.zeros(menu.cols.shape[1] + 1),
                exact=False,
            )
            for menu in self.menus
        )
        return pack(Partial(place=np.zeros(self.problem.n_samples, np.int64), fronts=fronts), 0.0)

    def worker(self) -> SparseWorker:
        return SparseWorker(self)


def pack(partial: Partial, bound: float, parent: Partial | None = None) -> Record:
    """A record of this search node; arrays that it shares with its parent are not counted against memory."""
    data = (partial.place.astype(np.uint16), *partial.fronts)
    shared = parent.fronts if parent is not None else (None,) * len(partial.fronts)
    size = 2 * len(partial.place) + 400
    for mine, theirs in zip(partial.fronts, shared, strict=True):
        if theirs is None or mine.lb is not theirs.lb:
            size += mine.lb.nbytes
        if theirs is None or mine.ids is not theirs.ids:
            size += mine.ids.nbytes
    return Record(bound=bound, data=data, size=size)


def unpack(record: Record) -> Partial:
    place, *fronts = record.data
    return Partial(place=place.astype(np.int64), fronts=tuple(fronts))


def _codes(X: FloatArray) -> tuple[Index, Index]:
    """The values of features that take few, numbered; levels beyond all sense for the others."""
    code = np.zeros(X.T.shape, np.int64)
    levels = np.full(X.shape[1], 1 << 20)
    for j, column in enumerate(X.T):
        values, number = np.unique(column, return_inverse=True)
        if len(values) <= _LEVELS:
            code[j], levels[j] = number.ravel(), len(values)
    return code, levels


class SparseWorker:
    """One thread's memory and its dives."""

    def __init__(self, brancher: SparseBrancher) -> None:
        self.brancher = brancher
        self.problem = brancher.problem
        self.samples = brancher.samples
        self.eps = self.problem.eps
        widest = max(menu.cols.shape[1] for menu in brancher.menus)
        self.tables = [
            supports.Table(
                menu.cols,
                menu.size,
                menu.price,
                np.zeros((len(menu.size), menu.cols.shape[1] + 1)),
                np.zeros(len(menu.size), np.int8),
            )
            for menu in brancher.menus
        ]
        T = self.problem.n_nodes
        self.planes = scout.Planes(
            np.zeros((T, widest), np.int64),
            np.zeros(T, np.int64),
            np.zeros((T, widest + 1)),
            np.zeros(T, np.int64),
            np.zeros(T, np.int8),
        )
        self.h = np.zeros((T, self.problem.n_samples))
        self.sides = np.zeros((2, self.problem.n_samples), np.int8)
        self.work = np.zeros((2, 2))
        self.turn = 0

    def stop(self) -> None:
        self.work[1, 1] = 1.0

    # -- the dive --------------------------------------------------------------------------------------------------

    def dive(self, record: Record, shared: FloatArray, most: float = math.inf) -> Dive:
        now, floor = unpack(record), record.bound
        left: list[Record] = []
        trees: list[Splits] = []
        steps = 0
        now = self._solve(now, shared[CUTOFF])
        while now.bound < shared[CUTOFF]:
            floor = max(floor, now.bound)
            if shared[STOP] or self.work[1, 1] or steps >= min(most, self.brancher.tactics.steps):
                left.append(pack(now, floor))
                break
            steps += 1
            self._show(now)
            trees += self._complete(now, shared)
            cutoff = float(shared[CUTOFF])
            children, settled = self._branch(now, cutoff)
            if settled is not None:
                value = math.inf
                for tree in settled:
                    trees.append(tree)
                    value = evaluate(self.problem, tree).objective
                if value > now.bound * (1 + _SETTLED * self.brancher.tol) + 1e-9:
                    return Dive(left=left, steps=steps, trees=trees, unresolved=floor)
                break
            children = sorted((c for c in children if c.bound < cutoff), key=lambda c: c.bound)
            if not children:
                break
            left += [pack(c, max(floor, c.bound), now) for c in children[1:]]
            now = children[0]
        return Dive(left=left, steps=steps, trees=trees)

    # -- bounds ----------------------------------------------------------------------------------------------------

    def _solve(self, now: Partial, cutoff: float) -> Partial:
        """Bring the least support of every tree node up to date, or stop once the bound passes the cut-off."""
        fronts = list(now.fronts)
        for t in range(len(fronts)):
            total = sum(front.bound for front in fronts)
            if total >= cutoff:
                break
            if not fronts[t].exact:
                fronts[t] = self._refine(fronts[t], t, now.place, cutoff - total + fronts[t].bound)
        return replace(now, fronts=tuple(fronts))

    def _refine(self, front: Front, t: int, place: Index, target: float) -> Front:
        members, side = self._members(place, t)
        lb = front.lb.copy()
        at, done = supports.refine(
            self.samples, np.int64(t), members, side, self.eps, self.tables[t], front.ids, lb, target,
            self.brancher.tol, _MOST, self.work,
        )  # fmt: skip
        exact = done >= 0 and lb[at] < target
        theta = self.tables[t].theta[front.ids[at]].copy()
        keep = lb < target
        ids = front.ids
        if np.count_nonzero(keep) < 0.8 * len(lb) and keep[at]:
            ids, lb, at = ids[keep], lb[keep], int(np.count_nonzero(keep[:at]))
        return Front(ids=ids, lb=lb, at=int(at), theta=theta, exact=exact)

    def _members(self, place: Index, t: int) -> tuple[Index, FloatArray]:
        """The samples known to reach ``t`` and the side each must go to (0: not known)."""
        at = place
        side = np.zeros(len(place))
        inside = at == t
        while np.any(at > t):
            up = (at - 1) // 2
            came = (at > t) & (up == t)
            side[came] = np.where(at[came] == 2 * t + 2, 1.0, -1.0)
            inside |= came
            at = np.where(at > t, up, at)
        members = np.flatnonzero(inside)
        return members, side[members]

    # -- branching -------------------------------------------------------------------------------------------------

    def _show(self, now: Partial) -> None:
        """Lay out the hyperplanes at hand for the compiled code."""
        planes = self.planes
        for t, front in enumerate(now.fronts):
            table = self.tables[t]
            d = int(table.size[front.support])
            planes.size[t] = d
            planes.cols[t, :d] = table.cols[front.support, :d]
            planes.theta[t, : d + 1] = front.theta[: d + 1]
            planes.one[t] = len(front.ids) == 1
        planes.arrived[:] = 0
        at = now.place
        while True:
            planes.arrived[:] += np.bincount(at, minlength=len(planes.arrived))
            if not np.any(at):
                break
            up = np.where(at > 0, (at - 1) // 2, -1)
            at = up[up >= 0]
            if not len(at):
                break
        scout.heights(self.samples, planes, self.h)

    def _branch(self, now: Partial, cutoff: float) -> tuple[list[Partial], list[Splits] | None]:
        """The search nodes below this one; or, where it is settled, the trees it stands for."""
        for t in range(self.brancher.last):
            front = now.fronts[t]
            if len(front.ids) > 1:
                return self._peel(now, t, cutoff), None
        narrow = self.eps / math.sqrt(2.0 * max(cutoff, 1e-300)) * 0.999 if math.isfinite(cutoff) else 0.0
        i, t, _ = scout.scout(
            self.samples, self.planes, self.h, now.place, self.eps, cutoff - now.bound, narrow,
            np.int64(self.brancher.tactics.candidates), self.sides,
        )  # fmt: skip
        if i < 0:
            return [], self._settled(now)
        children = []
        for way in range(2):
            place = now.place.copy()
            sides = self.sides[way]
            moved = (place == t) & (sides > 0)
            place[moved] = 2 * t + sides[moved]
            child = self._placed(now, place, narrow, cutoff)
            if child is not None:
                children.append(self._solve(child, cutoff))
        return children, None

    def _peel(self, now: Partial, t: int, cutoff: float) -> list[Partial]:
        """One search node for every support of an upper node that is still in the race."""
        front = now.fronts[t]
        rest = now.bound - front.bound
        found = []
        for p in np.flatnonzero(rest + front.lb < cutoff):
            exact = front.exact and p == front.at
            one = Front(ids=front.ids[p : p + 1], lb=front.lb[p : p + 1], at=0, theta=front.theta, exact=exact)
            fronts = (*now.fronts[:t], one, *now.fronts[t + 1 :])
            found.append(replace(now, fronts=fronts))
        found.sort(key=lambda c: c.bound)
        return [self._solve(found[0], cutoff), *found[1:]] if found else []

    def _placed(self, now: Partial, place: Index, narrow: float, cutoff: float) -> Partial | None:
        """The search node with more samples placed, and all that follows; None if it is impossible."""
        if not scout.settle_sides(self.samples, self.planes, place, narrow):
            return None
        fronts = list(now.fronts)
        for t, front in enumerate(fronts):
            if front.exact and self._disturbed(now.place, place, t):
                fronts[t] = replace(front, exact=False)
        return Partial(place=place, fronts=tuple(fronts))

    def _disturbed(self, before: Index, after: Index, t: int) -> bool:
        """Whether newly placed samples change the value of node ``t`` at its present hyperplane."""
        moved = np.flatnonzero(before != after)
        y, h = self.problem.y[moved], self.h[t, moved]
        came = self._under(after[moved], t) & ~self._under(before[moved], t)
        if np.any(came & (1.0 - y * h > 1e-9)):
            return True
        if t >= self.brancher.last:
            return False
        right = self._under(after[moved], 2 * t + 2)
        left = self._under(after[moved], 2 * t + 1)
        return bool(np.any(right & (h < 0.0)) or np.any(left & (h > -self.eps)))

    def _under(self, place: Index, t: int) -> NDArray[np.bool_]:
        at = place
        found = at == t
        while np.any(at > t):
            at = np.where(at > t, (at - 1) // 2, -1)
            found |= at == t
        return found

    # -- trees -----------------------------------------------------------------------------------------------------

    def _route(self, now: Partial) -> Index:
        """The last-level node each sample reaches if it goes on where it is headed."""
        at = now.place.copy()
        for t in range(self.brancher.last):
            here = at == t
            right = self.h[t, here] >= -scout.TOL * self.eps
            at[here] = np.where(right, 2 * t + 2, 2 * t + 1)
        return at

    def _settled(self, now: Partial) -> list[Splits]:
        tree = self._tree(now, self._route(now))
        return [] if tree is None else [tree]

    def _tree(self, now: Partial, node: Index) -> Splits | None:
        """The best tree with this routing on the supports at hand."""
        T = self.problem.n_nodes
        mask = np.zeros((T, self.problem.n_features), bool)
        for t, front in enumerate(now.fronts):
            d = int(self.tables[t].size[front.support])
            mask[t, self.tables[t].cols[front.support, :d]] = True
        return polish(self.problem, node, mask)

    def _complete(self, now: Partial, shared: FloatArray) -> list[Splits]:
        """Now and then: where the hyperplanes at hand send everybody, and the best last level for that."""
        self.turn += 1
        if self.turn % self.brancher.tactics.complete:
            return []
        cutoff = float(shared[CUTOFF])
        node = self._route(now)
        full = Partial(
            place=node,
            fronts=tuple(
                replace(front, exact=False) if t >= self.brancher.last else front for t, front in enumerate(now.fronts)
            ),
        )
        full = self._solve(full, cutoff)
        if full.bound >= cutoff:
            return []
        tree = self._tree(full, node)
        return [] if tree is None else [tree]
