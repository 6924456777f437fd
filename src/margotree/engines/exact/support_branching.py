"""The brancher for feature budgets: records are partial routings with the supports that are still possible.

Every tree node has a list of supports with lower bounds; the least of them is the node's part of the bound. The list of
an upper node is split, one support per record, before samples are placed at the node: it then has few features, and one
placed sample decides about many. Nodes of the last level keep their lists: their best support for the samples at the
node is computed, not branched on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels import lookahead
from margotree.engines.exact.kernels.listed_supports import Samples
from margotree.engines.exact.proof_log_base import ProofLogBase
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

#: Relative accuracy of node values; the same as a share of the target gap.
_ACCURACY, _OF_GAP = 2e-6, 0.02
#: Smaller distances of samples, as a share of their largest coordinate, are rounding.
_ROUGH = 1e-12
#: The largest number of values with codes: of a feature, and of the 0/1 features of a group.
_LEVELS, _WORDS = 16, 64
#: The number of samples that are checked first for many values.
_SOME = 1000


@dataclass(frozen=True, kw_only=True)
class SupportTactics:
    """Settings of a dive; the defaults are measured (docs/experiments).

    Parameters
    ----------
    candidates
        The number of samples that `lookahead.lookahead` tries.
    steps
        The largest number of search nodes in a dive.
    complete
        Complete the current routing to a tree at every ``complete``-th step.
    min_penalty
        Decide features of upper nodes before samples are placed there if a feature penalty is at least this share of
        the objective of a known tree.
    listed
        The largest number of supports in a list where features have such a penalty; with more, partly decided supports
        are used.
    grown
        The largest number of candidates solved of a node with partly decided supports at one search node.
    """

    candidates: int = 12
    steps: int = 100
    complete: int = 10
    min_penalty: float = 0.015
    listed: int = 600
    grown: int = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class SupportNode:
    """A search node: the places of samples, and the candidate supports of every tree node.

    The place of a sample is the tree node that it has reached by the decisions so far; its side there is undecided.
    """

    place: Index
    pools: tuple[Pool, ...]
    proof_node: ProofNode | None = None  # its state in the proof, where one is written

    @property
    def bound(self) -> float:
        """The sum of the least bounds of the tree nodes."""
        return sum(pool.bound for pool in self.pools)

    def with_pool(self, t: int, pool: Pool) -> SupportNode:
        """The search node with other candidates for tree node ``t``."""
        return replace(self, pools=(*self.pools[:t], pool, *self.pools[t + 1 :]))


class SupportBrancher:
    """The brancher for a problem with feature budgets; it writes no proof.

    Parameters
    ----------
    problem
        The problem.
    limit
        The value of a known tree; only better trees are searched for.
    tactics
        The settings of dives.
    control
        Trees are not solved again for exactness after its limits are reached.
    """

    log: ProofLogBase | None = None

    def __init__(
        self,
        problem: Problem,
        limit: float = math.inf,
        tactics: SupportTactics | None = None,
        control: RunControl | None = None,
    ) -> None:
        self.problem = problem
        self.tactics = tactics or SupportTactics()
        self.control = control or RunControl()
        self.tol = min(_ACCURACY, max(_OF_GAP * self.control.limits.gap, 1e-11))
        self.last = problem.n_nodes // 2
        self.limit = limit

    @cached_property
    def lists(self) -> list[SupportList | None]:
        """The supports of every tree node; None where partly decided supports are used."""
        return list_supports(
            self.problem, self.limit, self.tactics.listed, min_penalty=self.tactics.min_penalty * self.limit
        )

    @cached_property
    def samples(self) -> Samples:
        """The samples in the layout of the kernels, minus their mean."""
        problem = self.problem
        code, levels, word = feature_codes(problem.X, problem.group_of)
        X = np.ascontiguousarray((problem.X - problem.X.mean(axis=0)).T)
        limit = self.limit if math.isfinite(self.limit) else allowed_value(problem, trivial_tree(problem))
        reach = offset_reach(X.T, limit, problem.eps)
        return Samples(X, np.array(problem.y), np.outer(problem.C, problem.weight), code, levels, reach, word)

    @cached_property
    def width(self) -> float:
        """The largest absolute coordinate of a sample."""
        return float(np.max(np.abs(self.samples.X)))

    def root(self) -> Record:
        """The record of the root of the search."""
        pools = tuple(chooser.pool() for chooser in self.choosers(np.zeros((2, 2))))
        return pack(SupportNode(place=np.zeros(self.problem.n_samples, np.int64), pools=pools), 0.0)

    def worker(self) -> SupportWorker:
        """A new worker."""
        return SupportWorker(self)

    def choosers(self, work: FloatArray) -> list[Chooser]:
        """The choosers of all tree nodes, for one thread."""
        return [self._chooser(t, supports, work) for t, supports in enumerate(self.lists)]

    def _chooser(self, t: int, supports: SupportList | None, work: FloatArray) -> Chooser:
        """The chooser of tree node ``t``."""
        if supports is not None:
            return ListChooser(self.samples, t, supports, self.problem.eps, self.tol, work)
        assert self.problem.budget is not None and self.problem.alpha is not None
        budget, alpha = int(self.problem.budget[t]), float(self.problem.alpha[t])
        return PartialChooser(self.samples, t, budget, alpha, self.problem.eps, self.tol, self.tactics.grown, work)


def pack(now: SupportNode, bound: float, parent: SupportNode | None = None) -> Record:
    """The record of a search node; arrays that it shares with its parent do not count as its memory."""
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
    """The search node of a record."""
    place, *pools, proof_node = record.data
    return SupportNode(place=place.astype(np.int64), pools=tuple(pools), proof_node=proof_node)


def feature_codes(X: FloatArray, group_of: Index) -> tuple[Index, Index, NDArray[np.int8]]:
    """The numbered values of features that take few values, the number of values (a large number for other features),
    and which features are words.

    Supports have all features of a group. The 0/1 features of a group of several are words: the first one has the codes
    of all, so that a column of k words takes k values, and not 2^k.
    """
    code, word = np.zeros(X.T.shape, np.int64), np.zeros(X.shape[1], np.int8)
    levels = np.full(X.shape[1], 1 << 20)
    for group in range(int(np.max(group_of, initial=-1)) + 1):
        features = np.flatnonzero(group_of == group)
        words = [j for j in features if len(features) > 1 and len(np.unique(X[:, j])) <= 2]
        for part in [words] * bool(words) + [[j] for j in features if j not in words]:
            most = _WORDS if part is words else _LEVELS
            if len(np.unique(X[:_SOME, part], axis=0)) > most:
                continue
            values, number = np.unique(X[:, part], axis=0, return_inverse=True)
            if len(values) <= most:
                levels[part], word[part] = 1, part is words
                code[part[0]], levels[part[0]] = number.ravel(), len(values)
    return code, levels, word


class SupportWorker:
    """The memory of one thread, and its dives."""

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
        """Search from ``record``, for at most ``most`` steps; see :class:`~margotree.engines.exact.search.Worker`."""
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
        """Called when a search node is closed or settled; proofs override it."""

    # -- bounds ----------------------------------------------------------------------------------------------------

    def solve(self, now: SupportNode, cutoff: float, thorough: bool = False) -> SupportNode:
        """Solve the best candidate of every tree node, until the bound passes the cutoff."""
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
        """The samples known to reach ``t``, and the side that each must take there (0: undecided)."""
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
        """Write the current hyperplanes to the arrays of the kernels."""
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
        """The children of this search node; or, if it is settled, its trees."""
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
        """Samples closer than this cannot be on different sides: the weights that separate them would cost more than
        the cutoff.

        It is 0, without effect, where it is not clearly above the rounding of samples.
        """
        if not 0.0 < cutoff < math.inf:
            return 0.0
        min_distance = 0.999 * self.eps / math.sqrt(2.0 * cutoff)
        return min_distance if min_distance > _ROUGH * self.brancher.width else 0.0

    def _both_sides(self, now: SupportNode, i: int, min_distance: float, cutoff: float) -> list[SupportNode]:
        """The open search nodes with sample ``i`` on the left and on the right."""
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
        """One search node for each support of an upper node that is still possible."""
        pool = now.pools[t]
        rest = now.bound - pool.bound
        found = []
        for p in np.flatnonzero(rest + pool.lb < cutoff):
            found.append(now.with_pool(t, pool.one(int(p))))
        found.sort(key=lambda c: c.bound)
        return [self.solve(found[0], cutoff), *found[1:]] if found else []

    def _with_implied_places(self, now: SupportNode, place: Index, min_distance: float) -> SupportNode | None:
        """The search node with these places, and all that follows from them; None if it is impossible."""
        if not lookahead.settle_sides(self.samples, self.hyperplanes, place, min_distance):
            return None
        return self._with_places(now, place)

    def _with_places(self, now: SupportNode, place: Index) -> SupportNode:
        """The search node with these places; tree nodes whose value they change are to be solved again."""
        pools = list(now.pools)
        for t, pool in enumerate(pools):
            if pool.exact and self._value_changes(now.place, place, t):
                pools[t] = replace(pool, exact=False)
        return replace(now, place=place, pools=tuple(pools))

    def _value_changes(self, before: Index, after: Index, t: int) -> bool:
        """Whether newly placed samples change the value of node ``t`` at its current hyperplane."""
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
        """Whether each place is ``t`` or below it."""
        at = place
        found = at == t
        while np.any(at > t):
            at = np.where(at > t, (at - 1) // 2, -1)
            found |= at == t
        return found

    # -- trees -----------------------------------------------------------------------------------------------------

    def _route(self, now: SupportNode) -> Index:
        """The last-level node that each sample reaches on the way that the current hyperplanes give."""
        at = now.place.copy()
        for t in range(self.brancher.last):
            here = at == t
            right = self.h[t, here] >= -lookahead.TOL * self.eps
            at[here] = np.where(right, 2 * t + 2, 2 * t + 1)
        return at

    def _settled(self, now: SupportNode) -> list[Splits]:
        """The tree of a settled search node."""
        tree = self.tree(now, self._route(now))
        return [] if tree is None else [tree]

    def tree(self, now: SupportNode, node: Index, control: RunControl | None = None) -> Splits | None:
        """The best tree with this routing on the current supports."""
        T = self.problem.n_nodes
        mask = np.zeros((T, self.problem.n_features), bool)
        for t, (pool, chooser) in enumerate(zip(now.pools, self.choosers, strict=True)):
            mask[t, chooser.rounded(pool)] = True
        return polish(self.problem, node, mask, control or self.brancher.control)

    def _complete(self, now: SupportNode, shared: FloatArray) -> list[Splits]:
        """At every ``complete``-th step: the tree of the current routing with the best last level for it."""
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
    """The best tree below ``cutoff`` with the given tree's routing that keeps the budgets, if it is found in time."""
    worker = brancher.worker()
    now = replace(unpack(brancher.root()), place=evaluate(without_budget(brancher.problem), tree).node)
    for chooser in worker.choosers:
        chooser.rounds = control.limits.nodes
    with flag_after(worker.work[1, 1:2], control.remaining):
        now = worker.solve(now, cutoff, thorough=True)
    tree_found = worker.tree(now, now.place, control) if now.bound < cutoff else None
    return [] if tree_found is None else [tree_found]
