"""Branch and bound for the best tree of several classes: a tree with a certificate (docs/multiclass.md).

Decisions are which side a class wants at an upper node, then on which side of it a sample lies; labels of last-level
nodes are never branched on, a node costs the least over the pairs that are left.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import replace

import numpy as np

from margotree.engines import compiled_parts
from margotree.engines.base import Answer, Engine
from margotree.engines.local_search.search import Effort, run_local_search
from margotree.engines.multiclass.box import Box, Boxes
from margotree.engines.multiclass.branching import Cut, choose
from margotree.engines.numba_backend import Part
from margotree.engines.polish import polish, without_noise, without_rounded_losses
from margotree.engines.presolve import MODERATE, merge_duplicates, merging_error
from margotree.engines.run_control import RunControl
from margotree.problem import Choices, Problem, Splits, TrainingProblem
from margotree.solution import Stopped, relative_gap

#: The alternating search's share of the time, where a proof is likely and where it is not (more rows or levels than
#: these); its most in seconds; its starts where work is counted in nodes.
_SHARE, _LARGE_SHARE, _FEW_ROWS, _FEW_LEVELS = 0.25, 0.7, 400, 2
_MOST, _STARTS = 600.0, 20
_EFFORT, _LARGE_EFFORT = Effort(least=15, most=400, patience=20), Effort(least=20, most=1000, patience=30)
#: A tree this near to the best is polished.
_NEAR = 1.02
#: Decisions tried out before one is taken.
_TRIES = 4
#: Boxes between two reports, and bytes that one takes beside its arrays.
_EVERY, _BYTES = 50, 2_000
#: Beyond so many samples a bound would not get anywhere: only the alternating search runs, and the root is bounded.
_LARGE = 2_000


class ExactSearch:
    """The open boxes of one problem, lowest bound first, and the best tree so far."""

    def __init__(self, problem: Problem, control: RunControl, best: Splits) -> None:
        self.problem, self.control = problem, control
        self.boxes = Boxes(problem, control)
        self.best, self.value = best, problem.evaluate(best).objective
        self.done = math.inf  # the least bound of what was left for good
        self.nodes = 0
        self.f1 = math.nan
        self._open: list[tuple[float, int, Box]] = []
        self._number = itertools.count()
        self._seen: set[bytes] = set()

    @property
    def bound(self) -> float:
        lowest = self._open[0][0] if self._open else math.inf
        return min(lowest, self.done, self.value)

    @property
    def cutoff(self) -> float:
        """What a box must stay below to matter."""
        # A hair above the gap, so that what is cut off meets it in spite of rounding.
        return self.value * (1.0 - 0.999 * self.control.limits.gap)

    def run(self) -> Stopped:
        self._add(self.boxes.root())
        self.f1 = self.value
        while self._open:
            if relative_gap(self.value, self.bound) <= self.control.limits.gap:
                return Stopped.SOLVED
            if (reason := self._must_stop()) is not None:
                return reason
            _, _, box = heapq.heappop(self._open)
            self.nodes += 1
            self._branch(box)
            if self.nodes % _EVERY == 0:
                self._report()
        if relative_gap(self.value, self.bound) <= self.control.limits.gap:
            return Stopped.SOLVED
        # What was left for good was left with the bound of that moment: nodes are cut short where the time is up.
        return self._must_stop() or Stopped.PRECISION

    def _must_stop(self) -> Stopped | None:
        size = self.problem.n_samples * 8 + self.problem.n_nodes * self.problem.n_features * 8 + _BYTES
        if len(self._open) * size > self.control.limits.memory:
            return Stopped.MEMORY
        return self.control.must_stop(self.nodes)

    def _report(self) -> None:
        self.control.report("bnb", incumbent=self.value, bound=self.bound, nodes=self.nodes, open_nodes=len(self._open))

    def _add(self, box: Box) -> None:
        self._try_tree(box)
        if box.bound < self.cutoff:
            heapq.heappush(self._open, (box.bound, next(self._number), box))
        else:
            self.done = min(self.done, box.bound)

    def _branch(self, box: Box) -> None:
        """Put the parts of a box back; a decision with only one way left is taken without branching."""
        while True:
            cuts = choose(self.boxes, box, _TRIES)
            if not cuts:
                # Nothing is open in it that its bound does not count: only rounding lies between it and the best.
                if box.bound < self.cutoff:
                    self._lengthen()
                self.done = min(self.done, box.bound)
                return
            forced, parts = None, None
            for cut in cuts:
                both = [self._part(box, cut, side) for side in (-1, 1)]
                alive = [part for part in both if part is not None]
                if len(alive) < 2:
                    forced = alive
                    break
                if parts is None or min(x.bound for x in alive) > min(x.bound for x in parts):
                    parts = alive
            if forced is not None:
                if not forced:
                    return
                box = forced[0]
                self._try_tree(box)
                if box.bound >= self.cutoff:
                    self.done = min(self.done, box.bound)
                    return
                continue
            assert parts is not None
            for part in parts:
                self._add(part)
            return

    def _part(self, box: Box, cut: Cut, side: int) -> Box | None:
        # What is cut off here costs at least the cutoff of now; values only fall, so that it counts for good.
        cutoff = self.cutoff
        if cut.t < 0:
            part = self.boxes.with_sample(box, cut.who, side, cutoff)
        else:
            part = self.boxes.with_side(box, cut.t, cut.who, side, cutoff)
        if part is None:
            self.done = min(self.done, cutoff)
        return part

    def _try_tree(self, box: Box) -> None:
        """The box's own hyperplanes as a tree; polished if it is among the best."""
        found = self.problem.evaluate(box.splits)
        if found.feasible and found.objective < self.value:
            self._take(box.splits, found.objective)
        node = self.boxes.route(box)  # a sample may lie a rounding off the side on which it was placed
        if min(found.objective, box.bound) > _NEAR * self.value or (key := node.tobytes()) in self._seen:
            return
        if found.objective > _NEAR * self.value and np.array_equal(node, found.node):
            return
        self._seen.add(key)
        sides = np.where(box.sides != 0, box.sides, found.choices.sides)
        choices = Choices(sides=sides, labels=self.boxes.labels(box))
        tree = polish(self.problem, node, None, self.control, choices=choices, search_supports=True)
        if tree is not None:
            value = self.problem.evaluate(tree)
            if value.feasible and value.objective < self.value:
                self._take(tree, value.objective)

    def _lengthen(self) -> None:
        """Rid the best tree of losses that are rounding."""
        tree = without_rounded_losses(self.problem, self.best)
        if tree is not self.best:
            self._take(tree, self.problem.evaluate(tree).objective)

    def _take(self, tree: Splits, value: float) -> None:
        self.best, self.value = tree, value
        self._report()


