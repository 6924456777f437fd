"""The models by their short names, and which options each takes."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from margotree.cli import options
from margotree.cli.exit_codes import USAGE, CommandError


@dataclass(frozen=True)
class Model:
    """A classifier of :mod:`margotree`, and the options it takes beyond those that all do."""

    cls: str
    takes: frozenset[str]
    words: str


_MARGIN = frozenset({"C", "eps", "no_scale", "max_weight", "node_limit"})

MODELS = {
    "margot": Model("MargotClassifier", _MARGIN | {"engine", "gap", "scheduler"}, "splits use all features"),
    "hfs": Model(
        "HFSMargotClassifier", _MARGIN | {"engine", "gap", "scheduler", "budget"}, "at most BUDGET features per split"
    ),
    "sfs": Model(
        "SFSMargotClassifier",
        _MARGIN | {"engine", "gap", "scheduler", "budget", "alpha"},
        "features beyond BUDGET cost ALPHA",
    ),
    "local": Model("LocalSVMTreeClassifier", _MARGIN | {"budget", "alpha"}, "fast heuristic, nothing proved"),
    "oct1": Model("OCT1Classifier", frozenset({"engine", "gap", "alpha", "min_leaf"}), "one feature per split"),
    "octh": Model("OCTHClassifier", frozenset({"engine", "gap", "alpha", "min_leaf", "mu", "no_scale"}), "OCT-H"),
    "mmsvm": Model(
        "MMSVMOCTClassifier", frozenset({"engine", "gap", "c1", "c2", "c3", "eps", "no_scale"}), "MM-SVM-OCT"
    ),
}

#: Models that take more than two classes.
MULTI_CLASS = frozenset(MODELS) - {"mmsvm"}


def add_model(parser: argparse.ArgumentParser) -> None:
    """The options that say what to train."""
    group = parser.add_argument_group("the tree")
    words = "; ".join(f"{name}: {model.words}" for name, model in MODELS.items())
    group.add_argument("--model", choices=tuple(MODELS), default="margot", help=f"{words} (margot)")
    group.add_argument(
        "--depth",
        type=int,
        metavar="N",
        help="splits from the root to a label (2; where it is chosen: 1, 2 or 3, more for many classes)",
    )
    group.add_argument(
        "--C",
        type=options.numbers,
        metavar="X[,X...]",
        help="price of a margin violation: one number, one per level or one per node (1)",
    )
    group.add_argument(
        "--budget", type=options.whole_numbers, metavar="N[,N...]", help="features per split (hfs, sfs, local)"
    )
    group.add_argument(
        "--alpha",
        type=options.numbers,
        metavar="X[,X...]",
        help="price of a feature beyond the budget (sfs, local), of a split (oct1), of a feature (octh)",
    )
    group.add_argument("--class-weight", metavar="W", help="balanced, or LABEL=FACTOR[,LABEL=FACTOR...]")
    group.add_argument(
        "--eps", type=_band, metavar="X",
        help="width of the empty band beside an upper split, or auto: the narrower the more rows (auto; mmsvm 0.001)",
    )  # fmt: skip
    group.add_argument("--max-weight", type=float, metavar="X", help="largest |w| in scaled units")
    group.add_argument(
        "--min-leaf", type=_leaf_size, metavar="X", help="fewest samples of a leaf, or their share (oct1, octh)"
    )
    group.add_argument("--mu", type=float, metavar="X", help="empty band beside a split (octh)")
    group.add_argument("--c1", type=float, metavar="X", help="price of a margin violation (mmsvm)")
    group.add_argument("--c2", type=float, metavar="X", help="price of relabelling (mmsvm)")
    group.add_argument("--c3", type=float, metavar="X", help="price of a split (mmsvm)")
    group.add_argument(
        "--no-scale", action="store_true", help="train on the features as they are, not brought to [0, 1]"
    )


def add_search(parser: argparse.ArgumentParser, time_limit: float = 60.0) -> None:
    """The options that say how hard to try."""
    group = parser.add_argument_group("the search")
    group.add_argument(
        "--time-limit",
        type=options.seconds,
        default=time_limit,
        metavar="T",
        help=f"seconds in all, or 5m, 1h, none ({time_limit:g})",
    )
    group.add_argument(
        "--node-limit",
        type=int,
        metavar="N",
        help="search nodes at most; phases are then measured in nodes and not in seconds, so that a fit on one thread "
        "repeats to the last bit unless --time-limit ends it first (margot, hfs, sfs, local)",
    )
    group.add_argument("--gap", type=float, metavar="X", help="stop within this share of the optimum (0.0001)")
    group.add_argument("--engine", metavar="NAME", help="who solves it (auto); margotree engines lists them")
    group.add_argument("--jobs", type=int, metavar="N", help="threads, -1 for all cores (1)")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="seed of whatever is drawn at random (0)")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """The option that says who searches."""
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="have the fit searched by the workers of a Dask cluster, tcp://HOST:PORT, or by --jobs processes of this "
        "machine, processes (margot, hfs, sfs of two classes)",
    )


def estimator(args: argparse.Namespace, classes: list[Any], verbose: int) -> Any:
    """The classifier the options ask for; an option that the model does not take is an error, not a shrug."""
    import margotree

    if getattr(args, "auto", False):
        return chooser(args, classes, verbose)
    model = MODELS[args.model]
    settings: dict[str, Any] = {
        "depth": depth(args), "time_limit": args.time_limit, "n_jobs": args.jobs, "random_state": args.seed,
        "verbose": verbose, "class_weight": _class_weight(args.class_weight, classes),
    }  # fmt: skip
    for option, name in _NAMES.items():
        value = getattr(args, option, None)
        if value is None or value is False:  # 0 is an answer
            continue
        if option not in model.takes:
            raise CommandError(_not_for(option, args.model), USAGE)
        settings[name] = None if option == "no_scale" else value
    return getattr(margotree, model.cls)(**settings)


def depth(args: argparse.Namespace) -> int:
    """The depth asked for, or the usual one."""
    return 2 if args.depth is None else int(args.depth)


def chooser(args: argparse.Namespace, classes: list[Any], verbose: int, folds: int = 5) -> Any:
    """The classifier that chooses by cross-validation what the options leave open."""
    import margotree

    if args.model not in CHOOSERS:
        raise CommandError(
            f"--model {args.model} cannot be chosen for this way; say --model {', '.join(CHOOSERS)}, or take margotree "
            "tune with --grid",
            USAGE,
        )
    settings: dict[str, Any] = {
        "time_limit": args.time_limit, "n_jobs": args.jobs, "random_state": args.seed, "verbose": verbose, "cv": folds,
        "class_weight": _class_weight(args.class_weight, classes),
    }  # fmt: skip
    if args.depth is not None:
        settings["depths"] = [args.depth]
    for option, name in _NAMES.items():
        value = getattr(args, option, None)
        if value is None or value is False:
            continue
        if option not in MODELS[args.model].takes:
            raise CommandError(_not_for(option, args.model), USAGE)
        if option in _NOT_CHOSEN_WITH:
            flag = "--" + option.replace("_", "-")
            raise CommandError(f"{flag} does not go with a choice by cross-validation; leave it out", USAGE)
        if option in _LISTED:
            settings[_LISTED[option]] = [value]
        else:
            settings[name] = None if option == "no_scale" else value
    return getattr(margotree, f"{MODELS[args.model].cls}CV")(**settings)


#: Models with a classifier that chooses its own hyperparameters; what fixes one of them there, and what has no place.
CHOOSERS = ("margot", "hfs", "sfs")
_LISTED = {"C": "Cs", "budget": "budgets", "alpha": "alphas"}
_NOT_CHOSEN_WITH = frozenset({"node_limit", "max_weight", "scheduler"})

#: Options that not all models take, and the parameters they set.
_NAMES = {
    "C": "C", "budget": "budget", "alpha": "alpha", "eps": "eps", "max_weight": "max_weight", "engine": "engine",
    "gap": "gap", "node_limit": "node_limit", "scheduler": "scheduler", "min_leaf": "min_samples_leaf",
    "mu": "mu", "c1": "c1", "c2": "c2", "c3": "c3", "no_scale": "scale",
}  # fmt: skip


def _not_for(option: str, model: str) -> str:
    flag = "--" + option.replace("_", "-")
    takers = ", ".join(name for name, other in MODELS.items() if option in other.takes)
    hint = " (its price of a margin violation is --c1)" if (option, model) == ("C", "mmsvm") else ""
    return f"{flag} means nothing to --model {model}{hint}; models that take it: {takers}"


def _class_weight(text: str | None, classes: list[Any]) -> dict[Any, float] | str | None:
    if text is None or text == "balanced":
        return text
    label = {str(c): c for c in classes}
    try:
        given = {name.strip(): float(factor) for name, factor in (part.rsplit("=", 1) for part in text.split(","))}
        return {label[name]: factor for name, factor in given.items()}
    except (ValueError, KeyError):
        known = ", ".join(label)
        raise CommandError(
            f"--class-weight is balanced or LABEL=FACTOR parted by commas, with the labels {known}; got {text!r}", USAGE
        ) from None


def _band(text: str) -> float | str:
    try:
        return "auto" if text == "auto" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number such as 0.001, or auto, got {text!r}") from None


def _leaf_size(text: str) -> int | float:
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a number of samples or a share such as 0.05, got {text!r}"
        ) from None
