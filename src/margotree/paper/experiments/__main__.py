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
    asked = _parser().parse_args(argv)
    try:
        return int(asked.do(asked))
    except (DataError, experiments.RowsError, experiments.BackendError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Whoever read along has seen enough; nothing is left to be flushed at exit.
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
    def do(asked: argparse.Namespace) -> int:
        print("tables:", *experiments.names())
        print("figures:", *experiments.figure_names())
        return 0

    parser.set_defaults(do=do)


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", help="tables to run, or all")
    parser.add_argument("--out", default=experiments.RESULTS, help="file of results (%(default)s)")
    parser.add_argument("--resume", action="store_true", help="go on with that file")
    parser.add_argument("--backend", default="threads", choices=experiments.backend_names())
    parser.add_argument("--scheduler", help="address of the Dask scheduler")
    parser.add_argument("--n-jobs", type=int, default=1, help="fits side by side (%(default)s)")
    parser.add_argument("--time-limit", type=float, help="most seconds per fit; the paper's limits if not given")
    parser.add_argument("--fold-time-limit", type=float, help="most seconds per fit on a fold (--time-limit)")
    parser.add_argument("--data", nargs="+", metavar="SET", help="only these sets")
    parser.add_argument("--only", nargs="+", metavar="MODEL", help="only these models")
    parser.add_argument("--reduced", action="store_true", help="coarse grids in the cross-validations")
    parser.add_argument("--quiet", action="store_true", help="no line of progress")

    def do(asked: argparse.Namespace) -> int:
        ran = experiments.run(
            experiments.names() if asked.names == ["all"] else asked.names,
            out=asked.out, resume=asked.resume, backend=asked.backend, scheduler=asked.scheduler, n_jobs=asked.n_jobs,
            time_limit=asked.time_limit, data=asked.data, only=asked.only, progress=0 if asked.quiet else 1,
            fold_time_limit=asked.fold_time_limit, reduced=asked.reduced,
        )  # fmt: skip
        return _said(ran)

    parser.set_defaults(do=do)


def _table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", help="tables to print, or all")
    parser.add_argument("--from", dest="store", default=experiments.RESULTS, help="file of results (%(default)s)")
    parser.add_argument("--format", default="text", choices=[*experiments.FORMATS, "all"])
    parser.add_argument("--data", nargs="+", metavar="SET", help="only these sets")
    parser.add_argument("--into", help="write files into this folder instead of printing")

    def do(asked: argparse.Namespace) -> int:
        wanted = experiments.names() if asked.names == ["all"] else tuple(asked.names)
        formats = tuple(experiments.FORMATS) if asked.format == "all" else (asked.format,)
        if asked.into is not None:
            write_tables(wanted, asked.store, Path(asked.into), formats=formats, data=asked.data)
            return 0
        for name in wanted:
            for form in formats:
                print(experiments.table(name, asked.store, form, asked.data))
        return 0

    parser.set_defaults(do=do)


def _figure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", help="figures to draw, or all")
    parser.add_argument("--from", dest="store", default=experiments.RESULTS, help="file of results (%(default)s)")
    parser.add_argument("--into", default="results", help="folder for the pictures (%(default)s)")

    def do(asked: argparse.Namespace) -> int:
        for name in experiments.figure_names() if asked.names == ["all"] else asked.names:
            for path in experiments.figure(name, asked.store, asked.into):
                print(path)
        return 0

    parser.set_defaults(do=do)


def _paper(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--into", default="results/reduced", help="folder for rows, tables and figures (%(default)s)")
    parser.add_argument("--n-jobs", type=int, default=2, help="fits side by side (%(default)s)")

    def do(asked: argparse.Namespace) -> int:
        ran = small_paper(asked.into, n_jobs=asked.n_jobs)
        code = _said(ran)
        if not ran.interrupted:
            print(f"tables and figures are in {asked.into}")
        # Which sets the small version takes is our choice, so that it does without some is no failure.
        return 0 if code == 1 and not ran.failed else code

    parser.set_defaults(do=do)


def _said(ran: experiments.Ran) -> int:
    for case, reason in ran.failed:
        print(f"failed: {case}: {reason}", file=sys.stderr)
    for name, reason in ran.absent.items():
        print(f"left out: {name}: {reason}", file=sys.stderr)
    print(ran)
    return 130 if ran.interrupted else 1 if ran.failed or ran.absent else 0


if __name__ == "__main__":
    sys.exit(main())
