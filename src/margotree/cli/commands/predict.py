"""Classify the rows of a file with a saved tree.

Writes a CSV with a column for the label and one for the decision value (two classes) or the leaf. If the file holds the
target column too, the share of right labels is reported.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from typing import TYPE_CHECKING, Any

from margotree.cli import console, exits, keep, options
from margotree.cli.saved import encoding_of, load_tree
from margotree.disk import write_text

if TYPE_CHECKING:
    from margotree.table import Encoding, Table
    from margotree.tree import Tree

HELP = "classify the rows of a table with a saved tree"


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tree", help="the saved tree")
    parser.add_argument("data", help="CSV (- for standard input) or Parquet file with the columns of the training file")
    parser.add_argument("--out", metavar="FILE", help="where to write the predictions (standard output)")
    parser.add_argument("--proba", action="store_true", help="add the class shares of the leaf")
    parser.add_argument(
        "--unknown",
        choices=("error", "ignore"),
        default="error",
        help="a word that training did not see: an error, or none of the words known",
    )
    parser.add_argument(
        "--missing",
        choices=("error", "skip"),
        default="error",
        help="rows with missing cells: an error, or left without a label",
    )
    options.add_reading(parser)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    if args.out:
        keep.must_be_writable(args.out)
    tree = load_tree(args.tree)
    encoding = encoding_of(tree, args.tree)
    table = options.read(args)
    console.notes(table.notes, quiet=args.quiet)
    X, rows = _features(args, encoding, table)
    labels: Any = tree.predict(X) if len(rows) else []
    skipped = table.n_rows - len(rows)
    console.notes([f"{skipped} rows have missing cells and got no label"] if skipped else [], quiet=args.quiet)
    accuracy = _accuracy(encoding, table, rows, labels)
    _write(args, _columns(args, tree, X, labels), rows, table.n_rows, accuracy)
    if accuracy is not None and not args.json:
        console.say(
            f"right on {accuracy:.1%} of the rows that have a label under {encoding.target!r}", quiet=args.quiet
        )
    return exits.OK


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


def _write(
    args: argparse.Namespace, columns: dict[str, list[Any]], rows: list[int], n_rows: int, accuracy: float | None
) -> None:
    """One line a row of the file, empty where a row got no label."""
    position = {i: k for k, i in enumerate(rows)}
    lines = [[c[position[i]] if i in position else None for c in columns.values()] for i in range(n_rows)]
    if args.json:
        records = [dict(zip(columns, line, strict=True)) for line in lines]
        record = {"predictions": records, "rows": n_rows, "skipped": n_rows - len(rows), "accuracy": accuracy}
        console.result(record, "", as_json=True)
        if not args.out:
            return
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([["" if cell is None else cell for cell in line] for line in lines])
    if args.out:
        write_text(args.out, out.getvalue())
    else:
        sys.stdout.write(out.getvalue())
        sys.stdout.flush()


def _plain(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label
