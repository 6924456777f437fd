"""Check the data that the user passes, encode classes and weights, and merge duplicate samples."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_consistent_length

from margotree.problem.blocks import sort_rows
from margotree.table.frames import date_columns, missing_counts, missing_rows, non_numeric_columns, non_numeric_message
from margotree.tree import Scaling

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """The samples with weight above 0, with the weights that the user gives."""

    X: FloatArray
    y: NDArray[Any]
    weight: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassSamples(Samples):
    """Samples with class labels; ``y`` holds positions in ``classes``.

    The training problem multiplies the weights by ``class_weight[k]`` for class ``k``.
    """

    classes: NDArray[Any]
    class_weight: FloatArray


def read_classes(
    owner: str,
    X: FloatArray,
    y: NDArray[Any],
    sample_weight: Any,
    class_weight: Mapping[Any, float] | str | None,
    *,
    multi_class: bool = False,
) -> ClassSamples:
    """Check labels and weights, leave out samples with weight 0, and encode the classes.

    ``owner`` is the name of the classifier in messages; ``multi_class`` allows more than two classes.
    """
    X, y, weight = used_rows(X, _labels(y), sample_weight)
    classes, codes = np.unique(y, return_inverse=True)
    _check_number(owner, classes, y, multi_class)
    share = _class_weights(class_weight, classes, codes, weight)
    return ClassSamples(X=X, y=codes.astype(np.int64), weight=weight, classes=classes, class_weight=share)


def used_rows(X: FloatArray, y: NDArray[Any], sample_weight: Any) -> tuple[FloatArray, NDArray[Any], FloatArray]:
    """Samples, targets and checked weights, without samples of weight 0."""
    weight = _weights(sample_weight, X)
    if np.any(weight == 0):  # otherwise the arrays need not be copied
        X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
    return X, y, weight


def check_targets(y: Any) -> None:
    """Raise ValueError if targets in ``y`` are missing; the message lists their rows."""
    rows = [] if y is None else missing_rows(y)
    if rows:
        shown = ", ".join(map(str, rows[:8])) + (f" and {len(rows) - 8} more" if len(rows) > 8 else "")
        raise ValueError(
            f"Input y contains NaN: y has missing values at row{'s' * (len(rows) > 1)} {shown} (the first row is 0); "
            "remove these rows from X and y, or give them targets"
        )


def numeric_targets(y: Any) -> Any:
    """Targets with strings such as "3.5" as numbers; ValueError names a target that is none."""
    given = np.asarray(y) if y is not None else None
    if given is None or given.dtype.kind not in "OUSmM":
        return y
    if given.dtype.kind in "mM":
        raise ValueError("the targets are dates or durations; pass numbers instead, such as days since a date")
    if missing_rows(y):
        return y  # check_targets names the rows
    for row, value in enumerate(given.ravel().tolist()):
        try:
            float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"Unknown label type: the targets of a regressor are numbers, but y has {value!r} at row {row} (the "
                "first row is 0); for classes use MargotClassifier"
            ) from None
    return given.astype(np.float64)


@contextmanager
def explain_invalid_input(X: Any, dates: Collection[str] | None = ()) -> Iterator[None]:
    """Extend the errors of scikit-learn's check of ``X`` by the columns that cause them and what to do.

    Dates are allowed in the columns named in ``dates``; with None in all.
    """
    if any(
        column.holds == "durations" or (dates is not None and column.name not in dates) for column in date_columns(X)
    ):
        raise ValueError(non_numeric_message(non_numeric_columns(X)))
    try:
        yield
    except (ValueError, TypeError) as error:
        hint = _hint(X, error)
        if not hint:
            raise
        raise ValueError(hint) from None


def _hint(X: Any, error: Exception) -> str:
    message = str(error)
    if "Input X contains NaN" in message:
        where = f"Columns with missing values: {found}.\n" if (found := missing_counts(X)) else ""
        return (
            f"{message}\n{where}No cell was missing in training, so nothing replaces missing cells; train on samples "
            "with missing cells, or fill them."
        )
    known = "could not convert string" in message or "complex data" in message.lower()
    if not (known or "cast" in message or (isinstance(error, TypeError) and hasattr(X, "columns"))):
        return ""
    if not (odd := non_numeric_columns(X)):
        return ""
    return f"{message}\n{non_numeric_message(odd)}" if known else non_numeric_message(odd)


def merge_duplicates(
    X: FloatArray, y: FloatArray, weight: FloatArray, scaling: Scaling
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scale and sort the samples, and merge duplicates (same ``x`` and ``y``) into one with the sum of their weights.

    The training problem is equivalent and smaller, and the fitted tree does not depend on the order of the samples or
    on whether a sample is repeated or has a weight.
    """
    columns = (scaling.column(X, j) for j in range(X.shape[1]))
    order, new = sort_rows(chain(columns, [y]))
    first = np.flatnonzero(new)
    merged = scaling.rows(X, order[first])
    merged.setflags(write=False)  # so that a problem need not copy it
    return merged, y[order[first]], np.add.reduceat(weight[order], first)


def _labels(y: NDArray[Any]) -> NDArray[Any]:
    """The labels as a sortable array; two different numbers may be fractions, more than two must be whole numbers."""
    if y.dtype.kind == "O" and not all(isinstance(v, str) for v in y):
        y = np.array(y.tolist())
        if y.dtype.kind not in "biuf":
            raise ValueError("Unknown label type: y mixes types; make its labels all strings or all numbers")
    if y.dtype.kind != "f" or len(np.unique(y)) > 2:
        check_classification_targets(y)
    return y


def _check_number(owner: str, classes: NDArray[Any], y: NDArray[Any], multi_class: bool) -> None:
    if len(classes) > 2 and not multi_class:
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {type_of_target(y)}. "
            f"Combine {owner} with sklearn.multiclass.OneVsRestClassifier for more than two classes."
        )
    if len(classes) < 2:
        raise ValueError(
            f"{owner} needs samples of two classes, but the samples given (with a weight above 0) are of one class "
            f"only: {classes.tolist()[0]!r}"
        )


def _weights(sample_weight: Any, X: FloatArray) -> FloatArray:
    if sample_weight is None:
        return np.ones(len(X))
    if isinstance(sample_weight, Real):
        sample_weight = np.full(len(X), sample_weight)
    weight = check_array(sample_weight, ensure_2d=False, dtype=np.float64, copy=True, input_name="sample_weight")
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weight.ndim}D array.")
    check_consistent_length(X, weight)
    if np.any(weight < 0):
        raise ValueError("Negative values in data passed to `sample_weight`.")
    if not np.any(weight > 0):
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weight


def _class_weights(
    class_weight: Mapping[Any, float] | str | None,
    classes: NDArray[Any],
    codes: NDArray[np.int64],
    weight: FloatArray,
) -> FloatArray:
    if isinstance(class_weight, str):
        # scikit-learn's "balanced" counts samples; the sum of weights makes a weight equal to repetition.
        return weight.sum() / (len(classes) * np.bincount(codes, weights=weight))
    given = None if class_weight is None else dict(class_weight)
    found = np.asarray(compute_class_weight(given, classes=classes, y=classes[codes]), dtype=np.float64)
    if not (np.all(np.isfinite(found)) and np.all(found > 0)):
        raise ValueError(f"class_weight must give every class a positive finite weight, got {class_weight!r}")
    return found
