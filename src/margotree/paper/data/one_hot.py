"""Tic-Tac-Toe, the only set with nominal columns, in the encoding that the text of the paper describes."""

from __future__ import annotations

import dataclasses

import numpy as np

from margotree.paper.data.dataset import Dataset, fingerprint


def one_hot_squares(dataset: Dataset) -> Dataset:
    """Encode Tic-Tac-Toe with three columns per square (x, o, blank) instead of two (not x, not o).

    The paper states that the data set has 27 columns and that MM-SVM-OCT uses 27 features.  The table that its authors
    distribute has 18 columns, and with these the printed values of MARGOT are reproduced.  The result of this function
    is for experiments with 27 columns.
    """
    if dataset.name != "Tic-Tac-Toe" or dataset.n_features != 18:
        raise ValueError(f"only Tic-Tac-Toe with 18 columns has squares to encode, got {dataset.name}")
    not_x, not_o = dataset.X[:, 0::2], dataset.X[:, 1::2]
    X = np.stack([1 - not_x, 1 - not_o, not_x * not_o], axis=2).reshape(dataset.n_samples, 27)
    squares = [name.removesuffix(" not x") for name in dataset.feature_names[0::2]]
    return dataclasses.replace(
        dataset,
        X=X,
        feature_names=tuple(f"{square} {mark}" for square in squares for mark in ("x", "o", "blank")),
        source=f"{dataset.source}, one-hot",
        checksum=fingerprint(X, dataset.strata),
        as_in_paper=False,
    )
