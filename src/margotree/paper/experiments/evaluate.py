"""Evaluation of trained trees: all results of a row are recomputed from the tree and the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margotree.model_selection import fit_record
from margotree.paper.data import TrainTest
from margotree.paper.experiments.case import Case
from margotree.tree import Tree


def evaluate(case: Case, trained: dict[str, Any], split: TrainTest) -> dict[str, Any]:
    """The row of results of a fit.

    Raises :class:`~margotree.solution.VerificationError` if the tree does not have the objective of its certificate.
    """
    tree = replace(Tree.from_dict(trained["tree"]), feature_names=split.feature_names)
    tree.verify(split.X_train, split.y_train)
    row = {**fit_record.tree_columns(tree), **case.row_columns(split.checksum), "seconds": trained["seconds"]}
    for part, X, y in (("train", split.X_train, split.y_train), ("test", split.X_test, split.y_test)):
        row[f"{part}_acc"], row[f"{part}_bacc"] = accuracies(y, tree.predict(X) if len(X) else y)
    row |= {"data_checksum": split.checksum, "data_as_in_paper": int(split.as_in_paper)}
    return {**row, **fit_record.environment_columns()}


def accuracies(y: NDArray[Any], predicted: NDArray[Any]) -> tuple[float | None, float | None]:
    """Accuracy and balanced accuracy (ACC and BACC of the paper) in percent; None without samples."""
    if not len(y):
        return None, None
    right = np.asarray(predicted) == np.asarray(y)
    shares = [right[y == label].mean() for label in np.unique(y)]
    return 100 * float(right.mean()), 100 * float(np.mean(shares))
