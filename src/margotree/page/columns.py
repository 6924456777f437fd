"""What the page asks for: a number per numeric column, a choice where a column holds words or is 0 or 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from margotree.table.described import described
from margotree.table.encoding import Category
from margotree.tree import Tree
from margotree.tree.reach import Reach
from margotree.tree.scaling import FloatArray


def columns_of(tree: Tree, reach: Reach | None) -> list[dict[str, Any]]:
    """The columns in the order of the training data, each with the positions of the features that come of it.

    A choice also has its ``options``: a word and the values it gives those features, and which to start from.  Words
    are known where the tree describes its table; of other features those are choices that are 0 or 1 in all samples.
    """
    samples = None
    if reach is not None and len(reach.scaled):
        samples = reach.scaled * tree.scaling.scale + tree.scaling.offset
    encoding = described(tree)
    if encoding is None:
        return [_single(tree, j, samples) for j in range(tree.n_features)]
    made: list[dict[str, Any]] = []
    first = 0
    for column in encoding.columns:
        at = list(range(first, first + len(column.features)))
        first += len(at)
        if isinstance(column, Category):
            made.append(_words(column, at, samples))
        else:
            made += [_single(tree, j, samples) for j in at]
    return made


def _single(tree: Tree, j: int, samples: FloatArray | None) -> dict[str, Any]:
    column: dict[str, Any] = {"name": tree.features[j], "features": [j]}
    if samples is None or not _is_flag(samples[:, j]):
        return column
    options = [{"word": "0", "values": [0.0]}, {"word": "1", "values": [1.0]}]
    return column | {"options": options, "start": int(samples[:, j].mean() > 0.5)}


def _is_flag(values: FloatArray) -> bool:
    # Scaled and back, a 1 may have lost its last bit.
    return bool(np.all(np.minimum(np.abs(values), np.abs(values - 1)) < 1e-9) and np.ptp(values) > 0.5)


def _words(column: Category, at: list[int], samples: FloatArray | None) -> dict[str, Any]:
    coded = [[float(word == shown) for shown in column.shown] for word in column.values]
    options = [{"word": word, "values": values} for word, values in zip(column.values, coded, strict=True)]
    return {"name": column.name, "features": at, "options": options, "start": _commonest(column, at, coded, samples)}


def _commonest(column: Category, at: list[int], coded: list[list[float]], samples: FloatArray | None) -> int:
    """The word that most samples bear; without samples the one that stands in for missing cells, or the first."""
    if samples is None:
        return column.values.index(column.fill) if column.fill in column.values else 0
    near = np.abs(samples[:, None, at] - np.array(coded)[None]).sum(axis=2).argmin(axis=1)
    return int(np.bincount(near, minlength=len(coded)).argmax())
