"""The content of a page as JSON values: the tree, its outline, and counts of samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from margotree.page.answers import answers_of
from margotree.page.columns import columns_of, typical_values
from margotree.table.table_description import raw_columns, saved_encoding
from margotree.tree import HyperplaneTree, RegressionTree, Tree
from margotree.tree.outline import labels_below, outline
from margotree.tree.proof_summary import proof_text
from margotree.tree.sample_paths import SamplePaths
from margotree.tree.scaling import FloatArray
from margotree.tree.sentences import printed_sum
from margotree.tree.text import rule_of, target_sides_text

_MODELS = {
    "margot": "MARGOT",
    "hfs": "HFS-MARGOT",
    "sfs": "SFS-MARGOT",
    "oct_1": "OCT-1",
    "oct_h": "OCT-H",
    "mm_svm_oct": "MM-SVM-OCT",
}

#: The approximate number of bars of a histogram.
_BINS = 32


def facts_of(tree: HyperplaneTree, X: ArrayLike | None, y: ArrayLike | None, title: str | None) -> dict[str, Any]:
    """Return the content of the page; of the samples only counts, histograms and medians."""
    if (X is None) != (y is None):
        raise ValueError("to show samples give both X and y, or neither for the training samples' counts")
    paths = None if X is None or y is None else SamplePaths.of(tree, X, y)
    columns = columns_of(tree, paths)
    return {
        "title": title or _title(tree),
        **answers_of(tree, X, y, paths),
        "features": _features(tree, paths, columns),
        "columns": columns,
        "missing": list(raw_columns(tree).missing),
        "offset": tree.scaling.offset.tolist(),
        "scale": tree.scaling.scale.tolist(),
        "scaled": not tree.scaling.is_identity,
        "nSplits": tree.n_nodes,
        "nodes": [_node(tree, t) for t in range(len(tree.hyperplanes.b))],
        "outline": _outline(tree),
        "decides": (np.count_nonzero(labels_below(tree, reached_only=False), axis=1) > 1).tolist(),
        "counts": (tree.counts if paths is None else paths.counts()).tolist(),
        "counted": "the training samples" if paths is None else f"{len(paths.code)} samples",
        "samples": None if paths is None else _samples(tree, paths),
        "measured": _measured(tree),
        "certificate": None if tree.certificate is None else _certificate(tree),
    }


def _title(tree: HyperplaneTree) -> str:
    encoding = saved_encoding(tree)
    where = f", trained on {encoding.source}" if encoding is not None and encoding.source else ""
    if isinstance(tree, RegressionTree):
        return f"{tree.target_name} (regression tree{where})"
    assert isinstance(tree, Tree)
    model = _MODELS.get(str(tree.terms.get("model")), "Tree")
    labels = [str(label) for label in tree.classes.tolist()]
    named = " or ".join(labels) if len(labels) == 2 else f"{len(labels)} classes"
    if encoding is None:
        return f"{model}: {named}"
    return f"{encoding.target}: {named}" + (f" ({where.removeprefix(', ')})" if where else "")


def _features(tree: HyperplaneTree, paths: SamplePaths | None, columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each feature with its range and its initial value."""
    offset, scale = tree.scaling.offset, tree.scaling.scale
    user = None if paths is None or not len(paths.scaled) else paths.scaled * scale + offset
    if not tree.scaling.is_identity:
        # The range of the training samples, also if other samples are given.
        low, high = offset, offset + scale
    elif user is not None:
        low, high = user.min(axis=0), user.max(axis=0)
    else:
        # A tree without scaling and without samples: the range is unknown.
        typical = _typical(tree, columns, np.zeros(tree.n_features))
        features: list[dict[str, Any]] = [
            {"name": name, "start": start, "low": None, "high": None}
            for name, start in zip(tree.features, typical.tolist(), strict=True)
        ]
        return _with_words(features, columns)
    start = _typical(tree, columns, low + (high - low) / 2) if user is None else np.median(user, axis=0)
    features = [
        {"name": name, "start": _short(start[j], high[j] - low[j]), "low": float(low[j]), "high": float(high[j])}
        for j, name in enumerate(tree.features)
    ]
    return _with_words(features, columns)


def _typical(tree: HyperplaneTree, columns: list[dict[str, Any]], otherwise: FloatArray) -> FloatArray:
    """Return ``otherwise`` with the medians of the training table where the tree has them."""
    start = otherwise.copy()
    for column, typical in zip(columns, typical_values(tree), strict=True):
        if not isinstance(typical, str) and typical is not None:
            start[column["features"]] = [typical, *[0.0] * (len(column["features"]) - 1)]
    return start


