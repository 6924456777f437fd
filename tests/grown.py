"""Trees and samples for pictures and pages: random splits that part their samples, labels that mostly fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from margotree.problem import Splits, topology
from margotree.tree import Scaling, Tree

_WORDS = ("mean", "worst", "radius", "texture", "concave points", "smoothness", "error", "blood pressure", "age")


def grown(
    depth: int,
    n_features: int,
    *,
    used: int | None = None,
    classes: Sequence[Any] = ("benign", "malignant"),
    pruned: Sequence[int] = (),
    names: Sequence[str] | None = None,
    n_samples: int = 300,
    seed: int = 0,
    **facts: Any,
) -> tuple[Tree, np.ndarray, np.ndarray]:
    """A tree with its counts, samples and their labels.

    ``used`` limits the features of a split, ``pruned`` nodes do not split, and with more than two classes the leaves
    bear the labels in turn.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) * 10.0 ** rng.integers(-2, 4, n_features)
    X += rng.normal(size=n_features) * 5
    scaling = Scaling.minmax(X)
    splits = _splits(rng, scaling.apply(X), depth, used or n_features, pruned)
    n_leaves = 2**depth
    leaf_class = np.arange(n_leaves) % len(classes)
    names = [" ".join(rng.choice(_WORDS, rng.integers(1, 6))) for _ in range(n_features)] if names is None else names
    tree = Tree(
        splits=splits, scaling=scaling, classes=np.array(classes), leaf_class=leaf_class, feature_names=tuple(names),
        **facts,
    )  # fmt: skip
    code = leaf_class[tree.apply(X) - tree.n_nodes]
    code = np.where(rng.random(n_samples) < 0.1, rng.integers(0, len(classes), n_samples), code)
    return tree.counted(X, code, np.ones(n_samples)), X, tree.classes[code]


def _splits(rng: np.random.Generator, scaled: np.ndarray, depth: int, used: int, pruned: Sequence[int]) -> Splits:
    nodes, n = topology.n_nodes(depth), scaled.shape[1]
    w, b, at = np.zeros((nodes, n)), np.ones(nodes), np.zeros(len(scaled), dtype=int)
    for t in range(nodes):
        here = np.flatnonzero(at == t)
        if t not in pruned and len(here) > 4:
            support = rng.choice(n, min(n, used), replace=False)
            w[t, support] = rng.normal(size=len(support)) * rng.choice([0.3, 1.0, 4.0], len(support))
            h = scaled[here] @ w[t]
            w[t] *= 3 / h.std()
            b[t] = -np.quantile(scaled[here] @ w[t], rng.uniform(0.3, 0.7))
        at[here] = np.where(scaled[here] @ w[t] + b[t] >= 0, topology.right(t), topology.left(t))
    return Splits(w=w, b=b)
