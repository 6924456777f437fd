"""Write a page on which to explore a saved tree: one file that needs no network."""

from __future__ import annotations

import argparse
import os

from margotree.cli import console, exit_codes, options, output_files
from margotree.cli.commands.plot import samples_of
from margotree.cli.saved_trees import load_tree

HELP = "write a page on which to explore a saved tree"


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tree", help="the saved tree")
    parser.add_argument("--out", metavar="FILE", help="page to write (the tree's name with .html)")
    parser.add_argument(
        "--data", metavar="FILE", help="samples to show on it: CSV, Excel or Parquet file with the target"
    )
    parser.add_argument("--target", metavar="COL", help="the column with the classes, if the tree file does not say")
    parser.add_argument("--title", metavar="TEXT", help="its heading")
    output_files.add_force(parser)
    options.add_reading(parser, kept=True)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    out = args.out or os.path.splitext(os.path.basename(args.tree))[0] + ".html"
    output_files.may_write(out, inputs=(args.tree, args.data), force=args.force)
    tree = load_tree(args.tree)
    X, y = (None, None) if args.data is None else samples_of(args, tree)
    tree.to_html(out, X, y, title=args.title)
    console.result({"page": out}, f"written as {out}", as_json=args.json)
    return exit_codes.OK
