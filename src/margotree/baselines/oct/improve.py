"""Local search for OCT-H before the solver starts: re-train one split at a time, perturb, repeat.

A new split is accepted only if the tree with it is allowed and has a smaller objective, by the value function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from margotree.baselines.oct.perturbation import perturb
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.retrain import PENALTIES, candidates, coordinate_descent
from margotree.baselines.oct.side_costs import side_costs
from margotree.baselines.oct.tree_cleanup import clean_tree
from margotree.engines import RunControl
from margotree.problem import Splits
from margotree.problem.problem import FloatArray

#: Objectives that differ by no more than this are equal.
_GAIN = 1e-9

#: Limits on the number of perturbed trees, and on consecutive ones without improvement (also at most one per point).
MAX_PERTURBATIONS, _PATIENCE = 2000, 300


def improve(
    problem: OctProblem,
    tree: Splits,
    *,
    control: RunControl,
    report: Callable[[float], None] = lambda value: None,
    seed: int = 0,
    perturbations: int = MAX_PERTURBATIONS,
) -> Splits:
    """Improve a tree of OCT-H by local search; the result is no worse than the given tree.

    Descends from the given tree and from one grown from the root, then repeatedly from the best tree with one split
    perturbed at random.  OCT-H only: the best univariate tree is found by enumeration.

    Parameters
    ----------
    control : RunControl
        Limits; when they are reached, the best tree so far is returned.
    report : callable
        Receives the best objective before every perturbation.
    perturbations : int
        The largest number of perturbations.
    """
    rng, objective, failed = np.random.default_rng(seed), _objective(problem), 0
    best = min((_descend(problem, start, control) for start in (tree, _grow_tree(problem, control))), key=objective)
    for _ in range(perturbations):
        value = objective(best)
        report(value)
        if control.must_stop() is not None or value <= problem.trivial_bound:
            break
        if failed >= min(_PATIENCE, len(problem.points.X)):
            break
        found = _perturbed_descent(problem, best, rng, control)
        failed = 0 if objective(found) < value - _GAIN else failed + 1
        best = min(found, best, key=objective)
    return best


def _objective(problem: OctProblem) -> Callable[[Splits], float]:
    """The function that computes the objective of a tree."""
    return lambda tree: problem.evaluate(tree).objective


def _perturbed_descent(problem: OctProblem, tree: Splits, rng: np.random.Generator, control: RunControl) -> Splits:
    """Perturb the split of a random node, then re-train one split after the other by coordinate descent.

    Returns the unchanged tree if there is no perturbed split, or if the perturbed tree is not feasible.
    """
    t = int(rng.integers(problem.n_nodes))
    costs = side_costs(problem, tree, t)
    direction = None if costs is None else perturb(costs, tree.w[t], float(tree.b[t]), rng, control)
    if costs is None or direction is None:
        return tree
    perturbed = _with_split(problem, tree, t, coordinate_descent(costs, direction, control), control)
    return tree if perturbed is None else _descend(problem, perturbed, control, ())


def _descend(
    problem: OctProblem, tree: Splits, control: RunControl, penalties: tuple[float, ...] = PENALTIES
) -> Splits:
    """Re-train one split after the other until none improves the tree; return the tree.

    ``penalties`` are the penalties of ``|w|_1`` in the SVMs that propose splits.  If there are none, splits are only
    improved by coordinate descent.
    """
    objective, improved = _objective(problem), True
    while improved and control.must_stop() is None:
        improved = False
        for t in range(problem.n_nodes):
            target = objective(tree) - _GAIN
            improving = (o for o in _retrained(problem, tree, t, control, penalties) if objective(o) < target)
            if (other := next(improving, None)) is not None:
                tree, improved = other, True
    return tree


def _retrained(
    problem: OctProblem, tree: Splits, t: int, control: RunControl, penalties: tuple[float, ...] = PENALTIES
) -> Iterator[Splits]:
    """Feasible trees that differ from ``tree`` by the split of node ``t``, in increasing order of the split's costs.

    Only splits whose side costs (the cost of every point on its side, with both subtrees fixed) are smaller than those
    of the current split are returned.
    """
    costs = side_costs(problem, tree, t)
    if costs is None:
        return
    current = costs.cost(tree.w[t], float(tree.b[t]))
    found = [(costs.cost(w, b), w, b) for w, b in candidates(costs, tree.w[t], penalties, control)]
    for cost, w, b in sorted(found, key=lambda candidate: candidate[0]):
        if cost >= current - _GAIN * problem.baseline_error or control.must_stop() is not None:
            return
        other = _with_split(problem, tree, t, (w, b), control)
        if other is not None:
            yield other


def _with_split(
    problem: OctProblem, tree: Splits, t: int, split: tuple[FloatArray, float], control: RunControl
) -> Splits | None:
    """The tree with ``split`` (weights, offset) at node ``t``; None if it is not feasible."""
    w, b = tree.w.copy(), tree.b.copy()
    w[t], b[t] = split
    return clean_tree(problem, Splits(w=w, b=b), control)


def _grow_tree(problem: OctProblem, control: RunControl) -> Splits:
    """A tree without splits, to which the best split found is added at one node after the other, from the root."""
    tree = Splits(w=np.zeros((problem.n_nodes, problem.n_features)), b=np.ones(problem.n_nodes))
    for t in range(problem.n_nodes):
        tree = next(_retrained(problem, tree, t, control), tree)
    return tree
