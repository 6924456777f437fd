"""Check a proof that fit --proof wrote, against the training data.

Recomputes an upper bound of the objective of the tree and a lower bound of the objective of any tree, with safe
rounding and independently of the engine and the certificate. Prints the proved statement: model and terms, columns,
rows used and left out, weights. The file margotree/proof/check.py alone does the same without margotree
(docs/proof.md). Exit code 1 if the proof is rejected or the check would exceed the limit of memory or work, 3 if a
file is missing.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import os
import sys
from typing import TYPE_CHECKING, Any

from margotree.atomic_files import write_bytes
from margotree.cli import console, exit_codes, options, output_files
from margotree.cli.exit_codes import CommandError
from margotree.cli.saved_trees import encoding_of, load_tree

if TYPE_CHECKING:
    from margotree.proof.check import Proved
    from margotree.tree import HyperplaneTree

HELP = "check a proof of a tree against its training data"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("proof", help="proof file")
    parser.add_argument("data", help="training file of the tree, or arrays X, y, weight (.npz)")
    parser.add_argument("--tree", metavar="FILE", help="saved tree, which defines how the data are encoded")
    parser.add_argument("--note", action="store_true", help="record in the tree file that its proof was checked")
    parser.add_argument("--max-memory", metavar="GB", type=float, help="largest memory of the check")
    parser.add_argument(
        "--max-work", metavar="BILLIONS", type=float, help="largest number of operations of the check, in billions"
    )
    parser.add_argument(
        "--numbers", metavar="FILE", help="write the arrays X, y and weight (.npz) for check.py; needs --tree"
    )
    output_files.add_force(parser)
    options.add_reading(parser, saved=True)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    from margotree.proof.check import Refused, check

    if not args.tree and (args.note or args.numbers or options.reading_options(args).given()):
        raise CommandError(
            "--note, --numbers and options for reading the file need the saved tree; add --tree FILE", exit_codes.USAGE
        )
    if args.numbers:
        output_files.check_output(
            args.numbers, inputs=(args.proof, args.data, args.tree), force=args.force, option="--numbers"
        )
    try:
        limits = {"max_memory": args.max_memory, "max_work": args.max_work}
        proved = _with_tree(args, limits) if args.tree else check(args.proof, args.data, _progress(args), **limits)
    except Refused as error:
        hint = "" if args.tree or "how to read a table" not in str(error) else "; or add --tree FILE, the saved tree"
        raise CommandError(f"not proved: {error}{hint}", exit_codes.FAILED) from None
    record = {**dataclasses.asdict(proved), "gap": proved.gap, "proved": True}
    console.print_result(record, str(proved), as_json=args.json)
    return exit_codes.OK


def _progress(args: argparse.Namespace) -> Any:
    def report(share: float) -> None:
        print(f"{share:6.1%} checked", file=sys.stderr, flush=True)

    return None if args.quiet else report


def _with_tree(args: argparse.Namespace, limits: dict[str, Any]) -> Proved:
    import numpy as np

    from margotree.estimators.proof_checks import check_proof, problem_numbers

    tree = load_tree(args.tree)
    encoding = encoding_of(tree, args.tree)
    if not encoding.target:
        raise CommandError(
            f"{args.tree} does not name the target column; use a tree that margotree fit saved",
            exit_codes.DATA,
        )
    table = options.read(args, encoding.reading)
    samples = encoding.training(table)
    data = (samples.X, samples.y, samples.weight)
    left_out = {f"missing cells or no {'number' if encoding.numeric else 'class'}": table.n_rows - len(samples.rows)}
    if args.numbers:
        X, y, weight = problem_numbers(tree, *data)
        content = io.BytesIO()
        np.savez(content, X=X, y=y, weight=weight)
        write_bytes(args.numbers, content.getvalue())
    proved = check_proof(
        tree, args.proof, *data, report=_progress(args), source=os.path.basename(args.data),
        left_out=left_out, weight_column=encoding.weight,
        **limits,
    )  # fmt: skip
    if args.note:
        _with_proof_note(tree, proved).save(args.tree)
    return proved


def _with_proof_note(tree: HyperplaneTree, proved: Proved) -> HyperplaneTree:
    note = {"sha256": proved.digest, "objective": proved.objective, "bound": proved.bound}
    return dataclasses.replace(tree, terms={**tree.terms, "proof": note})
