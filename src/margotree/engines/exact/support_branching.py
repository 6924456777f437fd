"""The side of the search that knows feature budgets: records are partial routings with the supports still possible.

Every tree node keeps a list of supports with lower bounds; the least of them is the node's part of the bound.  An upper
node's list is split up, one support a record, before samples are placed at it: it then lives in few features, where
one placed sample decides about many.  Nodes of the last level keep their lists: which support is best for the samples
that have arrived is a question to the node, not to the search.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels import lookahead
from margotree.engines.exact.kernels.listed_supports import Samples
from margotree.engines.exact.search import CUTOFF, STOP, Dive, Record
from margotree.engines.exact.support_lists import SupportList, list_supports
from margotree.engines.exact.support_pools import Chooser, ListChooser, PartialChooser, Pool
from margotree.engines.exact.support_proof_log import ProofNode
from margotree.engines.node.kernels.safe_bounds import offset_reach
from margotree.engines.polish import polish
from margotree.engines.presolve import without_budget
from margotree.engines.run_control import RunControl, flag_after
from margotree.engines.trivial_trees import allowed_value, trivial_tree
from margotree.problem import Problem, Splits, evaluate
from margotree.problem.problem import FloatArray

Index = NDArray[np.int64]

#: Node values are exact up to this share, or this share of the gap asked for.
_ACCURACY, _OF_GAP = 2e-6, 0.02
#: Distances of samples below this share of their largest coordinate are rounding.
_ROUGH = 1e-12
#: Codes are kept for features with at most so many values.
_LEVELS = 16
#: So many samples tell whether a feature takes many values.
_SOME = 1000


@dataclass(frozen=True, kw_only=True)
class SupportTactics:
    """What a dive does; the defaults are the measured best (docs/experiments)."""

    candidates: int = 12
    steps: int = 100
    #: At one in so many steps the routing at hand is completed to a tree.
    complete: int = 10
    #: Features of upper nodes are decided before samples are placed there if one costs this share of a known tree.
    min_penalty: float = 0.015
    #: Supports of features so dear are listed up to so many; beyond, they are grown.
    listed: int = 600
    #: Candidates solved of a node whose supports are grown, at one search node.
    grown: int = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class SupportNode:
    """A search node in hand."""

    place: Index
    pools: tuple[Pool, ...]
    proof_node: ProofNode | None = None  # what a proof knows of it, where one is written

    @property
    def bound(self) -> float:
        return sum(pool.bound for pool in self.pools)

    def with_pool(self, t: int, pool: Pool) -> SupportNode:
        return replace(self, pools=(*self.pools[:t], pool, *self.pools[t + 1 :]))


class SupportBrancher:
    """Makes records and workers for one problem with feature budgets; ``limit`` is the value of a known tree."""

    def __init__(
        self,
        problem: Problem,
        limit: float = math.inf,
        tactics: SupportTactics | None = None,
        control: RunControl | None = None,
    ) -> None:
        """Once ``control`` has run out, no tree is solved again to make it exact."""
        self.problem = problem
        self.tactics = tactics or SupportTactics()
        self.control = control or RunControl()
        self.tol = min(_ACCURACY, max(_OF_GAP * self.control.limits.gap, 1e-11))
        self.last = problem.n_nodes // 2
        self.limit = limit

    @cached_property
    def lists(self) -> list[SupportList | None]:
        return list_supports(
            self.problem, self.limit, self.tactics.listed, min_penalty=self.tactics.min_penalty * self.limit
        )

    @cached_property
    def samples(self) -> Samples:
        problem = self.problem
        code, levels = _codes(problem.X)
        X = np.ascontiguousarray((problem.X - problem.X.mean(axis=0)).T)
        limit = self.limit if math.isfinite(self.limit) else allowed_value(problem, trivial_tree(problem))
        reach = offset_reach(X.T, limit, problem.eps)
        return Samples(X, np.array(problem.y), np.outer(problem.C, problem.weight), code, levels, reach)

    @cached_property
    def width(self) -> float:
        return float(np.max(np.abs(self.samples.X)))

    def root(self) -> Record:
        pools = tuple(chooser.pool() for chooser in self.choosers(np.zeros((2, 2))))
        return pack(SupportNode(place=np.zeros(self.problem.n_samples, np.int64), pools=pools), 0.0)

    def worker(self) -> SupportWorker:
        return SupportWorker(self)

    def choosers(self, work: FloatArray) -> list[Chooser]:
        """One for every tree node, for one thread."""
        return [self._chooser(t, supports, work) for t, supports in enumerate(self.lists)]

    def _chooser(self, t: int, supports: SupportList | None, work: FloatArray) -> Chooser:
        if supports is not None:
            return ListChooser(self.samples, t, supports, self.problem.eps, self.tol, work)
        assert self.problem.budget is not None and self.problem.alpha is not None
        budget, alpha = int(self.problem.budget[t]), float(self.problem.alpha[t])
        return PartialChooser(self.samples, t, budget, alpha, self.problem.eps, self.tol, self.tactics.grown, work)


def pack(now: SupportNode, bound: float, parent: SupportNode | None = None) -> Record:
    """A record of this search node; arrays that it shares with its parent are not counted against memory."""
    data = (now.place.astype(np.uint16), *now.pools, now.proof_node)
    shared = parent.pools if parent is not None else (None,) * len(now.pools)
    size = 2 * len(now.place) + 400
    for mine, theirs in zip(now.pools, shared, strict=True):
        if theirs is None or mine.lb is not theirs.lb:
            size += mine.lb.nbytes
        if theirs is None or mine.items is not theirs.items:
            size += mine.items.nbytes
    return Record(bound=bound, data=data, size=size)


def unpack(record: Record) -> SupportNode:
    place, *pools, proof_node = record.data
    return SupportNode(place=place.astype(np.int64), pools=tuple(pools), proof_node=proof_node)


def _codes(X: FloatArray) -> tuple[Index, Index]:
    """The values of features that take few, numbered; levels beyond all sense for the others."""
    code = np.zeros(X.T.shape, np.int64)
    levels = np.full(X.shape[1], 1 << 20)
    for j, column in enumerate(X.T):
        if len(np.unique(column[:_SOME])) > _LEVELS:
            continue  # so the whole column has more, too
        values, number = np.unique(column, return_inverse=True)
        if len(values) <= _LEVELS:
            code[j], levels[j] = number.ravel(), len(values)
    return code, levels


class SupportWorker:
    """One thread's memory and its dives."""

    def __init__(self, brancher: SupportBrancher) -> None:
        self.brancher = brancher
        self.problem = brancher.problem
        self.samples = brancher.samples
        self.eps = self.problem.eps
        self.work = np.zeros((2, 2))
        self.choosers = brancher.choosers(self.work)
        widest = self.problem.n_features
        T = self.problem.n_nodes
        self.hyperplanes = lookahead.Hyperplanes(
            np.zeros((T, widest), np.int64),
            np.zeros(T, np.int64),
            np.zeros((T, widest + 1)),
            np.zeros(T, np.int64),
            np.zeros(T, np.int8),
        )
        self.h = np.zeros((T, self.problem.n_samples))
        self.sides = np.zeros((2, self.problem.n_samples), np.int8)
        self.n_steps = 0

    def stop(self) -> None:
        self.work[1, 1] = 1.0

    # -- the dive --------------------------------------------------------------------------------------------------

    def dive(self, record: Record, shared: FloatArray, most: float = math.inf) -> Dive:
        now, floor = unpack(record), record.bound
        left: list[Record] = []
        trees: list[Splits] = []
        steps = 0
        now = self.solve(now, shared[CUTOFF])
        while now.bound < shared[CUTOFF]:
            floor = max(floor, now.bound)
            if shared[STOP] or self.work[1, 1] or steps >= min(most, self.brancher.tactics.steps):
                left.append(pack(now, floor))
                break
            steps += 1
            self._load_hyperplanes(now)
            trees += self._complete(now, shared)
            cutoff = float(shared[CUTOFF])
            children, settled = self._branch(now, cutoff)
            if settled is not None:
                self._close_node(now)
                return Dive(left=left, steps=steps, trees=trees + settled, unresolved=floor)
            for child in children:
                if child.bound >= cutoff:
                    self._close_node(child)
            children = sorted((c for c in children if c.bound < cutoff), key=lambda c: c.bound)
            if not children:
                break
            left += [pack(c, max(floor, c.bound), now) for c in children[1:]]
            now = children[0]
        else:
            self._close_node(now)
        return Dive(left=left, steps=steps, trees=trees)

    def _close_node(self, now: SupportNode) -> None:
        """A search node is done with: its bound is above the cut-off, or all there is to say."""

    # -- bounds ----------------------------------------------------------------------------------------------------

    def solve(self, now: SupportNode, cutoff: float, thorough: bool = False) -> SupportNode:
        """Bring the least candidate of every tree node up to date, or stop once the bound passes the cut-off."""
        pools = list(now.pools)
        for t, chooser in enumerate(self.choosers):
            total = sum(pool.bound for pool in pools)
            if total >= cutoff:
                break
            if not pools[t].exact:
                index, side = self._samples_at(now.place, t)
                target = cutoff - total + pools[t].bound
                pools[t] = chooser.tighten(pools[t], index, side, target, thorough)
        return replace(now, pools=tuple(pools))

    def _samples_at(self, place: Index, t: int) -> tuple[Index, FloatArray]:
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
        index = np.flatnonzero(inside)
        return index, side[index]

    # -- branching -------------------------------------------------------------------------------------------------

    def _load_hyperplanes(self, now: SupportNode) -> None:
        """Lay out the hyperplanes at hand for the compiled code."""
        hyperplanes = self.hyperplanes
        for t, (pool, chooser) in enumerate(zip(now.pools, self.choosers, strict=True)):
            columns = chooser.columns(pool)
            hyperplanes.size[t] = len(columns)
            hyperplanes.cols[t, : len(columns)] = columns
            hyperplanes.theta[t, : len(columns) + 1] = chooser.coefficients(pool)
            hyperplanes.decided[t] = len(pool.lb) == 1
        hyperplanes.n_arrived[:] = 0
        at = now.place
        while True:
            hyperplanes.n_arrived[:] += np.bincount(at, minlength=len(hyperplanes.n_arrived))
            if not np.any(at):
                break
            up = np.where(at > 0, (at - 1) // 2, -1)
            at = up[up >= 0]
            if not len(at):
                break
        lookahead.decision_values(self.samples, hyperplanes, self.h)

    def _branch(self, now: SupportNode, cutoff: float) -> tuple[list[SupportNode], list[Splits] | None]:
        """The search nodes below this one; or, where it is settled, the trees it stands for."""
        for t in range(self.brancher.last):
            pool = now.pools[t]
            if len(pool.lb) > 1:
                return self._each_support(now, t, cutoff), None
            decided = self.choosers[t].decide(pool, self.brancher.tactics.min_penalty * self.brancher.limit)
            if decided is not None:
                return [self.solve(now.with_pool(t, one), cutoff) for one in decided], None
        min_distance = self._min_distance(cutoff)
        i = lookahead.lookahead(
            self.samples, self.hyperplanes, self.h, now.place, self.eps, cutoff - now.bound, min_distance,
            np.int64(self.brancher.tactics.candidates),
        )  # fmt: skip
        if i >= 0:
            return self._both_sides(now, int(i), min_distance, cutoff), None
        if not all(pool.exact for pool in now.pools):
            better = self.solve(now, cutoff, thorough=True)
            if better.bound > now.bound or all(pool.exact for pool in better.pools):
                return [better], None
        return [], self._settled(now)

    def _min_distance(self, cutoff: float) -> float:
        """How close samples sent to different sides may be at most: telling closer ones apart takes too much weight.

        0, and nothing is implied by closeness, where that is not well above the rounding of samples.
        """
        if not 0.0 < cutoff < math.inf:
            return 0.0
        min_distance = 0.999 * self.eps / math.sqrt(2.0 * cutoff)
        return min_distance if min_distance > _ROUGH * self.brancher.width else 0.0

    def _both_sides(self, now: SupportNode, i: int, min_distance: float, cutoff: float) -> list[SupportNode]:
        """The search nodes with sample ``i`` sent left and right, as far as they are possible and open."""
        possible = lookahead.sides_after(
            self.samples, self.hyperplanes, now.place, np.int64(i), min_distance, self.sides
        )
        t = now.place[i]
        children = []
        for way in range(2):
            if possible[way]:
                place = now.place.copy()
                sides = self.sides[way]
                moved = (place == t) & (sides > 0)
                place[moved] = 2 * t + sides[moved]
                child = self._with_implied_places(now, place, min_distance)
                if child is not None:
                    children.append(self.solve(child, cutoff))
        return children

    def _each_support(self, now: SupportNode, t: int, cutoff: float) -> list[SupportNode]:
        """One search node for every support of an upper node that is still in the race."""
        pool = now.pools[t]
        rest = now.bound - pool.bound
        found = []
        for p in np.flatnonzero(rest + pool.lb < cutoff):
            found.append(now.with_pool(t, pool.one(int(p))))
        found.sort(key=lambda c: c.bound)
        return [self.solve(found[0], cutoff), *found[1:]] if found else []

    def _with_implied_places(self, now: SupportNode, place: Index, min_distance: float) -> SupportNode | None:
        """The search node with more samples placed, and all that follows; None if it is impossible."""
        if not lookahead.settle_sides(self.samples, self.hyperplanes, place, min_distance):
            return None
        return self._with_places(now, place)

    def _with_places(self, now: SupportNode, place: Index) -> SupportNode:
        """The search node with samples at other places; what that disturbs is to be solved again."""
        pools = list(now.pools)
        for t, pool in enumerate(pools):
            if pool.exact and self._value_changes(now.place, place, t):
                pools[t] = replace(pool, exact=False)
        return replace(now, place=place, pools=tuple(pools))

    def _value_changes(self, before: Index, after: Index, t: int) -> bool:
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

    def _route(self, now: SupportNode) -> Index:
        """The last-level node each sample reaches if it goes on where it is headed."""
        at = now.place.copy()
        for t in range(self.brancher.last):
            here = at == t
            right = self.h[t, here] >= -lookahead.TOL * self.eps
            at[here] = np.where(right, 2 * t + 2, 2 * t + 1)
        return at

    def _settled(self, now: SupportNode) -> list[Splits]:
        tree = self.tree(now, self._route(now))
        return [] if tree is None else [tree]

    def tree(self, now: SupportNode, node: Index, control: RunControl | None = None) -> Splits | None:
        """The best tree with this routing on the supports at hand."""
        T = self.problem.n_nodes
        mask = np.zeros((T, self.problem.n_features), bool)
        for t, (pool, chooser) in enumerate(zip(now.pools, self.choosers, strict=True)):
            mask[t, chooser.rounded(pool)] = True
        return polish(self.problem, node, mask, control or self.brancher.control)

    def _complete(self, now: SupportNode, shared: FloatArray) -> list[Splits]:
        """Now and then: where the hyperplanes at hand send everybody, and the best last level for that."""
        self.n_steps += 1
        if self.n_steps % self.brancher.tactics.complete:
            return []
        cutoff = float(shared[CUTOFF])
        node = self._route(now)
        full = SupportNode(
            place=node,
            pools=tuple(
                replace(pool, exact=False) if t >= self.brancher.last else pool for t, pool in enumerate(now.pools)
            ),
        )
        full = self.solve(full, cutoff)
        if full.bound >= cutoff:
            return []
        tree = self.tree(full, node)
        return [] if tree is None else [tree]


def sparsified(brancher: SupportBrancher, tree: Splits, cutoff: float, control: RunControl) -> list[Splits]:
    """The best tree below ``cutoff`` that routes as the given one and keeps the budgets, if it is found in time."""
    worker = brancher.worker()
    now = replace(unpack(brancher.root()), place=evaluate(without_budget(brancher.problem), tree).node)
    for chooser in worker.choosers:
        chooser.rounds = control.limits.nodes
    with flag_after(worker.work[1, 1:2], control.remaining):
        now = worker.solve(now, cutoff, thorough=True)
    tree_found = worker.tree(now, now.place, control) if now.bound < cutoff else None
    return [] if tree_found is None else [tree_found]
