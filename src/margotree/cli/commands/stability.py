"""Train a tree again on bootstrap samples of a file, and compare the trees.

Prints how often features and splits return, and on how many rows the predictions agree. The options are those of fit;
the hyperparameters are fixed by them, as with fit --model. One refit takes up to --time-limit.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

from margotree.cli import console, exit_codes, model_options, options, output_files
from margotree.cli.commands.fit import named, read_training
from margotree.cli.exit_codes import CommandError

HELP = "refit a tree on bootstrap samples: how often features and splits return"

#: Seconds of one refit.
_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", help="CSV (.csv, .csv.gz, - for standard input), Excel (.xlsx) or Parquet file")
    parser.add_argument("--refits", type=int, default=20, metavar="N", help="number of refits (20)")
    parser.add_argument("--plot", metavar="FILE", help="draw the shares of the features: .png, .svg or .pdf")
    output_files.add_force(parser)
    options.add_columns(parser)
    model_options.add_model(parser)
    model_options.add_search(parser, _SECONDS)
    options.add_reading(parser)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    from margotree.model_selection.stability import compare_refits

    if args.refits < 2:
        raise CommandError(f"--refits must be at least 2, got {args.refits}", exit_codes.USAGE)
    if args.plot:
        output_files.check_output(args.plot, inputs=(args.data,), force=args.force, option="--plot")
    args.model, args.auto, args.scheduler = args.model or ("margot" if args.budget is None else "hfs"), False, None
    console.print_status(f"reading {args.data}", quiet=args.quiet)
    encoding, samples, notes = read_training(args)
    jobs, args.jobs = args.jobs, None  # refits run in parallel, each on one thread

    def make() -> Any:
        model = model_options.estimator(args, samples, verbose=0)
        model.count_columns(encoding.groups)
        return _Named(model, encoding)

    def progress(done: int) -> None:
        console.print_status(f"{done} of {args.refits} refits", quiet=args.quiet)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = compare_refits(
            make, samples.X, samples.y, sample_weight=samples.weight, n_refits=args.refits, n_jobs=jobs,
            random_state=args.seed, progress=progress,
        )  # fmt: skip
    notes = [*notes, *dict.fromkeys(str(one.message) for one in caught)]
    if args.plot:
        _draw(found, args.plot)
    record = found.record() | ({"plot": args.plot} if args.plot else {})
    console.print_notes(notes, quiet=args.quiet)
    console.print_result(record, str(found), as_json=args.json)
    return exit_codes.OK


class _Named:
    """An estimator whose tree has the names of the features of the file."""

    def __init__(self, model: Any, encoding: Any) -> None:
        self.model, self.encoding = model, encoding

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> _Named:
        self.model.fit(X, y, sample_weight=sample_weight)
        self.tree_ = named(self.model.tree_, self.encoding)
        return self

    def predict(self, X: Any) -> Any:
        return self.model.predict(X)

    def __sklearn_tags__(self) -> Any:
        return self.model.__sklearn_tags__()


def _draw(found: Any, path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from margotree.plots import plot_stability
    from margotree.plots.figures import figure_of, save_figure

    save_figure(figure_of(plot_stability(found)), path)
