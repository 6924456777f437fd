"""The models by their short names, and the options of each."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from margotree.cli import options
from margotree.cli.exit_codes import USAGE, CommandError
from margotree.notices import print_once

if TYPE_CHECKING:
    from margotree.table import Samples


@dataclass(frozen=True)
class Model:
    """A classifier of :mod:`margotree`, the options that not all models have, and a description for the help.

    ``regressor`` is the class for numeric targets, if there is one.
    """

    cls: str
    options: frozenset[str]
    description: str
    regressor: str | None = None

    def class_for(self, samples: Samples, name: str) -> str:
        """The name of the class for these samples; an error if the model is only for classes."""
        if not samples.is_numeric:
            return self.cls
        if self.regressor is None:
            models = ", ".join(name for name, model in MODELS.items() if model.regressor)
            raise CommandError(
                f"--model {name} is for classes, but the target holds numbers to predict; use --model {models}, or "
                "--above LIMIT for two classes",
                USAGE,
            )
        return self.regressor


_MARGIN_OPTIONS = frozenset({"C", "band", "no_scale", "max_weight", "node_limit", "round", "proba"})

MODELS = {
    "margot": Model(
        "MargotClassifier",
        _MARGIN_OPTIONS | {"engine", "gap", "scheduler", "prune"},
        "splits use all features",
        "MargotRegressor",
    ),
    "hfs": Model(
        "HFSMargotClassifier",
        _MARGIN_OPTIONS | {"engine", "gap", "scheduler", "prune", "budget"},
        "at most BUDGET features per split",
        "HFSMargotRegressor",
    ),
    "sfs": Model(
        "SFSMargotClassifier",
        _MARGIN_OPTIONS | {"engine", "gap", "scheduler", "prune", "budget", "alpha"},
        "penalty ALPHA for each feature beyond BUDGET",
        "SFSMargotRegressor",
    ),
    "local": Model(
        "LocalSVMTreeClassifier",
        _MARGIN_OPTIONS | {"budget", "alpha"},
        "fast greedy heuristic without a proved bound",
        "LocalSVRTreeRegressor",
    ),
    "oct1": Model("OCT1Classifier", frozenset({"engine", "gap", "alpha", "min_leaf"}), "one feature per split"),
    "octh": Model("OCTHClassifier", frozenset({"engine", "gap", "alpha", "min_leaf", "mu", "no_scale"}), "OCT-H"),
    "mmsvm": Model(
        "MMSVMOCTClassifier", frozenset({"engine", "gap", "c1", "c2", "c3", "band", "no_scale"}), "MM-SVM-OCT"
    ),
}

#: Models for any number of classes.
MULTI_CLASS = frozenset(MODELS) - {"mmsvm"}


#: Options of classifiers only, and of regressors only.
_OF_CLASSES = frozenset({"max_weight", "proba", "round", "prune", "class_weight"})
_OF_NUMBERS = frozenset({"leaf_budget", "epsilon", "loss"})


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the options about the model."""
    group = parser.add_argument_group("model")
    description = "; ".join(f"{name}: {model.description}" for name, model in MODELS.items())
    default = "hfs with depth, C and budget chosen by cross-validation; margot with --depth or --C"
    group.add_argument("--model", choices=tuple(MODELS), help=f"{description} ({default})")
    group.add_argument(
        "--depth",
        type=int,
        metavar="N",
        help="depth: number of splits from the root to a leaf (if it is chosen: 1, 2 or 3, more for many classes; "
        "otherwise 2)",
    )
    group.add_argument(
        "--C",
        type=options.numbers,
        metavar="X[,X...]",
        help="penalty of margin violations: one number, one per level or one per node (chosen; otherwise 1)",
    )
    group.add_argument(
        "--budget",
        type=options.whole_numbers,
        metavar="N[,N...]",
        help="largest number of features per split (hfs, sfs, local; if it is chosen: 1, 2 or 3)",
    )
    group.add_argument(
        "--leaf-budget",
        type=options.whole_numbers,
        metavar="N[,N...]",
        help="largest number of features of the formula in a leaf, for a numeric target (as --budget; 0: a constant)",
    )
    group.add_argument(
        "--epsilon",
        type=float,
        metavar="X",
        help="errors up to this size have no loss, for a numeric target, in units of its spread (0; if it is chosen: 0 "
        "or 0.1)",
    )
    group.add_argument(
        "--loss",
        choices=("epsilon_insensitive", "squared_epsilon_insensitive"),
        help="losses of errors, for a numeric target: as large as the error, or its square (epsilon_insensitive; if "
        "it is chosen: both)",
    )
    group.add_argument(
        "--alpha",
        type=options.numbers,
        metavar="X[,X...]",
        help="penalty of a feature beyond the budget (sfs, local), of a split (oct1), of a feature (octh)",
    )
    group.add_argument(
        "--class-weight", metavar="W", help="factors on C by class: balanced, or LABEL=FACTOR[,LABEL=FACTOR...]"
    )
    group.add_argument(
        "--proba",
        choices=("margin", "smoothed", "leaf"),
        help="class probabilities: from margins, class shares of leaves shrunk towards those above, or plain (margin)",
    )
    group.add_argument(
        "--band", type=_band, metavar="X",
        help="width of the empty band beside upper splits, or auto: narrower for more rows (auto; mmsvm 0.001)",
    )  # fmt: skip
    group.add_argument("--eps", action=_FormerName, type=_band, dest="band", help=argparse.SUPPRESS)
    group.add_argument("--max-weight", type=float, metavar="X", help="largest allowed weight |w| in scaled units")
    group.add_argument(
        "--min-leaf",
        type=_leaf_size,
        metavar="X",
        help="smallest number of samples of a leaf, or their share (oct1, octh)",
    )
    group.add_argument("--mu", type=float, metavar="X", help="width of the empty band beside splits (octh)")
    group.add_argument("--c1", type=float, metavar="X", help="penalty of margin violations (mmsvm)")
    group.add_argument("--c2", type=float, metavar="X", help="penalty of relabelling (mmsvm)")
    group.add_argument("--c3", type=float, metavar="X", help="penalty of a split (mmsvm)")
    group.add_argument(
        "--round", type=_rounding, metavar="HOW",
        help="short numbers: auto (as few digits as keep every label of a training row), points (whole numbers as "
        "weights), a number of digits, or no (auto; margot, hfs, sfs, local)",
    )  # fmt: skip
    group.add_argument(
        "--prune", type=_pruning, metavar="HOW",
        help="fewer numbers to read: the share of the training rows, such as 0.003, that a number has to save from a "
        "wrong label, auto (chosen by cross-validation, with budgets), or no (auto if hyperparameters are chosen, "
        "otherwise no; margot, hfs, sfs)",
    )  # fmt: skip
    group.add_argument(
        "--no-scale",
        action="store_true",
        help="train on the features as they are; by default they are scaled to [0, 1]",
    )


