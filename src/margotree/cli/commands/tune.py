"""Choose hyperparameters by cross-validation, train with them and save the tree.

For margot, hfs and sfs a classifier such as MargotClassifierCV chooses depth, C per level and budget: poor settings are
abandoned after a few folds, and options such as --depth 2 fix a value. With --grid, --paper (the grid of the paper),
--rule features or --resume FILE (fits are saved in the file and not repeated), and for other models, every setting is
fitted on every fold. After Ctrl-C the choice is made among the complete settings.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import warnings
from typing import TYPE_CHECKING, Any

from margotree.cli import console, exit_codes, model_options, options, output_files
from margotree.cli.commands.fit import chosen_settings, default_out, fit_model, named, read_training
from margotree.cli.exit_codes import CommandError
from margotree.cli.saved_trees import is_of_numbers, with_table
from margotree.progress import recording

if TYPE_CHECKING:
    from margotree.cli.output_files import SavedFile
    from margotree.table import Encoding, Samples
    from margotree.tree import HyperplaneTree

HELP = "choose hyperparameters by cross-validation"

_C = [10.0**k for k in range(-3, 4)]
_DEFAULT_GRIDS: dict[str, dict[str, list[Any]]] = {
    "margot": {"C": _C},
    "hfs": {"C": _C[1:-1], "budget": [1, 2, 3]},
    "sfs": {"C": _C[1:-1], "budget": [1], "alpha": [1.0, 8.0, 64.0]},
    "local": {"C": _C},
    "oct1": {"alpha": [0.0, 0.01, 0.03, 0.1, 0.3]},
    "octh": {"alpha": [0.0, 0.01, 0.03, 0.1, 0.3]},
    "mmsvm": {"c1": _C, "c3": [0.01, 1.0]},
}
_TUNING_NAMES = {"local": "local_svm", "oct1": "oct_1", "octh": "oct_h", "mmsvm": "mm_svm_oct"}
_PARAMETERS = {"min_leaf": "min_samples_leaf"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", help="CSV (- for standard input), Excel or Parquet file")
    parser.add_argument("--out", metavar="FILE", help="file for the tree (the name of the data file with .tree.json)")
    output_files.add_force(parser)
    group = parser.add_argument_group("choice of hyperparameters")
    group.add_argument(
        "--grid",
        metavar="NAME=V,V,...",
        action="append",
        default=[],
        help="values to try, such as C=0.1,1,10 or C=1:10,10:10 (one per level); repeatable",
    )
    group.add_argument("--paper", action="store_true", help="use the grid of the paper, which has hundreds of settings")
    group.add_argument("--rule", choices=("accuracy", "features"), default="accuracy",
                       help="choose the most accurate setting, or among settings of similar accuracy the one "
                       "with the fewest features (accuracy)")  # fmt: skip
    group.add_argument("--folds", type=int, default=4, metavar="N", help="folds of the cross-validation (4)")
    group.add_argument(
        "--fit-time-limit",
        type=options.seconds,
        default=10.0,
        metavar="T",
        help="with a grid: time limit per fit on a fold (10); the final fit has the remaining time",
    )
    group.add_argument(
        "--resume", metavar="FILE", help="save every fit in this file, and continue with the fits that it holds"
    )
    options.add_columns(parser)
    model_options.add_model(parser)
    model_options.add_search(parser, time_limit=600.0)
    options.add_reading(parser)
    options.add_output(parser)
    options.add_verbose(parser)


def run(args: argparse.Namespace) -> int:
    if args.model is None:
        args.model = "margot" if _requests_grid(args) else "hfs"
    out = args.out or default_out(args.data)
    output_files.check_output(out, inputs=(args.data, args.resume), force=args.force)
    if args.resume and output_files.same_file(args.resume, args.data):
        raise CommandError(f"{args.data} is the data file; name another file with --resume", exit_codes.DATA)
    console.print_status(f"reading {args.data}", quiet=args.quiet)
    encoding, samples, _ = read_training(args)
    if samples.is_numeric and not _uses_cv_classifier(args):
        raise CommandError(
            "a numeric target is tuned by cross-validation of margot, hfs or sfs; leave out --grid, --rule, --paper "
            "and --resume, and name one of these models",
            exit_codes.USAGE,
        )
    if _uses_cv_classifier(args):
        return _run_cv_classifier(args, encoding, samples, out)
    search = _search(args, samples)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(samples.X, samples.y, sample_weight=samples.weight)
    # scikit-learn's warning about scores that are not finite repeats the warning about unfinished fits.
    messages = dict.fromkeys(str(warning.message) for warning in caught if "non-finite" not in str(warning.message))
    console.print_notes(messages, quiet=args.quiet)
    best = search.best_estimator_
    tree, saved, interrupted_after_search = _save(best.tree_, encoding, samples, out)
    _print_search_result(args, search, tree, saved)
    interrupted = (
        interrupted_after_search
        or search.interrupted_
        or (tree.certificate is not None and tree.certificate.stopped == "interrupted")
    )
    return saved.code or (exit_codes.INTERRUPTED if interrupted else exit_codes.OK)


def _save(
    tree: HyperplaneTree, encoding: Encoding, samples: Samples, out: str
) -> tuple[HyperplaneTree, SavedFile, bool]:
    """Save the tree with the description of its table; return the tree, its file, and whether Ctrl-C came meanwhile."""
    from margotree.engines.run_control import holding_ctrl_c

    with holding_ctrl_c() as interrupted:
        tree = with_table(named(tree, encoding), encoding, samples)
        return tree, output_files.save_tree(tree, out), interrupted.is_set()


def _uses_cv_classifier(args: argparse.Namespace) -> bool:
    """Whether a CV classifier makes the choice."""
    return args.model in model_options.CV_MODELS and not _requests_grid(args)


def _requests_grid(args: argparse.Namespace) -> bool:
    """Whether an option requests a grid, another rule or a file of fits."""
    return bool(args.grid or args.paper or args.resume or args.rule != "accuracy")


def _run_cv_classifier(args: argparse.Namespace, encoding: Any, samples: Any, out: str) -> int:
    """Choose the hyperparameters with a CV classifier, and train, save and print the tree."""
    verbose = 0 if args.quiet else 1
    model = model_options.cv_estimator(args, samples, verbose=verbose, folds=args.folds)
    model.count_columns(encoding.groups)
    with recording() as events, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        interrupted_after_search = fit_model(model, samples, events)
    console.print_notes(dict.fromkeys(str(warning.message) for warning in caught), quiet=args.quiet)
    tree, saved, interrupted_while_saving = _save(model.tree_, encoding, samples, out)
    score = "r2" if samples.is_numeric else "accuracy"
    settings = [
        {"params": params, score: _number(_mean(row)), "sd": _number(_spread(row)), "cut_off": bool(cut_off.any())}
        for params, row, cut_off in zip(model.settings_, model.scores_, model.cut_off_, strict=True)
    ]
    _print_result(args, settings, chosen_settings(model), model.best_score_, model, tree, saved)
    interrupted = (
        interrupted_after_search
        or interrupted_while_saving
        or model.interrupted_
        or model.certificate_.stopped == "interrupted"
    )
    return saved.code or (exit_codes.INTERRUPTED if interrupted else exit_codes.OK)


def _mean(scores: Any) -> float:
    """The mean score; NaN if the setting was abandoned before the last fold."""
    return float(scores.mean()) if len(scores) else float("nan")


def _spread(scores: Any) -> float:
    return float(scores.std()) if len(scores) else float("nan")


def _search(args: argparse.Namespace, samples: Any) -> Any:
    from margotree.model_selection import RULES, TreeSearchCV, stratified_folds

    fit = argparse.Namespace(**{**vars(args), "time_limit": args.fit_time_limit, "jobs": None})
    estimator = model_options.estimator(fit, samples, verbose=0)
    return TreeSearchCV(
        estimator,
        _grid(args, estimator, samples.X.shape[1]),
        refit=RULES[args.rule],
        cv=stratified_folds(args.folds),
        n_jobs=args.jobs or 1,
        time_limit=args.time_limit,
        resume=args.resume,
        name=args.data,
        verbose=0 if args.quiet else 1,
    )


def _grid(args: argparse.Namespace, estimator: Any, n_features: int) -> dict[str, list[Any]]:
    if args.grid:
        return dict(_parse_grid_option(text, estimator) for text in args.grid)
    if args.paper:
        from margotree.paper.tuning import paper_grid

        most = min(3, n_features)
        return paper_grid(_TUNING_NAMES.get(args.model, args.model), model_options.depth(args), most_features=most)
    grid = dict(_DEFAULT_GRIDS[args.model])
    if "budget" in grid:
        grid["budget"] = [b for b in grid["budget"] if b <= n_features]
    return grid


def _parse_grid_option(text: str, estimator: Any) -> tuple[str, list[Any]]:
    name, _, values = text.partition("=")
    name = _PARAMETERS.get(name.replace("-", "_"), name.replace("-", "_"))
    if not values or name not in estimator.get_params():
        raise CommandError(
            f"--grid must be NAME=V,V,... with a parameter of the model, such as C=0.1,1,10; got {text!r}",
            exit_codes.USAGE,
        )
    try:
        return name, [_value(part) for part in values.split(",")]
    except ValueError:
        raise CommandError(
            f"--grid {text}: values must be numbers, or numbers joined by : (one per level)", exit_codes.USAGE
        ) from None


def _value(text: str) -> Any:
    parts = [int(p) if p.lstrip("-").isdigit() else float(p) for p in text.split(":")]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _print_search_result(args: argparse.Namespace, search: Any, tree: HyperplaneTree, saved: SavedFile) -> None:
    results = search.cv_results_
    settings: list[dict[str, Any]] = [
        {
            "params": params,
            "accuracy": _number(results["mean_test_accuracy"][k]),
            "sd": _number(results["std_test_accuracy"][k]),
            "features": _number(results["mean_test_n_features"][k]),
            "cut_off": bool(results["cut_off"][k]),
        }
        for k, params in enumerate(results["params"])
    ]
    _print_result(args, settings, search.best_params_, search.best_score_, search, tree, saved)


def _print_result(
    args: argparse.Namespace,
    settings: list[dict[str, Any]],
    best: dict[str, Any],
    accuracy: float,
    search: Any,
    tree: HyperplaneTree,
    saved: SavedFile,
) -> None:
    """Print the frontier of a fitted CV classifier or search, the tree and its file."""
    record = {
        "tree": saved.path,
        "not_written": list(saved.write_errors),
        "best_params": best,
        f"validation_{'r2' if is_of_numbers(tree) else 'accuracy'}": _number(accuracy),
        "frontier": [_point_record(point) for point in search.frontier_],
        "settings": settings,
        "interrupted": search.interrupted_,
        "certificate": None if tree.certificate is None else tree.certificate.to_dict(),
    }
    text = [
        *_frontier_lines(search.frontier_, settings),
        "",
        "chosen: " + ", ".join(f"{name} {value}" for name, value in best.items()),
        "",
        tree.export_text(verbose=args.verbose),
        "",
        str(tree.certificate) if args.verbose or tree.certificate is None else tree.certificate.summary(),
        "",
    ]
    console.print_result(record, "\n".join([*text, saved.summary()]), as_json=args.json)


def _point_record(point: Any) -> dict[str, Any]:
    """A point of the frontier as JSON values."""
    record = dataclasses.asdict(point)
    return {**record, "standard_error": _number(point.standard_error) if point.standard_error < math.inf else None}


def _frontier_lines(frontier: Any, settings: list[dict[str, Any]]) -> list[str]:
    """The settings of which no smaller tree is better, and how many others there are."""
    lines = str(frontier).splitlines() if frontier else []
    others = len(frontier) - len(frontier.shown())
    cut_off = sum(setting["cut_off"] for setting in settings)
    unfinished = len(settings) - len(frontier) - cut_off
    if others:
        lines.append(f"  {others} other settings have no better score with as few numbers")
    if cut_off:
        lines.append(f"  {cut_off} settings: a fit was stopped by the time limit")
    if unfinished > 0:
        lines.append(f"  {unfinished} settings: no time for a fit")
    return lines


def _number(value: Any) -> float | None:
    return float(value) if value == value else None
