"""The search over lists of supports that leaves a proof behind (`support_log` writes it down).

Sides that follow from others are told to the proof only once a sample that takes one counts in a bound: few do.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from margotree.engines.bnb.kernels import lookahead, multipliers
from margotree.engines.bnb.kernels.members import Members
from margotree.engines.bnb.kernels.points import EACH, LEAD, new_pen
from margotree.engines.bnb.pools import ListChooser, Pool
from margotree.engines.bnb.search import Record
from margotree.engines.bnb.sparse import Index, Partial, SparseBrancher, SparseTactics, SparseWorker
from margotree.engines.bnb.support_log import Note, SupportLog
from margotree.engines.watch import Watch
from margotree.problem import Problem, topology
from margotree.problem.problem import FloatArray

#: Share of a bound that its multipliers may miss in a proof: less than what is left out of the claim.
_UNSURE = 1e-10
#: Points, and bytes of points, that are made together.
_TOGETHER, _ROOM = 256, 1 << 18


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
        self.pen = new_pen(_ROOM + LEAD + EACH * self.problem.n_samples)
        self.ends = np.zeros(_TOGETHER, np.int64)
        for chooser in self.choosers:
            assert isinstance(chooser, ListChooser)
            chooser.prove = partial(self._prove, chooser)

    def solve(self, now: Partial, cutoff: float, thorough: bool = False) -> Partial:
        self.now, self.cutoff = (None if now.note is None else now), cutoff
        return super().solve(now, cutoff, thorough)

    # -- bounds ----------------------------------------------------------------------------------------------------

    def _prove(self, chooser: ListChooser, pool: Pool, lb: FloatArray, who: Index, side: FloatArray) -> None:
        """Take down what raised bounds; one that its multipliers do not reach is lowered to what they do."""
        now, t, p, asked = self.now, int(chooser.t), 0, -1
        if now is None or now.note is None:
            return
        members = Members(who, side, self.log.cost[t][who], self.log.side_of[t][now.note.place[who]])
        v = np.empty(len(who))
        while p < len(lb):
            p, written, balance = multipliers.raise_bounds(
                self.samples, members, self.eps, chooser.table, pool.items, pool.lb, lb, p, _UNSURE, self.log.unit,
                self.pen, self.ends, v,
            )  # fmt: skip
            self._take_down(now.note, t, self.ends[:written].tolist())
            if balance >= 0:
                if p == asked or not self._told(now, members, v, balance):
                    lb[p], p = pool.lb[p], p + 1
                asked = p
                members = members._replace(known=self.log.side_of[t][now.note.place[who]])

    def _take_down(self, note: Note, t: int, ends: list[int]) -> None:
        text = self.pen.out[: max(ends, default=0)].tobytes()
        self.log.raise_bounds(note.number, t, [text[a:b] for a, b in zip([0, *ends], ends, strict=False)])

    def _told(self, now: Partial, members: Members, v: FloatArray, balance: int) -> bool:
        """Have the proof know the places of all members that count; whether it does."""
        counts = multipliers.all_unknown(self.samples, members, self.eps, v, np.int64(balance))
        return all(self._tell(now, j) for j in members.who[counts].tolist())

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
            self.log.shut_by(other, t, found)
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
                self.log.shut_by(number, t, found)
                return True
            for j in np.flatnonzero(now.note.place == t).tolist():
                left, right = self._too_close(now, j, t, -1), self._too_close(now, j, t, 1)
                if left is not None and right is not None:
                    nodes = self.log.split(b"S", number, j, t)
                    self.log.shut_by(nodes[0], t, left)
                    self.log.shut_by(nodes[1], t, right)
                    return True
        return False

    def _too_close(self, now: Partial, j: int, t: int, side: int) -> bytes | None:
        """What shows that sample ``j`` cannot go to this side of ``t`` (-1: that no split takes sides as they are)."""
        pool = now.pools[t]
        if len(pool.lb) > 1 or now.note is None:
            return None
        end, _ = multipliers.too_close(
            self.samples, now.note.place, self.log.side_of[t], np.int64(j), float(side), self.eps,
            self.choosers[t].columns(pool), self.log.cost[t], self.cutoff, self.log.unit, self.pen,
        )  # fmt: skip
        return self.pen.out[:end].tobytes() if end else None
