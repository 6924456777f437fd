"""The choice of the penalty of pruning, on the trees that a cross-validation has trained."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from margotree.model_selection.cross_validation import CrossValidation
from margotree.model_selection.frontier import Frontier, make_frontier
from margotree.model_selection.race import Race
from margotree.model_selection.scores import ScoreTable
from margotree.tree import PENALTIES, Pruning, Tree

#: The penalties to choose from; None is the tree as it was trained.
_CHOICES: tuple[float | None, ...] = (None, *PENALTIES)


@dataclass(frozen=True, kw_only=True)
class PruningChoice:
    """The chosen penalty (None: the tree is not pruned), and all penalties by score and numbers to read."""

    penalty: float | None
    frontier: Frontier


def choose_penalty(
    fits: CrossValidation, k: int, *, max_below: float, must_stop: Callable[[], bool] = lambda: False
) -> PruningChoice:
    """Choose the penalty with which the trees of setting ``k`` are pruned.

    Its tree on each fold is pruned with growing penalties on the training rows and scored on the test rows.  Chosen is
    the penalty with the fewest numbers to read within one standard error of the best, and at most ``max_below`` below
    it.  Folds on which ``must_stop`` ends the pruning do not count.
    """
    mean = np.full((len(_CHOICES), len(fits.folds)), np.nan)
    numbers, row_scores = np.full(mean.shape, np.nan), {}
    for f, tree in fits.trees(k).items():
        assert isinstance(tree, Tree)
        X, y, weight = fits.samples.part(fits.folds[f].train, fits.folds[f].factor)
        X_test, y_test, _ = fits.samples.part(fits.folds[f].test)
        pruned = [tree, *_pruned(tree, X, y, weight, must_stop)]
        if must_stop():
            break
        for p, one in enumerate(pruned):
            row_scores[p, f] = fits.scorer(one, X_test, y_test)
            mean[p, f] = np.average(row_scores[p, f], weights=fits.test_weight(f))
            numbers[p, f] = one.numbers_to_read
    table = ScoreTable(mean, row_scores, [fits.test_weight(f) for f in range(len(fits.folds))])
    n_folds = np.isfinite(numbers).sum(axis=1)
    with np.errstate(invalid="ignore"):
        of_trees = np.nansum(numbers, axis=1) / n_folds
    race = Race([(penalty or 0.0,) for penalty in _CHOICES], max_below=max_below)
    chosen = race.choose(table, of_trees)
    errors = [table.standard_error(p) if n_folds[p] else math.nan for p in range(len(_CHOICES))]
    frontier = make_frontier([{"prune": c} for c in _CHOICES], table.means(), errors, of_trees, n_folds, chosen)
    return PruningChoice(penalty=None if chosen is None else _CHOICES[chosen], frontier=frontier)


def _pruned(tree: Tree, X: object, y: object, weight: object, must_stop: Callable[[], bool]) -> list[Tree]:
    """The tree after pruning with each penalty."""
    pruning = Pruning(tree, X, y, weight, must_stop=must_stop)  # type: ignore[arg-type]
    found = []
    for penalty in PENALTIES:
        pruning.step(penalty)
        found.append(tree.after_pruning(pruning.result(), X, y, weight))  # type: ignore[arg-type]
    return found
