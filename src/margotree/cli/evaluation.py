"""Estimate the accuracy on new rows, by a part of the rows held out or by cross-validation."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from margotree.cli import console, exit_codes, model_options
from margotree.cli.exit_codes import CommandError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from margotree.measures import ClassificationMeasures
    from margotree.table import Samples

    Rows = NDArray[np.int64]


#: The name of the trained model among the methods.
THIS_TREE = "this tree"
#: The name of the prediction of the most frequent class, with the class shares as probabilities.
MAJORITY = "most frequent class"


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The accuracy on rows that were not used in training.

    ``methods`` has all measures of the tree, of predicting the class shares, of a CART tree of the same depth and
    of logistic regression, trained on the same rows. ``majority`` is the accuracy of always predicting the most
    frequent class; ``lowest`` and ``highest`` are the accuracies of the worst and the best fold.
    """

    method: str
    fits: int
    rows: int
    accuracy: float
    lowest: float
    highest: float
    majority: float
    methods: dict[str, ClassificationMeasures]

    def record(self) -> dict[str, Any]:
        """The fields as JSON values."""
        numbers = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "methods"}
        return numbers | {"methods": {name: one.record() for name, one in self.methods.items()}}

    def details(self) -> str:
        """The measures of the tree beside other methods, and by class."""
        from margotree.measures import imbalance_note, summary_table

        own = self.methods[THIS_TREE]
        parts = [summary_table(self.methods), own.class_table(), imbalance_note(own)]
        return "\n\n".join(part for part in parts if part)

    def summary(self) -> str:
        """One line for the user."""
        always = f"always predicting the most frequent class: {self.majority:.1%}"
        if self.method == "holdout":
            return (
                f"on new rows: accuracy {self.accuracy:.1%} on {self.rows:,} rows held out, of a tree trained in the "
                f"same way on the other rows ({always})"
            )
        return (
            f"on new rows: accuracy {self.accuracy:.1%} in {self.fits}-fold cross-validation of trees trained in the "
            f"same way, {self.lowest:.1%} to {self.highest:.1%} by fold ({always})"
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--holdout`` and ``--cv``."""
    description = "Further fits, which take up to --time-limit in addition; the saved tree is trained on all rows."
    group = parser.add_argument_group("accuracy on new rows", description).add_mutually_exclusive_group()
    group.add_argument("--holdout", type=_share, metavar="SHARE", help="hold out this share of the rows, such as 0.2")
    group.add_argument("--cv", type=_folds, metavar="N", help="cross-validation with N folds")


def check(args: argparse.Namespace, samples: Samples) -> None:
    """Raise an error before training if a class has too few rows for the measurement."""
    if not _is_requested(args):
        return
    least = 2 if args.cv is None else args.cv
    few = [f"{label} ({n})" for label, n in Counter(samples.y.tolist()).items() if n < least]
    if few:
        option = f"--holdout {args.holdout:g}" if args.cv is None else f"--cv {args.cv}"
        raise CommandError(
            f"{option} needs at least {least} rows of every class, but there are fewer of {', '.join(few)}",
            exit_codes.DATA,
        )


def measure(args: argparse.Namespace, samples: Samples) -> Measurement | None:
    """The requested measurement; None if none is requested, or after Ctrl-C."""
    if not _is_requested(args):
        return None
    import numpy as np

    from margotree.measures import measure_classification
    from margotree.notices import without_fit_warnings

    parts = list(_parts(args, samples))
    seconds = None if args.time_limit is None else args.time_limit / len(parts)
    classes = sorted(set(samples.y.tolist()))
    predicted: dict[str, Any] = {}
    for k, (train, test) in enumerate(parts):
        console.print_status(f"measuring the accuracy on new rows: fit {k + 1} of {len(parts)}", quiet=args.quiet)
        model = model_options.estimator(argparse.Namespace(**{**vars(args), "time_limit": seconds}), classes, verbose=0)
        weight = None if samples.weight is None else samples.weight[train]
        with without_fit_warnings():
            model.fit(samples.X[train], samples.y[train], sample_weight=weight)
        if model.certificate_.stopped == "interrupted":
            console.print_status("interrupted: the accuracy on new rows is not measured", quiet=args.quiet)
            return None
        for name, other in {THIS_TREE: model, **_others(model, samples.X[train], samples.y[train], weight)}.items():
            labels, shares = predicted.setdefault(
                name, (np.empty_like(samples.y), np.zeros((len(samples.y), len(classes))))
            )
            labels[test] = other.predict(samples.X[test])
            shares[test] = other.predict_proba(samples.X[test])
    right = predicted[THIS_TREE][0] == samples.y
    by_fold = [float(right[test].mean()) for _, test in parts]
    unseen = np.concatenate([test for _, test in parts])
    methods = {
        name: measure_classification(samples.y[unseen], labels[unseen], shares[unseen], classes)
        for name, (labels, shares) in predicted.items()
    }
    return Measurement(
        method="holdout" if args.cv is None else "cross-validation", fits=len(parts), rows=len(unseen),
        accuracy=float(right[unseen].mean()), lowest=min(by_fold), highest=max(by_fold),
        majority=methods[MAJORITY].accuracy, methods=methods,
    )  # fmt: skip


def _others(model: Any, X: Any, y: Any, weight: Any) -> dict[str, Any]:
    """Simple methods, trained on the same rows."""
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler
    from sklearn.tree import DecisionTreeClassifier

    depth = model.tree_.depth
    linear = make_pipeline(MinMaxScaler(), LogisticRegression(max_iter=1000))
    linear.fit(X, y, logisticregression__sample_weight=weight)
    return {
        MAJORITY: DummyClassifier(strategy="prior").fit(X, y),
        f"CART of depth {depth}": DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y, weight),
        "logistic regression": linear,
    }


def most_frequent(y: NDArray[Any]) -> tuple[Any, float]:
    """The most frequent label and its share."""
    label, count = Counter(y.tolist()).most_common(1)[0]
    return label, count / len(y)


def _is_requested(args: argparse.Namespace) -> bool:
    return args.holdout is not None or args.cv is not None


def _parts(args: argparse.Namespace, samples: Samples) -> Iterator[tuple[Rows, Rows]]:
    """Pairs of training and test rows, stratified by class."""
    import numpy as np
    from sklearn.model_selection import StratifiedKFold, train_test_split

    rows = np.arange(len(samples.y))
    if args.cv is not None:
        yield from StratifiedKFold(args.cv, shuffle=True, random_state=args.seed).split(rows, samples.y)
        return
    try:
        train, test = train_test_split(rows, test_size=args.holdout, random_state=args.seed, stratify=samples.y)
    except ValueError as error:
        raise CommandError(f"--holdout {args.holdout:g} of {len(rows)} rows: {error}", exit_codes.DATA) from None
    yield train, test


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"expected a share between 0 and 1, such as 0.2, got {text!r}")
    return value


def _folds(text: str) -> int:
    if not text.isdigit() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"expected a whole number of folds, at least 2, got {text!r}")
    return int(text)
