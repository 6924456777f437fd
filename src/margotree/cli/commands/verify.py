"""Check a saved tree and its certificate against the training data.

Reads the training problem from the files, recomputes the objective and the feasibility of the tree with plain NumPy and
compares them with the certificate. The bound depends on the engine and is not recomputed. Exit code 1 if a claim does
not hold, 3 if the tree file was changed or the data do not match the tree.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from margotree.cli import console, exit_codes, options
from margotree.cli.exit_codes import CommandError
from margotree.cli.saved_trees import ENTRY, encoding_of, load_tree

if TYPE_CHECKING:
    from margotree.table import Encoding, Samples, Table
    from margotree.tree import HyperplaneTree

HELP = "check a saved tree and its certificate against its training data"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tree", help="saved tree")
    parser.add_argument("data", help="training file of the tree")
    parser.add_argument("--target", metavar="COL", help="target column, if the tree file does not name it")
    options.add_reading(parser, saved=True)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    from margotree.solution import VerificationError

    tree = load_tree(args.tree)
    if tree.certificate is None:
        raise CommandError(f"{args.tree} has no certificate; there is nothing to verify", exit_codes.DATA)
    encoding = _encoding(args, tree)
    table = options.read(args, encoding.reading)
    samples = encoding.training(table)
    same_rows = _same_rows(tree, samples)
    try:
        verified = tree.verify(samples.X, samples.y, samples.weight)
    except VerificationError as error:
        raise VerificationError(f"{error}{_reason(args, tree, samples, same_rows)}") from None
    record = {
        "verified": True,
        "objective": verified.objective,
        "rows": len(samples.rows),
        "same_rows_as_in_training": same_rows,
        "certificate": tree.certificate.to_dict(),
    }
    console.print_result(record, _text(tree, table, samples, same_rows), as_json=args.json)
    return exit_codes.OK


def _encoding(args: argparse.Namespace, tree: HyperplaneTree) -> Encoding:
    import dataclasses

    encoding = encoding_of(tree, args.tree)
    if args.target:
        return dataclasses.replace(encoding, target=args.target)
    if not encoding.target:
        raise CommandError(f"{args.tree} does not name the target column; add --target COL", exit_codes.USAGE)
    return encoding


def _same_rows(tree: HyperplaneTree, samples: Samples) -> bool | None:
    """Whether the samples are the training rows in any order; None if the tree file has no fingerprint of them."""
    table = tree.terms.get(ENTRY)
    if table is None:
        return None
    return _same_order(tree, samples) or table.get("sha256_of_set") == samples.fingerprint_of_set()


def _same_order(tree: HyperplaneTree, samples: Samples) -> bool:
    return bool(tree.terms[ENTRY].get("sha256") == samples.fingerprint())


def _reason(args: argparse.Namespace, tree: HyperplaneTree, samples: Samples, same_rows: bool | None) -> str:
    if same_rows is not False:
        return ""
    rows = tree.terms[ENTRY].get("rows")
    have = len(samples.rows)
    return f"; {args.data} does not have the {rows} training rows (it has {have}); verify with the training file"


def _text(tree: HyperplaneTree, table: Table, samples: Samples, same_rows: bool | None) -> str:
    rows = {True: ", the training rows", False: ", not the training rows", None: ""}[same_rows]
    if same_rows and not _same_order(tree, samples):
        rows += " in another order"
    where = f"verified on {len(samples.rows)} rows of {table.source}{rows}"
    return f"{where}: the tree is feasible and its objective is as certified\n{tree.certificate}"
