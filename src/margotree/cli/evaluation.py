"""Estimate the accuracy on new rows, by a part of the rows held out or by cross-validation."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from margotree.cli import console, exit_codes, model_options
from margotree.cli.exit_codes import CommandError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from margotree.measures import ClassificationMeasures, RegressionMeasures
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


@dataclass(frozen=True, kw_only=True)
class NumberMeasurement:
    """The errors of predicted numbers on rows that were not used in training.

    ``methods`` has the measures of the tree, of predicting the mean, of a CART tree of the same depth and of a linear
    model, trained on the same rows. ``lowest`` and ``highest`` are the R2 of the worst and the best fold.
    """

    method: str
    fits: int
    rows: int
    lowest: float
    highest: float
    methods: dict[str, RegressionMeasures]

    def record(self) -> dict[str, Any]:
        """The fields as JSON values."""
        numbers = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "methods"}
        own = self.methods[THIS_TREE].record()
        return numbers | own | {"methods": {name: one.record() for name, one in self.methods.items()}}

    def details(self) -> str:
        """The measures of the tree beside other methods."""
        from margotree.measures import regression_table

        return regression_table(self.methods)

    def summary(self) -> str:
        """One line for the user."""
        own = self.methods[THIS_TREE]
        if self.method == "holdout":
            where = f"on {self.rows:,} rows held out, of a tree trained in the same way on the other rows"
        else:
            folds = f"R2 {self.lowest:.3f} to {self.highest:.3f} by fold"
            where = f"in {self.fits}-fold cross-validation of trees trained in the same way, {folds}"
        return f"on new rows: {own.text()} {where}"


def noun(samples: Samples) -> str:
    """The word for what is measured."""
    return "error" if samples.is_numeric else "accuracy"


def training_record(tree: Any, samples: Samples) -> dict[str, Any]:
    """The measures on the training rows as JSON values."""
    if samples.is_numeric:
        from margotree.measures import measure_regression

        return measure_regression(samples.y, tree.predict(samples.X)).record()
    accuracy = float((tree.predict(samples.X) == samples.y).mean())
    return {"accuracy": accuracy, "majority": most_frequent(samples.y)[1]}


def training_text(tree: Any, samples: Samples) -> str:
    """The measures on the training rows on one line."""
    if samples.is_numeric:
        from margotree.measures import measure_regression

        return f"on the training rows: {measure_regression(samples.y, tree.predict(samples.X)).text()}"
    label, share = most_frequent(samples.y)
    accuracy = float((tree.predict(samples.X) == samples.y).mean())
    return f"on the training rows: accuracy {accuracy:.1%} (always predicting {label}: {share:.1%})"


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
    if samples.is_numeric:
        if len(samples.y) < 2 * (args.cv or 2):
            option = f"--holdout {args.holdout:g}" if args.cv is None else f"--cv {args.cv}"
            raise CommandError(f"{option} needs at least {2 * (args.cv or 2)} rows", exit_codes.DATA)
        return
    least = 2 if args.cv is None else args.cv
    few = [f"{label} ({n})" for label, n in Counter(samples.y.tolist()).items() if n < least]
    if few:
        option = f"--holdout {args.holdout:g}" if args.cv is None else f"--cv {args.cv}"
        raise CommandError(
            f"{option} needs at least {least} rows of every class, but there are fewer of {', '.join(few)}",
            exit_codes.DATA,
        )


def measure(
    args: argparse.Namespace, samples: Samples, groups: Sequence[int]
) -> Measurement | NumberMeasurement | None:
    """The requested measurement; None if none is requested, or after Ctrl-C.

    ``groups`` has the column of each feature, which budgets count.
    """
    if not _is_requested(args):
        return None
    import numpy as np

    from margotree.notices import without_fit_warnings

    parts = list(_parts(args, samples))
    seconds = None if args.time_limit is None else args.time_limit / len(parts)
    predicted = _Numbers(samples) if samples.is_numeric else _Labels(samples)
    for k, (train, test) in enumerate(parts):
        console.print_status(
            f"measuring the {noun(samples)} on new rows: fit {k + 1} of {len(parts)}", quiet=args.quiet
        )
        model = model_options.estimator(argparse.Namespace(**{**vars(args), "time_limit": seconds}), samples, verbose=0)
        model.count_columns(groups)
        weight = None if samples.weight is None else samples.weight[train]
        with without_fit_warnings():
            model.fit(samples.X[train], samples.y[train], sample_weight=weight)
        if model.certificate_.stopped == "interrupted":
            console.print_status(f"interrupted: the {noun(samples)} on new rows is not measured", quiet=args.quiet)
            return None
        others = predicted.others(model, samples.X[train], samples.y[train], weight)
        for name, other in {THIS_TREE: model, **others}.items():
            predicted.add(name, other, test)
    method = "holdout" if args.cv is None else "cross-validation"
    return predicted.measured(method, [test for _, test in parts], np.concatenate([test for _, test in parts]))


class _Labels:
    """Predicted labels and probabilities of several methods on test rows."""

    def __init__(self, samples: Samples) -> None:
        self.samples, self.classes = samples, sorted(set(samples.y.tolist()))
        self.predicted: dict[str, Any] = {}

    def others(self, model: Any, X: Any, y: Any, weight: Any) -> dict[str, Any]:
        return _others(model, X, y, weight)

    def add(self, name: str, model: Any, test: Rows) -> None:
        import numpy as np

        y = self.samples.y
        labels, shares = self.predicted.setdefault(name, (np.empty_like(y), np.zeros((len(y), len(self.classes)))))
        labels[test] = model.predict(self.samples.X[test])
        shares[test] = model.predict_proba(self.samples.X[test])

    def measured(self, method: str, folds: list[Rows], unseen: Rows) -> Measurement:
        from margotree.measures import measure_classification

        y = self.samples.y
        right = self.predicted[THIS_TREE][0] == y
        by_fold = [float(right[test].mean()) for test in folds]
        methods = {
            name: measure_classification(y[unseen], labels[unseen], shares[unseen], self.classes)
            for name, (labels, shares) in self.predicted.items()
        }
        return Measurement(
            method=method, fits=len(folds), rows=len(unseen), accuracy=float(right[unseen].mean()),
            lowest=min(by_fold), highest=max(by_fold), majority=methods[MAJORITY].accuracy, methods=methods,
        )  # fmt: skip


class _Numbers:
    """Predicted numbers of several methods on test rows."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.predicted: dict[str, Any] = {}

    def others(self, model: Any, X: Any, y: Any, weight: Any) -> dict[str, Any]:
        """Simple methods, trained on the same rows."""
        from sklearn.dummy import DummyRegressor
        from sklearn.linear_model import RidgeCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import MinMaxScaler
        from sklearn.tree import DecisionTreeRegressor

        depth = model.tree_.depth
        linear = make_pipeline(MinMaxScaler(), RidgeCV([1e-3, 1e-2, 0.1, 1.0, 10.0]))
        linear.fit(X, y, ridgecv__sample_weight=weight)
        return {
            "mean": DummyRegressor().fit(X, y, weight),
            f"CART of depth {depth}": DecisionTreeRegressor(max_depth=depth, random_state=0).fit(X, y, weight),
            "ridge regression": linear,
        }

    def add(self, name: str, model: Any, test: Rows) -> None:
        import numpy as np

        self.predicted.setdefault(name, np.zeros(len(self.samples.y)))[test] = model.predict(self.samples.X[test])

    def measured(self, method: str, folds: list[Rows], unseen: Rows) -> NumberMeasurement:
        from margotree.measures import measure_regression

        y, own = self.samples.y, self.predicted[THIS_TREE]
        by_fold = [measure_regression(y[test], own[test]).r2 for test in folds]
        methods = {name: measure_regression(y[unseen], found[unseen]) for name, found in self.predicted.items()}
        return NumberMeasurement(
            method=method, fits=len(folds), rows=len(unseen), lowest=min(by_fold), highest=max(by_fold),
            methods=methods,
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
    from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

    rows, strata = np.arange(len(samples.y)), None if samples.is_numeric else samples.y
    if args.cv is not None and strata is None:
        yield from KFold(args.cv, shuffle=True, random_state=args.seed).split(rows)
        return
    if args.cv is not None:
        yield from StratifiedKFold(args.cv, shuffle=True, random_state=args.seed).split(rows, samples.y)
        return
    try:
        train, test = train_test_split(rows, test_size=args.holdout, random_state=args.seed, stratify=strata)
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
