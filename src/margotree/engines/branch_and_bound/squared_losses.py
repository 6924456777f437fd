"""Trees with squared losses, and bounds from piecewise linear losses below the squares.

A square is above its tangents: ``t^2 >= 2 a max(0, t - a / 2)`` for every ``a >= 0``, with equality at ``t = a``. With
such losses in place of the squares a problem has no larger optimum, and the search for piecewise linear losses proves
bounds on it. If every ``a`` is the error of its sample in a tree, the tree has the same objective in both problems, and
no tree with the same routing has a smaller one; the gap that remains is due to other routings.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from margotree.engines.base import Answer
from margotree.engines.branch_and_bound.portfolio import phase
from margotree.engines.branch_and_bound.strategies import NewSearch, as_penalised
from margotree.engines.exact.penalty_branching import PenaltyBrancher
from margotree.engines.exact.sample_branching import MargotBrancher, Tactics
from margotree.engines.exact.search import Brancher
from margotree.engines.local_search.search import Effort
from margotree.engines.local_search_engine import Alternating, good_tree
from margotree.engines.node.svm import LARGE
from margotree.engines.presolve import without_budget
from margotree.engines.run_control import RunControl
from margotree.engines.trivial_trees import allowed_value
from margotree.problem import Problem, Splits
from margotree.problem.tasks import tangents
from margotree.solution import Stopped, relative_gap

#: Share of the time for the first tree, and the least number of starts where work is measured in search nodes.
_TREE_SHARE, _TREE_NODES = 0.4, 30
#: Shares of the remaining time of the first rounds; later ones have all of it. The least number of search nodes of a
#: round; the rounds without a better tree or a better bound after which the search ends; the most rounds.
_ROUND_SHARES, _ROUND_NODES, _PATIENCE, _MAX_ROUNDS = (0.3, 0.5), 100, 3, 12
#: The least errors at which tangents are taken, in units of the quadratic mean of the errors, one round after the
#: other. Larger ones give larger bounds on other routings, and a smaller one on that of the tree.
_LEAST_ERRORS = (1.0, 0.5, 0.0)
#: The least error in units of the spread of the targets, so that no tangent is 0.
_TINY = 1e-6
#: Share of a round for descents from the tree that the search has found, and when they end.
_DESCENT_SHARE, _FEW_STARTS = 0.1, Effort(least=4, patience=4)
#: A better bound or tree is better by this share.
_GAIN = 1e-3


def search_squared_losses(
    problem: Problem, control: RunControl, start: Splits | None, tactics: Tactics, new_search: NewSearch
) -> Answer:
    """The best tree of the local search and of searches with tangents, and the best bound of the latter.

    Every round takes the tangents at the errors of the best tree so far. With many samples there is no round.
    """
    effort, rounds = Effort() if control.by_nodes else None, _MAX_ROUNDS if problem.n_samples <= LARGE else 0
    found = Alternating(effort).search(problem, phase(control, _TREE_SHARE if rounds else 1.0, _TREE_NODES), start)
    first = best = found.splits
    value, bound, steps, failed = allowed_value(problem, best), 0.0, 0, 0
    for k in range(rounds):
        done = relative_gap(value, bound) <= control.limits.gap or failed == _PATIENCE
        if done or control.must_stop(steps) is not None:
            break
        share = _ROUND_SHARES[k] if k < len(_ROUND_SHARES) else 1.0
        nodes = max(_ROUND_NODES, share * (control.limits.nodes - steps))
        part = control.share(seconds=share * control.remaining, nodes=nodes).for_relaxation()
        relaxed = below_squares(problem, best, least=_LEAST_ERRORS[k % len(_LEAST_ERRORS)] if problem.n_upper else 0.0)
        search = new_search(relaxed, _brancher(relaxed, best, tactics, part), best, part)
        search.floor = bound  # a round that cannot raise the bound ends early
        search.run(part)
        steps += search.steps
        tree = good_tree(problem, [search.incumbent], phase(control, _DESCENT_SHARE, _TREE_NODES), _FEW_STARTS)
        other = allowed_value(problem, tree)
        better = other < (1.0 - _GAIN) * value or search.bound > (1.0 + _GAIN) * bound
        failed = 0 if better else failed + 1
        bound = max(bound, search.bound)
        if other < value:
            best, value = tree, other
    is_solved = relative_gap(value, bound) <= control.limits.gap
    return Answer(
        splits=best,
        stopped=Stopped.SOLVED if is_solved else control.must_stop(steps) or Stopped.HEURISTIC,
        bound=bound,
        nodes=steps,
        f0=allowed_value(problem, first),
    )


def below_squares(problem: Problem, tree: Splits, least: float) -> Problem:
    """The problem with tangents at the errors of a tree, which are at least ``least`` times their quadratic mean."""
    node = problem.evaluate(tree).node
    h = np.einsum("ij,ij->i", problem.X, tree.w[node]) + tree.b[node]
    items = problem.task.items(problem.y, last=True)
    below, above = np.maximum(0.0, items.r - h), np.maximum(0.0, h - items.l)
    mean = math.sqrt(np.average((below + above) ** 2, weights=problem.weight) if np.any(problem.weight) else 0.0)
    most = max(mean, _TINY * float(np.max(np.abs(problem.task.responses(problem.y)), initial=0.0)), 1e-150)
    errors = (np.where(error > 0.0, np.maximum(error, least * most), most) for error in (below, above))
    task, y = tangents(problem.task, problem.y, *errors)
    return replace(problem, y=y, task=task)


def _brancher(problem: Problem, tree: Splits, tactics: Tactics, control: RunControl) -> Brancher:
    """How the problem with tangents is searched."""
    limit = allowed_value(problem, tree)
    if problem.budget is None or problem.groups is not None:
        return MargotBrancher(without_budget(problem), tactics, limit=limit, control=control)
    return PenaltyBrancher(as_penalised(problem, limit), tactics, limit=limit, control=control)
