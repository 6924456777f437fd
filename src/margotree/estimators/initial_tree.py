"""A tree the user hands in to start from, in the units of the new problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from margotree.problem import Splits, TrainingProblem
from margotree.tree import Scaling, Tree


def read_start(start: Any, problem: TrainingProblem, scaling: Scaling, classes: np.ndarray) -> Splits | str | None:
    """``start`` as an engine takes it: a name, nothing, or splits that are allowed in ``problem``."""
    if start is None or isinstance(start, str):
        return start
    splits = splits_of_start(start, problem, scaling, classes)
    if not problem.evaluate(splits).feasible:
        raise ValueError(
            "start is not an allowed tree on these data: a sample lies inside the band of width eps beside an upper "
            "split, or a node uses more features or larger weights than allowed; pass start='local_svm' instead"
        )
    return splits


def splits_of_start(start: Any, problem: TrainingProblem, scaling: Scaling, classes: np.ndarray) -> Splits:
    """The splits of a tree the user hands in, brought to the units of ``problem``; they must fit it in shape."""
    splits = start if isinstance(start, Splits) else _rescaled(_its_tree(start), scaling, classes)
    wanted = (problem.n_nodes, problem.n_features)
    if splits.w.shape != wanted:
        raise ValueError(
            f"start has {splits.w.shape[0]} nodes on {splits.w.shape[1]} features, but a tree of depth "
            f"{problem.depth} on these data has {wanted[0]} on {wanted[1]}; leave start at its default instead"
        )
    return splits


def _its_tree(start: Any) -> Tree:
    if isinstance(start, Tree):
        return start
    if not isinstance(tree := getattr(start, "tree_", None), Tree):
        raise ValueError(
            "start is an estimator that has not been fitted to a tree of hyperplanes (cloning, as a grid search does, "
            "forgets a fit); pass its tree_ instead"
        )
    return tree


def _rescaled(tree: Tree, scaling: Scaling, classes: np.ndarray) -> Splits:
    if tree.classes.tolist() != classes.tolist():
        raise ValueError(f"start tells {tree.classes.tolist()} apart, these data {classes.tolist()}")
    if tree.n_features != len(scaling.offset) or tree.scaling.same_as(scaling):
        return tree.splits
    pairs = [scaling.from_user(*tree.scaling.to_user(w, b)) for w, b in zip(tree.splits.w, tree.splits.b, strict=True)]
    return Splits(w=np.array([w for w, _ in pairs]), b=np.array([b for _, b in pairs]))
