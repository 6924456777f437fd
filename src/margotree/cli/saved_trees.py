"""Trees that carry the description of their table."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from margotree.cli.exit_codes import DATA, CommandError

if TYPE_CHECKING:
    from margotree.table import Encoding, Samples
    from margotree.tree import Tree

#: The entry of a tree's terms in which the encoding travels.
ENTRY = "table"


def with_table(tree: Tree, encoding: Encoding, samples: Samples) -> Tree:
    """The tree together with how its training file was read, and by what its training rows are known again."""
    from margotree.table.encoding_json import to_record

    known_by = {"sha256": samples.fingerprint(), "sha256_of_set": samples.fingerprint_of_set()}
    rows = {"rows": len(samples.rows), "missing_report": samples.report.to_record()}
    table: dict[str, Any] = to_record(encoding) | rows | known_by
    return dataclasses.replace(tree, terms={**tree.terms, ENTRY: table})


def load_tree(path: str) -> Tree:
    """A saved tree."""
    from margotree.tree import Tree

    return Tree.load(path)


def encoding_of(tree: Tree, path: str) -> Encoding:
    """How the tree's files are read; a tree saved from Python takes plain numeric columns by their names."""
    from margotree.table import Encoding, Number
    from margotree.table.encoding_json import from_record

    if tree.terms.get(ENTRY) is not None:
        encoding = from_record(tree.terms[ENTRY])
        if encoding.features != tree.features:
            raise CommandError(f"{path}: its features are not those that the columns it describes give", DATA)
        return encoding
    if tree.feature_names is None:
        raise CommandError(
            f"{path} was saved from an array without column names, so its features cannot be found in a file; train it "
            "on a data frame, or with margotree fit",
            DATA,
        )
    whole = tree.classes.dtype.kind in "iu"
    return Encoding(columns=tuple(Number(name=name) for name in tree.feature_names), target="", whole=whole)
