"""Classify the rows of a file with a saved tree.

Writes a CSV with a column for the label and one for the decision value (two classes) or the leaf. If the file holds the
target column too, the share of right labels is reported.
"""

from __future__ import annotations

import argparse
import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from margotree.atomic_files import write_text
from margotree.cli import console, exit_codes, options, output_files
from margotree.cli.saved_trees import encoding_of, load_tree

if TYPE_CHECKING:
    from margotree.table import Encoding, Table
    from margotree.tree import Tree

HELP = "classify the rows of a table with a saved tree"


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tree", help="the saved tree")
    parser.add_argument("data", help="CSV (- for standard input), Excel or Parquet file with the training columns")
    parser.add_argument("--out", metavar="FILE", help="where to write the predictions (standard output)")
    parser.add_argument(
        "--keep",
        metavar="COL",
        nargs="?",
        action="append",
        const=None,
        help="put this column of the file before the predictions, such as an identifier; repeatable; all if no name",
    )
    parser.add_argument("--proba", action="store_true", help="add the class shares of the leaf")
    parser.add_argument(
        "--unknown",
        choices=("error", "ignore"),
        default="error",
        help="a word that training did not see: an error, or none of the words known (that is counted in a note)",
    )
    parser.add_argument(
        "--missing",
        choices=("error", "skip"),
        default="error",
        help="rows with missing cells: an error, or left without a label",
    )
    output_files.add_force(parser)
    options.add_reading(parser, kept=True)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    if args.out:
        output_files.may_write(args.out, inputs=(args.tree, args.data), force=args.force)
    from margotree.table import notes_about

    tree = load_tree(args.tree)
    encoding = encoding_of(tree, args.tree)
    table = options.read(args, encoding.reading)
    console.notes(table.notes, quiet=args.quiet)
    X, rows = _features(args, encoding, table)
    labels: Any = tree.predict(X) if len(rows) else []
    skipped = table.n_rows - len(rows)
    notes = notes_about(encoding, table)
    notes += [f"{skipped} rows have missing cells and got no label"] if skipped else []
    console.notes(notes, quiet=args.quiet)
    accuracy = _accuracy(encoding, table, rows, labels)
    columns = _columns(args, tree, X, labels)
    found = _Found(columns=columns, rows=rows, n_rows=table.n_rows, accuracy=accuracy, notes=notes)
    _write(args, found, _kept(args, table))
    if accuracy is not None and not args.json:
        console.say(
            f"right on {accuracy:.1%} of the rows that have a label under {encoding.target!r}", quiet=args.quiet
        )
    return exit_codes.OK


@dataclass(frozen=True, kw_only=True)
class _Found:
    """The predictions for ``rows`` out of ``n_rows``, column by column, and what goes with them."""

    columns: dict[str, list[Any]]
    rows: list[int]
    n_rows: int
    accuracy: float | None
    notes: list[str]


def _kept(args: argparse.Namespace, table: Table) -> dict[str, list[str]]:
    """The columns of the file that go into the answer; a bare --keep means all."""
    if args.keep is None:
        return {}
    names = table.names if None in args.keep else tuple(dict.fromkeys(table.find(name) for name in args.keep))
    return {name: table.column(name) for name in names}


def _features(args: argparse.Namespace, encoding: Encoding, table: Table) -> tuple[Any, list[int]]:
    from margotree.table import MissingCells

    try:
        return encoding.apply(table, unknown=args.unknown, missing=args.missing)
    except MissingCells as error:
        raise MissingCells(
            f"{error}; fill them in, say --missing skip to leave such rows without a label, or train with "
            "--missing median"
        ) from None


def _accuracy(encoding: Encoding, table: Table, rows: list[int], labels: Any) -> float | None:
    if encoding.target not in table.names:
        return None
    cells = table.column(encoding.target)
    known = [k for k, i in enumerate(rows) if cells[i]]
    if not known:
        return None
    truth = encoding.labels(table, [rows[k] for k in known])
    return float((truth == labels[known]).mean())


def _columns(args: argparse.Namespace, tree: Tree, X: Any, labels: Any) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {"prediction": list(map(_plain, labels))}
    if not len(X):
        return columns
    if len(tree.classes) == 2:
        columns["decision"] = tree.decision_function(X).tolist()
    columns["leaf"] = tree.apply(X).tolist()
    if args.proba:
        shares = tree.predict_proba(X)
        columns |= {f"share of {label}": shares[:, k].tolist() for k, label in enumerate(tree.classes.tolist())}
    return columns


def _write(args: argparse.Namespace, found: _Found, kept: dict[str, list[str]]) -> None:
    """One line per row of the file, empty where a row got no label."""
    position = {i: k for k, i in enumerate(found.rows)}
    names = [*kept, *(_unlike(name, kept) for name in found.columns)]
    lines = [
        [*(c[i] for c in kept.values()), *(c[position[i]] if i in position else None for c in found.columns.values())]
        for i in range(found.n_rows)
    ]
    if args.json:
        records = [dict(zip(names, line, strict=True)) for line in lines]
        skipped = found.n_rows - len(found.rows)
        record = {"predictions": records, "rows": found.n_rows, "skipped": skipped, "accuracy": found.accuracy}
        console.result(record | {"notes": found.notes}, "", as_json=True)
        if not args.out:
            return
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([["" if cell is None else cell for cell in line] for line in lines])
    if args.out:
        write_text(args.out, out.getvalue())
    else:
        console.out(out.getvalue())


def _unlike(name: str, kept: dict[str, list[str]]) -> str:
    """Our column's name, with a word added where the file has one of that name."""
    return _unlike(f"{name} (margotree)", kept) if name in kept else name


def _plain(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label
