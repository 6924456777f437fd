"""Several searches for one problem: trials, what one search passes to the next, and better trees between them."""

from __future__ import annotations

import math

from margotree.engines.exact.search import PRECISION, Brancher, Search
from margotree.engines.local_search_engine import FAR, better_tree
from margotree.engines.node.svm import LARGE
from margotree.engines.run_control import RunControl
from margotree.engines.trivial_trees import allowed_value
from margotree.problem import Problem, Splits
from margotree.solution import Stopped, relative_gap

#: Share of the time after which the gap of a search decides on a longer local search.
_CHECK_SHARE = 0.1
#: Limits of a trial: the least number of seconds (but at most a quarter of the remaining ones), the largest, and the
#: least number of search nodes where work is measured in nodes.
_TRIAL_LEAST, _TRIAL_MOST, _TRIAL_NODES = 0.5, 60.0, 10
#: Searches this close to the best one, as a share of its remaining gap, are tried again; the number of rounds.
_CLOSE, _ROUNDS = 0.08, 3


def phase(control: RunControl, share: float, least: float) -> RunControl:
    """The limits of a part of the work: a share of the remaining time or, if work is limited by search nodes, of the
    nodes, at least ``least`` nodes."""
    return control.share(seconds=share * control.remaining, nodes=max(least, share * control.limits.nodes))


def trial(control: RunControl, share: float, steps: int = 0, least: float = _TRIAL_NODES) -> RunControl:
    """The limits of a trial: a share of the remaining time, or ``steps`` (the search nodes so far) plus a share of the
    allowed nodes, at least ``least``."""
    seconds = min(_TRIAL_LEAST, 0.25 * control.remaining)
    return control.share(
        seconds=min(_TRIAL_MOST, max(seconds, share * control.remaining)),
        nodes=steps + max(least, share * control.limits.nodes),
    )


def is_over(search: Search, control: RunControl) -> bool:
    """Whether no further trial of ``search`` makes sense.

    This is the case if the search stopped for another reason than the limit of its trial, or if a limit of ``control``,
    the limits of all searches together, is reached.
    """
    trial_limit = Stopped.NODES if control.by_nodes else Stopped.TIME
    return search.reason is not trial_limit or control.must_stop(search.steps) is not None


def is_stuck(search: Search) -> bool:
    """Whether a search has no open nodes and has not closed the gap, as after a node problem that was not solved
    accurately."""
    target = max(search.control.limits.gap, 2 * PRECISION)
    return search.reason is None and relative_gap(search.best, search.bound) > target


def new_search(
    problem: Problem, brancher: Brancher, first: Splits, control: RunControl, ceiling: float = math.inf
) -> Search:
    """A new search with ``brancher`` from the tree ``first``, in threads of this process."""
    return Search(brancher, lambda tree: allowed_value(problem, tree), control, first, ceiling)


def furthest(searches: list[Search], control: RunControl, share: float, share_bounds: bool = True) -> Search:
    """Run the searches in trials; return the one that solves the problem or has the best bound of its own.

    Searches close to the best one are tried again, for longer; one that is stuck is left out if there are others. With
    ``share_bounds`` the bound of one search counts for the next one, too.
    """
    last = searches[0]
    for _ in range(_ROUNDS):
        for search in searches:
            pass_on(last, search, share_bounds)
            search.run(trial(control, share, search.steps))
            last = search
            if is_over(search, control) and not is_stuck(search):
                return search
        searches, share = _leaders([way for way in searches if not is_stuck(way)] or searches), 2.0 * share
        if len(searches) == 1:
            break
    pass_on(last, searches[0], share_bounds)
    return searches[0]


def _leaders(searches: list[Search]) -> list[Search]:
    """The searches with the best bounds of their own, up to a small share of the remaining gap; the best one first."""
    ranked = sorted(searches, key=lambda search: -search.own_bound)
    least = ranked[0].own_bound - _CLOSE * max(0.0, ranked[0].best - ranked[0].own_bound)
    return [search for search in ranked if search.own_bound >= least]


def pass_on(search: Search, to: Search, share_bounds: bool = True) -> None:
    """Pass incumbent, number of steps and, with ``share_bounds``, bound of one search to another."""
    if to is not search:
        to.steps = search.steps
        if share_bounds:
            to.floor = search.bound
        to.offer(search.incumbent)


def offer_better(search: Search, control: RunControl, waited: bool = False) -> None:
    """Offer the tree of the local search to a search."""
    gap = relative_gap(search.best, search.bound)
    search.offer(better_tree(search.brancher.problem, search.incumbent, control, gap, waited=waited))


def run_to_end(search: Search, control: RunControl) -> None:
    """Run a search to its end; if its gap is still large after a trial, with a longer local search in between."""
    if is_over(search, control):
        return
    if search.brancher.problem.n_samples <= LARGE:
        search.run(trial(control, _CHECK_SHARE, search.steps))
        gap = relative_gap(search.best, search.bound)
        if not is_over(search, control) and gap > FAR:
            offer_better(search, control, waited=True)
    if not is_over(search, control):
        search.run(control)
