"""Saved trees with the description of their training table."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

from margotree.cli.exit_codes import DATA, CommandError

if TYPE_CHECKING:
    from margotree.table import Encoding, Samples
    from margotree.tree import HyperplaneTree

AnyTree = TypeVar("AnyTree", bound="HyperplaneTree")

#: The entry of a tree's terms that holds the encoding.
ENTRY = "table"

#: The entry of a tree's terms that holds the measures on new rows.
MEASURED = "measured"


def with_table(tree: AnyTree, encoding: Encoding, samples: Samples) -> AnyTree:
    """The tree with the encoding of its training file and fingerprints of its training rows."""
    from margotree.table.encoding_json import to_record

    fingerprints = {"sha256": samples.fingerprint(), "sha256_of_set": samples.fingerprint_of_set()}
    rows = {"rows": len(samples.rows), "missing_report": samples.report.to_record()}
    table: dict[str, Any] = to_record(encoding) | rows | fingerprints
    return dataclasses.replace(tree, terms={**tree.terms, ENTRY: table})


def with_measures(tree: Any, summary: str, details: str) -> Any:
    """The tree with the measures on new rows as text, which ``show`` and the report page print."""
    return dataclasses.replace(tree, terms={**tree.terms, MEASURED: {"summary": summary, "details": details}})


def load_tree(path: str) -> Any:
    """Load a saved tree, of classes or of numbers."""
    from margotree.tree import load

    return load(path)


def is_of_numbers(tree: HyperplaneTree) -> bool:
    """Whether the tree predicts numbers."""
    from margotree.tree import RegressionTree

    return isinstance(tree, RegressionTree)


def encoding_of(tree: HyperplaneTree, path: str) -> Encoding:
    """The encoding of the tree; a tree saved from Python has numeric columns with the names of its features."""
    from margotree.table import Encoding, Number
    from margotree.table.encoding_json import from_record

    if tree.terms.get(ENTRY) is not None:
        encoding = from_record(tree.terms[ENTRY])
        if encoding.features != tree.features:
            raise CommandError(
                f"{path} is not consistent: its features are not those of the columns that it describes", DATA
            )
        return encoding
    if tree.feature_names is None:
        raise CommandError(
            f"{path} was trained on an array without column names, so its features cannot be found in a file; train "
            "the tree on a data frame or with margotree fit",
            DATA,
        )
    classes = getattr(tree, "classes", None)
    whole = classes is not None and classes.dtype.kind in "iu"
    columns = tuple(Number(name=name) for name in tree.feature_names)
    return Encoding(columns=columns, target="", whole=whole, numeric=is_of_numbers(tree))
