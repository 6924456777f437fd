"""Check a proof against a tree and its training data."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import singledispatch
from os import PathLike
from typing import Any

import numpy as np

from margotree.estimators.input_data import FloatArray, merge_duplicates
from margotree.proof.check import Data, Proved, Refused, check, read_header, shown
from margotree.tree import HyperplaneTree, RegressionTree, Tree
from margotree.tree.labels import class_positions


def check_proof(
    tree: HyperplaneTree,
    path: str | PathLike[str],
    X: FloatArray,
    y: Any,
    sample_weight: Any = None,
    report: Callable[[float], None] | None = None,
    *,
    source: str = "the data given",
    left_out: Mapping[str, int] | None = None,
    weight_column: str | None = "sample_weight",
    max_memory: float | None = None,
    max_work: float | None = None,
) -> Proved:
    """Check the proof in a file; return the proved statement, or raise ``Refused``.

    Parameters
    ----------
    tree : Tree
        The tree.
    path : str or path
        The proof file.
    X, y, sample_weight
        The training data.
    report : callable, optional
        Receives the share of the proof that is checked so far.
    source : str
        The name of the data in the statement.
    left_out : mapping, optional
        The numbers of rows of the source that are not in ``X``, by reason, for the statement.
    weight_column : str, optional
        The name of the weights in the statement.
    max_memory, max_work : float, optional
        The limits of the check, in GB and in billions of operations.
    """
    with open(path, "rb") as stream:
        header = read_header(stream)
    terms = tree.terms
    for name in ("model", "C", "eps", "budget", "alpha", "groups"):
        if header[name] != terms.get(name):
            raise Refused(f"header: the proof is about {name} = {header[name]!r}, the tree has {terms.get(name)!r}")
    found = _tree_of(tree)
    same = found == header["tree"]
    # A proof is written before the numbers of the tree are rounded. Its bound is about all trees.
    if not (same or (tree.certificate is not None and tree.certificate.rounded)):
        raise Refused("header: the proof is about another tree")
    data = _data(tree, X, y, sample_weight, source, left_out or {}, weight_column)
    limits = {"max_memory": max_memory, "max_work": max_work}
    return check(os.fspath(path), data, report, tree=None if same else found, **limits)


@singledispatch
def _tree_of(tree: HyperplaneTree) -> dict[str, Any]:
    """The tree as the header of a proof contains it."""
    raise NotImplementedError(f"no proofs of a {type(tree).__name__}")


@_tree_of.register
def _tree_of_classes(tree: Tree) -> dict[str, Any]:
    """The tree as the header of a proof contains it."""
    found: dict[str, Any] = {"w": tree.splits.w.tolist(), "b": tree.splits.b.tolist()}
    if tree.sides is not None:
        found |= {"sides": tree.sides.tolist(), "labels": tree.leaf_class.reshape(-1, 2).tolist()}
    return found


@singledispatch
def _data(
    tree: HyperplaneTree,
    X: FloatArray,
    y: Any,
    weight: Any,
    source: str,
    left_out: Mapping[str, int],
    weight_column: str | None,
) -> Data:
    """The data of the proof: the problem, the names of columns and classes, and counts of rows."""
    raise NotImplementedError(f"no proofs of a {type(tree).__name__}")


@_data.register
def _data_of_classes(
    tree: Tree, X: FloatArray, y: Any, weight: Any, source: str, left_out: Mapping[str, int], weight_column: str | None
) -> Data:
    """The data of the proof: the problem, the names of columns and classes, and counts of rows."""
    code = class_positions(tree.classes, y)
    used = np.ones(len(code), bool) if weight is None else np.asarray(weight, dtype=np.float64) > 0
    return Data(
        *problem_numbers(tree, X, y, weight),
        columns=list(tree.features),
        classes=[shown([str(label)]) for label in tree.classes.tolist()],
        class_weight=list(tree.terms["class_weight"]),
        weight_column=None if weight is None else weight_column,
        source=source,
        rows_read=len(code) + sum(left_out.values()),
        left_out={**left_out, "weight 0": int(np.sum(~used))},
        class_rows=tuple(np.bincount(code[used], minlength=len(tree.classes)).tolist()),
    )


@_tree_of.register
def _tree_of_numbers(tree: RegressionTree) -> dict[str, Any]:
    return {"w": tree.hyperplanes.w.tolist(), "b": tree.hyperplanes.b.tolist()}


@_data.register
def _data_of_numbers(
    tree: RegressionTree, X: FloatArray, y: Any, weight: Any, source: str, left_out: Mapping[str, int],
    weight_column: str | None,
) -> Data:  # fmt: skip
    n = len(np.asarray(y))
    used = np.ones(n, bool) if weight is None else np.asarray(weight, dtype=np.float64) > 0
    return Data(
        *problem_numbers(tree, X, y, weight),
        columns=list(tree.features),
        weight_column=None if weight is None else weight_column,
        source=source,
        rows_read=n + sum(left_out.values()),
        left_out={**left_out, "weight 0": int(np.sum(~used))},
        class_rows=(int(np.sum(used)),),
        target=tree.target_name,
        target_units=(tree.target.center, tree.target.scale),
    )


@singledispatch
def problem_numbers(
    tree: HyperplaneTree, X: FloatArray, y: Any, sample_weight: Any = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The samples, targets and weights of the tree's training problem, exactly as in training."""
    raise NotImplementedError(f"no proofs of a {type(tree).__name__}")


@problem_numbers.register
def _problem_numbers_of_numbers(
    tree: RegressionTree, X: FloatArray, y: Any, sample_weight: Any = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    targets = np.asarray(y, dtype=np.float64)
    weight = np.ones(len(targets)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    X, targets, weight = np.asarray(X, np.float64)[weight > 0], targets[weight > 0], weight[weight > 0]
    return merge_duplicates(X, tree.target.apply(targets), weight, tree.scaling)


@problem_numbers.register
def _problem_numbers_of_classes(
    tree: Tree, X: FloatArray, y: Any, sample_weight: Any = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The samples, targets and weights of the tree's training problem, exactly as in training."""
    code = class_positions(tree.classes, y)
    weight = np.ones(len(code)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    X, code, weight = np.asarray(X, np.float64)[weight > 0], code[weight > 0], weight[weight > 0]
    weight = weight * np.asarray(tree.terms["class_weight"], dtype=np.float64)[code]
    targets = np.where(code == 1, 1.0, -1.0) if len(tree.classes) == 2 else code.astype(np.float64)
    return merge_duplicates(X, targets, weight, tree.scaling)
