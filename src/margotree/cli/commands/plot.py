"""Draw a saved tree, its features, one of its splits, its errors, or the progress of its search.

The kinds tree and features need only the tree; all others but progress also need samples (--data). For trees of
classes: node (one split) and calibration (how reliable the probabilities are). For trees of numbers: predictions and
residuals. For both: plane (trees with two features) and effect (how the prediction depends on --feature). The kind
progress draws the log that margotree fit --log FILE wrote.
"""

from __future__ import annotations

import argparse
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from margotree.cli import console, exit_codes, options, output_files
from margotree.cli.exit_codes import CommandError
from margotree.cli.saved_trees import encoding_of, is_of_numbers, load_tree

if TYPE_CHECKING:
    from margotree.tree import HyperplaneTree

HELP = "draw a saved tree, one of its splits, its errors, or the progress of its search"

#: Kinds for trees of classes only, for trees of numbers only, and with samples.
_OF_CLASSES = ("node", "calibration")
_OF_NUMBERS = ("predictions", "residuals")
_WITH_SAMPLES = ("node", "plane", "calibration", "predictions", "residuals", "effect")

KINDS = ("tree", "features", *_WITH_SAMPLES, "progress")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tree", help="saved tree (for --kind progress: log of the fit)")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="file to write: .png, .svg or .pdf (the name of the tree, the kind if it is not tree, and .png)",
    )
    parser.add_argument("--kind", choices=KINDS, default="tree", help="what to draw (tree)")
    parser.add_argument(
        "--data", metavar="FILE", help="file with samples and their targets to show: CSV, Excel or Parquet"
    )
    parser.add_argument("--target", metavar="COL", help="column with the targets, if the tree file does not name it")
    parser.add_argument("--feature", metavar="NAME", help="column for --kind effect")
    parser.add_argument("--node", type=int, metavar="N", help="number of the split for --kind node (0)")
    parser.add_argument(
        "--all-splits", action="store_true", help="also draw splits that change no training row's prediction"
    )
    parser.add_argument("--dpi", type=int, default=150, metavar="N", help="dots per inch of a PNG file (150)")
    output_files.add_force(parser)
    options.add_reading(parser, saved=True)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    if find_spec("matplotlib") is None:
        raise CommandError('plots need matplotlib; run pip install "margotree[plot]"', exit_codes.FAILED)
    _check_options(args)
    args.node = args.node or 0
    if args.kind == "effect" and args.feature is None:
        raise CommandError("--kind effect shows one feature; name it with --feature", exit_codes.USAGE)
    if args.data is None and args.kind in _WITH_SAMPLES:
        raise CommandError(f"--kind {args.kind} shows samples; name a file with samples with --data", exit_codes.USAGE)
    out = args.out or _default_out(args)
    output_files.check_output(out, inputs=(args.tree, args.data), force=args.force)
    import matplotlib

    matplotlib.use("Agg")
    from margotree.plots.figures import figure_of, save_figure

    save_figure(figure_of(_progress(args) if args.kind == "progress" else _of_tree(args)), out, dpi=args.dpi)
    console.print_result({"picture": out}, f"drawn as {out}", as_json=args.json)
    return exit_codes.OK


#: Options that apply only to some kinds of plots.
_ONLY_FOR = {
    "node": ("node",),
    "all_splits": ("tree",),
    "feature": ("effect",),
    "data": ("tree", *_WITH_SAMPLES),
    "target": ("tree", *(kind for kind in _WITH_SAMPLES if kind != "effect")),
}


def _check_options(args: argparse.Namespace) -> None:
    """Raise an error for an option that does not apply to the kind of plot."""
    for option, kinds in _ONLY_FOR.items():
        value = getattr(args, option)
        if value is None or value is False or args.kind in kinds:  # 0 is the root
            continue
        flag, kinds_text = "--" + option.replace("_", "-"), " or ".join(f"--kind {kind}" for kind in kinds)
        raise CommandError(
            f"{flag} does not apply to --kind {args.kind}, only to {kinds_text}; leave it out", exit_codes.USAGE
        )


