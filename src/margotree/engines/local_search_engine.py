"""The local search as an engine (``engine="alternating"``), and as a source of incumbents for the exact search.

The neighbourhood search of the exact engine improves some of its trees where it applies.
"""

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
from margotree.engines.trivial_trees import allowed_value, trivial_tree
from margotree.problem import Problem, Splits, TrainingProblem, evaluate
from margotree.problem.tiny_problems import tiny_problem
from margotree.solution import Stopped

#: The largest number of samples with the neighbourhood search.
_MAX_NEIGHBOURHOOD = 5_000
#: On data of moderate size the Local SVM tree is trained first, in this share of the time.
_GREEDY_SHARE = 0.15
#: With budgets, this is done only up to this number of features, or groups of features.
_FEW_FEATURES = 20
#: Within an exact search where a proof is within reach: shares of the remaining and of the elapsed time, and when to
#: end.
_SHARE, _SHARE_USED, _EARLY = 0.1, 0.2, Effort(least=6, patience=6)
#: Where it is not: the share of the remaining time, the most seconds, and when to end; smaller ones where a proof is
#: not near.
_LARGE_SHARE, _SHARE_MOST, _PATIENT = 0.7, 60.0, Effort(patience=400)
_FAR_SHARE, _FAR_MOST = 0.2, 15.0
#: When to end where the local search is the only engine.
_ALONE = Effort(patience=200)
#: A gap that a search does not close, one that it seldom closes, and one that it does not close soon.
_NO_PROOF, _OUT_OF_REACH, FAR = 0.9, 0.5, 0.1
#: The share of the time for trees without a limit on weights, where there is one.
_UNBOUNDED_SHARE = 0.6
#: Feature penalties are small if all together are at most this share of the objective.
_SMALL = 0.05
#: On larger data, time is reserved to evaluate trees of subsamples on all samples: seconds per entry of the samples and
#: level.
_VALUATION_SECONDS = 3e-9


class Alternating(Engine):
    """Good trees of any size, without a proof (docs/local_search.md).

    Descents start from many trees. The result is never worse than the start given, the Local SVM tree (on data of
    moderate size) or the majority vote. The search ends when starts give no improvement or the time is up.

    Parameters
    ----------
    effort : Effort or None
        When the search ends.
    neighbours : bool, default True
        Whether the neighbourhood search takes part.
    greedy : bool, default False
        Whether the Local SVM tree is trained even if a start is given.
    """

    name = "alternating"
    models = frozenset({"margot", "hfs", "sfs"})
    proves = False
    notes_trees = True
    counts_groups = True
    squares_losses = True

    def __init__(self, effort: Effort | None = None, *, neighbours: bool = True, greedy: bool = False) -> None:
        self.effort, self.neighbours, self.greedy = effort, neighbours, greedy

    def makes_start(self, problem: Problem) -> bool:
        # With a limit on weights and many samples, trees may not be solved again in time.
        return problem.max_weight is None or problem.X.size <= MODERATE

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        many = (compiled_parts.MANY_SAMPLES,) * (getattr(problem, "n_samples", 0) > LARGE)
        model = compiled_parts.model_of(problem)
        return (*many, *compiled_parts.of_search(problem), Part(f"{__name__}:train_tiny:{model}"))

    def search(self, problem: Problem, control: RunControl, start: Splits | None) -> Answer:
        """Search from the start or from the Local SVM tree."""
        trees, reserved = ([], 0.0) if start is None else ([start], 0.0)
        is_moderate = problem.X.size <= MODERATE
        problem, _ = merge_duplicates(problem, MODERATE)
        if is_moderate and (start is None or self.greedy):
            greedy, reserved = _greedy_trees(problem, control)
            trees += greedy
        kept_back = reserved if is_moderate else _VALUATION_SECONDS * problem.X.size * problem.depth
        has_limit = 0.0 < kept_back < math.inf
        part = control.part(control.remaining - kept_back) if has_limit else control
        effort = self.effort or _ALONE
        if control.by_nodes:  # one start counts as one node
            effort = replace(effort, most=int(min(effort.most, control.limits.nodes)))
        best = good_tree(problem, trees, part, effort, self.neighbours)
        if reserved:
            best = min(best, _local_svm(problem, control, reserved).splits, key=partial(allowed_value, problem))
        stopped = control.must_stop() or part.must_stop() or Stopped.HEURISTIC
        return Answer(splits=without_noise(problem, best) if is_moderate else best, stopped=stopped)


