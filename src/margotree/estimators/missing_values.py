"""A pipeline that fills missing values and adds indicator features."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline


class FillMissing(SimpleImputer):
    """``SimpleImputer`` whose indicators have names such as "crp missing", as on the command line."""

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the columns, then of the indicators of columns with missing values in training."""
        names = super().get_feature_names_out(input_features)
        prefix = "missingindicator_"
        renamed = [f"{n.removeprefix(prefix)} missing" if str(n).startswith(prefix) else n for n in names]
        return np.array(renamed, dtype=object)


def missing_pipeline(estimator: Any, *, strategy: str = "median", indicator: bool = True) -> Pipeline:
    """Make a classifier that accepts missing values (NaN): a ``Pipeline`` of an imputer and the tree.

    The command line does the same with ``--missing indicator`` and ``--missing median``.  All columns must be numeric;
    encode words first, as in the pipeline example of the gallery.  Column names of a data frame are kept.

    Parameters
    ----------
    estimator : classifier
        The tree classifier.
    strategy : str, default "median"
        How missing values are filled, as in ``SimpleImputer``.
    indicator : bool, default True
        Whether to add a 0/1 feature such as "crp missing" for every column with missing values in training.

    Returns
    -------
    Pipeline
        The imputer and the tree, not fitted.

    Examples
    --------
    ::

        model = missing_pipeline(HFSMargotClassifier(budget=2)).fit(X, y)
        model.predict(X_new)
        print(model[-1].export_text())
    """
    fill = FillMissing(strategy=strategy, add_indicator=indicator)
    if find_spec("pandas") is not None:
        fill.set_output(transform="pandas")
    return Pipeline([("missing", fill), ("tree", estimator)])