def add_search(parser: argparse.ArgumentParser, time_limit: float | None = None) -> None:
    """Add the options about the search; without ``time_limit`` the default depends on the model (:func:`resolve`)."""
    chosen, fixed = CHOICE_SECONDS, TRAINING_SECONDS
    shown = f"{chosen:g} with the default model, otherwise {fixed:g}" if time_limit is None else f"{time_limit:g}"
    group = parser.add_argument_group("search")
    group.add_argument(
        "--time-limit",
        type=options.seconds,
        default=BY_MODEL if time_limit is None else time_limit,
        metavar="T",
        help=f"time limit for all steps: seconds, or 5m, 1h, none ({shown})",
    )
    group.add_argument(
        "--node-limit",
        type=int,
        metavar="N",
        help="largest number of search nodes; phases are then limited by nodes and not by seconds, so that a fit on "
        "one thread is exactly reproducible unless --time-limit ends it first (margot, hfs, sfs, local)",
    )
    group.add_argument("--gap", type=float, metavar="X", help="stop if the gap is at most this share (0.0001)")
    group.add_argument(
        "--engine", metavar="NAME", help="engine that trains the tree (auto); margotree engines lists them"
    )
    group.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="number of threads, -1 for all cores (1; fit without a model: -1)",
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (0)")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add ``--scheduler``."""
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="run the search on the workers of a Dask cluster (tcp://HOST:PORT), or in --jobs processes on this "
        "machine (processes); for margot, hfs and sfs",
    )


def resolve(args: argparse.Namespace) -> bool:
    """Set the model and the time limit that no option names; return whether both are the defaults of ``fit``.

    Without an option about the model or about a single fit this is a readable tree: at most three features per split,
    with depth, C and budget chosen by cross-validation on all cores.
    """
    is_plain = args.auto or not any(getattr(args, name, None) not in (None, False) for name in _OF_A_SINGLE_FIT)
    default = args.model is None and is_plain
    if args.model is None:
        args.model = "hfs" if is_plain or args.budget is not None else "margot"
        args.auto = is_plain
    if default and args.jobs is None:
        args.jobs = -1
    by_default = default and args.time_limit is BY_MODEL
    if args.time_limit is BY_MODEL:
        args.time_limit = CHOICE_SECONDS if default else TRAINING_SECONDS
    return by_default


