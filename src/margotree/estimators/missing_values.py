"""Missing values for trees that want numbers: put the median in, and say where."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline


class FillMissing(SimpleImputer):
    """``SimpleImputer`` whose indicators are called "crp missing", as on the command line."""

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The columns as they were, then one for each that had holes in training."""
        names = super().get_feature_names_out(input_features)
        mark = "missingindicator_"
        said = [f"{n.removeprefix(mark)} missing" if str(n).startswith(mark) else n for n in names]
        return np.array(said, dtype=object)


def missing_pipeline(estimator: Any, *, strategy: str = "median", indicator: bool = True) -> Pipeline:
    """A classifier that takes missing values (NaN): a ``Pipeline`` of an imputer and the tree.

    The median of the training column stands in for a missing value (``strategy`` as in ``SimpleImputer``), and a 0/1
    feature "crp missing" tells where, for every column that had holes in training; ``indicator=False`` leaves those
    out.  The command line does the same with ``--missing indicator`` and ``--missing median``.

        model = missing_pipeline(HFSMargotClassifier(budget=2)).fit(X, y)
        model.predict(X_new); print(model[-1].export_text())

    Names of a data frame stay.  All columns must be numbers; words need an encoder first (the gallery's pipeline
    example).
    """
    fill = FillMissing(strategy=strategy, add_indicator=indicator)
    if find_spec("pandas") is not None:
        fill.set_output(transform="pandas")
    return Pipeline([("missing", fill), ("tree", estimator)])
