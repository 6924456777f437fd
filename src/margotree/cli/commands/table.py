"""Print tables from a file of results, with the numbers of the paper and the differences."""

from __future__ import annotations

import argparse

from margotree.atomic_files import write_text
from margotree.cli import console, exit_codes, output_files
from margotree.cli.exit_codes import CommandError

HELP = "print tables of results of experiments, with those of the paper"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", help="file of results that margotree experiment wrote")
    parser.add_argument("names", nargs="*", help="tables to print (all)")
    parser.add_argument("--format", choices=("text", "csv", "latex", "markdown"), default="text", help="format (text)")
    parser.add_argument("--set", dest="sets", metavar="SET", action="append", help="only this data set; repeatable")
    parser.add_argument("--out", metavar="FILE", help="file to write (standard output)")
    output_files.add_force(parser)


def run(args: argparse.Namespace) -> int:
    from margotree.paper import experiments

    if args.out:
        output_files.check_output(args.out, inputs=(args.results,), force=args.force)
    try:
        names = args.names or experiments.names()
        text = "\n\n".join(experiments.table(name, args.results, args.format, args.sets) for name in names)
    except experiments.RowsError as error:
        raise CommandError(str(error), exit_codes.DATA) from None
    if args.out:
        write_text(args.out, text + "\n")
    else:
        console.print_output(text + "\n")
    return exit_codes.OK