def estimator(args: argparse.Namespace, samples: Samples, verbose: int) -> Any:
    """The estimator for these samples with the settings of the options, which must apply to the model."""
    import margotree

    if getattr(args, "auto", False):
        return cv_estimator(args, samples, verbose)
    model = MODELS[args.model]
    _check_task(args, samples)
    settings: dict[str, Any] = {
        "depth": depth(args), "time_limit": args.time_limit, "n_jobs": args.jobs, "random_state": args.seed,
        "verbose": verbose,
    }  # fmt: skip
    if not samples.is_numeric:
        settings["class_weight"] = _class_weight(args.class_weight, samples)
    for option, name in _PARAMETERS.items():
        value = getattr(args, option, None)
        if value is None or value is False:  # 0 is a value
            continue
        if option not in model.options | (_OF_NUMBERS if samples.is_numeric else frozenset()):
            raise CommandError(_not_applicable(option, args.model), USAGE)
        if option == "prune":
            if value == "auto":
                raise CommandError(
                    "--prune auto needs hyperparameters that are chosen; name a share or use --auto", USAGE
                )
            value = None if value == "no" else value
        settings[name] = None if option == "no_scale" else value
    if "round" in model.options and not samples.is_numeric:
        settings["round"] = _round_parameter(args)
    return getattr(margotree, model.class_for(samples, args.model))(**settings)


def _check_task(args: argparse.Namespace, samples: Samples) -> None:
    """Raise an error for an option that does not apply to the kind of the target."""
    kind, others = ("numbers", _OF_CLASSES) if samples.is_numeric else ("classes", _OF_NUMBERS)
    for option in sorted(others):
        if getattr(args, option, None) is not None:
            flag = "--" + option.replace("_", "-")
            raise CommandError(f"{flag} does not apply to a target of {kind}; leave it out", USAGE)


def depth(args: argparse.Namespace) -> int:
    """The depth of the options, by default 2."""
    return 2 if args.depth is None else int(args.depth)


def cv_estimator(args: argparse.Namespace, samples: Samples, verbose: int, folds: int = 5) -> Any:
    """The estimator that chooses by cross-validation the hyperparameters that no option fixes."""
    import margotree

    if args.model not in CV_MODELS:
        raise CommandError(
            f"the hyperparameters of --model {args.model} cannot be chosen with --auto; use --model "
            f"{' or '.join(CV_MODELS)}, or margotree tune with --grid",
            USAGE,
        )
    settings: dict[str, Any] = {
        "time_limit": args.time_limit, "n_jobs": args.jobs, "random_state": args.seed, "verbose": verbose, "cv": folds,
    }  # fmt: skip
    _check_task(args, samples)
    if samples.is_numeric:
        settings |= _lists_of_numbers(args)
    else:
        settings["class_weight"] = _class_weight(args.class_weight, samples)
    if args.depth is not None:
        settings["depths"] = [args.depth]
    for option, name in _PARAMETERS.items():
        value = getattr(args, option, None)
        if value is None or value is False:
            continue
        if option in _OF_NUMBERS or (samples.is_numeric and option == "budget"):
            continue
        if option not in MODELS[args.model].options | _OF_NUMBERS:
            raise CommandError(_not_applicable(option, args.model), USAGE)
        if option in _NOT_WITH_CV:
            flag = "--" + option.replace("_", "-")
            raise CommandError(
                f"{flag} cannot be used if hyperparameters are chosen by cross-validation; leave it out", USAGE
            )
        if option in _LIST_PARAMETERS:
            settings[_LIST_PARAMETERS[option]] = [value]
        else:
            settings[name] = None if option == "no_scale" or value == "no" else value
    if samples.is_numeric:
        return margotree.MargotRegressorCV(**settings)
    settings["round"] = _round_parameter(args)
    return getattr(margotree, f"{MODELS[args.model].cls}CV")(**settings)


