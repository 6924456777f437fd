"""Options that several commands share."""

from __future__ import annotations

import argparse
import dataclasses
import os
import shlex
from typing import TYPE_CHECKING, Any

from margotree.cli import console

if TYPE_CHECKING:
    from margotree.table import Reading, Table


def add_reading(parser: argparse.ArgumentParser, *, kept: bool = False) -> None:
    """How to read a table; what is not given is found out, or (``kept``) as it was for the training file."""
    words = "What is not given is as it was given for the training file, or else found out." if kept else None
    group = parser.add_argument_group("reading the file", words)
    group.add_argument(
        "--delimiter", metavar="CHAR", help="what parts the columns: a character, comma, semicolon, tab or bar"
    )
    group.add_argument("--decimal", choices=(".", ","), help="how fractions are written")
    group.add_argument("--encoding", metavar="NAME", help="such as utf-8, cp1252, utf-16")
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help='whether the first line holds the column names (it does); without one they are "column 1", ...',
    )
    group.add_argument("--sheet", metavar="NAME", help="the sheet of an Excel file (the first)")
    group.add_argument("--na", metavar="WORD", action="append", help="a further word for a missing cell; repeatable")


def add_columns(parser: argparse.ArgumentParser) -> None:
    """What the columns of a training file are."""
    group = parser.add_argument_group("columns")
    group.add_argument("--target", metavar="COL", help="the column with the classes (required)")
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


def told(args: argparse.Namespace) -> Reading:
    """What the options say about reading the file."""
    from margotree.table import Reading

    return Reading(
        delimiter=args.delimiter,
        decimal=args.decimal,
        encoding=args.encoding,
        header=args.header,
        missing=None if args.na is None else tuple(args.na),
        sheet=args.sheet,
    )


def read(args: argparse.Namespace, kept: Reading | None = None) -> Table:
    """The table named on the command line, read as the options say and otherwise as the training file was."""
    from margotree.table import Reading, TableError, read_table

    given = told(args)
    kept = _applicable(kept or Reading(), args.data)
    inherited = flags({name: value for name, value in kept.told().items() if name not in given.told()})
    if inherited:
        console.notes([f"{args.data} is read as the training file was, with {inherited}"], quiet=args.quiet)
    try:
        return read_table(args.data, **kept.overridden(given).told())
    except TableError as error:
        if not inherited or not os.path.exists(args.data):
            raise
        how = f"read as the training file was, with {inherited}; an option of your own overrides that"
        raise TableError(f"{error} ({how})") from None


def _applicable(kept: Reading, path: str) -> Reading:
    """The reading of the training file, without the sheet where the new file can have none."""
    from margotree.table.read_file import is_excel

    return kept if is_excel(path) else dataclasses.replace(kept, sheet=None)


def flags(told: dict[str, Any]) -> str:
    """Options that say this about reading a file."""
    words = {name: f"--{name} {value}" for name, value in told.items()}
    if "header" in told:
        words["header"] = "--header" if told["header"] else "--no-header"
    if "missing" in told:
        words["missing"] = " ".join(f"--na {shlex.quote(word)}" for word in told["missing"])
    return " ".join(filter(None, words.values()))


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
