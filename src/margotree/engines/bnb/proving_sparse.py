"""The search over lists of supports that leaves a proof behind (`support_log` writes it down).

Sides that follow from others are told to the proof only once a sample that takes one counts in a bound: few do.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from margotree.engines.bnb.kernels import followed, lookahead, multipliers
from margotree.engines.bnb.kernels.members import Members
from margotree.engines.bnb.kernels.points import EACH, LEAD, RAISE, new_pen
from margotree.engines.bnb.pools import ListChooser, Pool
from margotree.engines.bnb.search import Record
from margotree.engines.bnb.sparse import Index, Partial, SparseBrancher, SparseTactics, SparseWorker
from margotree.engines.bnb.support_log import Note, SupportLog
from margotree.engines.watch import Watch
from margotree.problem import Problem
from margotree.problem.problem import FloatArray

#: Share of a bound that its multipliers may miss in a proof: less than what is left out of the claim.
_UNSURE = 1e-10
#: Steps, and bytes of steps, that are made together.
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
        self._proving = brancher
        self.now: Partial | None = None  # the search node that is being solved, if the proof knows it
        self.cutoff = math.inf
        self.pen = new_pen(_ROOM + LEAD + EACH * self.problem.n_samples)
        self.ends = np.zeros(_TOGETHER, np.int64)
        for chooser in self.choosers:
            assert isinstance(chooser, ListChooser)
            chooser.prove = partial(self._prove, chooser)

    @property
    def log(self) -> SupportLog:
        return self._proving.log

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
                np.int64(now.note.number), np.int64(t), self.pen, self.ends, v,
            )  # fmt: skip
            self._take_down(t, self.ends[:written].tolist())
            if balance >= 0:
                if p == asked or not self._told(now, members, v, balance):
                    lb[p], p = pool.lb[p], p + 1
                asked = p
                members = members._replace(known=self.log.side_of[t][now.note.place[who]])

    def _take_down(self, t: int, ends: list[int]) -> None:
        if ends:
            text, last = self.pen.out[: ends[-1]].tobytes(), ends[-2] if len(ends) > 1 else 0
            self.log.raised(text, len(ends), t, text[last + RAISE :])

    def _told(self, now: Partial, members: Members, v: FloatArray, balance: int) -> bool:
        """Have the proof know the places of all members that count; whether it does."""
        counts = multipliers.all_unknown(self.samples, members, self.eps, v, np.int64(balance))
        return self._tell(now, members.who[counts])

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
        if not self._tell(now, np.array([i])):  # not to be expected; it is then decided where the proof knows it to be
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

    def _tell(self, now: Partial, who: Index) -> bool:
        """Have the proof know where these samples are, if it can be shown that they must be there; whether it does."""
        note = now.note
        assert note is not None
        for t in range(self.brancher.last):
            self._follow(now, note, who, t)
        return bool(np.all(note.place[who] == now.place[who]))

    def _follow(self, now: Partial, note: Note, who: Index, t: int) -> None:
        """The same for those at tree node ``t``, as far as to its children."""
        pool, who = now.pools[t], who[(note.place[who] == t) & (now.place[who] != t)]
        if len(pool.lb) > 1:
            return
        while len(who) > 0:
            free = self.log.reserve(2 * len(who))
            numbers = np.array([note.number, free])
            looked, told, end, last = followed.follow(
                self.samples, now.place, note.place, who, self.log.side_of, np.int64(t), self.eps,
                self.choosers[t].columns(pool), self.log.cost[t], self.cutoff, self.log.unit, numbers, self.pen,
            )  # fmt: skip
            self.log.give_back(int(numbers[1]), free + 2 * len(who))
            if told:
                text = self.pen.out[:end].tobytes()
                self.log.followed(text, told, t, text[last : end - (self.log.T - 1 - t)])
                note.number = int(numbers[0])
            who = who[looked:]

    def _impossible(self, now: Partial) -> bool:
        """Close a search node whose sides no split can take, if that can be shown: as they are, or by a sample that can
        go to neither side."""
        assert now.note is not None
        self._tell(now, np.flatnonzero(now.note.place != now.place))
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
        end, _ = followed.too_close(
            self.samples, now.note.place, self.log.side_of[t], np.int64(j), float(side), self.eps,
            self.choosers[t].columns(pool), self.log.cost[t], self.cutoff, self.log.unit, self.pen,
        )  # fmt: skip
        return self.pen.out[:end].tobytes() if end else None
