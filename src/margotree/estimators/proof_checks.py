"""A proof against the tree and the data that a user has."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

import numpy as np

from margotree.estimators.input_data import FloatArray, distinct
from margotree.proof.check import Data, Proved, Refused, check, read_header, shown
from margotree.tree import Tree
from margotree.tree.labels import positions


def check_proof(
    tree: Tree,
    path: str | PathLike[str],
    X: FloatArray,
    y: Any,
    sample_weight: Any = None,
    tell: Callable[[float], None] | None = None,
    *,
    source: str = "the data given",
    left_out: Mapping[str, int] | None = None,
    weight_column: str | None = "sample_weight",
    max_memory: float | None = None,
    max_work: float | None = None,
) -> Proved:
    """What the proof in this file proves about this tree and its training data; Refused if nothing.

    ``source``, ``left_out`` (rows of the source that are not in ``X``, by reason) and ``weight_column`` say where the
    data are from, and are passed on to the statement.
    """
    with open(path, "rb") as stream:
        header = read_header(stream)
    wanted = tree.terms
    for name in ("model", "C", "eps", "budget", "alpha"):
        if header[name] != wanted.get(name):
            raise Refused(f"header: the proof is about {name} = {header[name]!r}, the tree has {wanted.get(name)!r}")
    if tree.splits.w.tolist() != header["tree"]["w"] or tree.splits.b.tolist() != header["tree"]["b"]:
        raise Refused("header: the proof is about another tree")
    data = _data(tree, X, y, sample_weight, source, left_out or {}, weight_column)
    return check(os.fspath(path), data, tell, max_memory=max_memory, max_work=max_work)


def _data(
    tree: Tree, X: FloatArray, y: Any, weight: Any, source: str, left_out: Mapping[str, int], weight_column: str | None
) -> Data:
    """The problem's numbers with the names of columns and classes, and with counts of rows."""
    code = positions(tree.classes, y)
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
        class_rows=(int(np.sum(code[used] == 0)), int(np.sum(code[used] == 1))),
    )


def problem_numbers(
    tree: Tree, X: FloatArray, y: Any, sample_weight: Any = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Samples, labels and weights of the problem that the tree was trained on, bit for bit."""
    code = positions(tree.classes, y)
    weight = np.ones(len(code)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    X, code, weight = np.asarray(X, np.float64)[weight > 0], code[weight > 0], weight[weight > 0]
    weight = weight * np.asarray(tree.terms["class_weight"], dtype=np.float64)[code]
    return distinct(X, np.where(code == 1, 1.0, -1.0), weight, tree.scaling)
