"""Measures of predictions: accuracy, confusion, ranking and probabilities, all computed by scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.small_tables import text_table

#: A class with a smaller share of the rows than this, relative to an equal share, counts as rare.
RARE = 0.4


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassificationMeasures:
    """Measures of predicted labels and probabilities on some rows.

    Attributes
    ----------
    classes : tuple
        The labels, in the order of the columns of the probabilities.
    confusion : array (classes, classes)
        The number of rows by true (row) and predicted class (column).
    accuracy, balanced_accuracy : float
        The share of correct labels, and the mean of the sensitivities of the classes that occur.
    sensitivity, specificity : tuple of float
        For each class the share of its rows that are predicted as this class, and the share of the other rows that are
        not; NaN without such rows.
    auc : float
        The area under the ROC curve; for more than two classes the mean of those of one class against the rest. NaN if
        a class does not occur.
    brier, log_loss : float
        The Brier score and the log-loss of the probabilities.
    """

    classes: tuple[Any, ...]
    confusion: NDArray[np.int64]
    accuracy: float
    balanced_accuracy: float
    sensitivity: tuple[float, ...]
    specificity: tuple[float, ...]
    auc: float
    brier: float
    log_loss: float

    def record(self) -> dict[str, Any]:
        """Return the measures as JSON values; NaN is None."""
        numbers = {name: _plain(getattr(self, name)) for name in SUMMARY}
        by_class = [
            {"class": label, "sensitivity": _plain(a), "specificity": _plain(b)}
            for label, a, b in zip(self.classes, self.sensitivity, self.specificity, strict=True)
        ]
        return {**numbers, "by_class": by_class, "confusion": self.confusion.tolist()}

    def class_table(self) -> str:
        """Return sensitivity, specificity and the confusion matrix as a table with a row per true class."""
        heads = ["true class", "sensitivity", "specificity", *(f"predicted {label}" for label in self.classes)]
        rows = [
            [str(label), _percent(self.sensitivity[k]), _percent(self.specificity[k]), *map(str, self.confusion[k])]
            for k, label in enumerate(self.classes)
        ]
        return text_table(heads, rows)


@dataclass(frozen=True, kw_only=True)
class RegressionMeasures:
    """Measures of predicted numbers on some rows.

    Attributes
    ----------
    r2 : float
        The share of the variance that is predicted: 0 for the mean of these rows; NaN if all targets are equal.
    mae, rmse : float
        The mean absolute error, and the root of the mean squared error.
    """

    r2: float
    mae: float
    rmse: float

    def record(self) -> dict[str, Any]:
        """Return the measures as JSON values; NaN is None."""
        return {"r2": _plain(self.r2), "mae": self.mae, "rmse": self.rmse}

    def text(self) -> str:
        """Return the measures on one line."""
        return f"R2 {_number(self.r2)}, mean absolute error {self.mae:.4g}, root mean squared error {self.rmse:.4g}"


def measure_regression(y: ArrayLike, predicted: ArrayLike) -> RegressionMeasures:
    """Measure predicted numbers."""
    truth, found = np.asarray(y, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        squared, around_mean = (found - truth) ** 2, (truth - truth.mean()) ** 2
        r2 = 1.0 - float(squared.sum() / around_mean.sum()) if around_mean.any() else math.nan
    return RegressionMeasures(r2=r2, mae=float(np.abs(found - truth).mean()), rmse=math.sqrt(float(squared.mean())))


def regression_table(found: dict[str, RegressionMeasures]) -> str:
    """Return a table with a row per method."""
    rows = [[name, _number(one.r2), f"{one.mae:.4g}", f"{one.rmse:.4g}"] for name, one in found.items()]
    return text_table(["", "R2", "MAE", "RMSE"], rows)


#: The measures of :func:`summary_table`, with their titles.
SUMMARY = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "AUC",
    "brier": "Brier score",
    "log_loss": "log-loss",
}


def measure_classification(
    y: ArrayLike, predicted: ArrayLike, probabilities: ArrayLike, classes: Sequence[Any]
) -> ClassificationMeasures:
    """Measure predicted labels and probabilities.

    Parameters
    ----------
    y, predicted : array (rows,)
        True and predicted labels.
    probabilities : array (rows, classes)
        Probabilities of the classes.
    classes : sequence
        The sorted labels.
    """
    from sklearn import metrics

    truth, shares = np.asarray(y), np.asarray(probabilities, dtype=np.float64)
    names = np.asarray(classes)
    confusion = metrics.confusion_matrix(truth, predicted, labels=names)
    own, of_class, as_class = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    code = np.searchsorted(names, truth)
    return ClassificationMeasures(
        classes=tuple(names.tolist()),
        confusion=confusion,
        accuracy=float(metrics.accuracy_score(truth, predicted)),
        balanced_accuracy=float(np.mean((own / np.maximum(of_class, 1))[of_class > 0])),
        sensitivity=_shares(own, of_class),
        specificity=_shares(confusion.sum() - of_class - as_class + own, confusion.sum() - of_class),
        auc=_auc(code, shares),
        brier=_brier(code, shares),
        log_loss=float(metrics.log_loss(code, shares, labels=range(len(names)))),
    )


def summary_table(found: dict[str, ClassificationMeasures]) -> str:
    """Return a table with a row per method."""
    rows = [
        [
            name,
            _percent(one.accuracy),
            _percent(one.balanced_accuracy),
            *(_number(getattr(one, measure)) for measure in ("auc", "brier", "log_loss")),
        ]
        for name, one in found.items()
    ]
    return text_table(["", *SUMMARY.values()], rows)


def imbalance_note(found: ClassificationMeasures) -> str:
    """Return a note that points to class weights if the labels neglect a rare class, else an empty text."""
    rows = found.confusion.sum(axis=1)
    k = int(np.argmin(np.where(rows > 0, rows, np.inf)))
    if rows[k] >= RARE * rows.sum() / len(rows) or not found.sensitivity[k] < 0.5:
        return ""
    return (
        f"note: {found.classes[k]} is rare ({rows[k] / rows.sum():.1%} of the rows), and {found.sensitivity[k]:.0%} of "
        'its rows are found; --class-weight balanced (class_weight="balanced") gives its errors more weight'
    )


def _shares(part: NDArray[Any], of: NDArray[Any]) -> tuple[float, ...]:
    return tuple(float(a / b) if b else math.nan for a, b in zip(part, of, strict=True))


def _auc(code: NDArray[np.int64], shares: NDArray[np.float64]) -> float:
    from sklearn.metrics import roc_auc_score

    if len(np.unique(code)) < shares.shape[1]:
        return math.nan
    if shares.shape[1] == 2:
        return float(roc_auc_score(code, shares[:, 1]))
    return float(roc_auc_score(code, shares, multi_class="ovr"))


def _brier(code: NDArray[np.int64], shares: NDArray[np.float64]) -> float:
    from sklearn.metrics import brier_score_loss

    if shares.shape[1] == 2:
        return float(brier_score_loss(code, shares[:, 1], pos_label=1))
    # Versions of scikit-learn before 1.7 have the score for two classes only.
    return float(np.mean(np.sum((shares - np.eye(shares.shape[1])[code]) ** 2, axis=1)))


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1%}"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