def _lists_of_numbers(args: argparse.Namespace) -> dict[str, Any]:
    """The budgets, alphas, epsilons and losses that the regressor with cross-validation tries."""
    found: dict[str, Any] = {}
    if args.model != "margot":
        found["budgets"] = "auto" if args.model == "hfs" else [1]
    if args.budget is not None or args.leaf_budget is not None:
        split = args.leaf_budget if args.budget is None else args.budget
        found["budgets"] = [(split, split if args.leaf_budget is None else args.leaf_budget)]
    if args.model == "sfs" and args.alpha is None:
        found["alphas"] = "auto"
    if args.epsilon is not None:
        found["epsilons"] = [args.epsilon]
    if args.loss is not None:
        found["losses"] = [args.loss]
    return found


def _round_parameter(args: argparse.Namespace) -> str | int | None:
    """The parameter ``round`` for the option ``--round``, whose default is auto."""
    how: str | int | None = getattr(args, "round", None)
    return None if how == "no" else how or "auto"


#: The default time limits in seconds of the default model and of the others.
CHOICE_SECONDS, TRAINING_SECONDS = 10.0, 60.0
#: A time limit that the user has not set.
BY_MODEL: Any = object()
#: Options about a single fit, without a choice of hyperparameters.
_OF_A_SINGLE_FIT = (
    "depth", "C", "alpha", "loss", "gap", "engine", "node_limit", "max_weight", "scheduler", "proof",
    "min_leaf", "mu", "c1", "c2", "c3",
)  # fmt: skip

#: Models with a classifier that chooses its hyperparameters by cross-validation (``HFSMargotClassifierCV`` etc.).
CV_MODELS = ("margot", "hfs", "sfs")
#: Options that fix a hyperparameter, and the parameters of the CV classifiers that list its values.
_LIST_PARAMETERS = {"C": "Cs", "budget": "budgets", "alpha": "alphas"}
#: Options that the CV classifiers do not have.
_NOT_WITH_CV = frozenset({"node_limit", "max_weight", "scheduler"})

#: Options of some models, and the parameters that they set.
_PARAMETERS = {
    "C": "C", "budget": "budget", "alpha": "alpha", "band": "band", "max_weight": "max_weight", "engine": "engine",
    "gap": "gap", "node_limit": "node_limit", "scheduler": "scheduler", "min_leaf": "min_samples_leaf",
    "mu": "mu", "c1": "c1", "c2": "c2", "c3": "c3", "no_scale": "scale",
    "round": "round", "prune": "prune", "proba": "proba", "leaf_budget": "leaf_budget", "epsilon": "epsilon",
    "loss": "loss",
}  # fmt: skip


def _not_applicable(option: str, model: str) -> str:
    flag = "--" + option.replace("_", "-")
    if option in _OF_NUMBERS:
        return f"{flag} is for a numeric target"
    models = ", ".join(name for name, other in MODELS.items() if option in other.options)
    hint = " (its penalty of margin violations is --c1)" if (option, model) == ("C", "mmsvm") else ""
    return f"{flag} does not apply to --model {model}{hint}; models with this option: {models}"


def _class_weight(text: str | None, samples: Samples) -> dict[Any, float] | str | None:
    if text is None or text == "balanced":
        return text
    label = {str(c): c for c in sorted(set(samples.y.tolist()))}
    try:
        given = {name.strip(): float(factor) for name, factor in (part.rsplit("=", 1) for part in text.split(","))}
        return {label[name]: factor for name, factor in given.items()}
    except (ValueError, KeyError):
        known = ", ".join(label)
        raise CommandError(
            f"--class-weight must be balanced, or LABEL=FACTOR[,LABEL=FACTOR...] with the labels {known}; got {text!r}",
            USAGE,
        ) from None


class _FormerName(argparse.Action):
    """A deprecated option: sets the value of its new name and prints a note."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        print_once(f"{option} is deprecated and removed in 0.3; use --{self.dest}")
        setattr(namespace, self.dest, values)


def _band(text: str) -> float | str:
    try:
        return "auto" if text == "auto" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number such as 0.001, or auto, got {text!r}") from None


def _rounding(text: str) -> str | int:
    if text in {"auto", "points", "no"}:
        return text
    if text.isdigit() and 1 <= int(text) <= 9:
        return int(text)
    raise argparse.ArgumentTypeError(f"expected auto, points, no, or a number of digits from 1 to 9, got {text!r}")


def _pruning(text: str) -> str | float:
    if text in {"auto", "no"}:
        return text
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"expected a share from 0 to 1 such as 0.003, auto, or no, got {text!r}")
    return share


def _leaf_size(text: str) -> int | float:
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a number of samples or a share such as 0.05, got {text!r}"
        ) from None
