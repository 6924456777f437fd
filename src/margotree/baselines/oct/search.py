"""The exact engine for OCT-1 that needs no solver."""

from __future__ import annotations

import numpy as np

from margotree.baselines.oct.cart import cart
from margotree.baselines.oct.enumerate import SLACK, Enumeration, RankSplit
from margotree.baselines.oct.merged_samples import IndexArray
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.tree_cleanup import build_tree, clean_tree, numbered_splits
from margotree.engines import Answer, Engine, RunControl
from margotree.engines.mip.adapter import Progress, run_in_thread
from margotree.engines.numba_backend import Part
from margotree.problem import Splits, TrainingProblem, topology
from margotree.solution import Stopped

#: The kernels to compile ahead.
KERNELS = Part(f"{__name__}:enumerate_tiny", 5.0)


class Search(Engine[OctProblem]):
    """Enumeration of all trees with bounds: it proves depth 2 in seconds, where the MILP leaves a gap after minutes.

    The work grows with (number of different values) ** (depth - 1).  At a time limit the engine returns the best tree
    so far, with the bound that follows from equal samples with different labels.
    """

    name = "search"
    models = frozenset({"oct_1"})

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        return (KERNELS,)

    def search(self, problem: OctProblem, control: RunControl, start: Splits | None) -> Answer:
        if not problem.merge_samples(control):
            # The start was found without the points, so it has no splits, or it is the user's.
            tree = numbered_splits(problem, None) if start is None else start
            return Answer(splits=tree, stopped=control.must_stop() or Stopped.TIME, bound=0.0)
        first = _initial_tree(problem, start, control)
        value = problem.evaluate(first).objective
        lower_bound = problem.trivial_bound
        if (reason := control.must_stop()) is not None:
            return Answer(splits=first, stopped=reason, bound=lower_bound)
        work = Enumeration(problem, value * problem.baseline_error)
        run_in_thread(work.run, work.halt, control, _EnumerationProgress(work, problem.baseline_error))
        best = _better_tree(problem, work.best, first)
        stopped = (control.must_stop() or Stopped.TIME) if work.halted else Stopped.SOLVED
        objective = problem.evaluate(best).objective
        return Answer(
            splits=best,
            stopped=stopped,
            bound=objective if stopped is Stopped.SOLVED else min(lower_bound, objective),
            nodes=int(work.progress[1]),
            f0=value,
        )


class _EnumerationProgress(Progress):
    """Reports the incumbent and the number of subsets of a running enumeration."""

    def __init__(self, work: Enumeration, baseline_error: float) -> None:
        super().__init__("search")
        self._work, self._baseline = work, baseline_error

    def report_to(self, control: RunControl) -> None:
        cost, subsets = self._work.progress
        self.note(incumbent=float(cost) / self._baseline, bound=0.0, nodes=int(subsets))
        super().report_to(control)


def enumerate_tiny() -> None:
    """Enumerate the trees of a tiny problem, so that the kernels are compiled."""
    tiny = OctProblem.make([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], depth=3)
    Enumeration(tiny, 2.0).run()


def _initial_tree(problem: OctProblem, start: Splits | None, control: RunControl) -> Splits:
    """The given start if it is allowed, otherwise the CART tree."""
    given = None if start is None else clean_tree(problem, start, control)
    return cart(problem, control) if given is None else given


def _better_tree(problem: OctProblem, found: RankSplit | None, first: Splits) -> Splits:
    """The enumerated tree if it is better than the first one by more than rounding, otherwise the first one."""
    tree = None if found is None else _splits(problem, found)
    if tree is None:
        return first
    gain = problem.evaluate(first).objective - problem.evaluate(tree).objective
    return tree if gain > SLACK else first


def _splits(problem: OctProblem, root: RankSplit) -> Splits | None:
    """The tree in margin units for a tree of features and ranks; None if it is not allowed."""
    rank_splits: dict[int, RankSplit] = {}
    support = np.zeros((problem.n_nodes, problem.n_features), dtype=bool)
    queue: list[tuple[int, RankSplit | None]] = [(0, root)]
    while queue:
        t, rank_split = queue.pop()
        if rank_split is not None:
            rank_splits[t], support[t, rank_split.feature] = rank_split, True
            queue += [(topology.left(t), rank_split.left), (topology.right(t), rank_split.right)]

    def side(t: int, rows: IndexArray) -> np.ndarray | None:
        return problem.points.rank[rows, rank_splits[t].feature] > rank_splits[t].rank if t in rank_splits else None

    return build_tree(problem, side, support)
