"""Check the proof that fit --proof wrote, against the training data.

Recomputes what the tree costs at most and what any tree costs at least, with all rounding against it, independently
of the engine and the certificate, and prints what is proved: model and terms, columns, rows used and left out, weights.
The same file can be checked without margotree by the one file margotree/proof/check.py (docs/proof.md). Exit code 1 if
the proof proves nothing or the check would take more memory or work than it may, 3 if a file is missing.
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
    from margotree.tree import Tree

HELP = "check a proof that fit --proof wrote, against data"


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("proof", help="the proof file")
    parser.add_argument("data", help="the file that the tree was trained on, or arrays X, y, weight (.npz)")
    parser.add_argument("--tree", metavar="FILE", help="the saved tree: it tells how to read the data")
    parser.add_argument("--note", action="store_true", help="note in the tree file that its proof was checked")
    parser.add_argument("--max-memory", metavar="GB", type=float, help="memory that the check may take")
    parser.add_argument("--max-work", metavar="BILLIONS", type=float, help="billions of operations it may take")
    parser.add_argument("--numbers", metavar="FILE", help="write X, y and weight as .npz, for check.py (needs --tree)")
    output_files.add_force(parser)
    options.add_reading(parser, kept=True)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    from margotree.proof.check import Refused, check

    if not args.tree and (args.note or args.numbers or options.told(args).told()):
        raise CommandError(
            "--note, --numbers and options for reading the file need the tree: say --tree FILE", exit_codes.USAGE
        )
    if args.numbers:
        output_files.may_write(
            args.numbers, inputs=(args.proof, args.data, args.tree), force=args.force, option="--numbers"
        )
    try:
        limits = {"max_memory": args.max_memory, "max_work": args.max_work}
        found = _with_tree(args, limits) if args.tree else check(args.proof, args.data, _progress(args), **limits)
    except Refused as error:
        hint = "" if args.tree or "how to read a table" not in str(error) else "; or say --tree FILE, the saved tree"
        raise CommandError(f"not proved: {error}{hint}", exit_codes.FAILED) from None
    record = {**dataclasses.asdict(found), "gap": found.gap, "proved": True}
    console.result(record, str(found), as_json=args.json)
    return exit_codes.OK


def _progress(args: argparse.Namespace) -> Any:
    def tell(share: float) -> None:
        print(f"{share:6.1%} checked", file=sys.stderr, flush=True)

    return None if args.quiet else tell


def _with_tree(args: argparse.Namespace, limits: dict[str, Any]) -> Proved:
    import numpy as np

    from margotree.estimators.proof_checks import check_proof, problem_numbers

    tree = load_tree(args.tree)
    encoding = encoding_of(tree, args.tree)
    if not encoding.target:
        raise CommandError(f"{args.tree} does not say which column holds the classes", exit_codes.DATA)
    table = options.read(args, encoding.reading)
    samples = encoding.training(table)
    data = (samples.X, samples.y, samples.weight)
    if args.numbers:
        X, y, weight = problem_numbers(tree, *data)
        content = io.BytesIO()
        np.savez(content, X=X, y=y, weight=weight)
        write_bytes(args.numbers, content.getvalue())
    found = check_proof(
        tree, args.proof, *data, tell=_progress(args), source=os.path.basename(args.data),
        left_out={"missing cells or no class": table.n_rows - len(samples.rows)}, weight_column=encoding.weight,
        **limits,
    )  # fmt: skip
    if args.note:
        _noted(tree, found).save(args.tree)
    return found


def _noted(tree: Tree, found: Proved) -> Tree:
    note = {"sha256": found.digest, "objective": found.objective, "bound": found.bound}
    return dataclasses.replace(tree, terms={**tree.terms, "proof": note})
