"""Write a report page about a file of results: tables with those of the paper, figures, certificates and versions."""

from __future__ import annotations

import argparse
import os

from margotree.cli import console, exit_codes, options, output_files
from margotree.cli.exit_codes import CommandError

HELP = "write a report page about results of experiments"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", help="file of results that margotree experiment wrote")
    parser.add_argument("--out", metavar="FILE", help="file to write (beside the results, with .html)")
    parser.add_argument("--no-figures", action="store_true", help="leave out the figures")
    output_files.add_force(parser)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    out = args.out or os.path.splitext(args.results)[0] + ".html"
    output_files.check_output(out, inputs=(args.results,), force=args.force)
    console.print_status(f"reading {args.results}", quiet=args.quiet)
    from margotree.paper.experiments import RowsError
    from margotree.paper.report import write_report

    try:
        write_report(args.results, out, figures=not args.no_figures)
    except RowsError as error:
        raise CommandError(str(error), exit_codes.DATA) from None
    console.print_result({"page": out}, f"written as {out}", as_json=args.json)
    return exit_codes.OK
