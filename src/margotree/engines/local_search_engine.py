"""The alternating search as an engine of its own, with the exact engine's neighbourhood search where that helps."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from margotree.engines import compiled_parts
from margotree.engines.base import Answer, Engine
from margotree.engines.exact.neighbourhood_search import RoutingBrancher, Tried, improve
from margotree.engines.exact.penalty_branching import PenaltyBrancher
from margotree.engines.exact.sample_branching import MargotBrancher, Tactics
from margotree.engines.local_search.search import Effort, Finisher, LocalSearch, run_local_search
from margotree.engines.local_search.sparsification import SparsifyingSearch
from margotree.engines.local_svm import LocalSVM
from margotree.engines.node.svm import LARGE
from margotree.engines.numba_backend import Part
from margotree.engines.polish import polish, without_noise
from margotree.engines.presolve import MODERATE, merge_duplicates, without_budget
from margotree.engines.run_control import RunControl
from margotree.engines.tiny_problems import tiny_problem
from margotree.engines.trivial_trees import allowed_value, trivial_tree
from margotree.problem import Problem, Splits, TrainingProblem, evaluate
from margotree.solution import Stopped

#: Up to so many samples the neighbourhood search takes part.
_NEIGHBOURS = 5_000
#: On data of moderate size the Local SVM tree is made by its own engine first, in this share of the time.
_GREEDY_SHARE = 0.15
#: It is soon done, with budgets, if there are no more features than this.
_FEW_FEATURES = 20
#: For an exact search where a proof is within reach: shares of the time left and of the time used, and when to end.
_SHARE, _SHARE_USED, _EARLY = 0.1, 0.2, Effort(least=6, patience=6)
#: Where none is: the share of the time left, most seconds, and when to end; where none is near, less of all.
_LARGE_SHARE, _SHARE_MOST, _PATIENT = 0.7, 60.0, Effort(patience=400)
_FAR_SHARE, _FAR_MOST = 0.2, 15.0
#: Where good trees are all that is asked for: when to end.
_ALONE = Effort(patience=200)
#: A gap that a search does not close, one that it seldom closes, and one that it does not close soon.
_HOPELESS, _OUT_OF_REACH, FAR = 0.9, 0.5, 0.1
#: The share of the time for trees without a limit on weights, where there is one.
_UNBOUNDED_SHARE = 0.6
#: Prices that come to no more than this share of a tree's value are light.
_LIGHT = 0.05
#: Beyond, what was trained on parts of the samples is left time to be valued on all: seconds per number and level.
_VALUED = 3e-9


class Alternating(Engine):
    """Good trees at any size, and nothing proved about them (docs/local_search.md).

    Descents from many starts; the tree is never worse than the start given, the Local SVM tree (on data of moderate
    size) or the majority vote.  It ends when starts stop paying off or time is up.  Where a start is given the Local
    SVM tree is made only if ``greedy`` asks for it.
    """

    name = "alternating"
    models = frozenset({"margot", "hfs", "sfs"})
    proves = False
    notes_trees = True

    def __init__(self, effort: Effort | None = None, *, neighbours: bool = True, greedy: bool = False) -> None:
        self.effort, self.neighbours, self.greedy = effort, neighbours, greedy

    def makes_start(self, problem: Problem) -> bool:
        # Within a limit on weights its own trees may not be solved again in time where samples are many.
        return problem.max_weight is None or problem.X.size <= MODERATE

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        many = (compiled_parts.MANY_SAMPLES,) * (getattr(problem, "n_samples", 0) > LARGE)
        model = compiled_parts.model_of(problem)
        return (*many, *compiled_parts.of_search(problem), Part(f"{__name__}:train_tiny:{model}"))

    def search(self, problem: Problem, control: RunControl, start: Splits | None) -> Answer:
        trees, later = ([], 0.0) if start is None else ([start], 0.0)
        small = problem.X.size <= MODERATE
        problem, _ = merge_duplicates(problem, MODERATE)
        if small and (start is None or self.greedy):
            greedy, later = _greedy_trees(problem, control)
            trees += greedy
        rest = later if small else _VALUED * problem.X.size * problem.depth
        working = control.part(control.remaining - rest) if 0.0 < rest < math.inf else control  # inf: there is no limit
        best = good_tree(problem, trees, working, self.effort or _ALONE, self.neighbours)
        if later:
            best = min(best, _local_svm(problem, control, later).splits, key=partial(allowed_value, problem))
        stopped = control.must_stop() or working.must_stop() or Stopped.HEURISTIC
        return Answer(splits=without_noise(problem, best) if small else best, stopped=stopped)


def _greedy_trees(problem: Problem, control: RunControl) -> tuple[list[Splits], float]:
    """Local SVM trees to begin with, and seconds to keep for one.

    With budgets among many features a greedy tree takes long, and seldom helps: it is left for the end, to make sure of
    what is promised, and one without prices is first.
    """
    seconds = _GREEDY_SHARE * control.remaining
    if problem.budget is None or problem.n_features <= _FEW_FEATURES:
        return [_local_svm(problem, control, seconds).splits], 0.0
    if problem.alpha is None:
        return [], seconds
    return [_local_svm(without_budget(problem), control, seconds).splits], seconds


def _local_svm(problem: Problem, control: RunControl, seconds: float) -> Answer:
    return LocalSVM().search(problem, control.part(min(seconds, control.remaining)), None)


def better_tree(problem: Problem, first: Splits, control: RunControl, gap: float, *, waited: bool = False) -> Splits:
    """A better incumbent for an exact search that has not finished soon and has this gap left.

    Where a proof may be within reach it ends early, the earlier the smaller the gap: so much a better tree can bring at
    most.  Where none is, because samples are many, nearly nothing is proved or the search has ``waited`` for more in
    vain, the tree is all that comes of a fit, and gets most of the time while starts pay off; a part of it where a
    proof is not near.
    """
    # A search over supports may have nothing to show for long, and then all at once.
    reach = _OUT_OF_REACH if waited else _HOPELESS if problem.budget is None else math.inf
    hopeless = problem.n_samples > LARGE or gap > reach
    far = waited and gap > FAR
    effort = None
    if hopeless:
        seconds = min(_SHARE_MOST, _LARGE_SHARE * control.remaining)
        effort = None if control.by_nodes else _PATIENT  # which only a time limit would end
    elif far:
        seconds = min(_FAR_MOST, _FAR_SHARE * control.remaining)
    else:
        effort = _EARLY
        share = _SHARE * min(1.0, gap / _OUT_OF_REACH)
        seconds = min(share * control.remaining, _SHARE_USED * control.elapsed)
    part = control if control.by_nodes else control.part(seconds)
    return good_tree(problem, [first], part, effort)


def good_tree(
    problem: Problem, trees: list[Splits], control: RunControl, effort: Effort | None = None, neighbours: bool = True
) -> Splits:
    """The best tree of the alternating search, by its own descents and, if ``neighbours`` are asked for, that of the
    neighbourhood search.

    Descents know no limit on weights: where there is one, their best tree's routing is kept and its weights are held
    within the limit, and then only neighbours are searched.
    """
    if problem.max_weight is None:
        light = prices_are_light(problem, trees)
        finisher = neighbourhood(without_budget(problem) if light else problem) if neighbours else None
        kind = SparsifyingSearch if light else LocalSearch
        return run_local_search(problem, trees, control, effort, finisher, kind)
    unbounded = replace(problem, max_weight=None)
    found = good_tree(unbounded, trees, control.part(_UNBOUNDED_SHARE * control.remaining), effort, neighbours)
    support = None if problem.budget is None else found.w != 0
    held = polish(problem, evaluate(problem, found).node, support, control)
    known = [found, *([] if held is None else [held]), *trees, trivial_tree(problem)]
    best = min(known, key=lambda tree: allowed_value(problem, tree))
    finish = neighbourhood(problem) if neighbours else None
    return best if finish is None else finish(best, control)


def prices_are_light(problem: Problem, trees: list[Splits]) -> bool:
    """Whether all features that have a price cost little together, beside the best of the trees."""
    if problem.alpha is None or problem.budget is None:
        return False
    most = float(problem.alpha @ np.maximum(0, problem.n_features - problem.budget))
    return most <= _LIGHT * min(allowed_value(problem, tree) for tree in [*trees, trivial_tree(problem)])


def neighbourhood(problem: Problem) -> Finisher | None:
    """The neighbourhood search around a tree, for any thread; None where it does not apply or would take too long."""
    if problem.model == "hfs" or problem.n_samples > _NEIGHBOURS or problem.depth < 2:
        return None
    merged, _ = merge_duplicates(problem)
    brancher: RoutingBrancher = (MargotBrancher if merged.budget is None else PenaltyBrancher)(merged, Tactics())
    tried: Tried = {}

    def finish(tree: Splits, control: RunControl) -> Splits:
        found = improve(brancher, [tree], control, shuffles=2, tried=tried)
        return found if evaluate(problem, found).feasible else tree

    return finish


def train_tiny(model: str) -> None:
    """Train a tiny tree, so that everything is compiled or loaded from the cache."""
    for kind in ("margot", "sfs") if model == "sfs" else (model,):  # prices may be left out at first
        Alternating(Effort(least=8, most=8)).search(tiny_problem(kind), RunControl(), None)
