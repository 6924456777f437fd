"""Our own exact engine for OCT-1."""

from __future__ import annotations

import numpy as np

from margotree.baselines.oct.cart import cart
from margotree.baselines.oct.enumerate import SLACK, Cut, Enumeration
from margotree.baselines.oct.merged_samples import IndexArray
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.tree_cleanup import build, lay_out, settle
from margotree.engines import Answer, Engine, RunControl
from margotree.engines.mip.adapter import Progress, run_watched
from margotree.engines.numba_backend import Part
from margotree.problem import Splits, TrainingProblem, topology
from margotree.solution import Stopped

#: What has to be compiled.
KERNELS = Part(f"{__name__}:enumerate_tiny", 5.0)


class Search(Engine[OctProblem]):
    """Enumeration with bounds: proves depth 2 in seconds where the MILP leaves a gap after minutes.

    The work grows with (number of different values) ** (depth - 1); at a time limit the best tree so far is returned,
    with the bound that follows from equal samples with different labels.
    """

    name = "search"
    models = frozenset({"oct_1"})

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        return (KERNELS,)

    def search(self, problem: OctProblem, control: RunControl, start: Splits | None) -> Answer:
        if not problem.read(control):
            # The start was found without the points, so it does not split, or the user gave it.
            tree = lay_out(problem, None) if start is None else start
            return Answer(splits=tree, stopped=control.must_stop() or Stopped.TIME, bound=0.0)
        first = _first(problem, start, control)
        value = problem.evaluate(first).objective
        floor = problem.floor
        if (reason := control.must_stop()) is not None:
            return Answer(splits=first, stopped=reason, bound=floor)
        work = Enumeration(problem, value * problem.baseline)
        run_watched(work.run, work.halt, control, _Live(work, problem.baseline))
        best = _better(problem, work.best, first)
        stopped = (control.must_stop() or Stopped.TIME) if work.halted else Stopped.SOLVED
        objective = problem.evaluate(best).objective
        return Answer(
            splits=best,
            stopped=stopped,
            bound=objective if stopped is Stopped.SOLVED else min(floor, objective),
            nodes=int(work.live[1]),
            f0=value,
        )


class _Live(Progress):
    """Reads the enumeration's own numbers whenever the waiting thread asks."""

    def __init__(self, work: Enumeration, baseline: float) -> None:
        super().__init__("search")
        self._work, self._baseline = work, baseline

    def tell(self, control: RunControl) -> None:
        cost, subsets = self._work.live
        self.note(incumbent=float(cost) / self._baseline, bound=0.0, nodes=int(subsets))
        super().tell(control)


def enumerate_tiny() -> None:
    """Enumerate the trees of a tiny problem, to have the kernels compiled."""
    tiny = OctProblem.make([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], depth=3)
    Enumeration(tiny, 2.0).run()


def _first(problem: OctProblem, start: Splits | None, control: RunControl) -> Splits:
    given = None if start is None else settle(problem, start, control)
    return cart(problem, control) if given is None else given


def _better(problem: OctProblem, found: Cut | None, first: Splits) -> Splits:
    tree = None if found is None else _splits(problem, found)
    if tree is None:
        return first
    gain = problem.evaluate(first).objective - problem.evaluate(tree).objective
    return tree if gain > SLACK else first


def _splits(problem: OctProblem, root: Cut) -> Splits | None:
    """The tree behind features and levels."""
    cuts: dict[int, Cut] = {}
    support = np.zeros((problem.n_nodes, problem.n_features), dtype=bool)
    waiting: list[tuple[int, Cut | None]] = [(0, root)]
    while waiting:
        t, cut = waiting.pop()
        if cut is not None:
            cuts[t], support[t, cut.feature] = cut, True
            waiting += [(topology.left(t), cut.left), (topology.right(t), cut.right)]

    def side(t: int, rows: IndexArray) -> np.ndarray | None:
        return problem.points.level[rows, cuts[t].feature] > cuts[t].level if t in cuts else None

    return build(problem, side, support)