def _default_out(args: argparse.Namespace) -> str:
    """The name of the tree with .png, and with the kind of plot if it is not the tree."""
    stem = os.path.splitext(os.path.basename(args.tree))[0]
    kind = {"tree": "", "node": f".node{args.node}"}.get(args.kind, f".{args.kind}")
    return f"{stem}{kind}.png"


def _of_tree(args: argparse.Namespace) -> Any:
    from margotree import plots

    tree = load_tree(args.tree)
    _check_kind(args, tree)
    if args.kind == "features":
        return plots.plot_features(tree)
    if args.kind == "effect":
        feature = _feature(args, tree)
        return plots.plot_effect(tree, _rows_of(args, tree), feature)
    X: Any = None
    y: Any = None
    if args.data is not None:
        X, y = samples_of(args, tree)
    if args.kind == "tree":
        return plots.plot_tree(tree, X, y, simplify=not args.all_splits)
    try:
        if args.kind == "node":
            return plots.plot_node(tree, X, y, args.node)
        draw: dict[str, Any] = {
            "plane": plots.plot_plane,
            "calibration": plots.plot_calibration,
            "predictions": plots.plot_predictions,
            "residuals": plots.plot_residuals,
        }
        return draw[args.kind](tree, X, y)
    except ValueError as error:
        raise CommandError(str(error), exit_codes.USAGE) from None


def _check_kind(args: argparse.Namespace, tree: HyperplaneTree) -> None:
    """Raise an error for a kind of plot that does not apply to the tree."""
    numbers = is_of_numbers(tree)
    if args.kind not in (_OF_CLASSES if numbers else _OF_NUMBERS):
        return
    what, others = ("numbers", _OF_NUMBERS) if numbers else ("classes", _OF_CLASSES)
    raise CommandError(
        f"--kind {args.kind} is for trees of {'classes' if numbers else 'numbers'}, and {args.tree} predicts {what}; "
        f"use --kind {' or --kind '.join(others)}",
        exit_codes.USAGE,
    )


def _feature(args: argparse.Namespace, tree: HyperplaneTree) -> str:
    """The column of ``--feature``."""
    columns = [column.name for column in encoding_of(tree, args.tree).columns]
    if args.feature not in columns:
        raise CommandError(
            f"the tree has no column {args.feature!r}; its columns are {', '.join(columns)}", exit_codes.USAGE
        )
    return str(args.feature)


def _rows_of(args: argparse.Namespace, tree: HyperplaneTree) -> Any:
    """The features of the complete rows of ``--data``, which need no target."""
    encoding = encoding_of(tree, args.tree)
    X, _ = encoding.apply(options.read(args, encoding.reading), missing="skip")
    if not len(X):
        raise CommandError(f"{args.data} has no complete row", exit_codes.DATA)
    return X


def samples_of(args: argparse.Namespace, tree: HyperplaneTree) -> tuple[Any, Any]:
    """The features and targets of the complete rows of ``--data``."""
    import dataclasses

    encoding = encoding_of(tree, args.tree)
    if args.target:
        encoding = dataclasses.replace(encoding, target=args.target)
    if not encoding.target:
        raise CommandError(f"{args.tree} does not name the column with the targets; add --target COL", exit_codes.USAGE)
    table = options.read(args, encoding.reading)
    X, rows = encoding.apply(table, missing="skip")
    cells = table.column(encoding.target)
    labelled = [k for k, i in enumerate(rows) if cells[i]]
    return X[labelled], encoding.labels(table, [rows[k] for k in labelled])


def _progress(args: argparse.Namespace) -> Any:
    import json

    from margotree.plots import plot_progress

    try:
        with open(args.tree, encoding="utf-8") as stream:
            events = [json.loads(line) for line in stream if line.strip()]
        return plot_progress([{k: float(e[k]) for k in ("elapsed", "incumbent", "bound")} for e in events])
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(
            f"{args.tree} is not a log of a fit, as margotree fit --log FILE writes: {error}", exit_codes.DATA
        ) from None
