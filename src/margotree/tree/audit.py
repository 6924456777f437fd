"""A saved claim against the data it was made on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.problem import Evaluation, Problem
from margotree.solution import Solution, verify

if TYPE_CHECKING:
    from margotree.tree.tree import Tree

#: Models whose problem can be stated again from a tree's terms.
_MODELS = frozenset({"margot", "hfs", "sfs"})


def verify_tree(tree: Tree, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Evaluation:
    """State the training problem again and recompute what the tree's certificate claims."""
    if tree.certificate is None or tree.terms.get("model") not in _MODELS:
        raise ValueError("this tree carries no certificate of a margin tree problem, so there is nothing to verify")
    return verify(_restate(tree, X, y, sample_weight), Solution(splits=tree.splits, certificate=tree.certificate))


def _restate(tree: Tree, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Problem:
    code, scaled = _codes(tree, y), tree.scaled(X)
    weight = np.ones(len(code)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if not len(code) == len(scaled) == len(weight):
        raise ValueError(f"X, y and weights must be of one length, got {len(scaled)}, {len(code)} and {len(weight)}")
    counts = weight > 0
    terms: dict[str, Any] = {k: tree.terms.get(k) for k in ("C", "budget", "alpha", "max_weight")}
    return Problem.make(
        scaled[counts],
        np.where(code[counts] == 1, 1.0, -1.0),
        depth=tree.depth,
        eps=tree.eps,
        weight=(weight * np.asarray(tree.terms.get("class_weight") or [1.0, 1.0])[code])[counts],
        **terms,
    )


def _codes(tree: Tree, y: ArrayLike) -> NDArray[np.int64]:
    """Positions in ``classes``."""
    position = {label: k for k, label in enumerate(tree.classes.tolist())}
    labels = np.asarray(y).ravel().tolist()
    strange = set(labels) - set(position)
    if strange:
        raise ValueError(f"the tree tells {tree.classes.tolist()} apart, but y also holds {sorted(map(str, strange))}")
    return np.array([position[label] for label in labels], dtype=np.int64)
