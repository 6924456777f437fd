"""Choose hyperparameters by cross-validation, train with them and save the tree.

For margot, hfs and sfs depth, C per level and budget are chosen by MargotClassifierCV and its kin: settings that fall
behind are given up early, and options such as --depth 2 fix what they name. With --grid, --paper (the grid of the
paper), --rule features or --resume FILE (every fit is kept there the moment it is done, and not repeated), and for the
other models, every setting is fitted on every fold instead. Ctrl-C ends the search: of the settings that are complete
by then one is chosen and trained.
"""

from __future__ import annotations

import argparse
import dataclasses
import warnings
from typing import TYPE_CHECKING, Any

from margotree.cli import console, exit_codes, model_options, options, output_files
from margotree.cli.commands.fit import chosen, default_out, fitted, read_training
from margotree.cli.exit_codes import CommandError
from margotree.cli.saved_trees import with_table
from margotree.progress import recording

if TYPE_CHECKING:
    from margotree.cli.output_files import Kept
    from margotree.table import Encoding, Samples
    from margotree.tree import Tree

HELP = "choose hyperparameters by cross-validation"

_C = [10.0**k for k in range(-3, 4)]
_SMALL: dict[str, dict[str, list[Any]]] = {
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


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", help="CSV (- for standard input), Excel or Parquet file")
    parser.add_argument("--out", metavar="FILE", help="where to save the tree (the data file's name with .tree.json)")
    output_files.add_force(parser)
    group = parser.add_argument_group("the choice")
    group.add_argument("--grid", metavar="NAME=V,V,...", action="append", default=[],
                       help="values to try, like C=0.1,1,10 or C=1:10,10:10 (one per level); repeatable")  # fmt: skip
    group.add_argument("--paper", action="store_true", help="the paper's grid; it has hundreds of settings")
    group.add_argument("--rule", choices=("accuracy", "features"), default="accuracy",
                       help="take the most accurate setting, or the one with the fewest features near it")  # fmt: skip
    group.add_argument("--folds", type=int, default=4, metavar="N", help="folds of the cross-validation (4)")
    group.add_argument("--fit-time-limit", type=options.seconds, default=10.0, metavar="T",
                       help="with a grid, most per fit on a fold (10); the last fit gets what is left")  # fmt: skip
    group.add_argument("--resume", metavar="FILE", help="keep every fit in this file, and go on with it")
    options.add_columns(parser)
    model_options.add_model(parser)
    model_options.add_search(parser, time_limit=600.0)
    options.add_reading(parser)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    out = args.out or default_out(args.data)
    output_files.may_write(out, inputs=(args.data, args.resume), force=args.force)
    if args.resume and output_files.same_file(args.resume, args.data):
        raise CommandError(f"{args.data} is the table; name another file with --resume", exit_codes.DATA)
    console.say(f"reading {args.data}", quiet=args.quiet)
    encoding, samples, _ = read_training(args)
    if _by_itself(args):
        return _choose(args, encoding, samples, out)
    search = _search(args, samples)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        search.fit(samples.X, samples.y, sample_weight=samples.weight)
    # scikit-learn's warning about scores that are not finite repeats ours about fits undone.
    told = dict.fromkeys(str(warning.message) for warning in warned if "non-finite" not in str(warning.message))
    console.notes(told, quiet=args.quiet)
    best = search.best_estimator_
    tree, kept, late = _keep(best.tree_, encoding, samples, out)
    _tell(args, search, tree, kept)
    cut = late or search.interrupted_ or (tree.certificate is not None and tree.certificate.stopped == "interrupted")
    return kept.code or (exit_codes.INTERRUPTED if cut else exit_codes.OK)


def _keep(tree: Tree, encoding: Encoding, samples: Samples, out: str) -> tuple[Tree, Kept, bool]:
    """The tree with the description of its table, where it is saved, and whether Ctrl-C came while it was written."""
    from margotree.engines.run_control import holding_ctrl_c

    with holding_ctrl_c() as interrupted:
        tree = with_table(dataclasses.replace(tree, feature_names=encoding.features), encoding, samples)
        return tree, output_files.keep_tree(tree, out), interrupted.is_set()


def _by_itself(args: argparse.Namespace) -> bool:
    """Whether the model's own classifier makes the choice: nobody asks for other values, another rule or a file."""
    asked = args.grid or args.paper or args.resume or args.rule != "accuracy"
    return args.model in model_options.CHOOSERS and not asked


def _choose(args: argparse.Namespace, encoding: Any, samples: Any, out: str) -> int:
    """The choice by the CV classifier: depths, schedules of C and budgets raced on folds."""
    verbose = 0 if args.quiet else 1
    model = model_options.chooser(args, classes=sorted(set(samples.y.tolist())), verbose=verbose, folds=args.folds)
    with recording() as events, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        late = fitted(model, samples, events)
    console.notes(dict.fromkeys(str(warning.message) for warning in warned), quiet=args.quiet)
    tree, kept, also_late = _keep(model.tree_, encoding, samples, out)
    lines = [
        {
            "params": params,
            "accuracy": _number(_mean(row)),
            "sd": _number(_spread(row)),
            "features": None,
            "cut_off": bool(cut_off.any()),
        }
        for params, row, cut_off in zip(model.settings_, model.scores_, model.cut_off_, strict=True)
    ]
    _show(args, lines, model.settings_.index(chosen(model)), chosen(model), model.interrupted_, tree, kept)
    cut = late or also_late or model.interrupted_ or model.certificate_.stopped == "interrupted"
    return kept.code or (exit_codes.INTERRUPTED if cut else exit_codes.OK)


def _mean(scores: Any) -> float:
    """Over the folds seen; NaN if the setting was given up before the last."""
    return float(scores.mean()) if len(scores) else float("nan")


def _spread(scores: Any) -> float:
    return float(scores.std()) if len(scores) else float("nan")


def _search(args: argparse.Namespace, samples: Any) -> Any:
    from margotree.model_selection import RULES, TreeSearchCV, stratified_folds

    fit = argparse.Namespace(**{**vars(args), "time_limit": args.fit_time_limit, "jobs": None})
    estimator = model_options.estimator(fit, classes=sorted(set(samples.y.tolist())), verbose=0)
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
        return dict(_asked(text, estimator) for text in args.grid)
    if args.paper:
        from margotree.paper.tuning import paper_grid

        most = min(3, n_features)
        return paper_grid(_TUNING_NAMES.get(args.model, args.model), model_options.depth(args), most_features=most)
    grid = dict(_SMALL[args.model])
    if "budget" in grid:
        grid["budget"] = [b for b in grid["budget"] if b <= n_features]
    return grid


def _asked(text: str, estimator: Any) -> tuple[str, list[Any]]:
    name, _, values = text.partition("=")
    name = _PARAMETERS.get(name.replace("-", "_"), name.replace("-", "_"))
    if not values or name not in estimator.get_params():
        raise CommandError(f"--grid is NAME=V,V,... with a parameter of the model; got {text!r}", exit_codes.USAGE)
    try:
        return name, [_value(part) for part in values.split(",")]
    except ValueError:
        raise CommandError(
            f"--grid {text}: values are numbers, or numbers joined by : for one per level", exit_codes.USAGE
        ) from None


def _value(text: str) -> Any:
    parts = [int(p) if p.lstrip("-").isdigit() else float(p) for p in text.split(":")]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _tell(args: argparse.Namespace, search: Any, tree: Tree, kept: Kept) -> None:
    found = search.cv_results_
    lines: list[dict[str, Any]] = [
        {
            "params": params,
            "accuracy": _number(found["mean_test_accuracy"][k]),
            "sd": _number(found["std_test_accuracy"][k]),
            "features": _number(found["mean_test_n_features"][k]),
            "cut_off": bool(found["cut_off"][k]),
        }
        for k, params in enumerate(found["params"])
    ]
    _show(args, lines, search.best_index_, search.best_params_, search.interrupted_, tree, kept)


def _show(
    args: argparse.Namespace,
    lines: list[dict[str, Any]],
    best: int,
    params: dict[str, Any],
    interrupted: bool,
    tree: Tree,
    kept: Kept,
) -> None:
    record = {
        "tree": kept.path,
        "not_written": list(kept.troubles),
        "best_params": params,
        "validation_accuracy": lines[best]["accuracy"],
        "settings": lines,
        "interrupted": interrupted,
        "certificate": None if tree.certificate is None else tree.certificate.to_dict(),
    }
    text = [
        *_table(lines, best),
        "",
        "chosen: " + ", ".join(f"{name} {value}" for name, value in params.items()),
        "",
        tree.export_text(),
        "",
        str(tree.certificate),
        "",
    ]
    console.result(record, "\n".join([*text, kept.words()]), as_json=args.json)


def _table(lines: list[dict[str, Any]], best: int, most: int = 30) -> list[str]:
    """The settings by accuracy, the chosen one marked."""
    order = sorted(range(len(lines)), key=lambda k: (k != best, -(lines[k]["accuracy"] or 0.0)))
    shown = ["  accuracy      sd  features  setting"]
    for k in order[:most]:
        line = lines[k]
        setting = ", ".join(f"{name} {value}" for name, value in line["params"].items())
        mark = "*" if k == best else " "
        if line["accuracy"] is None:
            why = "cut off by the time" if line["cut_off"] else "given up, or no time"
            shown.append(f"{mark} {why:<24}  {setting}")
        else:
            features = "" if line["features"] is None else f"{line['features']:.1f}"
            shown.append(f"{mark} {line['accuracy']:8.1%} {line['sd']:7.1%} {features:>9}  {setting}")
    return shown + ([f"  and {len(lines) - most} more"] if len(lines) > most else [])


def _number(value: Any) -> float | None:
    return float(value) if value == value else None
