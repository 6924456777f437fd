"""Print a saved tree: its rules in the units of the training file, and its certificate."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from margotree.cli import console, exit_codes, options
from margotree.cli.saved_trees import ENTRY, MEASURED, is_of_numbers, load_tree

if TYPE_CHECKING:
    from margotree.tree import HyperplaneTree, RegressionTree, Tree

HELP = "print the rules and the certificate of a saved tree"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tree", help="saved tree")
    parser.add_argument(
        "--part", choices=("all", "rules", "certificate", "terms"), default="all", help="what to print (all)"
    )
    parser.add_argument("--digits", type=int, metavar="N", help="digits of the numbers (as many as necessary)")
    parser.add_argument(
        "--units",
        choices=("user", "scaled"),
        default="user",
        help="units of the file, or the scaled units of the training (user)",
    )
    parser.add_argument(
        "--all-splits", action="store_true", help="also print splits that change no training row's prediction"
    )
    parser.add_argument("--width", type=int, default=100, metavar="N", help="largest length of a line (100)")
    options.add_verbose(parser)
    parser.add_argument("--json", action="store_true", help="print the tree as JSON")


def run(args: argparse.Namespace) -> int:
    tree = load_tree(args.tree)
    text = "\n\n".join(filter(None, (part(tree, args) for part in _parts(args.part))))
    console.print_result(_record(tree, args), text, as_json=args.json)
    return exit_codes.OK


def _parts(part: str) -> list[Any]:
    parts = {"rules": _rules, "certificate": _certificate, "terms": _terms}
    return list(parts.values()) if part == "all" else [parts[part]]


def _rules(tree: HyperplaneTree, args: argparse.Namespace) -> str:
    simplify = not args.all_splits
    return tree.export_text(
        digits=args.digits, units=args.units, width=args.width, simplify=simplify, verbose=args.verbose
    )


def _certificate(tree: HyperplaneTree, args: argparse.Namespace) -> str:
    from margotree.tree.proof_summary import proof_text

    text = "this tree is saved without a certificate"
    if tree.certificate is not None:
        text = str(tree.certificate) if _is_long(args, "certificate") else tree.certificate.summary()
    return "\n".join(filter(None, (text, proof_text(tree))))


def _terms(tree: HyperplaneTree, args: argparse.Namespace) -> str:
    terms = {
        name: value
        for name, value in tree.terms.items()
        if name not in (ENTRY, MEASURED, "proof") and value is not None
    }
    text = ", ".join(f"{name} {value}" for name, value in terms.items())
    measured = tree.terms.get(MEASURED, {})
    lines = [f"depth {tree.depth}, {text}"] if _is_long(args, "terms") else []
    lines += [*_training(tree), *filter(None, [measured.get("summary")])]
    details = measured.get("details") if _is_long(args, "terms") else None
    return "\n".join(lines) + (f"\n\n{details}" if details else "")


def _is_long(args: argparse.Namespace, part: str) -> bool:
    """Whether all numbers of a part are printed: with ``--verbose``, or if only this part is."""
    return bool(args.verbose or args.part == part)


def _training(tree: HyperplaneTree) -> list[str]:
    """Lines about the training file: target, rows, missing cells, and the options with which it was read."""
    if (table := tree.terms.get(ENTRY)) is None:
        return []
    from margotree.table import ReadOptions
    from margotree.table.encoding_json import missing_report

    rows, report = table.get("rows"), missing_report(table)
    number = "" if rows is None else f" {rows} rows"
    lines = [f"trained on{number} to predict {table['target']!r}"]
    lines += [] if report is None else report.sentences(table["target"], table.get("weight"))
    reading = options.reading_flags(ReadOptions.from_record(table.get("reading") or {}).given())
    return lines + ([f"file read with {reading}"] if reading else [])


def _record(tree: Any, args: argparse.Namespace) -> dict[str, Any]:
    from margotree.tree.file import outline_to_dict

    of_target = _record_of_numbers(tree, args) if is_of_numbers(tree) else _record_of_classes(tree, args)
    return {
        "depth": tree.depth,
        "features": list(tree.features),
        **of_target,
        "simplified": outline_to_dict(tree.outline()),
        "counts": tree.counts.tolist(),
        "statement": None if tree.certificate is None else tree.certificate.statement,
        "certificate": None if tree.certificate is None else tree.certificate.to_dict(),
        "terms": dict(tree.terms),
    }


def _record_of_classes(tree: Tree, args: argparse.Namespace) -> dict[str, Any]:
    return {
        "classes": tree.classes.tolist(),
        "splits": [_split(tree, t, args.units) | _meant(tree, t) for t in range(tree.n_nodes)],
        "leaves": [
            {"leaf": tree.n_nodes + k, "label": tree.classes.tolist()[c]}
            for k, c in enumerate(tree.leaf_class.tolist())
        ],
    }


def _record_of_numbers(tree: RegressionTree, args: argparse.Namespace) -> dict[str, Any]:
    formulas = [tree.formula(v, units=args.units) for v in range(tree.n_nodes, 2 * tree.n_nodes + 1)]
    return {
        "target": tree.target_name,
        "splits": [_split(tree, t, args.units) for t in range(tree.n_nodes)],
        "leaves": [
            {
                "leaf": one.leaf, "constant": one.constant, "weights": _weights(tree, one.weights),
                "low": one.low, "high": one.high,
            }
            for one in formulas
        ],
    }  # fmt: skip


def _weights(tree: HyperplaneTree, weights: Any) -> dict[str, float]:
    return {name: w for name, w in zip(tree.features, weights.tolist(), strict=True) if w}


def _split(tree: HyperplaneTree, t: int, units: str) -> dict[str, Any]:
    split = tree.split(t, units=units)
    return {"node": t, "weights": _weights(tree, split.weights), "threshold": split.threshold}


def _meant(tree: Tree, t: int) -> dict[str, Any]:
    """The classes for the two sides of a split of several classes."""
    target_sides = tree.target_classes(t)
    if target_sides is None:
        return {}
    left, right = ([tree.classes.tolist()[k] for k in side] for side in target_sides)
    return {"meant_left": left, "meant_right": right}
