"""The table that a saved tree was trained on, as far as the tree describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from margotree.table.cell_rules import CellRule, RawColumns
from margotree.table.cells import MISSING
from margotree.table.encoding import Encoding
from margotree.table.encoding_json import from_record

#: The entry of a tree's terms that holds the encoding, as the command line writes it (``margotree.cli.saved_trees``).
ENTRY = "table"


class Described(Protocol):
    """What can carry the description of its table."""

    @property
    def terms(self) -> Mapping[str, Any]: ...

    @property
    def features(self) -> Sequence[str]: ...


def described(tree: Described) -> Encoding | None:
    """How the columns of the training file became the tree's features; None for a tree trained from Python."""
    if tree.terms.get(ENTRY) is None:
        return None
    encoding = from_record(tree.terms[ENTRY])
    return encoding if tuple(encoding.features) == tuple(tree.features) else None


def raw_columns(tree: Described) -> RawColumns:
    """How a raw row becomes the tree's features; for a tree trained from Python, the features as they are."""
    encoding = described(tree)
    if encoding is not None:
        return encoding.raw
    rules = tuple(CellRule(column=name, features=(name,), numeric=True) for name in tree.features)
    return RawColumns(rules=rules, missing=tuple(sorted(MISSING)), typed=True)
