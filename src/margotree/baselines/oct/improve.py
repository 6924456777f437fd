"""Better trees of OCT-H before the solver gets to work: re-train one split at a time, disturb, and again.

A split is kept only if the tree with it is allowed and worth less, by the value function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from margotree.baselines.oct.perturbation import shake
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.retrain import PRICES, candidates, moved
from margotree.baselines.oct.side_costs import sides
from margotree.baselines.oct.tree_cleanup import settle
from margotree.engines import RunControl
from margotree.problem import Splits
from margotree.problem.problem import FloatArray

#: A better tree is better by more than this.
_GAIN = 1e-9

#: Disturbed trees to descend from at most, and how many of them may fail in a row: one a point, but no more than this.
KICKS, _PATIENCE = 2000, 300


def improve(
    problem: OctProblem,
    tree: Splits,
    *,
    control: RunControl,
    tell: Callable[[float], None] = lambda value: None,
    seed: int = 0,
    kicks: int = KICKS,
) -> Splits:
    """A tree no worse than the given one; ``control`` ends the work early, ``tell`` hears the best value now and then.

    Descends from the given tree and from one grown from the root, then again and again from the best one with a split
    of it disturbed at random.  OCT-H only: the best univariate tree is found by enumeration.
    """
    rng, worth, failed = np.random.default_rng(seed), _worth(problem), 0
    best = min((_descend(problem, start, control) for start in (tree, _grown(problem, control))), key=worth)
    for _ in range(kicks):
        value = worth(best)
        tell(value)
        if control.must_stop() is not None or failed >= min(_PATIENCE, len(problem.points.X)) or value <= problem.floor:
            break
        found = _again(problem, best, rng, control)
        failed = 0 if worth(found) < value - _GAIN else failed + 1
        best = min(found, best, key=worth)
    return best


def _worth(problem: OctProblem) -> Callable[[Splits], float]:
    return lambda tree: problem.evaluate(tree).objective


def _again(problem: OctProblem, tree: Splits, rng: np.random.Generator, control: RunControl) -> Splits:
    """Where a descent ends that starts from the tree with one of its splits shaken; the tree itself if that fails."""
    t = int(rng.integers(problem.n_nodes))
    costs = sides(problem, tree, t)
    direction = None if costs is None else shake(costs, tree.w[t], float(tree.b[t]), rng, control)
    if costs is None or direction is None:
        return tree
    shaken = _replaced(problem, tree, t, moved(costs, direction, control), control)
    return tree if shaken is None else _descend(problem, shaken, control, ())


def _descend(problem: OctProblem, tree: Splits, control: RunControl, prices: tuple[float, ...] = PRICES) -> Splits:
    """Re-train split after split until none gets better; without ``prices`` only by moving coefficients."""
    worth, busy = _worth(problem), True
    while busy and control.must_stop() is None:
        busy = False
        for t in range(problem.n_nodes):
            enough = worth(tree) - _GAIN
            better = (other for other in _neighbours(problem, tree, t, control, prices) if worth(other) < enough)
            if (other := next(better, None)) is not None:
                tree, busy = other, True
    return tree


def _neighbours(
    problem: OctProblem, tree: Splits, t: int, control: RunControl, prices: tuple[float, ...] = PRICES
) -> Iterator[Splits]:
    """Allowed trees that differ at node ``t`` and promise to be better, the most promising first."""
    costs = sides(problem, tree, t)
    if costs is None:
        return
    now = costs.cost(tree.w[t], float(tree.b[t]))
    found = [(costs.cost(w, b), w, b) for w, b in candidates(costs, tree.w[t], prices, control)]
    for cost, w, b in sorted(found, key=lambda one: one[0]):
        if cost >= now - _GAIN * problem.baseline or control.must_stop() is not None:
            return
        other = _replaced(problem, tree, t, (w, b), control)
        if other is not None:
            yield other


def _replaced(
    problem: OctProblem, tree: Splits, t: int, split: tuple[FloatArray, float], control: RunControl
) -> Splits | None:
    """The tree with another split at ``t``; None if it is not allowed."""
    w, b = tree.w.copy(), tree.b.copy()
    w[t], b[t] = split
    return settle(problem, Splits(w=w, b=b), control)


def _grown(problem: OctProblem, control: RunControl) -> Splits:
    """A tree from scratch, split by split from the root."""
    tree = Splits(w=np.zeros((problem.n_nodes, problem.n_features)), b=np.ones(problem.n_nodes))
    for t in range(problem.n_nodes):
        tree = next(_neighbours(problem, tree, t, control), tree)
    return tree
