"""Train a tree on a CSV, Excel or Parquet file and save it with its certificate.

By default the tree is readable: at most three features per split, with depth, C and budget chosen by cross-validation
in about ten seconds. --model, --depth or --C train another one. Columns of words become 0/1 features; the saved tree
includes the encoding, so that predict and verify read files in the same way. Ctrl-C ends the search and saves the best
tree so far. The certificate is about the training rows; --holdout and --cv measure the accuracy on new rows.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import shlex
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from margotree.atomic_files import write_text
from margotree.cli import console, evaluation, exit_codes, model_options, options, output_files
from margotree.cli.exit_codes import CommandError
from margotree.cli.saved_trees import is_of_numbers, with_measures, with_table
from margotree.progress import recording

if TYPE_CHECKING:
    from margotree.cli.evaluation import Measurement, NumberMeasurement
    from margotree.cli.output_files import SavedFile
    from margotree.progress import Event
    from margotree.table import Encoding, Samples, Table
    from margotree.tree import HyperplaneTree

HELP = "train a tree on a file and save it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", help="CSV (.csv, .csv.gz, - for standard input), Excel (.xlsx) or Parquet file")
    parser.add_argument("--out", metavar="FILE", help="file for the tree (the name of the data file with .tree.json)")
    parser.add_argument(
        "--log",
        metavar="FILE",
        help="write the progress of the search as lines of JSON, for margotree plot --kind progress",
    )
    parser.add_argument(
        "--proof",
        metavar="FILE",
        help="write a proof, which margotree check or check.py verifies (margot, hfs, sfs)",
    )
    parser.add_argument("--auto", action="store_true",
                        help="choose depth, C and budget by cross-validation, unless an option fixes them; "
                        "--time-limit includes the choice")  # fmt: skip
    model_options.add_cluster(parser)
    output_files.add_force(parser)
    options.add_columns(parser)
    model_options.add_model(parser)
    model_options.add_search(parser)
    evaluation.add_arguments(parser)
    options.add_reading(parser)
    options.add_output(parser)
    options.add_verbose(parser)


def run(args: argparse.Namespace) -> int:
    by_default = model_options.resolve(args)
    out = args.out or default_out(args.data)
    output_files.check_output(out, inputs=(args.data,), force=args.force)
    if args.log:
        output_files.check_output(args.log, inputs=(args.data,), force=args.force, option="--log")
        if output_files.same_file(args.log, out):
            raise CommandError(
                f"the tree and the log cannot both be written to {out}; name another file with --log", exit_codes.USAGE
            )
    if args.proof:
        _check_proof_options(args, out)
    console.print_status(f"reading {args.data}", quiet=args.quiet)
    encoding, samples, notes = read_training(args)
    evaluation.check(args, samples)
    # The default takes ten seconds: its progress is for those who ask for it.
    silent = args.quiet or (by_default and not args.verbose)
    model = model_options.estimator(args, samples, verbose=0 if silent else 1)
    model.count_columns(encoding.groups)
    if args.proof:
        model.set_params(proof=args.proof)
    console.print_status(_task_text(args, samples), quiet=args.quiet)
    with recording() as events, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        interrupted_after_search = fit_model(model, samples, events)
    messages = {str(one.message): one.category for one in caught}
    # The default time limit is not long enough for all settings; the result says how to give it more time.
    notes_about = [text for text, kind in messages.items() if not (by_default and _is_about_cut_off_fits(kind))]
    console.print_notes(notes_about, quiet=args.quiet)
    from margotree.engines.run_control import holding_ctrl_c

    with holding_ctrl_c() as interrupted_while_saving:
        tree = with_table(named(model.tree_, encoding), encoding, samples)
        saved = output_files.save_tree(tree, out)
        saved = saved.with_errors(*_write_log_and_proof(args, tree, encoding, events, caught))
    assert tree.certificate is not None
    interrupted = (
        interrupted_after_search or interrupted_while_saving.is_set() or tree.certificate.stopped == "interrupted"
    )
    measurement = None if interrupted else evaluation.measure(args, samples, encoding.groups)
    if measurement is not None and not saved.write_errors:
        tree = with_measures(tree, measurement.summary(), measurement.details())
        saved = output_files.save_tree(tree, out)
    _print_result(
        args, tree, samples, [*notes, *notes_about], saved, measurement, chosen_settings(model) if args.auto else None,
        by_default,
    )  # fmt: skip
    return saved.code or (exit_codes.INTERRUPTED if interrupted else exit_codes.OK)


def named(tree: Any, encoding: Encoding) -> Any:
    """The tree with the names of its features, and of its target if that is numeric."""
    names: dict[str, Any] = {"feature_names": encoding.features}
    if encoding.numeric:
        names["target_name"] = encoding.target
    return dataclasses.replace(tree, **names)


def _is_about_cut_off_fits(category: type[Warning]) -> bool:
    from margotree.estimators import CutOffWarning

    return issubclass(category, CutOffWarning)


def fit_model(model: Any, samples: Samples, events: Sequence[Event]) -> bool:
    """Fit the model; return whether Ctrl-C came after the search, when there was a tree already.

    If there is no tree, KeyboardInterrupt is raised with the reason.
    """
    try:
        model.fit(samples.X, samples.y, sample_weight=samples.weight)
    except KeyboardInterrupt as interrupt:
        if hasattr(model, "tree_"):
            return True
        reason = str(interrupt) or (
            "interrupted a second time before the search could end: the best tree so far is lost"
            if any(event.nodes or math.isfinite(event.incumbent) for event in events)
            else "interrupted before the search began, while data were prepared or kernels compiled; no tree exists"
        )
        raise KeyboardInterrupt(reason) from None
    return False


def _write_log_and_proof(
    args: argparse.Namespace, tree: HyperplaneTree, encoding: Encoding, events: Sequence[Event], caught: Sequence[Any]
) -> list[str]:
    """Write the log and complete the proof, if requested; return the errors of files that could not be written."""
    from margotree.estimators.fit_warnings import UnwrittenProofWarning

    write_errors = []
    if args.log:
        log = "".join(json.dumps(_event_record(event)) + "\n" for event in events)
        write_errors.append(output_files.try_to_write(lambda: write_text(args.log, log)))
    if args.proof:
        write_error = [str(one.message) for one in caught if issubclass(one.category, UnwrittenProofWarning)]
        write_errors += write_error or [
            output_files.try_to_write(lambda: _add_table_to_proof(args.proof, tree, encoding))
        ]
    return [error for error in write_errors if error]


def _check_proof_options(args: argparse.Namespace, out: str) -> None:
    """Raise an error before the training if ``--proof`` does not apply or its file cannot be written.

    ``out`` is the file to which the tree is saved.
    """
    if args.model not in model_options.CV_MODELS:
        raise CommandError(f"--proof applies only to --model {' or '.join(model_options.CV_MODELS)}", exit_codes.USAGE)
    if args.auto:
        raise CommandError(
            "--proof cannot be used with --auto; fit a second time with the chosen options and --proof",
            exit_codes.USAGE,
        )
    output_files.check_output(args.proof, inputs=(args.data,), force=args.force, option="--proof")
    if any(other and output_files.same_file(args.proof, other) for other in (out, args.log)):
        raise CommandError(
            f"{args.proof} is also the file of the tree or of the log; name another file with --proof", exit_codes.USAGE
        )


def _add_table_to_proof(path: str, tree: HyperplaneTree, encoding: Encoding) -> None:
    """Add the description of the training table to the proof, if all of its columns are plain numbers."""
    from margotree.proof.write import add_table_description
    from margotree.table import Number, ReadOptions

    of_cells = encoding.positive is None and encoding.above is None
    plain = encoding.reading == ReadOptions() and encoding.missing != "drop" and of_cells
    if not plain or any(c != Number(name=c.name) for c in encoding.columns):
        return
    table = {
        "features": list(encoding.features),
        "offset": tree.scaling.offset.tolist(),
        "scale": tree.scaling.scale.tolist(),
        "target": encoding.target,
        "weight": encoding.weight,
        **_target_description(tree),
    }
    add_table_description(path, table)


def _target_description(tree: Any) -> dict[str, Any]:
    """The labels with their weights, or the units of a numeric target."""
    if is_of_numbers(tree):
        units = {"target_offset": tree.target.center, "target_scale": tree.target.scale}
        return {"labels": None, "class_weight": None, **units}
    labels = [str(label) for label in tree.classes.tolist()]
    weights = tree.terms["class_weight"]
    return {"labels": labels, "class_weight": weights, "target_offset": None, "target_scale": None}


def read_training(args: argparse.Namespace) -> tuple[Encoding, Samples, list[str]]:
    """Read the training file; return its encoding, the samples, and the notes (which are printed already)."""
    from margotree.table import ColumnOptions, MissingCells, learn_encoding

    _check_target_options(args)
    table = options.read(args)
    console.print_status(f"read {table.n_rows:,} rows with {len(table.names)} columns", quiet=args.quiet)
    # Notes are printed before the encoding is learned, because they may explain an error in it.
    console.print_notes(table.notes, quiet=args.quiet)
    column_options = ColumnOptions(
        target=_target(args, table), drop=args.drop, categorical=args.categorical, weight=args.weight,
        positive=args.positive, missing=args.missing, max_categories=args.max_categories, task=args.task,
        above=args.above, date=args.date,
    )  # fmt: skip
    encoding, encoding_notes = learn_encoding(table, column_options)
    console.print_notes(encoding_notes, quiet=args.quiet)
    encoding = dataclasses.replace(encoding, reading=options.reading_options(args))
    try:
        samples = encoding.training(table)
    except MissingCells as error:
        raise MissingCells(
            f"{error}; add --missing drop to leave out such rows, --missing median to fill missing cells with the "
            "median (or the most frequent word) of the column, --missing indicator to also add a feature that is 1 "
            "where a cell is missing, or --drop COL to leave out a column"
        ) from None
    missing_notes = samples.report.sentences(encoding.target, encoding.weight)
    console.print_notes(missing_notes, quiet=args.quiet)
    _check_classes(args, samples)
    return encoding, samples, [*table.notes, *encoding_notes, *missing_notes]


def _check_target_options(args: argparse.Namespace) -> None:
    """Raise an error for options about the target that contradict each other."""
    given = [flag for flag, value in (("--positive", args.positive), ("--above", args.above)) if value is not None]
    given += ["--task regression"] if args.task == "regression" else []
    if len(given) > 1:
        raise CommandError(f"{given[0]} and {given[1]} contradict each other; leave one out", exit_codes.USAGE)


def _target(args: argparse.Namespace, table: Table) -> str:
    """The header of the target column; in a file without a header a number is the position of the column."""
    if args.target is None:
        columns = ", ".join(map(repr, table.names))
        raise CommandError(
            f"the column with the classes or numbers to predict is not named; add --target COL.  {table.source} has "
            f"the columns {columns}",
            exit_codes.USAGE,
        )
    return f"column {args.target}" if args.header is False and args.target.isdigit() else str(args.target)


def _check_classes(args: argparse.Namespace, samples: Samples) -> None:
    from collections import Counter

    counts = Counter(samples.y.tolist())
    if samples.is_numeric and counts:
        return
    if not counts:
        raise CommandError(
            f"{args.data} has no row with a label and without missing cells; there is nothing to train on",
            exit_codes.DATA,
        )
    shown = ", ".join(f"{label} ({n})" for label, n in counts.most_common(8))
    if len(counts) < 2:
        raise CommandError(f"all training rows are of one class: {shown}; a tree needs two classes", exit_codes.DATA)
    if len(counts) > 2 and args.model not in model_options.MULTI_CLASS:
        raise CommandError(
            f"the target column {args.target!r} has {len(counts)} classes: {shown}; --model {args.model} needs two.  "
            "Add --positive LABEL for one class against all others, or use another model, such as --model margot",
            exit_codes.DATA,
        )


def _task_text(args: argparse.Namespace, samples: Samples) -> str:
    """The line that announces the training."""
    limit = "no time limit" if args.time_limit is None else f"at most {args.time_limit:g} s"
    size = f"{len(samples.rows):,} rows with {samples.X.shape[1]} features"
    if args.auto:
        return f"choosing the hyperparameters of {args.model} and training it on {size}, {limit}"
    return f"training {args.model}, depth {model_options.depth(args)}, on {size}, {limit}"


def _event_record(event: Any) -> dict[str, Any]:
    """A progress event as JSON values; infinities become strings."""
    facts = {"phase": event.phase, "elapsed": event.elapsed, "nodes": event.nodes, "open_nodes": event.open_nodes}
    return facts | {"incumbent": str(event.incumbent), "bound": str(event.bound), "message": event.message}


def chosen_settings(model: Any) -> dict[str, Any]:
    """The hyperparameters that a CV classifier chose."""
    names = ("depth", "C", "budget", "leaf_budget", "alpha", "epsilon", "prune")
    return {name: getattr(model, f"{name}_") for name in names if getattr(model, f"{name}_", None) is not None}


def _print_result(
    args: argparse.Namespace,
    tree: HyperplaneTree,
    samples: Samples,
    notes: list[str],
    saved: SavedFile,
    measurement: Measurement | NumberMeasurement | None,
    settings: dict[str, Any] | None,
    by_default: bool,
) -> None:
    assert tree.certificate is not None
    record = {
        "tree": saved.path,
        "proof": args.proof,
        "statement": tree.certificate.statement,
        "certificate": tree.certificate.to_dict(),
        "training": {
            "rows": len(samples.rows),
            "features": tree.n_features,
            **evaluation.training_record(tree, samples),
        },
        "measured": None if measurement is None else measurement.record(),
        "notes": notes,
        "not_written": list(saved.write_errors),
        "chosen": settings,
    }
    text = "\n".join(
        [
            "",
            *([] if settings is None else [_choice_text(settings, by_default), ""]),
            tree.export_text(verbose=args.verbose),
            "",
            str(tree.certificate) if args.verbose else tree.certificate.summary(),
            "",
            evaluation.training_text(tree, samples),
            f"{measurement.summary()}\n\n{measurement.details()}\n"
            if measurement
            else f"on new rows: not measured; add --holdout 0.2 or --cv 5 to measure the {evaluation.noun(samples)}",
            saved.summary(),
            *([_proof_words(args, saved)] if args.proof and not saved.write_errors else []),
        ]
    )
    console.print_result(record, text, as_json=args.json)


def _proof_words(args: argparse.Namespace, saved: SavedFile) -> str:
    command = shlex.join(["margotree", "check", args.proof, args.data, "--tree", saved.path])
    return f"proof saved as {args.proof}; to check it: {command}"


def _choice_text(settings: dict[str, Any], by_default: bool) -> str:
    """The line about the hyperparameters that were chosen."""
    chosen = "chosen by cross-validation: " + _words(settings)
    return f"{chosen} (in {model_options.CHOICE_SECONDS:g} s; --time-limit 1m tries more)" if by_default else chosen


def _words(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def default_out(data: str) -> str:
    """The name of the data file with .tree.json, in the current folder; only the endings .csv and .gz are removed."""
    name = "data" if data == "-" else os.path.basename(data)
    return f"{name.removesuffix('.gz').removesuffix('.csv')}.tree.json"
