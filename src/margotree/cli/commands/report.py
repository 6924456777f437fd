"""Write a page about a file of results: tables beside the paper's, figures, certificates, machine and versions."""

from __future__ import annotations

import argparse
import os

from margotree.cli import console, exit_codes, options, output_files
from margotree.cli.exit_codes import CommandError

HELP = "write a page about a file of results"


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", help="the file of results that margotree experiment wrote")
    parser.add_argument("--out", metavar="FILE", help="page to write (the name of the results with .html)")
    parser.add_argument("--no-figures", action="store_true", help="tables and certificates only")
    output_files.add_force(parser)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    out = args.out or os.path.splitext(os.path.basename(args.results))[0] + ".html"
    output_files.may_write(out, inputs=(args.results,), force=args.force)
    console.say(f"reading {args.results}", quiet=args.quiet)
    from margotree.paper.experiments import RowsError
    from margotree.paper.report import write_report

    try:
        write_report(args.results, out, figures=not args.no_figures)
    except RowsError as error:
        raise CommandError(str(error), exit_codes.DATA) from None
    console.result({"page": out}, f"written as {out}", as_json=args.json)
    return exit_codes.OK
