"""Options that several commands share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from margotree.table import Table


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How to read a table; all of it is found out if not given."""
    group = parser.add_argument_group("reading the file")
    group.add_argument(
        "--delimiter", metavar="CHAR", help="what parts the columns: a character, comma, semicolon, tab or bar"
    )
    group.add_argument("--decimal", choices=(".", ","), help="how fractions are written")
    group.add_argument("--encoding", metavar="NAME", help="such as utf-8, cp1252, utf-16")
    group.add_argument("--no-header", action="store_true", help='the first line is data; columns are "column 1", ...')
    group.add_argument("--sheet", metavar="NAME", help="the sheet of an Excel file (the first)")
    group.add_argument(
        "--na", metavar="WORD", action="append", default=[], help="a further word for a missing cell; repeatable"
    )


def add_columns(parser: argparse.ArgumentParser) -> None:
    """What the columns of a training file are."""
    group = parser.add_argument_group("columns")
    group.add_argument("--target", metavar="COL", required=True, help="the column with the classes")
    group.add_argument("--positive", metavar="LABEL", help="tell this class apart from all others together")
    group.add_argument("--drop", metavar="COL", action="append", default=[], help="leave a column out; repeatable")
    group.add_argument(
        "--categorical",
        metavar="COL",
        action="append",
        default=[],
        help="numbers that are names: one feature for each; repeatable",
    )
    group.add_argument("--weight", metavar="COL", help="how much each row counts")
    group.add_argument(
        "--missing",
        choices=("error", "drop", "median", "indicator"),
        default="error",
        help="missing cells: an error, drop such rows, put in the median (the commonest word), or put it in and add a "
        "feature that says where a cell was missing",
    )
    group.add_argument("--max-categories", metavar="N", type=int, default=30, help="most words of a column (30)")


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress, no notes")


def read(args: argparse.Namespace) -> Table:
    """The table named on the command line."""
    from margotree.table import read_table

    return read_table(
        args.data,
        delimiter=args.delimiter,
        decimal=args.decimal,
        encoding=args.encoding,
        header=not args.no_header,
        missing=args.na,
        sheet=args.sheet,
    )


def numbers(text: str) -> float | list[float]:
    """``1``, or ``1,10`` for one per level or one per node."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number or numbers parted by commas, got {text!r}") from None
    return values[0] if len(values) == 1 else values


def whole_numbers(text: str) -> int | list[int]:
    """``2``, or ``1,2`` for one per level or one per node."""
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number or some parted by commas, got {text!r}") from None
    return values[0] if len(values) == 1 else values


def seconds(text: str) -> float | None:
    """``90``, ``90s``, ``5m``, ``1h`` or ``none``."""
    if text.lower() in {"none", "no", "inf"}:
        return None
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:].lower())
    try:
        return float(text) if unit is None else float(text[:-1]) * unit
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected seconds such as 90, 5m, 1h or none, got {text!r}") from None
