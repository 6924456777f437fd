"""The input fields of a page: a number per numeric column, a list of options for words and for 0/1 columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from margotree.table.cell_rules import CellRule
from margotree.table.table_description import raw_columns, saved_encoding
from margotree.tree import HyperplaneTree
from margotree.tree.sample_paths import SamplePaths
from margotree.tree.scaling import FloatArray

#: The option for a missing cell.
_NOT_KNOWN = "not known"
#: The option for a word that is not in the training data.
_OTHER = "any other"


def columns_of(tree: HyperplaneTree, paths: SamplePaths | None) -> list[dict[str, Any]]:
    """Return the columns in the order of the training data, each with the rule that converts cells to features.

    An entry is the column's :class:`~margotree.table.cell_rules.CellRule` with the positions of its features. A column
    with options also has ``options``, a word with its feature values each, and ``start``, the option shown first. The
    words are those of the table description of the tree; without one, a feature that is 0 or 1 in all samples has
    options.
    """
    samples = None
    if paths is not None and len(paths.scaled):
        samples = paths.scaled * tree.scaling.scale + tree.scaling.offset
    made: list[dict[str, Any]] = []
    first = 0
    for rule, typical in zip(raw_columns(tree).rules, typical_values(tree), strict=True):
        at = list(range(first, first + len(rule.features)))
        first += len(at)
        column = rule.record() | {"name": rule.column, "features": at, "words": [list(pair) for pair in rule.words]}
        made.append(column | _choice(rule, at, typical, samples))
    return made


def typical_values(tree: HyperplaneTree) -> list[float | str | None]:
    """Return the median or the most frequent word of each training column; None without a table description."""
    encoding = saved_encoding(tree)
    if encoding is None:
        return [None] * tree.n_features
    return [column.typical if column.typical is not None else column.fill for column in encoding.columns]


def _choice(rule: CellRule, at: list[int], typical: float | str | None, samples: FloatArray | None) -> dict[str, Any]:
    """Return the options of a column; empty for a column of numbers."""
    words = dict(rule.words)
    if rule.numeric:
        if words or rule.units or samples is None or not _is_flag(samples[:, at[0]]):
            return {}
        present = (0.0,) * (len(at) - 1)
        words = {"0": (0.0, *present), "1": (1.0, *present)}
    options: list[dict[str, Any]] = [{"word": word, "values": list(values)} for word, values in words.items()]
    if rule.missing is not None and rule.missing not in words.values():
        options.append({"word": _NOT_KNOWN, "values": list(rule.missing), "missing": True})
    if rule.other is not None and rule.other not in (rule.missing, *words.values()):
        options.append({"word": _OTHER, "values": list(rule.other), "other": True})
    if samples is None:
        start = list(words).index(typical) if isinstance(typical, str) and typical in words else 0
        return {"options": options, "start": start}
    near = np.abs(samples[:, None, at] - np.array([option["values"] for option in options])[None]).sum(axis=2)
    return {"options": options, "start": int(np.bincount(near.argmin(axis=1), minlength=len(words)).argmax())}


def _is_flag(values: FloatArray) -> bool:
    # After scaling back, a 1 may have a rounding error.
    return bool(np.all(np.minimum(np.abs(values), np.abs(values - 1)) < 1e-9) and np.ptp(values) > 0.5)