def _greedy_trees(problem: Problem, control: RunControl) -> tuple[list[Splits], float]:
    """Local SVM trees to start from, and the seconds to reserve for one at the end.

    With budgets and many features a Local SVM tree takes long and seldom helps: it is left for the end, since the
    result must not be worse, and one without feature penalties is trained first.
    """
    seconds = _GREEDY_SHARE * control.remaining
    if problem.budget is None or problem.n_groups <= _FEW_FEATURES:
        return [_local_svm(problem, control, seconds).splits], 0.0
    if problem.alpha is None:
        return [], seconds
    return [_local_svm(without_budget(problem), control, seconds).splits], seconds


def _local_svm(problem: Problem, control: RunControl, seconds: float) -> Answer:
    """The Local SVM tree, trained within ``seconds``."""
    return LocalSVM().search(problem, control.part(min(seconds, control.remaining)), None)


def better_tree(problem: Problem, first: Splits, control: RunControl, gap: float, *, waited: bool = False) -> Splits:
    """A better incumbent for an exact search that has not finished soon.

    Where a proof may be within reach the local search ends early, the earlier the smaller the gap is, since it bounds
    the possible improvement. Otherwise, because samples are many, almost nothing is proved, or the search has
    ``waited`` without progress, the incumbent is the main result of a fit: the local search gets most of the time as
    long as starts give improvements, or a part of it where a proof is possible but not near.

    Parameters
    ----------
    problem : Problem
        The training problem.
    first : Splits
        The incumbent.
    control : RunControl
        The limits of the exact search.
    gap : float
        The gap of the exact search.
    waited : bool, default False
        Whether the exact search has already continued without closing the gap.

    Returns
    -------
    Splits
        The better tree.
    """
    # A search over supports may have a large gap for long and then close it at once.
    out_of_reach = _OUT_OF_REACH if waited else _NO_PROOF if problem.budget is None else math.inf
    no_proof = problem.n_samples > LARGE or gap > out_of_reach
    slow = waited and gap > FAR
    effort = None
    if no_proof:
        seconds = min(_SHARE_MOST, _LARGE_SHARE * control.remaining)
        effort = None if control.by_nodes else _PATIENT  # this patience needs a time limit
    elif slow:
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
    """The best tree of the local search, and of the neighbourhood search if ``neighbours`` is set.

    Descents do not support ``max_weight``. Where it is set, the routing of their best tree is kept and the tree is
    solved again within the limit; then only the neighbourhood search continues.
    """
    if problem.max_weight is None:
        small_penalties = penalties_are_small(problem, trees)
        finisher = neighbourhood(without_budget(problem) if small_penalties else problem) if neighbours else None
        kind = SparsifyingSearch if small_penalties else LocalSearch
        return run_local_search(problem, trees, control, effort, finisher, kind)
    unbounded = replace(problem, max_weight=None)
    found = good_tree(unbounded, trees, control.part(_UNBOUNDED_SHARE * control.remaining), effort, neighbours)
    support = None if problem.budget is None else found.w != 0
    routed = evaluate(problem, found)
    polished = polish(problem, routed.node, support, control, choices=routed.choices)
    candidates = [found, *([] if polished is None else [polished]), *trees, trivial_tree(problem)]
    best = min(candidates, key=lambda tree: allowed_value(problem, tree))
    finish = neighbourhood(problem) if neighbours else None
    return best if finish is None else finish(best, control)


def penalties_are_small(problem: Problem, trees: list[Splits]) -> bool:
    """Whether all feature penalties together are small compared with the best of the trees."""
    if problem.alpha is None or problem.budget is None:
        return False
    total = float(problem.alpha @ np.maximum(0, problem.n_groups - problem.budget))
    return total <= _SMALL * min(allowed_value(problem, tree) for tree in [*trees, trivial_tree(problem)])


def neighbourhood(problem: Problem) -> Finisher | None:
    """The neighbourhood search as a finisher, for any thread; None where it does not apply or would take too long."""
    if problem.model == "hfs" or problem.depth < 2 or problem.task.squares_losses:
        return None
    if problem.budget is not None and problem.groups is not None:
        return None  # its node problems have a penalty for every feature
    if problem.n_samples > _MAX_NEIGHBOURHOOD:
        return None
    merged, _ = merge_duplicates(problem)
    brancher: RoutingBrancher = (MargotBrancher if merged.budget is None else PenaltyBrancher)(merged, Tactics())
    tried: Tried = {}

    def finish(tree: Splits, control: RunControl) -> Splits:
        found = improve(brancher, [tree], control, shuffles=2, tried=tried)
        return found if evaluate(problem, found).feasible else tree

    return finish


def train_tiny(model: str) -> None:
    """Train a tiny tree, so that all kernels are compiled or loaded from the cache."""
    for name in ("margot", "sfs") if model == "sfs" else (model,):  # feature penalties may be left out at first
        Alternating(Effort(least=8, most=8)).search(tiny_problem(name), RunControl(), None)
