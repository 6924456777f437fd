"""What a search writes down for its proof: its decisions, and the multipliers of every search node it closes.

Search nodes get their numbers at once; turning their records into steps is left to a thread of its own, so that
workers, which hold no GIL, go on meanwhile.
"""

from __future__ import annotations

import math
import queue
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margotree.engines.bnb.kernels import plunge as kernel
from margotree.engines.bnb.kernels.record import COLD, KINK_HERE, MUST_HERE
from margotree.engines.kernels.workspace import LOW, MID
from margotree.problem import Problem, topology
from margotree.problem.problem import FloatArray
from margotree.proof.write import NOTHING, Steps, point

Codes = NDArray[np.uint8]

#: Dives that may wait to be written down.
_WAITING = 16
_NOT_HERE = 2
#: Less than the truth in the last digits: what a checker makes of a sample's cost is a hair less, too.
_SHADE = 1.0 - 2.0**-50


class ProofLog:
    """The proof of one search, as it grows; ``unit`` brings values of the engine's problem to the user's."""

    def __init__(self, steps: Steps, problem: Problem, weights: FloatArray, unit: float) -> None:
        """``problem`` has equal samples merged, and ``weights`` are their sums, correctly rounded."""
        self.steps, self.unit = steps, unit
        self.weakest = math.inf  # the least own bound of a search node that was closed
        self.m, self.n, self.T, self.depth = problem.n_samples, problem.n_features, problem.n_nodes, problem.depth
        self.y = np.array(problem.y)
        self.cost = np.outer(problem.C, weights) * _SHADE
        self.side_of = _sides(self.T)
        self._last: list[tuple[Any, ...] | None] = [None] * self.T
        self._nodes = 1
        self._turn = threading.Lock()
        self._jobs: queue.Queue[Any] = queue.Queue(_WAITING)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def dive(
        self, node: int, log: NDArray[np.int64], codes: Codes, floats: FloatArray, bounds: FloatArray, hands_on: bool
    ) -> list[int]:
        """Take down a dive from search node ``node``; returns the numbers of the search nodes of its rows.

        ``hands_on`` tells that a settled search node is not closed but goes on elsewhere.
        """
        self._raise()
        closing = {kernel.SHUT, kernel.SHUT_TOO, kernel.HERE_SHUT} | (set() if hands_on else {kernel.HERE_SETTLED})
        numbers, splits, shut = [], [], []
        with self._turn:
            now = node
            for row, (what, item) in enumerate(log.tolist()):
                mine = now
                if what in (kernel.ASIDE, kernel.SHUT):
                    mine, follow = self._nodes, self._nodes + 1
                    self._nodes += 2
                    splits.append((row, now, item, mine, follow))
                    now = follow
                numbers.append(mine)
                if what in closing:
                    shut.append(row)
                    self.weakest = min(self.weakest, float(bounds[row]))
            self._jobs.put((splits, shut, numbers, codes.copy(), floats.copy()))
        return numbers

    def close(self, data: tuple[Any, ...], bound: float) -> None:
        """A record that was left waiting until its bound sufficed, or until the end."""
        self._raise()
        codes, floats, node = data
        with self._turn:
            self.weakest = min(self.weakest, bound)
            self._jobs.put(([], [0], [node], codes[None], floats[None]))

    def finish(self) -> Steps:
        """Wait until everything is written."""
        self._jobs.put(None)
        self._thread.join()
        self._raise()
        return self.steps

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure

    # -- in the thread that writes ---------------------------------------------------------------------------------

    def _write(self) -> None:
        while (job := self._jobs.get()) is not None:
            if self._failure is None:
                try:
                    self._steps_of(*job)
                except BaseException as failure:  # raised where the search comes by next
                    self._failure = failure

    def _steps_of(
        self, splits: list[Any], shut: list[int], numbers: list[int], codes: Codes, floats: FloatArray
    ) -> None:
        for row, node, item, mine, follow in splits:
            self._split(codes[row], node, item, mine, follow)
        for row in shut:
            self.steps.leaf(numbers[row], self._points(codes[row], floats[row]))

    def _split(self, codes: Codes, node: int, item: int, mine: int, follow: int) -> None:
        if item < self.m:
            place = int(codes[2 * item]) | int(codes[2 * item + 1]) << 8
            t = (place - 1) // 2
            first = place == 2 * t + 1
            kind, which = b"S", item
        else:
            t, which = divmod(item - self.m, self.n)
            first = codes[self._features_at(t) + which] == MUST_HERE
            kind = b"F"
        self.steps.split(kind, node, which, t, *((mine, follow) if first else (follow, mine)))

    def _features_at(self, t: int) -> int:
        return self.m * (2 + self.depth) + t * self.n

    def _points(self, codes: Codes, floats: FloatArray) -> list[bytes]:
        """The multipliers of every tree node in a record."""
        m, used, points = self.m, 0, []
        place = codes[: 2 * m].view("<u2")
        priced = len(codes) > self._features_at(0)
        for t in range(self.T):
            at = 2 * m + topology.level(t) * m
            side = self.side_of[t][place]
            here = np.flatnonzero(side != _NOT_HERE)
            side, status = side[here], codes[at : at + m][here]
            cold = COLD in status.tobytes()
            free = np.flatnonzero((status != LOW) & (status != MID)) if not cold else here[:0]
            nu = floats[used + 2 : used + 2 + len(free)]
            used += 2 + len(free)
            if priced:
                features = codes[self._features_at(t) : self._features_at(t) + self.n]
                used += int(np.count_nonzero(features == KINK_HERE))
            points.append(NOTHING if cold else self._remembered(t, here, side, status, free, nu))
        return points

    def _remembered(self, t: int, here: Any, side: Any, status: Codes, free: Any, nu: FloatArray) -> bytes:
        """The point of a tree node; neighbours share most of them."""
        key = (nu.tobytes(), status.tobytes(), side.tobytes(), here.tobytes())
        last = self._last[t]
        if last is None or last[0] != key:
            last = self._last[t] = (key, self._point(t, here, side, status, free, nu))
        return bytes(last[1])

    def _point(self, t: int, here: Any, side: Any, status: Codes, free: Any, nu: FloatArray) -> bytes:
        y, cost = self.y[here], self.cost[t][here]
        against = side == -y
        full = np.flatnonzero((status == MID) & ~against)
        if not len(full) and not len(free):
            return NOTHING
        low = np.where(against[free], -np.inf, 0.0)
        high = np.where(side[free] == y[free], np.inf, cost[free])
        given = np.minimum(np.maximum(np.where(against[free], -nu, nu), low), high)
        v = np.where(against, cost, 0.0)
        v[full] = cost[full]
        v[free] = given
        # The sample with most room takes what the others do not add up to.
        mu = y * v
        rest = math.fsum(mu[mu != 0.0].tolist())
        moved = given - rest * y[free]
        room = np.minimum(moved - low, high - moved)
        best = int(np.argmax(room)) if len(free) else -1
        if best >= 0 and room[best] > 0.0:
            balance = int(free[best])
        else:
            moved = v - rest * y
            low, high = np.where(against, -np.inf, 0.0), np.where(side == y, np.inf, cost)
            room = np.minimum(moved - low, high - moved)
            balance = int(np.argmax(room))
            if room[balance] < 0.0:
                return NOTHING  # weak, but true
        return point(here[full], here[free], given * self.unit, int(here[balance]))


def _sides(T: int) -> NDArray[np.int8]:
    """The side taken at tree node t (row) by a sample whose deepest known tree node is p (column)."""
    sides = np.full((T, T), _NOT_HERE, np.int8)
    for p in range(T):
        sides[p, p] = 0
        for t, side in topology.path_to(p):
            sides[t, p] = side
    return sides
