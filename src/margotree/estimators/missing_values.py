"""A deprecated way to train on missing values."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.pipeline import Pipeline


def missing_pipeline(estimator: Any, *, strategy: str = "median", indicator: bool = True) -> Pipeline:
    """Deprecated, removed in 0.3: estimators accept missing values, so this returns a pipeline of the estimator alone.

    Parameters
    ----------
    estimator : estimator
        The tree estimator.
    strategy, indicator
        Only the defaults are allowed; other ways to fill are a ``SimpleImputer`` in a ``Pipeline``.
    """
    if strategy != "median" or not indicator:
        raise ValueError("missing_pipeline fills no values; use SimpleImputer in a Pipeline for other strategies")
    text = "missing_pipeline is deprecated; estimators accept missing values, so use the estimator alone"
    warnings.warn(text, FutureWarning, stacklevel=2)
    return Pipeline([("tree", estimator)])
