"""A proof against the tree and the data that a user has."""

from __future__ import annotations

import os
from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np

from margotree.estimators.samples import FloatArray, distinct
from margotree.proof.check import Proved, Refused, check, read_header
from margotree.tree import Tree
from margotree.tree.labels import positions


def check_proof(
    tree: Tree,
    path: str | PathLike[str],
    X: FloatArray,
    y: Any,
    sample_weight: Any = None,
    tell: Callable[[float], None] | None = None,
) -> Proved:
    """What the proof in this file proves about this tree and its training data; Refused if nothing."""
    with open(path, "rb") as stream:
        header = read_header(stream)
    wanted = tree.terms
    for name in ("model", "C", "eps", "budget", "alpha"):
        if header[name] != wanted.get(name):
            raise Refused(f"header: the proof is about {name} = {header[name]!r}, the tree has {wanted.get(name)!r}")
    if tree.splits.w.tolist() != header["tree"]["w"] or tree.splits.b.tolist() != header["tree"]["b"]:
        raise Refused("header: the proof is about another tree")
    return check(os.fspath(path), problem_numbers(tree, X, y, sample_weight), tell)


def problem_numbers(
    tree: Tree, X: FloatArray, y: Any, sample_weight: Any = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Samples, labels and weights of the problem that the tree was trained on, bit for bit."""
    code = positions(tree.classes, y)
    weight = np.ones(len(code)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    X, code, weight = np.asarray(X, np.float64)[weight > 0], code[weight > 0], weight[weight > 0]
    weight = weight * np.asarray(tree.terms["class_weight"], dtype=np.float64)[code]
    return distinct(X, np.where(code == 1, 1.0, -1.0), weight, tree.scaling)
