"""Train a tree on a CSV, Excel or Parquet file and save it with its certificate.

Columns of words become 0/1 features; how is remembered in the saved tree, so that predict and verify read files the
same way. Ctrl-C ends the search and keeps the best tree so far. The certificate is about the training rows; --holdout
or --cv also measure how trees trained this way do on rows they have not seen.
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
from margotree.cli.saved_trees import with_table
from margotree.progress import recording

if TYPE_CHECKING:
    from margotree.cli.evaluation import Measured
    from margotree.cli.output_files import Kept
    from margotree.progress import Event
    from margotree.table import Encoding, Samples, Table
    from margotree.tree import Tree

HELP = "train a tree on a table and save it"


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", help="CSV (.csv, .csv.gz, - for standard input), Excel (.xlsx) or Parquet file")
    parser.add_argument("--out", metavar="FILE", help="where to save the tree (the data file's name with .tree.json)")
    parser.add_argument("--log", metavar="FILE", help="write what the search reports, a line of JSON each, for plot")
    parser.add_argument(
        "--proof",
        metavar="FILE",
        help="write a proof that anybody can check with margotree check or check.py (margot, hfs, sfs)",
    )
    parser.add_argument("--auto", action="store_true",
                        help="choose depth, C and budget by cross-validation, as far as no option fixes them; "
                        "--time-limit is for all of it")  # fmt: skip
    model_options.add_cluster(parser)
    output_files.add_force(parser)
    options.add_columns(parser)
    model_options.add_model(parser)
    model_options.add_search(parser)
    evaluation.add(parser)
    options.add_reading(parser)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    out = args.out or default_out(args.data)
    output_files.may_write(out, inputs=(args.data,), force=args.force)
    if args.log:
        output_files.may_write(args.log, inputs=(args.data,), force=args.force, option="--log")
        if output_files.same_file(args.log, out):
            raise CommandError(f"the tree and the log cannot both be {out}; name another with --log", exit_codes.USAGE)
    if args.proof:
        _may_prove(args, out)
    console.say(f"reading {args.data}", quiet=args.quiet)
    encoding, samples, notes = read_training(args)
    evaluation.check(args, samples)
    model = model_options.estimator(args, classes=sorted(set(samples.y.tolist())), verbose=0 if args.quiet else 1)
    if args.proof:
        model.set_params(proof=args.proof)
    console.say(_what(args, samples), quiet=args.quiet)
    with recording() as events, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        late = fitted(model, samples, events)
    notes_about = list(dict.fromkeys(str(one.message) for one in heard))
    console.notes(notes_about, quiet=args.quiet)
    from margotree.engines.run_control import holding_ctrl_c

    with holding_ctrl_c() as also_late:
        tree = with_table(dataclasses.replace(model.tree_, feature_names=encoding.features), encoding, samples)
        kept = output_files.keep_tree(tree, out)
        kept = kept.with_trouble(*_write_others(args, tree, encoding, events, heard))
    assert tree.certificate is not None
    interrupted = late or also_late.is_set() or tree.certificate.stopped == "interrupted"
    measured = None if interrupted else evaluation.measure(args, samples)
    _tell(args, tree, samples, [*notes, *notes_about], kept, measured, chosen(model) if args.auto else None)
    return kept.code or (exit_codes.INTERRUPTED if interrupted else exit_codes.OK)


def fitted(model: Any, samples: Samples, events: Sequence[Event]) -> bool:
    """Fit the model; whether Ctrl-C came after the search, when there was a tree to keep.

    If there is none, KeyboardInterrupt says why.
    """
    try:
        model.fit(samples.X, samples.y, sample_weight=samples.weight)
    except KeyboardInterrupt as interrupt:
        if hasattr(model, "tree_"):
            return True
        reason = str(interrupt) or (
            "interrupted again before the search could end: its best tree so far is lost"
            if any(event.nodes or math.isfinite(event.incumbent) for event in events)
            else "interrupted before the search began (the data were being prepared or the kernels compiled), so there "
            "is no tree to keep"
        )
        raise KeyboardInterrupt(reason) from None
    return False


def _write_others(
    args: argparse.Namespace, tree: Tree, encoding: Encoding, events: Sequence[Event], heard: Sequence[Any]
) -> list[str]:
    """Write what was asked for beside the tree; returns what could not be written."""
    from margotree.estimators.fit_warnings import UnwrittenProofWarning

    troubles = []
    if args.log:
        log = "".join(json.dumps(_plain(event)) + "\n" for event in events)
        troubles.append(output_files.attempt(lambda: write_text(args.log, log)))
    if args.proof:
        write_error = [str(one.message) for one in heard if issubclass(one.category, UnwrittenProofWarning)]
        troubles += write_error or [output_files.attempt(lambda: _describe(args.proof, tree, encoding))]
    return [trouble for trouble in troubles if trouble]


def _may_prove(args: argparse.Namespace, out: str) -> None:
    """Complain about what cannot be proved, or not there, before the work begins."""
    if args.model not in model_options.CHOOSERS:
        raise CommandError(f"--proof is for --model {', '.join(model_options.CHOOSERS)}", exit_codes.USAGE)
    if args.auto:
        raise CommandError(
            "--proof does not go with --auto; fit again with what it chose, and --proof", exit_codes.USAGE
        )
    output_files.may_write(args.proof, inputs=(args.data,), force=args.force, option="--proof")
    if any(other and output_files.same_file(args.proof, other) for other in (out, args.log)):
        raise CommandError(
            f"{args.proof} is to hold something else already; name another with --proof", exit_codes.USAGE
        )


def _describe(path: str, tree: Tree, encoding: Encoding) -> None:
    """Tell the proof how its numbers are found in the file, where columns of numbers are all there is to find."""
    from margotree.proof.write import add_table_description
    from margotree.table import Number, Reading

    plain = encoding.reading == Reading() and encoding.missing != "drop" and encoding.positive is None
    if not plain or any(c != Number(name=c.name) for c in encoding.columns):
        return
    table = {
        "features": list(encoding.features),
        "offset": tree.scaling.offset.tolist(),
        "scale": tree.scaling.scale.tolist(),
        "target": encoding.target,
        "weight": encoding.weight,
        "labels": [str(label) for label in tree.classes.tolist()],
        "class_weight": tree.terms["class_weight"],
    }
    add_table_description(path, table)


def read_training(args: argparse.Namespace) -> tuple[Encoding, Samples, list[str]]:
    """The training file as numbers, how it got there, and what the user should know (and has been told)."""
    from margotree.table import ColumnOptions, MissingCells, learn_encoding

    table = options.read(args)
    console.say(f"read {table.n_rows:,} rows of {len(table.names)} columns", quiet=args.quiet)
    # Said before anything can go wrong: a note may name the column, or the sheet, that does.
    console.notes(table.notes, quiet=args.quiet)
    wishes = ColumnOptions(
        target=_target(args, table), drop=args.drop, categorical=args.categorical, weight=args.weight,
        positive=args.positive, missing=args.missing, max_categories=args.max_categories,
    )  # fmt: skip
    encoding, found = learn_encoding(table, wishes)
    console.notes(found, quiet=args.quiet)
    encoding = dataclasses.replace(encoding, reading=options.told(args))
    try:
        samples = encoding.training(table)
    except MissingCells as error:
        raise MissingCells(
            f"{error}; say --missing drop to leave such rows out, --missing median to put in the column's median (or "
            "commonest word), --missing indicator to do so and add a feature that says where, or --drop COL to do "
            "without a column"
        ) from None
    missing = samples.report.sentences(encoding.target, encoding.weight)
    console.notes(missing, quiet=args.quiet)
    _check_classes(args, samples)
    return encoding, samples, [*table.notes, *found, *missing]


def _target(args: argparse.Namespace, table: Table) -> str:
    """The header of the target column; without a header a bare number will do."""
    if args.target is None:
        columns = ", ".join(map(repr, table.names))
        raise CommandError(
            f"which column holds the classes?  Say --target COL; {table.source} has the columns {columns}",
            exit_codes.USAGE,
        )
    return f"column {args.target}" if args.header is False and args.target.isdigit() else str(args.target)


def _check_classes(args: argparse.Namespace, samples: Samples) -> None:
    from collections import Counter

    counts = Counter(samples.y.tolist())
    if not counts:
        raise CommandError(f"{args.data}: no complete row is left to train on", exit_codes.DATA)
    shown = ", ".join(f"{label} ({n})" for label, n in counts.most_common(8))
    if len(counts) < 2:
        raise CommandError(f"the rows to train on are all of one class: {shown}", exit_codes.DATA)
    if len(counts) > 2 and args.model not in model_options.MULTI_CLASS:
        raise CommandError(
            f"{args.target!r} has {len(counts)} classes: {shown}; --model {args.model} tells two apart.  Say "
            "--positive LABEL for one against the rest, or take another --model, such as margot",
            exit_codes.DATA,
        )


def _what(args: argparse.Namespace, samples: Samples) -> str:
    limit = "no time limit" if args.time_limit is None else f"at most {args.time_limit:g} s"
    size = f"{len(samples.rows):,} rows of {samples.X.shape[1]} features"
    if args.auto:
        return f"choosing and training {args.model} on {size}, {limit}"
    return f"training {args.model}, depth {model_options.depth(args)}, on {size}, {limit}"


def _plain(event: Any) -> dict[str, Any]:
    """What the search reported, as JSON values; infinities become words."""
    facts = {"phase": event.phase, "elapsed": event.elapsed, "nodes": event.nodes, "open_nodes": event.open_nodes}
    return facts | {"incumbent": str(event.incumbent), "bound": str(event.bound), "message": event.message}


def chosen(model: Any) -> dict[str, Any]:
    """What a classifier chose by itself."""
    names = ("depth", "C", "budget", "alpha")
    return {name: getattr(model, f"{name}_") for name in names if getattr(model, f"{name}_", None) is not None}


def _tell(
    args: argparse.Namespace,
    tree: Tree,
    samples: Samples,
    notes: list[str],
    kept: Kept,
    measured: Measured | None,
    choice: dict[str, Any] | None,
) -> None:
    assert tree.certificate is not None
    right = float((tree.predict(samples.X) == samples.y).mean())
    label, share = evaluation.commonest(samples.y)
    record = {
        "tree": kept.path,
        "proof": args.proof,
        "statement": tree.certificate.statement,
        "certificate": tree.certificate.to_dict(),
        "training": {
            "rows": len(samples.rows),
            "features": tree.n_features,
            "accuracy": right,
            "majority": share,
        },
        "measured": None if measured is None else measured.record(),
        "notes": notes,
        "not_written": list(kept.troubles),
        "chosen": choice,
    }
    text = "\n".join(
        [
            "",
            *([] if choice is None else ["chosen by cross-validation: " + _words(choice), ""]),
            tree.export_text(),
            "",
            str(tree.certificate),
            "",
            f"on the training rows: right on {right:.1%} (always saying {label}: {share:.1%})",
            measured.words() if measured else "on new rows: not measured; --holdout 0.2 or --cv 5 does that",
            kept.words(),
            *([_proof_words(args, kept)] if args.proof and not kept.troubles else []),
        ]
    )
    console.result(record, text, as_json=args.json)


def _proof_words(args: argparse.Namespace, kept: Kept) -> str:
    command = shlex.join(["margotree", "check", args.proof, args.data, "--tree", kept.path])
    return f"its proof as {args.proof}; {command}"


def _words(choice: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in choice.items())


def default_out(data: str) -> str:
    """The data file's name with .tree.json, in the folder we are in; only .csv goes, so that x.tsv gets its own."""
    name = "data" if data == "-" else os.path.basename(data)
    return f"{name.removesuffix('.gz').removesuffix('.csv')}.tree.json"
