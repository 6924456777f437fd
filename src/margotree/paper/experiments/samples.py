"""The samples of each set in the experiments: the paper's split, or all samples of a generated set for training."""

from __future__ import annotations

from functools import cache

import numpy as np

from margotree.paper.data import Dataset, TrainTest, load, make_partitions, paper_split

#: The ten sets of the paper's tables.
TABLE_SETS = (
    "Breast Cancer D.", "Breast Cancer W.", "Climate Model", "Heart Disease C.", "Ionosphere",
    "Parkinsons", "Sonar", "SPECTF H.", "Tic-Tac-Toe", "Wholesale",
)  # fmt: skip

#: The 2-D sets: two generated ones, because the paper's points are not published, and fourclass.
PLANE_SETS = ("4-partitions", "6-partitions", "fourclass")


@cache
def samples(name: str) -> TrainTest:
    """Training and test part of a set.

    Raises :class:`~margotree.paper.data.DataError`, whose message names the remedy, if the data are missing.
    """
    if name.endswith("-partitions"):
        return _all_of(make_partitions(int(name[0])).dataset)
    return paper_split(load(name))


def _all_of(dataset: Dataset) -> TrainTest:
    """All samples as the training part, unscaled, with an empty test part."""
    n, none = dataset.n_samples, np.zeros(0, dtype=np.int64)
    return TrainTest(
        name=dataset.name,
        X_train=dataset.X,
        y_train=dataset.y_sign,
        X_test=dataset.X[:0],
        y_test=dataset.y_sign[:0],
        train=np.arange(n),
        test=none,
        strata_train=dataset.strata,
        low=np.zeros(dataset.n_features),
        span=np.ones(dataset.n_features),
        feature_names=dataset.feature_names,
        class_names=dataset.class_names,
        checksum=dataset.checksum,
        as_in_paper=False,
    )
