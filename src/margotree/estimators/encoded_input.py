"""The samples that a user passes to an estimator: checked, and encoded as features where they are not plain numbers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import validate_data

from margotree.estimators.input_data import FloatArray, explain_invalid_input
from margotree.table.dates import DAYS_SINCE
from margotree.table.encoding import Encoding
from margotree.table.frame_columns import FrameColumn, frame_columns
from margotree.table.frame_encoding import encode_columns, is_plain, learn_frame_encoding

#: The value of ``categorical_features`` with which the types of columns decide.
FROM_DTYPE = "from_dtype"


def training_input(
    estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any, *, numeric_targets: bool
) -> tuple[FloatArray, NDArray[Any], Encoding | None]:
    """The features and targets of a fit after scikit-learn's checks, and the encoding of the columns.

    The encoding is None if all columns hold numbers and no cell is missing.
    """
    given, dates = getattr(estimator, "categorical_features", FROM_DTYPE), _reads_dates(estimator)
    learn = partial(
        _learnt, y=y, sample_weight=sample_weight, numeric_targets=numeric_targets, dates=dates,
        others=_allows_unknown(estimator),
    )  # fmt: skip
    with explain_invalid_input(X, None if dates else ()):
        if is_frame(X):
            columns = _columns_of_frame(estimator, X, reset=True, dates=None if dates else ())
            categorical = _positions(given, columns)
            if not is_plain(columns, categorical, dates=dates):
                return learn(columns, categorical)
        numbers, targets = _checked_pair(estimator, X, y, numeric_targets, as_numbers=_by_type(given))
        if _by_type(given) and not np.isnan(np.sum(numbers, dtype=np.float64)):
            return numbers, targets, None
        columns = frame_columns(numbers, column_names(estimator))
        categorical = _positions(given, columns)
        if is_plain(columns, categorical):
            return np.asarray(numbers, dtype=np.float64), targets, None
        return learn(columns, categorical)


def new_input(estimator: BaseEstimator, X: Any, encoding: Encoding | None, *, finite: bool = True) -> FloatArray:
    """The features of new samples after scikit-learn's checks; with ``finite`` all of them must be finite numbers."""
    dates = frozenset[str]() if encoding is None else encoding.date_columns
    with explain_invalid_input(X, dates):
        if encoding is None:
            rows: FloatArray = validate_data(estimator, X, reset=False, dtype=np.float64, ensure_all_finite=finite)
            return rows
        if is_frame(X):
            columns = _columns_of_frame(estimator, X, reset=False, dates=dates)
        else:
            X = validate_data(estimator, X, reset=False, dtype=None, ensure_all_finite=False)
            columns = frame_columns(X, column_names(estimator), dates=dates)
        return encode_columns(encoding, columns)


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a data frame."""
    return hasattr(X, "columns") and hasattr(X, "__getitem__") and hasattr(X, "shape")


def _reads_dates(estimator: BaseEstimator) -> bool:
    """Whether columns of dates become numbers of days."""
    given = getattr(estimator, "dates", "error")
    if not isinstance(given, str) or given not in ("error", DAYS_SINCE):
        raise ValueError(f"dates must be 'error' or {DAYS_SINCE!r}, got {given!r}")
    return given == DAYS_SINCE


def _allows_unknown(estimator: BaseEstimator) -> bool:
    """Whether new samples may have words that training did not have."""
    given = getattr(estimator, "handle_unknown", "ignore")
    if not isinstance(given, str) or given not in ("error", "ignore"):
        raise ValueError(f"handle_unknown must be 'ignore' or 'error', got {given!r}")
    return given == "ignore"


def _columns_of_frame(
    estimator: BaseEstimator, X: Any, *, reset: bool, dates: Collection[str] | None
) -> list[FrameColumn]:
    """The columns of a frame, after the check of their names; ``dates`` as in ``frame_columns``."""
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return frame_columns(X, column_names(estimator), dates=dates)


def column_names(estimator: BaseEstimator) -> list[str]:
    """The names of the training columns; x0, x1, ... if they have no names that are strings."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return [f"x{k}" for k in range(estimator.n_features_in_)]
    return [str(name) for name in names]


def _checked_pair(
    estimator: BaseEstimator, X: Any, y: Any, numeric_targets: bool, *, as_numbers: bool
) -> tuple[Any, NDArray[Any]]:
    """Samples and targets after scikit-learn's checks; missing cells are allowed."""
    X, y = validate_data(
        estimator, X, y, dtype=np.float64 if as_numbers else None, y_numeric=numeric_targets,
        ensure_all_finite="allow-nan" if as_numbers else False,
    )  # fmt: skip
    return X, y


def _learnt(
    columns: Sequence[FrameColumn],
    categorical: set[int],
    *,
    y: Any,
    sample_weight: Any,
    numeric_targets: bool,
    dates: bool,
    others: bool,
) -> tuple[FloatArray, NDArray[Any], Encoding]:
    """Learn the encoding from the rows with a weight above 0, and apply it."""
    used = columns
    if sample_weight is not None and np.ndim(sample_weight) == 1 and not np.all(np.asarray(sample_weight)):
        rows = np.flatnonzero(np.asarray(sample_weight))
        used = [column.at(rows) for column in columns]
    name = getattr(y, "name", None)
    encoding = learn_frame_encoding(
        used, categorical=categorical, target=name if isinstance(name, str) else "", dates=dates, others=others
    )
    features, targets = check_X_y(
        encode_columns(encoding, columns), y, dtype=np.float64, y_numeric=numeric_targets, multi_output=False
    )
    return features, targets, encoding


def _by_type(given: Any) -> bool:
    """Whether the types of the columns decide which of them hold words."""
    return given is None or (isinstance(given, str) and given == FROM_DTYPE)


def _positions(given: Any, columns: Sequence[FrameColumn]) -> set[int]:
    """The positions of the columns that ``categorical_features`` names."""
    if _by_type(given):
        return set()
    names = [column.name for column in columns]
    entries = check_array(given, ensure_2d=False, dtype=None, input_name="categorical_features").tolist()
    if len(entries) == len(names) and all(isinstance(entry, bool) for entry in entries):
        return {k for k, entry in enumerate(entries) if entry}
    found = set()
    for entry in entries:
        if isinstance(entry, str) and entry in names:
            found.add(names.index(entry))
        elif isinstance(entry, int) and not isinstance(entry, bool) and 0 <= entry < len(names):
            found.add(int(entry))
        else:
            raise ValueError(f"categorical_features: {entry!r} is neither the name nor the position of a column of X")
    return found
