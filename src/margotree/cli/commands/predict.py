"""Predict the targets of the rows of a file with a saved tree.

Writes a CSV file with the predicted label or number, the decision value (two classes only) and the leaf of each row. If
the file has the target column, measures are printed.
"""

from __future__ import annotations

import argparse
import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from margotree.atomic_files import write_text
from margotree.cli import console, exit_codes, options, output_files
from margotree.cli.exit_codes import CommandError
from margotree.cli.saved_trees import encoding_of, load_tree

if TYPE_CHECKING:
    from margotree.measures import ClassificationMeasures, RegressionMeasures
    from margotree.table import Encoding, Table
    from margotree.tree import HyperplaneTree, RegressionTree, Tree

HELP = "predict the targets of the rows of a file with a saved tree"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tree", help="saved tree")
    parser.add_argument("data", help="CSV (- for standard input), Excel or Parquet file with the training columns")
    parser.add_argument("--out", metavar="FILE", help="file for the predictions (standard output)")
    parser.add_argument(
        "--keep",
        metavar="COL",
        nargs="?",
        action="append",
        const=None,
        help="copy this column of the file, such as an identifier, before the predictions; repeatable; without a name: "
        "all columns",
    )
    parser.add_argument("--proba", action="store_true", help="add the probabilities of the classes")
    parser.add_argument("--explain", action="store_true", help="add a sentence about each prediction: what decides it")
    parser.add_argument(
        "--threshold",
        metavar="LABEL=P",
        help="predict LABEL where its probability is at least P, and the other class elsewhere; two classes only",
    )
    parser.add_argument(
        "--unknown",
        choices=("error", "ignore"),
        default="error",
        help="words that are not in the training file: error, or ignore: treat them as none of the known words, and "
        "count them in a note (error)",
    )
    parser.add_argument(
        "--missing",
        choices=("error", "skip"),
        default="error",
        help="rows with missing cells: error, or skip: no label (error)",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="numbers outside the training range by more than its length are an error; without it, a note counts them",
    )
    output_files.add_force(parser)
    options.add_reading(parser, saved=True)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    if args.out:
        output_files.check_output(args.out, inputs=(args.tree, args.data), force=args.force)
    from margotree.measures import ClassificationMeasures, RegressionMeasures
    from margotree.table import notes_about

    tree = load_tree(args.tree)
    encoding = encoding_of(tree, args.tree)
    if encoding.numeric and (args.proba or args.threshold is not None):
        flag = "--proba" if args.proba else "--threshold"
        raise CommandError(f"{flag} is for trees of classes, and {args.tree} predicts numbers", exit_codes.USAGE)
    table = options.read(args, encoding.reading)
    console.print_notes(table.notes, quiet=args.quiet)
    X, rows = _features(args, encoding, table)
    far = _far_notes(args, tree, encoding, X)
    threshold = _threshold(args, tree)
    labels: Any = [] if not len(rows) else tree.predict(X) if threshold is None else threshold.labels(tree, X)
    skipped = table.n_rows - len(rows)
    notes = notes_about(encoding, table) + far
    notes += [f"{skipped} rows have missing cells and get no label"] if skipped else []
    console.print_notes(notes, quiet=args.quiet)
    accuracy, measures = _measures(tree, encoding, table, rows, X, labels)
    columns = {"prediction": list(map(_plain, labels))}
    if len(X):
        columns |= (
            _columns_of_numbers(args, tree, X) if encoding.numeric else _columns(args, tree, X, labels, threshold)
        )
    predictions = _Predictions(
        columns=columns, rows=rows, n_rows=table.n_rows, accuracy=accuracy, measures=measures, notes=notes
    )
    _write(args, predictions, _kept_columns(args, table))
    if isinstance(measures, RegressionMeasures) and not args.json:
        known = f"on the rows that have a number in column {encoding.target!r}"
        console.print_status(f"{measures.text()} {known}", quiet=args.quiet)
    if accuracy is not None and not args.json:
        console.print_status(
            f"accuracy {accuracy:.1%} on the rows that have a label in column {encoding.target!r}", quiet=args.quiet
        )
        if isinstance(measures, ClassificationMeasures):
            from margotree.measures import summary_table

            table_text = f"\n{summary_table({'this tree': measures})}\n\n{measures.class_table()}"
            console.print_status(table_text, quiet=args.quiet)
    return exit_codes.OK


def _far_notes(args: argparse.Namespace, tree: HyperplaneTree, encoding: Encoding, X: Any) -> list[str]:
    """Notes about numbers far outside the training range; with ``--strict`` they are an error."""
    from margotree.table.file_notes import far_values

    if tree.scaling.is_identity:
        return []  # the range is unknown
    low = tree.scaling.offset
    notes = [str(found) for found in far_values(encoding, X, low, low + tree.scaling.scale)]
    if notes and args.strict:
        raise CommandError(
            f"{args.data}: {'; '.join(notes)}. Correct the values (another unit?), or leave out --strict",
            exit_codes.DATA,
        )
    return notes


@dataclass(frozen=True, kw_only=True)
class _Threshold:
    """The class at position ``k`` is predicted where its probability is at least ``least``."""

    k: int
    least: float
    text: str

    def labels(self, tree: Tree, X: Any) -> Any:
        """The labels of samples."""
        import numpy as np

        met = tree.predict_proba(X)[:, self.k] >= self.least
        return tree.classes[np.where(met, self.k, 1 - self.k)]


