"""Write a report page about a saved tree: an interactive HTML file that needs no network."""

from __future__ import annotations

import argparse
import os

from margotree.cli import console, exit_codes, options, output_files
from margotree.cli.commands.plot import samples_of
from margotree.cli.saved_trees import load_tree

HELP = "write an interactive report page about a saved tree"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tree", help="saved tree")
    parser.add_argument("--out", metavar="FILE", help="file to write (the name of the tree with .html)")
    parser.add_argument(
        "--data", metavar="FILE", help="file with samples and their targets to show: CSV, Excel or Parquet"
    )
    parser.add_argument("--target", metavar="COL", help="column with the targets, if the tree file does not name it")
    parser.add_argument("--title", metavar="TEXT", help="title of the page")
    output_files.add_force(parser)
    options.add_reading(parser, saved=True)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    out = args.out or os.path.splitext(os.path.basename(args.tree))[0] + ".html"
    output_files.check_output(out, inputs=(args.tree, args.data), force=args.force)
    tree = load_tree(args.tree)
    X, y = (None, None) if args.data is None else samples_of(args, tree)
    tree.to_html(out, X, y, title=args.title)
    console.print_result({"page": out}, f"written as {out}", as_json=args.json)
    return exit_codes.OK
