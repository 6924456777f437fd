"""The description of the training table in a saved tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from margotree.table.cell_rules import CellRule, RawColumns
from margotree.table.cells import MISSING
from margotree.table.encoding import Encoding
from margotree.table.encoding_json import from_record

#: The entry of a tree's terms that holds the encoding (written by ``margotree.cli.saved_trees``).
ENTRY = "table"


class TreeWithTerms(Protocol):
    """A tree with terms, in which the description of its table may be stored."""

    @property
    def terms(self) -> Mapping[str, Any]: ...

    @property
    def features(self) -> Sequence[str]: ...


def saved_encoding(tree: TreeWithTerms) -> Encoding | None:
    """The encoding that is saved with the tree; None for a tree that was trained from Python."""
    if tree.terms.get(ENTRY) is None:
        return None
    encoding = from_record(tree.terms[ENTRY])
    return encoding if tuple(encoding.features) == tuple(tree.features) else None


def raw_columns(tree: TreeWithTerms) -> RawColumns:
    """The rules that turn a raw row into the tree's features.

    For a tree that was trained from Python each feature is a numeric column of its own.
    """
    encoding = saved_encoding(tree)
    if encoding is not None:
        return encoding.raw
    rules = tuple(CellRule(column=name, features=(name,), numeric=True) for name in tree.features)
    return RawColumns(rules=rules, missing=tuple(sorted(MISSING)), numeric_cells=True)
