"""Re-check a saved tree and its certificate against the training data.

States the training problem again from the file, recomputes value and feasibility of the tree with plain NumPy and
compares with what the certificate claims. The bound rests on the engine and cannot be recomputed this way. Exit code 1
if a claim does not hold, 3 if the tree file was changed or the data do not fit.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from margotree.cli import console, exit_codes, options
from margotree.cli.exit_codes import CommandError
from margotree.cli.saved_trees import ENTRY, encoding_of, load_tree

if TYPE_CHECKING:
    from margotree.table import Encoding, Samples, Table
    from margotree.tree import Tree

HELP = "re-check a saved tree and its certificate against data"


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tree", help="the saved tree")
    parser.add_argument("data", help="the file it was trained on")
    parser.add_argument("--target", metavar="COL", help="the column with the classes, if the tree file does not say")
    options.add_reading(parser, kept=True)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    from margotree.solution import VerificationError

    tree = load_tree(args.tree)
    if tree.certificate is None:
        raise CommandError(f"{args.tree} carries no certificate, so there is nothing to verify", exit_codes.DATA)
    encoding = _encoding(args, tree)
    table = options.read(args, encoding.reading)
    samples = encoding.training(table)
    same = _same_rows(tree, samples)
    try:
        found = tree.verify(samples.X, samples.y, samples.weight)
    except VerificationError as error:
        raise VerificationError(f"{error}{_why(args, tree, samples, same)}") from None
    record = {
        "verified": True,
        "objective": found.objective,
        "rows": len(samples.rows),
        "same_rows_as_in_training": same,
        "certificate": tree.certificate.to_dict(),
    }
    console.result(record, _text(tree, table, samples, same), as_json=args.json)
    return exit_codes.OK


def _encoding(args: argparse.Namespace, tree: Tree) -> Encoding:
    import dataclasses

    encoding = encoding_of(tree, args.tree)
    if args.target:
        return dataclasses.replace(encoding, target=args.target)
    if not encoding.target:
        raise CommandError(
            f"{args.tree} does not say which column holds the classes; say --target COL", exit_codes.USAGE
        )
    return encoding


def _same_rows(tree: Tree, samples: Samples) -> bool | None:
    """Whether they are the training rows, in whatever order; None where the tree file does not tell."""
    table = tree.terms.get(ENTRY)
    if table is None:
        return None
    return _same_order(tree, samples) or table.get("sha256_of_set") == samples.fingerprint_of_set()


def _same_order(tree: Tree, samples: Samples) -> bool:
    return bool(tree.terms[ENTRY].get("sha256") == samples.fingerprint())


def _why(args: argparse.Namespace, tree: Tree, samples: Samples, same: bool | None) -> str:
    if same is not False:
        return ""
    rows = tree.terms[ENTRY].get("rows")
    have = len(samples.rows)
    return f"; but {args.data} does not hold the {rows} rows the tree was trained on (it has {have}): take that file"


def _text(tree: Tree, table: Table, samples: Samples, same: bool | None) -> str:
    rows = {True: ", the rows it was trained on", False: ", not the rows it was trained on", None: ""}[same]
    if same and not _same_order(tree, samples):
        rows += " in another order"
    where = f"verified on {len(samples.rows)} rows of {table.source}{rows}"
    return f"{where}: the tree is allowed and its value is as claimed\n{tree.certificate}"
