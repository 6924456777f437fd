"""The search over lists of supports that leaves a proof behind (`support_log` writes it down).

Sides that follow from others are told to the proof only once a sample that takes one counts in a bound: few do.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from margotree.engines.bnb.kernels import lookahead
from margotree.engines.bnb.log import NOT_HERE
from margotree.engines.bnb.pools import ListChooser, Pool
from margotree.engines.bnb.search import Record
from margotree.engines.bnb.sparse import Index, Partial, SparseBrancher, SparseTactics, SparseWorker
from margotree.engines.bnb.support_log import Multipliers, Note, SupportLog, multipliers_of, too_close
from margotree.engines.watch import Watch
from margotree.problem import Problem, topology
from margotree.problem.problem import FloatArray

#: Share of a bound that its multipliers may miss in a proof: less than what is left out of the claim.
_UNSURE = 1e-10


class ProvingBrancher(SparseBrancher):
    """Makes records and workers that take down in ``log`` what a proof needs."""

    def __init__(
        self, problem: Problem, limit: float, tactics: SparseTactics | None, watch: Watch, log: SupportLog
    ) -> None:
        super().__init__(problem, limit, tactics, watch)
        self.log = log

    def root(self) -> Record:
        root = super().root()
        note = Note(number=0, place=np.zeros(self.problem.n_samples, np.uint16))
        return replace(root, data=(*root.data[:-1], note))

    def worker(self) -> SparseWorker:
        return ProvingWorker(self)


class ProvingWorker(SparseWorker):
    """One thread's memory and its dives."""

    def __init__(self, brancher: ProvingBrancher) -> None:
        super().__init__(brancher)
        self.log = brancher.log
        self.now: Partial | None = None  # the search node that is being solved, if the proof knows it
        self.cutoff = math.inf
        self.width = [0] * self.problem.n_nodes
        for chooser in self.choosers:
            assert isinstance(chooser, ListChooser)
            chooser.prove = partial(self._prove, chooser)

    def solve(self, now: Partial, cutoff: float, thorough: bool = False) -> Partial:
        self.now, self.cutoff = (None if now.note is None else now), cutoff
        return super().solve(now, cutoff, thorough)

    # -- bounds ----------------------------------------------------------------------------------------------------

    def _prove(self, chooser: ListChooser, pool: Pool, lb: FloatArray, members: Index, side: FloatArray) -> None:
        """Take down what raised bounds; one that its multipliers do not reach is lowered to what they do."""
        if self.now is None:
            return
        t = int(chooser.t)
        cost = self.log.cost[t][members]
        for p in np.flatnonzero(lb > pool.lb).tolist():
            wanted = float(lb[p]) * (1.0 - _UNSURE)
            found, self.width[t] = multipliers_of(
                self.samples, members, side, self.eps, chooser.table, int(pool.items[p]), cost, wanted, self.width[t]
            )
            value = -math.inf if found is None else found.value
            if found is not None and value > pool.lb[p]:
                value = self._raise(self.now, t, members, side, found)
            if value < wanted:
                lb[p] = max(float(pool.lb[p]), value)

    def _raise(self, now: Partial, t: int, members: Index, side: FloatArray, found: Multipliers) -> float:
        """Write multipliers down, after the places of all samples that count; returns what they prove."""
        assert now.note is not None
        cost, v = self.log.cost[t][members], found.v
        known = self.log.side_of[t][now.note.place[members]]
        apart = (v < 0.0) | (v > cost) | ((side == -self.samples.y[members]) & (v < cost * (1.0 - 1e-12)))
        apart |= self.eps >= 1.0
        counts = ((known == NOT_HERE) & (v != 0.0)) | ((known != side) & (side != 0.0) & apart)
        # Nobody knows the last digit of the one that balances, so its range must be the one that it was meant for.
        counts[found.balance] = known[found.balance] != side[found.balance]
        for j in members[counts].tolist():
            if not self._tell(now, j):
                return -math.inf
        known = self.log.side_of[t][now.note.place[members]]
        self.log.raise_bounds(now.note.number, t, members, known, found)
        return found.value

    def _shut(self, now: Partial) -> None:
        assert now.note is not None
        self.log.shut(now.note.number, now.bound)

    # -- branching -------------------------------------------------------------------------------------------------

    def _each_support(self, now: Partial, t: int, cutoff: float) -> list[Partial]:
        assert now.note is not None
        pool = now.pools[t]
        race = np.flatnonzero(now.bound - pool.bound + pool.lb < cutoff).tolist()
        ones = [pool.one(p) for p in race]
        supports = [set(self.choosers[t].columns(one).tolist()) for one in ones]
        numbers = self.log.one_by_one(now.note.number, t, supports)
        found = [replace(now.with_pool(t, one), note=now.note.child(k)) for one, k in zip(ones, numbers, strict=True)]
        found.sort(key=lambda c: c.bound)
        return [self.solve(found[0], cutoff), *found[1:]]

    def _both_sides(self, now: Partial, i: int, narrow: float, cutoff: float) -> list[Partial]:
        told = now.note
        assert told is not None
        self.cutoff = cutoff
        if not self._tell(now, i):  # not to be expected; it is then decided where the proof knows it to be
            place = now.place.copy()
            place[i] = told.place[i]
            now = replace(now, place=place)
        t = int(now.place[i])
        children = []
        for way, number in enumerate(self.log.split(b"S", told.number, i, t)):
            place, note = now.place.copy(), told.child(number)
            place[i] = note.place[i] = 2 * t + 1 + way
            after = place.copy()
            if lookahead.settle_sides(self.samples, self.planes, after, narrow):
                place = after
            elif self._impossible(replace(now, place=place, note=note)):
                continue
            children.append(self.solve(replace(self._moved(now, place), note=note), cutoff))
        return children

    # -- sides that follow -----------------------------------------------------------------------------------------

    def _tell(self, now: Partial, j: int, again: bool = True) -> bool:
        """Have the proof know where sample ``j`` is, if it can be shown that it must be there."""
        note = now.note
        assert note is not None
        for t, side in topology.path_to(int(now.place[j])):
            if note.place[j] != t:
                continue
            found = self._too_close(now, j, t, -side)
            if found is None and again:  # it may follow from others that the proof does not know yet
                for other in np.flatnonzero(note.place != now.place).tolist():
                    if other != j:
                        self._tell(now, other, again=False)
                found = self._too_close(now, j, t, -side)
            if found is None:
                return False
            nodes = self.log.split(b"S", note.number, j, t)
            note.number, other = nodes if side < 0 else nodes[::-1]
            self.log.shut_by(other, t, *found)
            note.place[j] = 2 * t + (2 if side > 0 else 1)
        return True

    def _impossible(self, now: Partial) -> bool:
        """Close a search node whose sides no split can take, if that can be shown: as they are, or by a sample that can
        go to neither side."""
        assert now.note is not None
        for j in np.flatnonzero(now.note.place != now.place).tolist():
            self._tell(now, j)
        number = now.note.number
        for t in range(self.brancher.last):
            found = self._too_close(now, -1, t, 0)
            if found is not None:
                self.log.shut_by(number, t, *found)
                return True
            for j in np.flatnonzero(now.note.place == t).tolist():
                left, right = self._too_close(now, j, t, -1), self._too_close(now, j, t, 1)
                if left is not None and right is not None:
                    nodes = self.log.split(b"S", number, j, t)
                    self.log.shut_by(nodes[0], t, *left)
                    self.log.shut_by(nodes[1], t, *right)
                    return True
        return False

    def _too_close(self, now: Partial, j: int, t: int, side: int) -> tuple[Index, FloatArray, Multipliers] | None:
        """What shows that sample ``j`` cannot go to this side of ``t`` (-1: that no split takes sides as they are)."""
        pool = now.pools[t]
        if len(pool.lb) > 1 or now.note is None:
            return None
        known = self.log.side_of[t][now.note.place]
        if j >= 0:
            known[j] = side
        members = np.flatnonzero((known == 1.0) | (known == -1.0))
        Z = self.samples.X[np.ix_(self.choosers[t].columns(pool), members)].T
        y, cost = self.samples.y[members], self.log.cost[t][members]
        new = int(np.searchsorted(members, j)) if j >= 0 else -1
        found = too_close(Z, y, cost, known[members], self.eps, self.cutoff, new)
        return None if found is None else (members, known[members], found)
