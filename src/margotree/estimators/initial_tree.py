"""Convert the parameter ``start`` to splits in the units of the training problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from margotree.problem import Splits, TrainingProblem
from margotree.tree import HyperplaneTree, RegressionTree, Scaling, TargetScaling, Tree

#: The hyperplanes of a given tree in the units of the training problem.
Conversion = Callable[[Any], Splits]


def read_start(start: Any, problem: TrainingProblem, convert: Conversion) -> Splits | str | None:
    """``start`` for an engine: None, the name of a heuristic, or feasible splits; ValueError if they are infeasible.

    Of a list of trees the best one that is feasible is taken.
    """
    if start is None or isinstance(start, str):
        return start
    if isinstance(start, (list, tuple)):
        return _best_of(start, problem, convert)
    splits = splits_of_start(start, problem, convert)
    if not problem.evaluate(splits).feasible:
        raise ValueError(
            "start is not a feasible tree on these data: a sample lies in the band beside an upper split, "
            "or a node uses more features or larger weights than allowed; leave start at its default instead"
        )
    return splits


def _best_of(trees: Sequence[Any], problem: TrainingProblem, convert: Conversion) -> Splits:
    """The feasible tree with the smallest objective."""
    found = [splits_of_start(tree, problem, convert) for tree in trees]
    valued = [(problem.evaluate(splits), splits) for splits in found]
    feasible = [(value.objective, k) for k, (value, _) in enumerate(valued) if value.feasible]
    if not feasible:
        raise ValueError("no tree in the list start is feasible on these data; leave start at its default instead")
    return found[min(feasible)[1]]


def splits_of_start(start: Any, problem: TrainingProblem, convert: Conversion) -> Splits:
    """The splits of ``start`` in the units of ``problem``; ValueError if their shape is wrong."""
    splits = start if isinstance(start, Splits) else convert(_tree_of(start))
    shape = (problem.n_nodes, problem.n_features)
    if splits.w.shape != shape:
        raise ValueError(
            f"start has {splits.w.shape[0]} nodes on {splits.w.shape[1]} features, but a tree of depth "
            f"{problem.depth} on these data has {shape[0]} on {shape[1]}; leave start at its default"
        )
    return splits


def _tree_of(start: Any) -> HyperplaneTree:
    if isinstance(start, HyperplaneTree):
        return start
    if not isinstance(tree := getattr(start, "tree_", None), HyperplaneTree):
        raise ValueError(
            "start is an estimator without a fitted tree of hyperplanes (clone, which a grid search uses, removes the "
            "fit); pass its tree_ instead"
        )
    return tree


def class_splits(tree: HyperplaneTree, scaling: Scaling, classes: np.ndarray) -> Splits:
    """The splits of a tree of the same classes, in another scaling."""
    if not isinstance(tree, Tree):
        raise ValueError("start is a tree of numbers, but y holds classes; leave start at its default")
    if tree.classes.tolist() != classes.tolist():
        raise ValueError(
            f"start is a tree for the classes {tree.classes.tolist()}, but the classes of y are {classes.tolist()}"
        )
    return rescaled(tree.splits, tree.scaling, scaling)


def number_splits(tree: HyperplaneTree, scaling: Scaling, target: TargetScaling) -> Splits:
    """The splits and formulas of a tree of numbers, in another scaling of features and target."""
    if not isinstance(tree, RegressionTree):
        raise ValueError("start is a tree of classes, but y holds numbers; leave start at its default")
    splits = rescaled(tree.splits, tree.scaling, scaling)
    models = rescaled(tree.models, tree.scaling, scaling)
    ratio = tree.target.scale / target.scale
    if tree.target != target:
        shift = (tree.target.center - target.center) / target.scale
        models = Splits(w=models.w * ratio, b=models.b * ratio + shift)
    return Splits(w=np.concatenate([splits.w, models.w]), b=np.concatenate([splits.b, models.b]))


def rescaled(splits: Splits, old: Scaling, new: Scaling) -> Splits:
    """The same hyperplanes in another scaling of the features."""
    if len(old.offset) != len(new.offset) or not len(splits.b) or old.same_as(new):
        return splits
    pairs = [new.from_user(*old.to_user(w, b)) for w, b in zip(splits.w, splits.b, strict=True)]
    return Splits(w=np.array([w for w, _ in pairs]), b=np.array([b for _, b in pairs]))
