"""Several searches under one clock: trials, what one hands on to the next, and good trees on the way."""

from __future__ import annotations

import math

from margotree.engines.exact.search import PRECISION, Brancher, Search
from margotree.engines.local_search_engine import FAR, better_tree
from margotree.engines.node.svm import LARGE
from margotree.engines.run_control import RunControl
from margotree.engines.trivial_trees import allowed_value
from margotree.problem import Problem, Splits
from margotree.solution import Stopped, relative_gap

#: Share of the time that a search goes on before it is asked whether a proof is in sight.
_CHECK_SHARE = 0.1
#: What something tried may take: seconds at least (unless a quarter of all is less) and at most, and search nodes at
#: least where work is measured in those.
_TRIAL_LEAST, _TRIAL_MOST, _TRIAL_NODES = 0.5, 60.0, 10
#: Searches that are this close to each other, as a share of what is missing, are tried again, so often in all.
_CLOSE, _ROUNDS = 0.08, 3


def phase(control: RunControl, share: float, least: float) -> RunControl:
    """A share of the time or, where work is measured in nodes, of those."""
    return control.share(seconds=share * control.remaining, nodes=max(least, share * control.limits.nodes))


def trial(control: RunControl, share: float, steps: int = 0, least: float = _TRIAL_NODES) -> RunControl:
    """The part of the time (or of the nodes, ``steps`` of which are done) that something tried may take."""
    seconds = min(_TRIAL_LEAST, 0.25 * control.remaining)
    return control.share(
        seconds=min(_TRIAL_MOST, max(seconds, share * control.remaining)),
        nodes=steps + max(least, share * control.limits.nodes),
    )


def is_over(search: Search, control: RunControl) -> bool:
    """Whether a search ended by more than the end of its trial."""
    trial = Stopped.NODES if control.by_nodes else Stopped.TIME
    return search.reason is not trial or control.must_stop(search.steps) is not None


def is_stuck(search: Search) -> bool:
    """Whether a search has nothing left to do and yet has not closed the gap, as where a node could not be solved."""
    target = max(search.control.limits.gap, 2 * PRECISION)
    return search.reason is None and relative_gap(search.best, search.bound) > target


def new_search(
    problem: Problem, brancher: Brancher, first: Splits, control: RunControl, ceiling: float = math.inf
) -> Search:
    return Search(brancher, lambda tree: allowed_value(problem, tree), control, first, ceiling)


def furthest(searches: list[Search], control: RunControl, share: float, share_bounds: bool = True) -> Search:
    """Try one search after the other: that which solves the problem or has come furthest, with what all have found.

    Where it is close, the leaders are tried again, and longer; one that is stuck leaves it to the others.  Unless it
    ``share_bounds`` anything to others, what one has proved is left to itself.
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
    """Those that have come furthest, up to a small share of what is missing yet; the first of them first."""
    ranked = sorted(searches, key=lambda search: -search.own_bound)
    least = ranked[0].own_bound - _CLOSE * max(0.0, ranked[0].best - ranked[0].own_bound)
    return [search for search in ranked if search.own_bound >= least]


def pass_on(search: Search, to: Search, share_bounds: bool = True) -> None:
    """What one search has found, proved and used up goes on to another."""
    if to is not search:
        to.steps = search.steps
        if share_bounds:
            to.floor = search.bound
        to.offer(search.incumbent)


def offer_better(search: Search, control: RunControl, waited: bool = False) -> None:
    """Give a search the tree of the alternating search, if that is better."""
    gap = relative_gap(search.best, search.bound)
    search.offer(better_tree(search.brancher.problem, search.incumbent, control, gap, waited=waited))


def run_to_end(search: Search, control: RunControl) -> None:
    """Run a search to its end; where a proof is not near after a while, good trees are looked for at length."""
    if is_over(search, control):
        return
    if search.brancher.problem.n_samples <= LARGE:
        search.run(trial(control, _CHECK_SHARE, search.steps))
        gap = relative_gap(search.best, search.bound)
        if not is_over(search, control) and gap > FAR:
            offer_better(search, control, waited=True)
    if not is_over(search, control):
        search.run(control)