def _threshold(args: argparse.Namespace, tree: Tree) -> _Threshold | None:
    """The threshold of the option; None without it."""
    if args.threshold is None:
        return None
    names = [str(label) for label in tree.classes.tolist()]
    if len(names) != 2:
        raise CommandError(
            f"--threshold is for two classes, but {args.tree} has {len(names)}: {', '.join(names)}", exit_codes.USAGE
        )
    label, _, number = args.threshold.rpartition("=")
    try:
        least = float(number)
    except ValueError:
        least = -1.0
    if label not in names or not 0 <= least <= 1:
        raise CommandError(
            f"--threshold must be LABEL=P with one of the labels {' and '.join(names)} and a probability from 0 to 1, "
            f"such as {names[1]}=0.3; got {args.threshold!r}",
            exit_codes.USAGE,
        )
    return _Threshold(k=names.index(label), least=least, text=f"the threshold for {label} is {100 * least:g} %")


@dataclass(frozen=True, kw_only=True)
class _Predictions:
    """The predictions for ``rows`` of the ``n_rows`` rows by column, measures if labels are known, and notes."""

    columns: dict[str, list[Any]]
    rows: list[int]
    n_rows: int
    accuracy: float | None
    measures: ClassificationMeasures | RegressionMeasures | None
    notes: list[str]


def _kept_columns(args: argparse.Namespace, table: Table) -> dict[str, list[str]]:
    """The columns of the file that are copied to the output; ``--keep`` without a name means all."""
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
            f"{error}; fill the cells in the file, add --missing skip to give such rows no label, or train a tree with "
            "--missing median"
        ) from None


def _measures(
    tree: Tree, encoding: Encoding, table: Table, rows: list[int], X: Any, labels: Any
) -> tuple[float | None, ClassificationMeasures | RegressionMeasures | None]:
    """The accuracy and all measures on the rows that have a target in the file; numbers have no accuracy.

    None without such rows; if some have a label that the tree does not know, there is only the accuracy.
    """
    from margotree.measures import measure_classification, measure_regression

    if encoding.target not in table.names:
        return None, None
    cells = table.column(encoding.target)
    known = [k for k, i in enumerate(rows) if cells[i]]
    if not known:
        return None, None
    truth = encoding.labels(table, [rows[k] for k in known])
    if encoding.numeric:
        return None, measure_regression(truth, labels[known])
    if not set(truth.tolist()) <= set(tree.classes.tolist()):
        return float((truth == labels[known]).mean()), None
    found = measure_classification(truth, labels[known], tree.predict_proba(X[known]), tree.classes.tolist())
    return found.accuracy, found


def _columns(
    args: argparse.Namespace, tree: Tree, X: Any, labels: Any, threshold: _Threshold | None
) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    if len(tree.classes) == 2:
        columns["decision"] = tree.decision_function(X).tolist()
    columns["leaf"] = tree.apply(X).tolist()
    if args.proba:
        shares = tree.predict_proba(X)
        columns |= {f"probability of {label}": shares[:, k].tolist() for k, label in enumerate(tree.classes.tolist())}
    if args.explain:
        note = "" if threshold is None else f"; {threshold.text}, so the label is "
        columns["explanation"] = [
            tree.path(x).sentence + (note and f"{note}{label}") for x, label in zip(X, labels, strict=True)
        ]
    return columns


def _columns_of_numbers(args: argparse.Namespace, tree: RegressionTree, X: Any) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {"leaf": tree.apply(X).tolist()}
    if args.explain:
        columns["explanation"] = [tree.path(x).sentence for x in X]
    return columns


def _write(args: argparse.Namespace, predictions: _Predictions, kept_columns: dict[str, list[str]]) -> None:
    """Write one line per row of the file; cells of rows without a label are empty."""
    position = {i: k for k, i in enumerate(predictions.rows)}
    names = [*kept_columns, *(_unused_name(name, kept_columns) for name in predictions.columns)]
    lines = [
        [
            *(c[i] for c in kept_columns.values()),
            *(c[position[i]] if i in position else None for c in predictions.columns.values()),
        ]
        for i in range(predictions.n_rows)
    ]
    if args.json:
        records = [dict(zip(names, line, strict=True)) for line in lines]
        skipped = predictions.n_rows - len(predictions.rows)
        record = {
            "predictions": records,
            "rows": predictions.n_rows,
            "skipped": skipped,
            "accuracy": predictions.accuracy,
            "measures": None if predictions.measures is None else predictions.measures.record(),
        }
        console.print_result(record | {"notes": predictions.notes}, "", as_json=True)
        if not args.out:
            return
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([["" if cell is None else cell for cell in line] for line in lines])
    if args.out:
        write_text(args.out, out.getvalue())
    else:
        console.print_output(out.getvalue())


def _unused_name(name: str, kept_columns: dict[str, list[str]]) -> str:
    """The name of an output column, with a suffix if the file has a column of this name."""
    return _unused_name(f"{name} (margotree)", kept_columns) if name in kept_columns else name


def _plain(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label
