"""The search over lists of supports with a proof (`support_proof_log` writes it).

The search places samples whose side is implied by other samples. The proof contains the decisions about such a sample
only if a bound depends on its place, which is rare. Hence a sample has two places: that of the search
(``SupportNode.place``) and that of the proof (``ProofNode.place``), which is the same tree node or one above it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from margotree.engines.exact.kernels import implied_sides, lookahead, recorded_bounds
from margotree.engines.exact.kernels.proof_bytes import BYTES_PER_SAMPLE, POINT_HEAD, new_buffer
from margotree.engines.exact.search import Record
from margotree.engines.exact.support_branching import Index, SupportBrancher, SupportNode, SupportTactics, SupportWorker
from margotree.engines.exact.support_pools import ListChooser, Pool
from margotree.engines.exact.support_proof_log import ProofNode, SupportLog
from margotree.engines.run_control import RunControl
from margotree.problem import Problem
from margotree.problem.problem import FloatArray

#: Share by which multipliers may miss a bound: less than the share that is subtracted from the claimed bound.
_TOLERANCE = 1e-10
#: Bytes of steps that a kernel writes in one call.
_ROOM = 1 << 20


class SupportProofBrancher(SupportBrancher):
    """The brancher whose workers record in ``log`` what a proof needs."""

    log: SupportLog

    def __init__(
        self, problem: Problem, limit: float, tactics: SupportTactics | None, control: RunControl, log: SupportLog
    ) -> None:
        super().__init__(problem, limit, tactics, control)
        self.log = log

    def root(self) -> Record:
        root = super().root()
        proof_node = ProofNode(number=0, place=np.zeros(self.problem.n_samples, np.uint16))
        return replace(root, data=(*root.data[:-1], proof_node))

    def worker(self) -> SupportWorker:
        return SupportProofWorker(self)


class SupportProofWorker(SupportWorker):
    """The memory of one thread, and its dives."""

    def __init__(self, brancher: SupportProofBrancher) -> None:
        super().__init__(brancher)
        self._proving = brancher
        self.now: SupportNode | None = None  # the current search node, if it is part of the proof
        self.cutoff = math.inf
        self.buffer = new_buffer(_ROOM + POINT_HEAD + BYTES_PER_SAMPLE * self.problem.n_samples)
        self.terms = implied_sides.ProofTerms(brancher.log.side_of, brancher.log.cost, self.eps, brancher.log.unit)
        widest = 0
        for chooser in self.choosers:
            assert isinstance(chooser, ListChooser)
            chooser.prove = partial(self._prove, chooser)
            widest = max(widest, chooser.table.cols.shape[1])
        self.placed = implied_sides.new_placed_samples(brancher.last, widest, self.problem.n_samples)

    @property
    def log(self) -> SupportLog:
        """The proof log of the search."""
        return self._proving.log

    def solve(self, now: SupportNode, cutoff: float, thorough: bool = False) -> SupportNode:
        self.now, self.cutoff = (None if now.proof_node is None else now), cutoff
        return super().solve(now, cutoff, thorough)

    # -- bounds ----------------------------------------------------------------------------------------------------

    def _prove(
        self, chooser: ListChooser, pool: Pool, lb: FloatArray, index: Index, side: FloatArray, target: float
    ) -> tuple[int, bool] | None:
        """Raise the bounds ``lb`` of the supports in ``pool``, and write the steps that prove them.

        ``index`` are the samples at the tree node of ``chooser``, ``side`` is the side that each takes (0: undecided).
        Bounds are raised until the least one is exact or at least ``target``. Returns the position of the least bound,
        and whether it is exact; None if the search node is not part of the proof.
        """
        now, at, over = self.now, 0, False
        if now is None or now.proof_node is None:
            return None
        self._load_supports(now)
        state = np.zeros(len(lb), np.int8)
        while not over:
            numbers = self._reserve_numbers(now, index)
            at, over, end, steps = recorded_bounds.search(
                self.samples, self.terms, self.placed, chooser.t, index, side, now.place, now.proof_node.place,
                self.cutoff, chooser.table, pool.items, lb, state, target, chooser.tol, chooser.work, _TOLERANCE,
                numbers, self.buffer,
            )  # fmt: skip
            self._write(now.proof_node, numbers, end, steps)
        return int(at), bool(state[at] == recorded_bounds.EXACT)

    def _load_supports(self, now: SupportNode) -> None:
        """Write the supports of upper tree nodes with one support to the arrays of the kernels."""
        self.placed.n_placed[:] = -1
        for t in range(self.brancher.last):
            columns = self.choosers[t].columns(now.pools[t]) if len(now.pools[t].lb) == 1 else None
            self.placed.size[t] = -1 if columns is None else len(columns)
            if columns is not None:
                self.placed.cols[t, : len(columns)] = columns

    def _count_unknown(self, now: SupportNode, index: Index) -> int:
        """The number of the samples ``index`` whose place in the proof is not their place in the search."""
        assert now.proof_node is not None
        return int(np.count_nonzero(now.proof_node.place[index] != now.place[index]))

    def _reserve_numbers(self, now: SupportNode, index: Index) -> Index:
        """Reserve numbers of search nodes for all decisions that can move the samples ``index`` to their places.

        Returns the number of the current search node, the first reserved number, and the end of the reserved numbers.
        Kernels update the first two with each decision.
        """
        assert now.proof_node is not None
        count = 2 * self.problem.depth * self._count_unknown(now, index)
        free = self.log.reserve(count)
        return np.array([now.proof_node.number, free, free + count])

    def _write(self, proof_node: ProofNode, numbers: Index, end: int, steps: int) -> None:
        """Add the first ``end`` bytes of the buffer, in which a kernel has written ``steps`` steps, to the proof log.

        ``numbers`` are those of :meth:`_reserve_numbers` after the call of the kernel; unused ones are released.
        """
        number, unused, last = numbers.tolist()
        proof_node.number = number
        self.log.release(unused, last)
        if steps:
            self.log.written(self.buffer.out[:end].tobytes(), steps)

    def _close_node(self, now: SupportNode) -> None:
        """Close the search node in the proof, by the tables of bounds of its supports."""
        assert now.proof_node is not None
        self.log.close_node(now.proof_node.number, now.bound)

    # -- branching -------------------------------------------------------------------------------------------------

    def _each_support(self, now: SupportNode, t: int, cutoff: float) -> list[SupportNode]:
        assert now.proof_node is not None
        pool = now.pools[t]
        open_supports = np.flatnonzero(now.bound - pool.bound + pool.lb < cutoff).tolist()
        ones = [pool.one(p) for p in open_supports]
        supports = [set(self.problem.group_of[self.choosers[t].columns(one)].tolist()) for one in ones]
        numbers = self.log.separate_supports(now.proof_node.number, t, supports)
        found = [
            replace(now.with_pool(t, one), proof_node=now.proof_node.child(k))
            for one, k in zip(ones, numbers, strict=True)
        ]
        found.sort(key=lambda c: c.bound)
        return [self.solve(found[0], cutoff), *found[1:]]

    def _both_sides(self, now: SupportNode, i: int, min_distance: float, cutoff: float) -> list[SupportNode]:
        proof_node = now.proof_node
        assert proof_node is not None
        self.cutoff = cutoff
        if not self._prove_places(now, np.array([i])):  # rare: it is then decided at its place in the proof
            place = now.place.copy()
            place[i] = proof_node.place[i]
            now = replace(now, place=place)
        t = int(now.place[i])
        children = []
        for way, number in enumerate(self.log.split(b"S", proof_node.number, i, t)):
            place, child_node = now.place.copy(), proof_node.child(number)
            place[i] = child_node.place[i] = 2 * t + 1 + way
            after = place.copy()
            if lookahead.settle_sides(self.samples, self.hyperplanes, after, min_distance):
                place = after
            elif self._close_if_impossible(replace(now, place=place, proof_node=child_node)):
                continue
            children.append(self.solve(replace(self._with_places(now, place), proof_node=child_node), cutoff))
        return children

    # -- implied sides ---------------------------------------------------------------------------------------------

    def _prove_places(self, now: SupportNode, index: Index) -> bool:
        """Write decisions to the proof which move the samples ``index`` to their places in the search.

        A decision is written only if the other side can be excluded. Returns whether all these samples then have the
        same place in the proof as in the search.
        """
        proof_node = now.proof_node
        assert proof_node is not None
        self._load_supports(now)
        finished = not self._count_unknown(now, index)
        while not finished:  # the buffer of one call may be too small
            numbers = self._reserve_numbers(now, index)
            end, written, finished = implied_sides.prove_sides(
                self.samples,
                self.terms,
                self.placed,
                now.place,
                proof_node.place,
                index,
                self.cutoff,
                numbers,
                self.buffer,
            )
            self._write(proof_node, numbers, end, 2 * written)
        return not self._count_unknown(now, index)

    def _close_if_impossible(self, now: SupportNode) -> bool:
        """Close a search node that has no tree below the cutoff, if that can be proved; return whether it was closed.

        The proof is either that no split of a tree node separates its placed samples, or that a sample at the node can
        go to neither side.
        """
        assert now.proof_node is not None
        self._prove_places(now, np.flatnonzero(now.proof_node.place != now.place))
        number = now.proof_node.number
        for t in range(self.brancher.last):
            found = self._excluding_point(now, -1, t, 0)
            if found is not None:
                self.log.close_by_point(number, t, found)
                return True
            for j in np.flatnonzero(now.proof_node.place == t).tolist():
                left, right = self._excluding_point(now, j, t, -1), self._excluding_point(now, j, t, 1)
                if left is not None and right is not None:
                    nodes = self.log.split(b"S", number, j, t)
                    self.log.close_by_point(nodes[0], t, left)
                    self.log.close_by_point(nodes[1], t, right)
                    return True
        return False

    def _excluding_point(self, now: SupportNode, j: int, t: int, side: int) -> bytes | None:
        """The multipliers, as bytes, which prove that sample ``j`` cannot go to ``side`` (-1 or 1) of tree node ``t``.

        With ``j`` -1 they prove that no split of ``t`` below the cutoff separates the placed samples. None if there are
        none.
        """
        if self.placed.size[t] < 0 or now.proof_node is None:
            return None
        end, _ = implied_sides.exclude_side(
            self.samples, self.terms, self.placed, now.proof_node.place, np.int64(t), np.int64(j), float(side),
            self.cutoff, self.buffer,
        )  # fmt: skip
        return self.buffer.out[:end].tobytes() if end else None
