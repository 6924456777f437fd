"""``python -m margotree.paper.experiments``: run, table, figure, list, paper."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from margotree.paper import experiments
from margotree.paper.data import DataError
from margotree.paper.experiments.small_run import small_paper, write_tables


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    args = _parser().parse_args(argv)
    try:
        return int(args.command(args))
    except (DataError, experiments.RowsError, experiments.BackendError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of a pipe has closed it; the exit must not flush to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m margotree.paper.experiments", description="The paper's tables and figures."
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    _list(commands.add_parser("list", help="names of the tables and figures"))
    _run(commands.add_parser("run", help="make the fits of some tables"))
    _table(commands.add_parser("table", help="print tables, ours beside the paper's"))
    _figure(commands.add_parser("figure", help="draw figures"))
    _paper(commands.add_parser("paper", help="everything in small: a few sets, seconds per fit"))
    return parser


def _list(parser: argparse.ArgumentParser) -> None:
    def command(args: argparse.Namespace) -> int:
        print("tables:", *experiments.names())
        print("figures:", *experiments.figure_names())
        return 0

    parser.set_defaults(command=command)


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", help="tables to run, or all")
    parser.add_argument("--out", default=experiments.RESULTS, help="file of results (%(default)s)")
    parser.add_argument("--resume", action="store_true", help="continue that file")
    parser.add_argument("--backend", default="threads", choices=experiments.backend_names())
    parser.add_argument("--scheduler", help="address of the Dask scheduler")
    parser.add_argument("--n-jobs", type=int, default=1, help="number of parallel fits (%(default)s)")
    parser.add_argument(
        "--time-limit", type=float, help="largest time limit per fit in seconds; the paper's limits if not given"
    )
    parser.add_argument("--fold-time-limit", type=float, help="the same for fits on folds (default: --time-limit)")
    parser.add_argument("--data", nargs="+", metavar="SET", help="only these sets")
    parser.add_argument("--only", nargs="+", metavar="MODEL", help="only these models")
    parser.add_argument("--reduced", action="store_true", help="coarse grids in the cross-validations")
    parser.add_argument("--quiet", action="store_true", help="no line of progress")

    def command(args: argparse.Namespace) -> int:
        summary = experiments.run(
            experiments.names() if args.names == ["all"] else args.names,
            out=args.out, resume=args.resume, backend=args.backend, scheduler=args.scheduler, n_jobs=args.n_jobs,
            time_limit=args.time_limit, data=args.data, only=args.only, progress=0 if args.quiet else 1,
            fold_time_limit=args.fold_time_limit, reduced=args.reduced,
        )  # fmt: skip
        return _exit_code(summary)

    parser.set_defaults(command=command)


def _table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", help="tables to print, or all")
    parser.add_argument("--from", dest="store", default=experiments.RESULTS, help="file of results (%(default)s)")
    parser.add_argument("--format", default="text", choices=[*experiments.FORMATS, "all"])
    parser.add_argument("--data", nargs="+", metavar="SET", help="only these sets")
    parser.add_argument("--into", help="write files into this folder instead of printing")

    def command(args: argparse.Namespace) -> int:
        table_names = experiments.names() if args.names == ["all"] else tuple(args.names)
        formats = tuple(experiments.FORMATS) if args.format == "all" else (args.format,)
        if args.into is not None:
            write_tables(table_names, args.store, Path(args.into), formats=formats, data=args.data)
            return 0
        for name in table_names:
            for form in formats:
                print(experiments.table(name, args.store, form, args.data))
        return 0

    parser.set_defaults(command=command)


def _figure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", help="figures to draw, or all")
    parser.add_argument("--from", dest="store", default=experiments.RESULTS, help="file of results (%(default)s)")
    parser.add_argument("--into", default="results", help="folder for the images (%(default)s)")

    def command(args: argparse.Namespace) -> int:
        for name in experiments.figure_names() if args.names == ["all"] else args.names:
            for path in experiments.figure(name, args.store, args.into):
                print(path)
        return 0

    parser.set_defaults(command=command)


def _paper(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--into", default="results/reduced", help="folder for rows, tables and figures (%(default)s)")
    parser.add_argument("--n-jobs", type=int, default=2, help="number of parallel fits (%(default)s)")

    def command(args: argparse.Namespace) -> int:
        summary = small_paper(args.into, n_jobs=args.n_jobs)
        code = _exit_code(summary)
        if not summary.interrupted:
            print(f"tables and figures are in {args.into}")
        # The sets of the small version are not the user's choice; missing ones are no failure.
        return 0 if code == 1 and not summary.failed else code

    parser.set_defaults(command=command)


def _exit_code(summary: experiments.RunSummary) -> int:
    """Print the summary of a run and return the exit code."""
    for case, reason in summary.failed:
        print(f"failed: {case}: {reason}", file=sys.stderr)
    for reason in summary.left_out():
        print(f"left out: {reason}", file=sys.stderr)
    print(summary)
    return 130 if summary.interrupted else 1 if summary.failed or summary.absent else 0


if __name__ == "__main__":
    sys.exit(main())
