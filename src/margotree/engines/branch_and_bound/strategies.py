"""The strategies of the exact engine: which searches run for a problem, in which order, and for how long.

A strategy is a function of a :class:`Setup` that returns the finished search and the tree that it started from.
:data:`STRATEGIES` lists them with the problems that they are for; the first one that applies runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from margotree.engines.branch_and_bound.portfolio import (
    furthest,
    is_over,
    offer_better,
    pass_on,
    phase,
    run_to_end,
    trial,
)
from margotree.engines.exact.neighbourhood_search import RoutingBrancher, improve
from margotree.engines.exact.penalty_branching import PenaltyBrancher
from margotree.engines.exact.proof_search import NoProof, Proof
from margotree.engines.exact.sample_branching import FEATURES_FIRST, MargotBrancher, Tactics
from margotree.engines.exact.sample_items import labels_of
from margotree.engines.exact.search import Brancher, Search
from margotree.engines.exact.support_branching import SupportBrancher, SupportTactics, sparsified
from margotree.engines.exact.support_lists import count_supports
from margotree.engines.exact.support_proof_search import SupportProofBrancher
from margotree.engines.local_search_engine import Alternating, better_tree
from margotree.engines.node.svm import LARGE, solve_large
from margotree.engines.presolve import without_budget
from margotree.engines.run_control import RunControl
from margotree.engines.trivial_trees import allowed_value, trivial_tree
from margotree.problem import Problem, Splits
from margotree.solution import Stopped, relative_gap

#: Share of the time for neighbourhood search before the search begins.
_IMPROVE_SHARE = 0.1
#: Neighbourhood search starts from the trivial tree, too, if the first tree's objective is above this share of its
#: objective.
_FAR = 0.5
#: Share of the time for the search over routings before the local search: small fits end within it.
_ALONE_SHARE = 0.05
#: With budgets: shares of the time for a short and a longer trial of each strategy, for a start without budgets, and
#: for neighbourhood search.
_QUICK_SHARE, _TRIAL_SHARE, _RELAXED_SHARE, _SPARSE_SHARE = 0.005, 0.025, 0.02, 0.02
#: Factor on the trial of a search over supports that writes a proof.
_PROOF_LONGER = 1.5
#: Where work is measured in search nodes: the least number of nodes for neighbourhood search (its nodes are fast), and
#: for the search without budgets.
_IMPROVE_NODES, _RELAXED_NODES = 2000, 1000
#: With more samples, the local search comes before the search, and has this share of the time.
MANY, _MANY_SHARE = LARGE, 0.7
#: With more numbers in the table, there is no search.
_HUGE = 2_000_000
#: Where supports are too many to list: the share of the time for the bound of trees without budgets, and for the local
#: search.
_BOUND_SHARE = 0.3
#: The largest number of supports of a node that are listed.
_MOST_SUPPORTS = 50_000


class NewSearch(Protocol):
    """Makes a search, in threads of this process or elsewhere."""

    def __call__(
        self, problem: Problem, brancher: Brancher, first: Splits, control: RunControl, ceiling: float = ...
    ) -> Search: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Setup:
    """What a strategy works with.

    Parameters
    ----------
    problem
        The problem, scaled, with equal samples merged.
    start
        A tree to start from, if there is one.
    control
        Limits and progress.
    tactics, sparse
        Settings of dives over routings and over supports.
    proof
        The proof that is written, or none.
    new_search
        Makes the searches.
    """

    problem: Problem
    start: Splits | None
    control: RunControl
    tactics: Tactics
    sparse: SupportTactics
    proof: Proof | NoProof
    new_search: NewSearch

    def first(self) -> Splits:
        """The better of the start and the trivial tree."""
        trees = [trivial_tree(self.problem)] if self.start is None else [self.start, trivial_tree(self.problem)]
        return min(trees, key=partial(allowed_value, self.problem))

    def search(self, brancher: Brancher, first: Splits, ceiling: float = math.inf) -> Search:
        """A new search of the problem."""
        return self.new_search(self.problem, brancher, first, self.control, ceiling)


Outcome = tuple[Search, Splits]


class Strategy(NamedTuple):
    """A strategy, and the problems that it is for."""

    name: str
    applies: Callable[[Setup], bool]
    run: Callable[[Setup], Outcome]


def run_strategy(setup: Setup) -> Outcome:
    """Run the first strategy that applies: the finished search, and the tree that it started from."""
    return next(strategy for strategy in STRATEGIES if strategy.applies(setup)).run(setup)


# -- without budgets ---------------------------------------------------------------------------------------------------


def local_search_first(setup: Setup) -> Outcome:
    """With many samples: a bound from the root split, a tree from the local search, and then a search in the remaining
    time."""
    problem, control = setup.problem, setup.control
    first = trivial_tree(problem) if setup.start is None else setup.start
    search = setup.search(_first_brancher(setup, first), first)
    search.floor = _root_bound(problem, control)
    if relative_gap(search.best, search.bound) <= control.limits.gap:
        return search, first
    last = problem.X.size > _HUGE or lists_nothing(problem) or not _lists_groups(setup)
    part = control if last else control.share(seconds=_MANY_SHARE * control.remaining, nodes=math.inf)
    search.reason = control.must_stop()
    if search.reason is None:
        found = Alternating().search(problem, part, setup.start)
        search.offer(found.splits)
        search.reason = control.must_stop() or (found.stopped if last else None)
    if search.reason is None:
        search.run(control)
    return search, first


def _first_brancher(setup: Setup, first: Splits) -> Brancher:
    """The brancher for a problem with many samples."""
    problem, control = setup.problem, setup.control
    value = allowed_value(problem, first)
    if problem.budget is None:
        return MargotBrancher(problem, setup.tactics, limit=value, control=control)
    if not _lists_groups(setup) or lists_nothing(problem):  # its search does not run
        return MargotBrancher(without_budget(problem), setup.tactics, limit=value, control=control)
    return SupportBrancher(problem, value, setup.sparse, control)


def routings(setup: Setup) -> Outcome:
    """Search over routings and choices."""
    problem, control, first = setup.problem, setup.control, setup.first()
    limit = allowed_value(problem, first)
    log = setup.proof.log()
    brancher = MargotBrancher(problem, setup.tactics, limit=limit, control=control)
    least = _root_bound(problem, control) if log is None else 0.0
    first = _improved(setup, brancher, first, phase(control, _IMPROVE_SHARE, _IMPROVE_NODES))
    if log is not None:
        brancher = MargotBrancher(problem, setup.tactics, limit=limit, control=control, log=log)
    search = setup.search(brancher, first)
    search.floor = least
    search.run(trial(control, _ALONE_SHARE))
    if not is_over(search, control):
        offer_better(search, control)
        run_to_end(search, control)
    return search, first


def _relaxed(setup: Setup, first: Splits, control: RunControl) -> Search:
    """The search for trees without budgets: its bound holds for trees with budgets."""
    relaxation = replace(
        setup, problem=without_budget(setup.problem), start=first, control=control.for_relaxation(), proof=NoProof()
    )
    return routings(relaxation)[0]


def _improved(setup: Setup, brancher: RoutingBrancher, first: Splits, control: RunControl) -> Splits:
    """The best tree of a neighbourhood search from ``first`` and, if that is not much better, the trivial tree."""
    if not setup.tactics.improve:
        return first
    trivial, value = trivial_tree(brancher.problem), partial(allowed_value, brancher.problem)
    near = value(first) > _FAR * value(trivial)
    return improve(brancher, [first, trivial] if near else [first], control)


# -- with budgets ------------------------------------------------------------------------------------------------------


def features_as_penalties(setup: Setup) -> Outcome:
    """Search where supports cannot be listed: they are too many, weights are bounded, or samples have no label of their
    own. A hard budget becomes a feature penalty that no better tree can have.

    The first tree is from the local search; trees without budgets give a first bound.
    """
    problem, control, first = setup.problem, setup.control, setup.first()
    searches = _penalty_searches(setup, first)
    search = furthest(searches, control, _QUICK_SHARE)
    if is_over(search, control):
        return search, first
    steps, first = search.steps, search.incumbent
    relaxed = _relaxed(setup, first, phase(control, _BOUND_SHARE, _RELAXED_NODES))
    part = phase(control, _BOUND_SHARE, _IMPROVE_NODES)
    found = Alternating().search(problem, part, first).splits
    first = min(first, found, key=partial(allowed_value, problem))
    searches = _penalty_searches(setup, first)  # with penalties and limits of the better tree
    for other in searches:
        other.floor, other.steps = max(relaxed.bound, search.bound), steps + relaxed.steps
    search = furthest(searches, control, _TRIAL_SHARE)
    searches.clear()
    run_to_end(search, control)
    return search, first


def _penalty_searches(setup: Setup, first: Splits) -> list[Search]:
    """The searches that do not list supports, from the tree ``first``."""
    branchers = _penalty_branchers(setup, allowed_value(setup.problem, first))
    return [setup.search(brancher, first) for brancher in branchers]


def too_many_groups(setup: Setup) -> Outcome:
    """A tree from the local search and the bound of trees without budgets, where features form groups whose supports
    cannot be listed."""
    problem, control, first = setup.problem, setup.control, setup.first()
    found = Alternating().search(problem, phase(control, 1.0 - _BOUND_SHARE, _IMPROVE_NODES), setup.start).splits
    first = min(first, found, key=partial(allowed_value, problem))
    search = setup.search(_first_brancher(setup, first), first)
    search.reason = control.must_stop()
    if search.reason is None:
        relaxed = _relaxed(setup, first, control)
        search.floor, search.steps = relaxed.bound, relaxed.steps
        is_solved = relative_gap(search.best, search.bound) <= control.limits.gap
        search.reason = None if is_solved else relaxed.reason or Stopped.HEURISTIC
    return search, first


def supports(setup: Setup) -> Outcome:
    """Search over supports first and then routings; with feature penalties, by the strategy that proves the best bound
    in trials."""
    problem, control, first = setup.problem, setup.control, setup.first()
    limit = allowed_value(problem, first)
    supports_first = SupportBrancher(problem, limit, setup.sparse, control)
    branchers: list[Brancher] = [supports_first]
    penalises_features = problem.alpha is not None and problem.groups is None
    if penalises_features:
        samples_first, features_first = _penalty_branchers(setup, limit)
        branchers += [samples_first, features_first]
    searches = [setup.search(brancher, first) for brancher in branchers]
    search = furthest(searches, control, _QUICK_SHARE if len(searches) > 1 else _TRIAL_SHARE)
    if not is_over(search, control):
        first, floor = _sparsified(setup, supports_first, search, trial(control, _RELAXED_SHARE))
        search.floor = max(search.floor, floor)
        if problem.alpha is not None:
            search_below_least_penalty(setup, search, trial(control, _RELAXED_SHARE, search.steps))
        if penalises_features:
            first = _improved(setup, samples_first, first, trial(control, _SPARSE_SHARE, least=_IMPROVE_NODES))
        search.offer(first)
        offer_better(search, control)
        searches.sort(key=lambda other: other is not search)
        search = furthest(searches, control, _TRIAL_SHARE)
    searches.clear()  # free the open nodes of the others
    run_to_end(search, control)
    return search, first


def supports_with_proof(setup: Setup) -> Outcome:
    """Search with budgets that writes a proof: over lists of supports or, where a better tree can have a feature
    penalty or supports cannot be listed, by the two strategies with penalties.

    Where features form groups, which have no such penalties, it is the search for trees without budgets. Bounds of
    other searches are not used.
    """
    problem, control, first = setup.problem, setup.control, setup.first()
    hard = _as_hard_budget(problem, first)
    if hard is None:
        first = _first_look(setup, first)
        hard = _as_hard_budget(problem, first)
    if hard is not None:
        return _lists_with_proof(replace(setup, problem=hard), first)
    if problem.groups is not None:
        return _relaxed_with_proof(setup, first)
    branchers = _penalty_branchers(setup, allowed_value(problem, first))
    searches = [setup.search(brancher, first) for brancher in branchers]
    search = furthest(searches, control, _QUICK_SHARE, share_bounds=False)
    if not is_over(search, control):
        searches.sort(key=lambda other: other is not search)
        search = furthest(searches, control, _TRIAL_SHARE, share_bounds=False)
    setup.proof.drop_others(search)
    searches.clear()
    if not is_over(search, control):
        search.run(control)
    return search, first


def _lists_with_proof(setup: Setup, first: Splits) -> Outcome:
    """Search over supports with a proof: hard budgets, or feature penalties that no better tree can have."""
    problem, control = setup.problem, setup.control
    limit = allowed_value(problem, first)
    log = setup.proof.support_log()
    log.begin_tables()
    search = setup.search(SupportProofBrancher(problem, limit, setup.sparse, control, log), first)
    search.run(trial(control, _PROOF_LONGER * _TRIAL_SHARE))
    if not is_over(search, control):
        first_look = SupportBrancher(problem, limit, setup.sparse, control)
        first, _ = _sparsified(setup, first_look, search, trial(control, _RELAXED_SHARE))
        search.offer(first)
        offer_better(search, control)
        run_to_end(search, control)
    return search, first


def _relaxed_with_proof(setup: Setup, first: Splits) -> Outcome:
    """The search for trees without budgets, with a proof that holds for trees with budgets."""
    problem, control = setup.problem, setup.control
    relaxed = without_budget(problem)
    brancher = MargotBrancher(relaxed, setup.tactics, control=control, log=setup.proof.log())
    search = setup.new_search(relaxed, brancher, first, control)
    search.run(control)
    search.best, search.incumbent = allowed_value(problem, first), first
    is_solved = relative_gap(search.best, search.bound) <= control.limits.gap
    search.reason = search.reason or (None if is_solved else Stopped.HEURISTIC)
    return search, first


def _first_look(setup: Setup, first: Splits) -> Splits:
    """A good first tree, from searches without a proof."""
    problem, control = setup.problem, setup.control
    if lists_nothing(problem) or not _lists_groups(setup):
        return better_tree(problem, first, control, 1.0)
    supports_first = SupportBrancher(problem, allowed_value(problem, first), setup.sparse, control)
    first_look = setup.search(supports_first, first)
    first_look.run(trial(control, _QUICK_SHARE))
    if is_over(first_look, control):
        return first_look.incumbent
    first, _ = _sparsified(setup, supports_first, first_look, trial(control, _RELAXED_SHARE))
    return better_tree(problem, first, control, relative_gap(allowed_value(problem, first), first_look.bound))


def _penalty_branchers(setup: Setup, limit: float) -> tuple[PenaltyBrancher, MargotBrancher]:
    """Branchers that do not list supports: one decides samples first, one features first."""
    problem, control = setup.problem, setup.control
    penalised = as_penalised(problem, limit)
    features_first = replace(setup.tactics, **FEATURES_FIRST)
    return (
        PenaltyBrancher(penalised, setup.tactics, limit=limit, control=control, log=setup.proof.log()),
        MargotBrancher(penalised, features_first, limit=limit, control=control, log=setup.proof.log()),
    )


def search_below_least_penalty(setup: Setup, search: Search, control: RunControl) -> None:
    """Raise a bound that is below every feature penalty, by a search for trees that cost less than the smallest one.

    Such a tree has no feature beyond the budgets, so it has few possible supports.
    """
    problem = setup.problem
    least = (1.0 - 1e-9) * _least_penalty(problem, free=False)
    if search.bound < min(least, search.best):
        brancher = SupportBrancher(problem, least, setup.sparse, control)
        below = setup.new_search(problem, brancher, search.incumbent, control, least)
        pass_on(search, below)
        below.run()
        pass_on(below, search)


def _sparsified(setup: Setup, brancher: SupportBrancher, search: Search, control: RunControl) -> tuple[Splits, float]:
    """A start and a bound from a search without budgets: its best routing with the best supports, and its bound."""
    problem = brancher.problem
    part = control.share(seconds=0.7 * control.remaining, nodes=max(_RELAXED_NODES, control.limits.nodes))
    relaxed = _relaxed(setup, search.incumbent, part)
    trees = sparsified(brancher, relaxed.incumbent, search.best, control)
    best = min([search.incumbent, *trees], key=lambda tree: allowed_value(problem, tree))
    return best, relaxed.bound


# -- properties of problems --------------------------------------------------------------------------------------------


def as_penalised(problem: Problem, limit: float) -> Problem:
    """The problem with a hard budget as a feature penalty above ``limit``: its bounds hold for the hard budget."""
    return (
        problem if problem.alpha is not None else replace(problem, alpha=np.full(problem.n_nodes, (1.0 + 1e-6) * limit))
    )


def _as_hard_budget(problem: Problem, first: Splits) -> Problem | None:
    """The problem with hard budgets, if no tree better than ``first`` can have a feature penalty; None if one can, or
    if supports cannot be listed."""
    hard = replace(problem, alpha=None)
    unaffordable = problem.alpha is None or allowed_value(problem, first) < _least_penalty(problem)
    return hard if unaffordable and not lists_nothing(hard) else None


def _least_penalty(problem: Problem, free: bool = True) -> float:
    """The smallest feature penalty at a node whose budget excludes features; penalties of 0 are left out unless
    ``free``."""
    assert problem.alpha is not None and problem.budget is not None
    penalties = problem.alpha[((problem.alpha > 0.0) | free) & (problem.budget < problem.n_groups)]
    return float(np.min(penalties, initial=math.inf))


def _root_bound(problem: Problem, control: RunControl) -> float:
    """A first bound from the root split alone, for problems with many samples; 0 for others."""
    labels = labels_of(problem)
    if problem.n_samples <= LARGE or control.over or labels is None:
        return 0.0
    seconds = control.remaining * (1.0 if control.by_nodes else _IMPROVE_SHARE)
    return solve_large(problem.X, labels, problem.C[0] * problem.weight, seconds).bound


def has_too_many_supports(problem: Problem) -> bool:
    """Whether a node has too many supports to list."""
    return problem.model == "hfs" and count_supports(problem) > _MOST_SUPPORTS


def lists_nothing(problem: Problem) -> bool:
    """Whether budgets are searched without lists of supports, which are for samples with one label."""
    if problem.budget is None:
        return False
    if problem.max_weight is not None or problem.task.squares_losses or has_too_many_supports(problem):
        return True
    return labels_of(problem) is None


def _lists_groups(setup: Setup) -> bool:
    """Whether features form no groups, or the supports of trees better than the first one can be listed."""
    problem = setup.problem
    if problem.budget is None or problem.groups is None:
        return True
    if problem.max_weight is not None or labels_of(problem) is None:
        return False
    return count_supports(problem, allowed_value(problem, setup.first())) <= _MOST_SUPPORTS


def provable_searches(problem: Problem) -> dict[str, bool]:
    """Which kinds of searches a proof for this problem may consist of: over routings, over lists of supports."""
    listed = problem.budget is not None and not lists_nothing(replace(problem, alpha=None))
    return {"routings": problem.model != "hfs" or not listed, "supports": listed}


#: The strategies, in the order in which they are considered.
STRATEGIES = (
    Strategy("local search first", lambda s: s.problem.n_samples > MANY and not s.proof.writes, local_search_first),
    Strategy("routings", lambda s: s.problem.budget is None, routings),
    Strategy("supports, with a proof", lambda s: s.proof.writes, supports_with_proof),
    Strategy("too many groups", lambda s: not _lists_groups(s), too_many_groups),
    Strategy("features as penalties", lambda s: lists_nothing(s.problem), features_as_penalties),
    Strategy("supports", lambda s: True, supports),
)
