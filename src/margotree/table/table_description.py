"""The description of the training table in a saved tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from margotree.table.cell_rules import CellRule, RawColumns
from margotree.table.cells import MISSING
from margotree.table.encoding import Encoding
from margotree.table.encoding_json import from_record
from margotree.table.frame_columns import frame_columns
from margotree.table.frame_encoding import encode_columns

#: The entry of a tree's terms that holds the encoding (written by ``margotree.cli.saved_trees``).
ENTRY = "table"


class TreeWithTerms(Protocol):
    """A tree with terms, in which the description of its table may be stored."""

    @property
    def terms(self) -> Mapping[str, Any]: ...

    @property
    def features(self) -> Sequence[str]: ...


def saved_encoding(tree: TreeWithTerms) -> Encoding | None:
    """The encoding that is saved with the tree; None for a tree that was trained on plain numbers from Python."""
    if tree.terms.get(ENTRY) is None:
        return None
    encoding = from_record(tree.terms[ENTRY])
    return encoding if tuple(encoding.features) == tuple(tree.features) else None


def encoded_rows(tree: TreeWithTerms, X: Any) -> NDArray[np.float64] | None:
    """The features of raw rows: a frame with the columns of the training data, or an array if these have no names.

    None if the tree has no encoding, or if ``X`` holds features and not columns.
    """
    if tree.terms.get(ENTRY) is None or not (hasattr(X, "columns") or np.ndim(X) == 2):
        return None
    encoding = saved_encoding(tree)
    if encoding is None or (not hasattr(X, "columns") and np.shape(X)[1] == len(tree.features)):
        return None
    present = set(map(str, X.columns)) if hasattr(X, "columns") else {f"x{k}" for k in range(np.shape(X)[1])}
    if not all(column.name in present for column in encoding.columns):
        return None
    return encode_columns(encoding, frame_columns(X, dates=encoding.date_columns))


def raw_columns(tree: TreeWithTerms) -> RawColumns:
    """The rules that turn a raw row into the tree's features.

    For a tree that was trained from Python each feature is a numeric column of its own.
    """
    encoding = saved_encoding(tree)
    if encoding is not None:
        return encoding.raw
    rules = tuple(CellRule(column=name, features=(name,), numeric=True) for name in tree.features)
    return RawColumns(rules=rules, missing=tuple(sorted(MISSING)), numeric_cells=True)
