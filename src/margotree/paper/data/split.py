"""The split of a data set into a training and a test part as in the paper."""

from __future__ import annotations

import numpy as np

from margotree.paper.data.dataset import Dataset, TrainTest


def paper_split(dataset: Dataset, *, test_size: float = 0.2, random_state: int = 0) -> TrainTest:
    """Split a data set into 80 % for training and 20 % for testing, with features scaled to [0, 1].

    The split is stratified on the labels before they were reduced to two; the scaling is computed from the training
    part.  The defaults are those of the paper; another ``random_state`` gives another split.
    """
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import MinMaxScaler

    rows = np.arange(dataset.n_samples)
    train, test = train_test_split(rows, test_size=test_size, random_state=random_state, stratify=dataset.strata)
    scaler = MinMaxScaler().fit(dataset.X[train])
    return TrainTest(
        name=dataset.name,
        X_train=scaler.transform(dataset.X[train]),
        y_train=dataset.y_sign[train],
        X_test=scaler.transform(dataset.X[test]),
        y_test=dataset.y_sign[test],
        train=train,
        test=test,
        strata_train=dataset.strata[train],
        low=scaler.data_min_,
        span=1.0 / scaler.scale_,
        feature_names=dataset.feature_names,
        class_names=dataset.class_names,
        checksum=dataset.checksum,
        as_in_paper=dataset.as_in_paper,
    )
