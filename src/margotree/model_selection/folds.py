"""Folds of a cross-validation, and subsamples of their training rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Fold:
    """The rows to train on and the rows to score, by position.

    ``factor`` multiplies the weights of the training rows: more than 1 if they are a subsample.  The scores on a
    ``preliminary`` fold only decide which settings remain in a race.
    """

    train: NDArray[np.int64]
    test: NDArray[np.int64]
    factor: float = 1.0
    preliminary: bool = False

    def subsampled(self, most: int, strata: NDArray[Any] | None, seed: int) -> Fold:
        """The same fold with at most ``most`` training rows of larger weight, stratified if ``strata`` is given."""
        if len(self.train) <= most:
            return self
        from sklearn.model_selection import train_test_split

        stratify = None if strata is None else strata[self.train]
        try:
            kept, _ = train_test_split(self.train, train_size=most, random_state=seed, stratify=stratify)
        except ValueError:  # a class with a single sample
            return self
        return replace(self, train=kept, factor=self.factor * len(self.train) / len(kept))


def stratified_folds(n_splits: int = 4, random_state: int = 0) -> Any:
    """Stratified and shuffled folds; four by default, as in the paper."""
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