def _with_words(features: list[dict[str, Any]], columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Set the initial values of features with options to those of an option, and return all features.

    Features of dates get their form and first date, and start at a whole day.
    """
    for column in columns:
        if column["date"] is not None:
            day = features[column["features"][0]]
            day |= {"start": math.floor(day["start"]), "date": column["date"]}
        if "options" in column:
            chosen = column["options"][column["start"]]["values"]
            for j, value in zip(column["features"], chosen, strict=True):
                features[j]["start"] = value
    return features


def _short(value: float, span: float) -> float:
    """Round an initial value to a thousandth of its range."""
    if not span > 0:
        return float(value)
    return round(float(value), max(0, 3 - math.floor(math.log10(span))))


def _node(tree: HyperplaneTree, t: int) -> dict[str, Any]:
    """Return a hyperplane: that of a split, or in trees of numbers the formula of leaf ``t``."""
    w, b = tree.hyperplanes.w[t], float(tree.hyperplanes.b[t])
    used = np.flatnonzero(w)
    tie = tree.tie(t) if t < tree.n_nodes else 0.0
    return {"at": used.tolist(), "w": w[used].tolist(), "b": b, "tie": tie}


def _outline(tree: HyperplaneTree) -> dict[str, Any]:
    """Return the outline without splits that do not change the label of any training sample.

    The rules of all splits are included, because the path of a new sample may contain one that is not drawn.
    """
    shape = outline(tree, simplify=True)
    return {
        "root": shape.root,
        "children": {str(t): list(pair) for t, pair in shape.children.items()},
        "rules": {str(t): _rule(tree, t) for t in outline(tree).nodes},
        "labels": {str(v): label for v, label in shape.label.items()},
    }


def _rule(tree: HyperplaneTree, t: int) -> dict[str, Any]:
    rule = rule_of(tree, t)
    return {
        "features": list(rule.features),
        "weights": list(rule.weights),
        "threshold": rule.threshold,
        "relation": rule.relation,
        "logic": bool(rule.literals),
        "by_column": [column.record() for column in rule.columns],
        "literals": [literal.record() for literal in rule.literals],
        "least": rule.least,
        "exact": _exact(tree, t),
        "leftOut": rule.left_out,
        "words": rule.condition(tree.features).replace("\N{NO-BREAK SPACE}", " "),
        "wanted": target_sides_text(tree, t) if isinstance(tree, Tree) else "",
    }


def _exact(tree: HyperplaneTree, t: int) -> dict[str, Any]:
    """Return the weights and the threshold that the printed ones stand for, in the units of the user."""
    features, weights, limit = printed_sum(tree, t)
    return {"features": features.tolist(), "weights": weights.tolist(), "limit": limit}


def _samples(tree: HyperplaneTree, paths: SamplePaths) -> dict[str, Any]:
    nodes = outline(tree).nodes
    return {
        "support": {str(t): int(paths.support(t).sum()) for t in nodes},
        "within": {str(t): int((np.abs(paths.h(t)) < 1).sum()) for t in nodes},
        "histogram": {str(t): _histogram(paths, t) for t in nodes if len(paths.at(t))},
    }


def _histogram(paths: SamplePaths, t: int) -> dict[str, Any]:
    """Return counts by class in bins of ``h`` of equal width; one bin ends exactly at the hyperplane."""
    h, code = paths.h(t), paths.code[paths.at(t)]
    low, high = min(-1.5, float(h.min())), max(1.5, float(h.max()))
    step = (high - low) / _BINS
    edges = np.arange(math.floor(low / step), math.ceil(high / step) + 1) * step
    counts = [np.histogram(h[code == k], edges)[0].tolist() for k in range(paths.tree.counts.shape[1])]
    return {"edges": [float(f"{edge:.6g}") for edge in edges], "counts": counts}


def _measured(tree: HyperplaneTree) -> dict[str, str] | None:
    """Return the measures on new rows that are saved with the tree (by ``margotree fit --holdout`` or ``--cv``)."""
    found = tree.terms.get("measured")
    if not isinstance(found, dict):
        return None
    return {name: str(found.get(name, "")) for name in ("summary", "details")}


def _certificate(tree: HyperplaneTree) -> dict[str, Any]:
    assert tree.certificate is not None
    words = "\n".join(filter(None, (str(tree.certificate), proof_text(tree))))
    return {"proved": tree.certificate.statement, "words": words}