class BranchAndBound(Engine[Problem]):
    """The alternating search for a good tree, then branch and bound for a proof."""

    name = "bnb"
    models = frozenset({"margot", "hfs", "sfs"})
    notes_trees = True

    def makes_start(self, problem: Problem) -> bool:
        return True

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        return (*compiled_parts.of_nodes(problem), *compiled_parts.of_choices(problem))

    def search(self, problem: Problem, control: RunControl, start: Splits | None) -> Answer:
        problem, stands_for = merge_duplicates(problem, MODERATE)
        large = problem.n_samples > _LARGE
        easy = problem.n_samples <= _FEW_ROWS and problem.depth <= _FEW_LEVELS
        share = 1.0 if large else _SHARE if easy else _LARGE_SHARE
        seconds = share * control.remaining if large else min(_MOST, share * control.remaining)
        part, effort = control.part(seconds), _LARGE_EFFORT if large else _EFFORT
        if control.by_nodes:
            part, effort = control, replace(effort, most=int(min(_STARTS, control.limits.nodes)))
        best = run_local_search(problem, [] if start is None else [start], part, effort)
        f0 = problem.evaluate(best).objective
        if large:
            stopped = control.must_stop() or Stopped.HEURISTIC
            return Answer(splits=without_noise(problem, best), stopped=stopped, bound=0.0, f0=f0)
        search = ExactSearch(problem, control, best)
        stopped = search.run()
        bound = min(search.bound, search.value) * (1.0 - merging_error(stands_for))
        if stopped is Stopped.SOLVED and relative_gap(search.value, bound) > control.limits.gap:
            stopped = Stopped.PRECISION
        return Answer(
            splits=without_noise(problem, search.best),
            stopped=stopped,
            bound=bound,
            nodes=search.nodes,
            f0=f0,
            f1=search.f1,
        )


def proved_value(problem: Problem, gap: float = 1e-9) -> tuple[float, float]:
    """The best value and its bound, for small problems; what tests compare with brute force."""
    from margotree.engines.run_control import Limits

    control = RunControl(Limits(gap=gap))
    search = ExactSearch(problem, control, run_local_search(problem, [], control, Effort(least=3, most=3)))
    search.run()
    return search.value, float(np.minimum(search.bound, search.value))
