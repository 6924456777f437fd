"""Better incumbents: search again around the best tree, with most samples fixed where it puts them.

The samples with the largest estimated gain of a move are freed: their loss below a node, minus their loss on the other
side and the cost of moving the hyperplane. The rest of the routing is fixed, so the search is short; every improvement
becomes the next centre.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.penalty_branching import PenaltyBrancher
from margotree.engines.exact.sample_branching import MargotBrancher
from margotree.engines.exact.search import CUTOFF, Worker
from margotree.engines.run_control import RunControl, flag_after
from margotree.problem import Choices, Problem, Splits, evaluate, topology
from margotree.problem.problem import FloatArray

RoutingBrancher = MargotBrancher | PenaltyBrancher

#: The numbers of samples freed in the neighbourhoods, and the largest number of steps in each.
_SIZES = (15, 30, 60, 120)
_STEPS = 300
#: After the ranking without noise, the number of rankings with noise of each size.
_SHUFFLES = 6


#: The number of neighbourhoods searched without improvement, by the objective of the tree.
Tried = dict[float, int]


def improve(
    brancher: RoutingBrancher,
    starts: list[Splits],
    control: RunControl,
    shuffles: int = _SHUFFLES,
    tried: Tried | None = None,
) -> Splits:
    """The best tree found around ``starts``, until all neighbourhoods are searched or a limit is reached.

    Parameters
    ----------
    brancher
        The brancher of the problem.
    starts
        The trees to start from.
    control
        Limits and progress.
    shuffles
        The number of further neighbourhoods of each size with noise in the ranking, around the best start.
    tried
        The neighbourhoods that earlier calls have searched; updated, so that a later call continues there.
    """
    tried = {} if tried is None else tried
    worker, rng = brancher.worker(), np.random.default_rng(control.limits.seed)
    step_count = _StepCount(control)
    shuffles = shuffles if brancher.problem.depth > 1 else 0  # at depth 1 no sample can be freed
    value = {id(tree): evaluate(brancher.problem, tree).objective for tree in starts}
    best = min(starts, key=lambda tree: value[id(tree)])
    with flag_after(worker.stop_flag(), control.remaining):
        for k, tree in enumerate(sorted(starts, key=lambda tree: value[id(tree)])):
            found = _climb(brancher, worker, tree, step_count, rng, shuffles if k == 0 else 0, tried)
            best = min(best, found, key=lambda tree: evaluate(brancher.problem, tree).objective)
    return best


class _StepCount:
    """The number of steps so far, and whether a limit is reached."""

    def __init__(self, control: RunControl) -> None:
        self.control, self.steps = control, 0

    def over(self) -> bool:
        """Whether a limit is reached."""
        return self.control.must_stop(self.steps) is not None


def _climb(
    brancher: RoutingBrancher,
    worker: Worker,
    tree: Splits,
    step_count: _StepCount,
    rng: np.random.Generator,
    shuffles: int,
    tried: Tried,
) -> Splits:
    """The best tree around ``tree``: each improvement is the next centre."""
    best, value = tree, evaluate(brancher.problem, tree).objective
    k = tried.get(value, 0)
    last = max(k, len(_SIZES)) + 2 * shuffles
    while k < last and not step_count.over():
        place = _free_samples(brancher.problem, best, *_neighbourhood(k, shuffles), rng)
        found = _search_around(brancher, worker, place, value, step_count)
        k += 1
        if not step_count.over():
            tried[value] = k
        if found is not None:
            best, value = found, evaluate(brancher.problem, found).objective
            step_count.control.report("improve", incumbent=value)
            k, last = 0, len(_SIZES) + 2 * shuffles
    return best


def _neighbourhood(k: int, shuffles: int) -> tuple[int, float]:
    """The number of samples that the k-th neighbourhood of a tree frees, and the noise in their ranking."""
    if k < len(_SIZES):
        return _SIZES[k], 0.0
    return _SIZES[1 + (k - len(_SIZES)) // shuffles % 2], 1.0


def _search_around(
    brancher: RoutingBrancher, worker: Worker, place: NDArray[np.int64], value: float, step_count: _StepCount
) -> Splits | None:
    """The first tree better than ``value`` that keeps the fixed samples where they are; None if none is found."""
    shared = np.array([value * (1.0 - 1e-9), 0.0])
    stack = [brancher.record(place)]
    steps = 0
    while stack and steps < _STEPS and not step_count.over():
        stack.sort(key=lambda r: -r.bound)
        dive = worker.dive(stack.pop(), shared)
        steps += dive.steps
        step_count.steps += dive.steps
        for found in dive.trees:
            seen = evaluate(brancher.problem, found)
            if seen.feasible and seen.objective < shared[CUTOFF]:
                return found
        stack += [r for r in dive.left if r.bound < shared[CUTOFF]]
    return None


def _free_samples(
    problem: Problem, tree: Splits, size: int, noise: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The place where each sample is fixed: its last-level node or, if it is freed, an upper node."""
    h = problem.X @ tree.w.T + tree.b
    found = evaluate(problem, tree)
    below = _cost_below(problem, h, found.choices)
    place = found.node.copy()
    promise = np.full(problem.n_samples, -np.inf)
    at = place.copy()
    for t in topology.upper(problem.depth):
        index = np.flatnonzero(_is_below(place, t, problem.depth))
        right = place[index] >= topology.last_right(t, problem.depth).start
        here = np.where(right, below[topology.right(t), index], below[topology.left(t), index])
        there = np.where(right, below[topology.left(t), index], below[topology.right(t), index])
        gain = here - there - 0.5 * problem.C[t] * problem.weight[index] * np.abs(h[index, t])
        better = gain > promise[index]
        at[index[better]] = t
        promise[index[better]] = gain[better]
    if noise:
        promise += noise * np.std(promise) * rng.standard_normal(len(promise))
    chosen = np.argsort(-promise, kind="stable")[:size]
    place[chosen] = at[chosen]
    return place


def _cost_below(problem: Problem, h: FloatArray, choices: Choices) -> FloatArray:
    """The loss of every sample from each node downwards."""
    cost = np.empty((problem.n_nodes, problem.n_samples))
    for t in reversed(range(problem.n_nodes)):
        last, side = t >= problem.n_upper, np.where(h[:, t] >= 0, 1, -1)
        items = problem.task.items(problem.y, last=last, side=None if last else side, choice=choices.at(t))
        cost[t] = problem.C[t] * problem.weight * items.loss(h[:, t])
        if not last:
            cost[t] += np.where(side > 0, cost[topology.right(t)], cost[topology.left(t)])
    return cost


def _is_below(place: NDArray[np.int64], t: int, depth: int) -> NDArray[np.bool_]:
    """Whether each last-level node in ``place`` is below tree node ``t``."""
    below = topology.last_below(t, depth)
    return (place >= below.start) & (place < below.stop)
