"""Draw a saved tree, its features, one of its splits, or the search that found it.

tree and features need the tree alone; node and plane also need the data (--data). progress draws the log that
margotree fit --log FILE wrote.
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

HELP = "draw a saved tree, one of its splits, or its search"

KINDS = ("tree", "features", "node", "plane", "progress")


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tree", help="the saved tree (for --kind progress: the log of the fit)")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="picture to write: .png, .svg or .pdf (the tree's name, what is drawn if not the tree, and .png)",
    )
    parser.add_argument("--kind", choices=KINDS, default="tree", help="what to draw (tree)")
    parser.add_argument("--data", metavar="FILE", help="samples to show: CSV, Excel or Parquet file with the target")
    parser.add_argument("--target", metavar="COL", help="the column with the classes, if the tree file does not say")
    parser.add_argument("--node", type=int, metavar="N", help="the split to draw with --kind node (0)")
    parser.add_argument(
        "--all-splits", action="store_true", help="also draw the splits that change no training row's label"
    )
    parser.add_argument("--dpi", type=int, default=150, metavar="N", help="dots an inch of a PNG (150)")
    output_files.add_force(parser)
    options.add_reading(parser, kept=True)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    if find_spec("matplotlib") is None:
        raise CommandError('drawing needs matplotlib; pip install "margotree[plot]"', exit_codes.FAILED)
    _refuse_what_does_not_apply(args)
    args.node = args.node or 0
    if args.data is None and args.kind in {"node", "plane"}:
        raise CommandError(f"--kind {args.kind} shows samples; name a file of them with --data", exit_codes.USAGE)
    out = args.out or _default_out(args)
    output_files.may_write(out, inputs=(args.tree, args.data), force=args.force)
    import matplotlib

    matplotlib.use("Agg")
    figure = (_progress(args) if args.kind == "progress" else _of_tree(args)).figure
    write_atomically(out, lambda draft: figure.savefig(draft, dpi=args.dpi, bbox_inches="tight"))
    console.result({"picture": out}, f"drawn as {out}", as_json=args.json)
    return exit_codes.OK


#: Options that only some kinds of pictures take.
_ONLY_FOR = {
    "node": ("node",),
    "all_splits": ("tree",),
    "data": ("tree", "node", "plane"),
    "target": ("tree", "node", "plane"),
}


def _refuse_what_does_not_apply(args: argparse.Namespace) -> None:
    for option, kinds in _ONLY_FOR.items():
        value = getattr(args, option)
        if value is None or value is False or args.kind in kinds:  # 0 is a node
            continue
        flag, takers = "--" + option.replace("_", "-"), " or ".join(f"--kind {kind}" for kind in kinds)
        raise CommandError(
            f"{flag} does not apply to --kind {args.kind}, only to {takers}; leave it out", exit_codes.USAGE
        )


def _default_out(args: argparse.Namespace) -> str:
    """The tree's name with .png, and with the kind of picture if it is another than the tree."""
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
    if args.kind in {"node", "plane"}:
        try:
            return plots.plot_node(tree, X, y, args.node) if args.kind == "node" else plots.plot_plane(tree, X, y)
        except ValueError as error:
            raise CommandError(str(error), exit_codes.USAGE) from None
    return plots.plot_tree(tree, X, y, simplify=not args.all_splits)


def samples_of(args: argparse.Namespace, tree: Tree) -> tuple[Any, Any]:
    """Features and labels of the rows of ``--data`` that have them all."""
    import dataclasses

    encoding = encoding_of(tree, args.tree)
    if args.target:
        encoding = dataclasses.replace(encoding, target=args.target)
    if not encoding.target:
        raise CommandError(
            f"{args.tree} does not say which column holds the classes; say --target COL", exit_codes.USAGE
        )
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
            f"{args.tree} is no log of a fit (margotree fit --log FILE writes one): {error}", exit_codes.DATA
        ) from None
