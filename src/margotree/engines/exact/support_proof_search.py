"""The search over lists of supports that leaves a proof behind (`support_log` writes it down).

Sides that follow from others are told to the proof only once a sample that takes one counts in a bound: few do.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from margotree.engines.exact.kernels import implied_sides, lookahead, recorded_bounds
from margotree.engines.exact.kernels.proof_bytes import EACH, LEAD, new_pen
from margotree.engines.exact.search import Record
from margotree.engines.exact.support_branching import Index, Partial, SupportBrancher, SupportTactics, SupportWorker
from margotree.engines.exact.support_pools import ListChooser, Pool
from margotree.engines.exact.support_proof_log import Note, SupportLog
from margotree.engines.run_control import RunControl
from margotree.problem import Problem
from margotree.problem.problem import FloatArray

#: Share of a bound that its multipliers may miss in a proof: less than what is left out of the claim.
_UNSURE = 1e-10
#: Bytes of steps that are made together.
_ROOM = 1 << 20


class SupportProofBrancher(SupportBrancher):
    """Makes records and workers that take down in ``log`` what a proof needs."""

    def __init__(
        self, problem: Problem, limit: float, tactics: SupportTactics | None, control: RunControl, log: SupportLog
    ) -> None:
        super().__init__(problem, limit, tactics, control)
        self.log = log

    def root(self) -> Record:
        root = super().root()
        note = Note(number=0, place=np.zeros(self.problem.n_samples, np.uint16))
        return replace(root, data=(*root.data[:-1], note))

    def worker(self) -> SupportWorker:
        return SupportProofWorker(self)


class SupportProofWorker(SupportWorker):
    """One thread's memory and its dives."""

    def __init__(self, brancher: SupportProofBrancher) -> None:
        super().__init__(brancher)
        self._proving = brancher
        self.now: Partial | None = None  # the search node that is being solved, if the proof knows it
        self.cutoff = math.inf
        self.pen = new_pen(_ROOM + LEAD + EACH * self.problem.n_samples)
        self.terms = implied_sides.Terms(brancher.log.side_of, brancher.log.cost, self.eps, brancher.log.unit)
        widest = 0
        for chooser in self.choosers:
            assert isinstance(chooser, ListChooser)
            chooser.prove = partial(self._prove, chooser)
            widest = max(widest, chooser.table.cols.shape[1])
        self.placed = implied_sides.new_placed(brancher.last, widest, self.problem.n_samples)

    @property
    def log(self) -> SupportLog:
        return self._proving.log

    def solve(self, now: Partial, cutoff: float, thorough: bool = False) -> Partial:
        self.now, self.cutoff = (None if now.note is None else now), cutoff
        return super().solve(now, cutoff, thorough)

    # -- bounds ----------------------------------------------------------------------------------------------------

    def _prove(
        self, chooser: ListChooser, pool: Pool, lb: FloatArray, who: Index, side: FloatArray, target: float
    ) -> tuple[int, bool] | None:
        """Raise bounds of a tree node's supports, and take down why; the position of the least, and whether it is
        exact.  Nothing if the proof does not know the search node."""
        now, at, over = self.now, 0, False
        if now is None or now.note is None:
            return None
        self._show_supports(now)
        state = np.zeros(len(lb), np.int8)
        while not over:
            numbers = self._numbered(now, who)
            at, over, end, steps = recorded_bounds.search(
                self.samples, self.terms, self.placed, chooser.t, who, side, now.place, now.note.place, self.cutoff,
                chooser.table, pool.items, lb, state, target, chooser.tol, chooser.work, _UNSURE, numbers, self.pen,
            )  # fmt: skip
            self._write(now.note, numbers, end, steps)
        return int(at), bool(state[at] == recorded_bounds.EXACT)

    def _show_supports(self, now: Partial) -> None:
        """Lay out the supports of upper tree nodes that have one only."""
        self.placed.held[:] = -1
        for t in range(self.brancher.last):
            columns = self.choosers[t].columns(now.pools[t]) if len(now.pools[t].lb) == 1 else None
            self.placed.size[t] = -1 if columns is None else len(columns)
            if columns is not None:
                self.placed.cols[t, : len(columns)] = columns

    def _told_less(self, now: Partial, who: Index) -> int:
        """How many of these samples the proof does not know to be where they are."""
        assert now.note is not None
        return int(np.count_nonzero(now.note.place[who] != now.place[who]))

    def _numbered(self, now: Partial, who: Index) -> Index:
        """The number of a search node, which changes with decisions, the first of numbers for all that these samples
        may take on their way to where they are, and where those numbers end."""
        assert now.note is not None
        count = 2 * self.problem.depth * self._told_less(now, who)
        free = self.log.reserve(count)
        return np.array([now.note.number, free, free + count])

    def _write(self, note: Note, numbers: Index, end: int, steps: int) -> None:
        """Take down what a kernel has written with such numbers, and give back those that it did not need."""
        number, unused, last = numbers.tolist()
        note.number = number
        self.log.give_back(unused, last)
        if steps:
            self.log.written(self.pen.out[:end].tobytes(), steps)

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
        self._show_supports(now)
        enough = not self._told_less(now, who)
        while not enough:
            numbers = self._numbered(now, who)
            end, told, enough = implied_sides.follow(
                self.samples, self.terms, self.placed, now.place, note.place, who, self.cutoff, numbers, self.pen
            )
            self._write(note, numbers, end, 2 * told)
        return not self._told_less(now, who)

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
        if self.placed.size[t] < 0 or now.note is None:
            return None
        end, _ = implied_sides.too_close(
            self.samples, self.terms, self.placed, now.note.place, np.int64(t), np.int64(j), float(side), self.cutoff,
            self.pen,
        )  # fmt: skip
        return self.pen.out[:end].tobytes() if end else None
