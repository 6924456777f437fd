"""Options that several commands share."""

from __future__ import annotations

import argparse
import dataclasses
import os
import shlex
from typing import TYPE_CHECKING, Any

from margotree.cli import console

if TYPE_CHECKING:
    from margotree.table import ReadOptions, Table


def add_reading(parser: argparse.ArgumentParser, *, saved: bool = False) -> None:
    """Add the options about reading a table; with ``saved`` the defaults are the options of the training file."""
    description = "By default as for the training file, otherwise detected from the file." if saved else None
    group = parser.add_argument_group("reading the file", description)
    group.add_argument(
        "--delimiter", metavar="CHAR", help="delimiter between columns: a character, comma, semicolon, tab or bar"
    )
    group.add_argument("--decimal", choices=(".", ","), help="decimal separator")
    group.add_argument("--encoding", metavar="NAME", help="text encoding, such as utf-8, cp1252, utf-16")
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help='whether the first line holds the column names (yes); without a header they are "column 1", ...',
    )
    group.add_argument("--sheet", metavar="NAME", help="sheet of an Excel file (the first)")
    group.add_argument("--na", metavar="WORD", action="append", help="a further word for a missing cell; repeatable")


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the options about the columns of a training file."""
    group = parser.add_argument_group("columns")
    group.add_argument("--target", metavar="COL", help="column with the classes or numbers to predict (required)")
    group.add_argument(
        "--task", choices=("classification", "regression"),
        help="whether the target holds classes or numbers to predict (numbers if more than 20 are different)",
    )  # fmt: skip
    group.add_argument(
        "--above", type=float, metavar="LIMIT", help="two classes of a numeric target: above the limit, and the others"
    )
    group.add_argument(
        "--positive", metavar="LABEL", help="positive class; all other classes together are the negative class"
    )
    group.add_argument("--drop", metavar="COL", action="append", default=[], help="leave a column out; repeatable")
    group.add_argument(
        "--categorical",
        metavar="COL",
        action="append",
        default=[],
        help="column whose numbers are categories, with one feature for each; repeatable",
    )
    group.add_argument(
        "--date", choices=("days-since",), help="columns of dates become numbers of days since their first date"
    )
    group.add_argument("--weight", metavar="COL", help="column with the weight of each row")
    group.add_argument(
        "--missing",
        choices=("error", "drop", "median", "indicator"),
        default="error",
        help="missing cells: error; drop the rows; fill with the median (or most frequent word); or indicator: fill, "
        "and add a feature that is 1 where a cell is missing (error)",
    )
    group.add_argument(
        "--max-categories", metavar="N", type=int, default=30, help="largest number of different words in a column (30)"
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add ``--json`` and ``--quiet``."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="print no progress and no notes")


def add_verbose(parser: argparse.ArgumentParser) -> None:
    """Add ``--verbose``."""
    parser.add_argument(
        "--verbose", action="store_true", help="also print numbers of nodes, the numbers of the certificate, and terms"
    )


def reading_options(args: argparse.Namespace) -> ReadOptions:
    """The options about reading the file that the user gave."""
    from margotree.table import ReadOptions

    return ReadOptions(
        delimiter=args.delimiter,
        decimal=args.decimal,
        encoding=args.encoding,
        header=args.header,
        missing=None if args.na is None else tuple(args.na),
        sheet=args.sheet,
    )


def read(args: argparse.Namespace, saved: ReadOptions | None = None) -> Table:
    """Read ``args.data`` with the given options, otherwise with ``saved``, the options of the training file."""
    from margotree.table import ReadOptions, TableError, read_table

    given = reading_options(args)
    saved = _applicable(saved or ReadOptions(), args.data)
    inherited = reading_flags({name: value for name, value in saved.given().items() if name not in given.given()})
    if inherited:
        console.print_notes(
            [f"{args.data} is read with the options of the training file: {inherited}"], quiet=args.quiet
        )
    try:
        return read_table(args.data, **saved.updated_by(given).given())
    except TableError as error:
        if not inherited or not os.path.exists(args.data):
            raise
        how = f"read with the options of the training file, {inherited}; to override them, give other options"
        raise TableError(f"{error} ({how})") from None


def _applicable(saved: ReadOptions, path: str) -> ReadOptions:
    """The options, without the sheet if the file is not an Excel file."""
    from margotree.table.read_file import is_excel

    return saved if is_excel(path) else dataclasses.replace(saved, sheet=None)


def reading_flags(reading_options: dict[str, Any]) -> str:
    """The command-line options for these options of a reader."""
    words = {name: f"--{name} {value}" for name, value in reading_options.items()}
    if "header" in reading_options:
        words["header"] = "--header" if reading_options["header"] else "--no-header"
    if "missing" in reading_options:
        words["missing"] = " ".join(f"--na {shlex.quote(word)}" for word in reading_options["missing"])
    return " ".join(filter(None, words.values()))


def numbers(text: str) -> float | list[float]:
    """Parse ``1``, or ``1,10`` for one number per level or per node."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, or numbers separated by commas, got {text!r}") from None
    return values[0] if len(values) == 1 else values


def whole_numbers(text: str) -> int | list[int]:
    """Parse ``2``, or ``1,2`` for one number per level or per node."""
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a whole number, or whole numbers separated by commas, got {text!r}"
        ) from None
    return values[0] if len(values) == 1 else values


def seconds(text: str) -> float | None:
    """Parse a time such as ``90``, ``90s``, ``5m``, ``1h`` or ``none``."""
    if text.lower() in {"none", "no", "inf"}:
        return None
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:].lower())
    try:
        return float(text) if unit is None else float(text[:-1]) * unit
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected seconds such as 90, 5m, 1h or none, got {text!r}") from None
