"""The paper's way from a data set to a training and a test part."""

from __future__ import annotations

import numpy as np

from margotree.paper.data.dataset import Dataset, TrainTest


def paper_split(dataset: Dataset, *, test_size: float = 0.2, random_state: int = 0) -> TrainTest:
    """80 % to train on, 20 % to test, stratified on the labels before they were made two, features scaled to [0, 1].

    The scale is that of the training part alone.  The defaults are the paper's; another ``random_state`` gives
    another split of the same kind.
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
