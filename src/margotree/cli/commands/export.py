"""Write a saved tree for use without margotree: as an SQL expression, C or Python source, or an ONNX model.

All exports give the same labels and probabilities as margotree, in the units of the training file. SQL and Python code
use the columns of that file. C code has a function that converts them to features; an ONNX model describes the
conversion.
"""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING, Any

from margotree.atomic_files import write_bytes, write_text
from margotree.cli import console, exit_codes, options, output_files
from margotree.cli.exit_codes import CommandError
from margotree.cli.saved_trees import load_tree

if TYPE_CHECKING:
    from margotree.tree import RegressionTree, Tree

HELP = "export a saved tree as SQL, C, Python or ONNX"

#: The formats with the endings of their files.
ENDINGS = {"onnx": ".onnx", "sql": ".sql", "c": ".c", "python": ".py"}

#: Options of a single format.
_FORMAT_OF_OPTION = {"name": "c", "table": "sql", "proba": "sql", "float32": "onnx", "columns": "onnx"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tree", help="saved tree")
    parser.add_argument("--to", choices=tuple(ENDINGS), required=True, help="format")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="file to write (the name of the tree with the ending of the format); - is standard output",
    )
    parser.add_argument("--name", metavar="NAME", help="with --to c: prefix of the names in the code (margotree)")
    parser.add_argument("--table", metavar="NAME", help="with --to sql: name of the table, as a prefix of the columns")
    parser.add_argument(
        "--proba", metavar="LABEL", help="with --to sql: the probability of this label instead of the predicted label"
    )
    parser.add_argument("--float32", action="store_true", help="with --to onnx: inputs in single precision")
    parser.add_argument(
        "--columns", action="store_true", help="with --to onnx: the inputs are columns (words as strings), not features"
    )
    output_files.add_force(parser)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    _check_options(args)
    out = args.out or _default(args.tree, args.to)
    if out != "-":
        output_files.check_output(out, inputs=(args.tree,), force=args.force)
    tree = load_tree(args.tree)
    if args.to == "onnx":
        _write_onnx(tree, out, float32=args.float32, columns=args.columns)
    elif out == "-":
        console.print_output(_source(tree, args))
        return exit_codes.OK
    else:
        write_text(out, _source(tree, args))
    console.print_result({"to": args.to, "export": out}, f"written as {out}", as_json=args.json)
    return exit_codes.OK


def _check_options(args: argparse.Namespace) -> None:
    for option, format_ in _FORMAT_OF_OPTION.items():
        if getattr(args, option) not in (None, False) and args.to != format_:
            raise CommandError(f"--{option} applies only to --to {format_}; leave it out", exit_codes.USAGE)
    if args.to == "onnx" and args.out == "-":
        raise CommandError("an ONNX model is binary and cannot be printed; name a file with --out", exit_codes.USAGE)


def _default(tree: str, format_: str) -> str:
    stem = os.path.splitext(os.path.basename(tree))[0]
    if format_ == "python":
        # The name of the file must be a Python name, so that it can be imported.
        stem = re.sub(r"\W", "_", stem)
        stem = f"_{stem}" if stem[:1].isdigit() else stem
    return stem + ENDINGS[format_]


def _source(tree: Tree | RegressionTree, args: argparse.Namespace) -> str:
    from margotree.tree import RegressionTree

    if args.to == "python":
        return tree.to_python()
    if args.to == "c":
        return tree.to_c(name=args.name or "margotree")
    if isinstance(tree, RegressionTree):
        if args.proba is not None:
            raise CommandError("a regression tree has no probabilities; leave --proba out", exit_codes.USAGE)
        return tree.to_sql(table=args.table)
    return tree.to_sql(table=args.table, proba=_label(tree, args.proba))


def _label(tree: Tree, text: str | None) -> Any:
    """The label of the tree with this text."""
    labels = {str(label): label for label in tree.classes.tolist()}
    if text is not None and text not in labels:
        raise CommandError(f"--proba must be one of the labels {', '.join(labels)}; got {text!r}", exit_codes.USAGE)
    return None if text is None else labels[text]


def _write_onnx(tree: Tree | RegressionTree, out: str, **inputs: bool) -> None:
    try:
        content = tree.to_onnx(**inputs).SerializeToString()
    except ImportError as error:
        raise CommandError(str(error), exit_codes.FAILED) from None
    write_bytes(out, content)
