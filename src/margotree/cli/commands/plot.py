"""Draw a saved tree, its features, one of its splits, or the progress of its search.

The kinds tree and features need only the tree; node, plane and calibration (how reliable the probabilities are) also
need samples (--data). The kind progress draws the
log that margotree fit --log FILE wrote.
"""

from __future__ import annotations

import argparse
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from margotree.atomic_files import write_atomically
from margotree.cli import console, exit_codes, options, output_files
from margotree.cli.exit_codes import CommandError
from margotree.cli.saved_trees import encoding_of, load_tree

if TYPE_CHECKING:
    from margotree.tree import Tree

HELP = "draw a saved tree, one of its splits, or the progress of its search"

KINDS = ("tree", "features", "node", "plane", "calibration", "progress")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tree", help="saved tree (for --kind progress: log of the fit)")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="file to write: .png, .svg or .pdf (the name of the tree, the kind if it is not tree, and .png)",
    )
    parser.add_argument("--kind", choices=KINDS, default="tree", help="what to draw (tree)")
    parser.add_argument(
        "--data", metavar="FILE", help="file with samples and their classes to show: CSV, Excel or Parquet"
    )
    parser.add_argument("--target", metavar="COL", help="column with the classes, if the tree file does not name it")
    parser.add_argument("--node", type=int, metavar="N", help="number of the split for --kind node (0)")
    parser.add_argument(
        "--all-splits", action="store_true", help="also draw splits that change no training row's label"
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
    if args.data is None and args.kind in {"node", "plane", "calibration"}:
        raise CommandError(f"--kind {args.kind} shows samples; name a file with samples with --data", exit_codes.USAGE)
    out = args.out or _default_out(args)
    output_files.check_output(out, inputs=(args.tree, args.data), force=args.force)
    import matplotlib

    matplotlib.use("Agg")
    figure = (_progress(args) if args.kind == "progress" else _of_tree(args)).figure
    write_atomically(out, lambda draft: figure.savefig(draft, dpi=args.dpi, bbox_inches="tight"))
    console.print_result({"picture": out}, f"drawn as {out}", as_json=args.json)
    return exit_codes.OK


#: Options that apply only to some kinds of plots.
_ONLY_FOR = {
    "node": ("node",),
    "all_splits": ("tree",),
    "data": ("tree", "node", "plane", "calibration"),
    "target": ("tree", "node", "plane", "calibration"),
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
    if args.kind == "features":
        return plots.plot_features(tree)
    X: Any = None
    y: Any = None
    if args.data is not None:
        X, y = samples_of(args, tree)
    if args.kind in {"node", "plane", "calibration"}:
        try:
            if args.kind == "calibration":
                return plots.plot_calibration(tree, X, y)
            return plots.plot_node(tree, X, y, args.node) if args.kind == "node" else plots.plot_plane(tree, X, y)
        except ValueError as error:
            raise CommandError(str(error), exit_codes.USAGE) from None
    return plots.plot_tree(tree, X, y, simplify=not args.all_splits)


def samples_of(args: argparse.Namespace, tree: Tree) -> tuple[Any, Any]:
    """The features and labels of the complete rows of ``--data``."""
    import dataclasses

    encoding = encoding_of(tree, args.tree)
    if args.target:
        encoding = dataclasses.replace(encoding, target=args.target)
    if not encoding.target:
        raise CommandError(f"{args.tree} does not name the column with the classes; add --target COL", exit_codes.USAGE)
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
