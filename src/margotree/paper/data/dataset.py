"""The classes of a data set and of its training and test part, immutable and with the source of the data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class DataError(RuntimeError):
    """A data set is missing, or its table is not the expected one; the message names the remedy."""


class DataMissingError(DataError):
    """Tables of data sets are in no folder and cannot be downloaded.

    ``files`` maps the names of the sets to those of their files; ``failures`` are the reasons of failed downloads.
    """

    def __init__(self, files: Mapping[str, str], cache: PathLike[str], failures: Sequence[str]) -> None:
        self.files, self.cache, self.failures = dict(files), cache, tuple(failures)
        super().__init__(
            f"{', '.join(files)} {'is' if len(files) == 1 else 'are'} not here: put {', '.join(files.values())} into a "
            f"folder and set MARGOTREE_DATA to it, or into {cache}, or connect to the network ({'; '.join(failures)})"
        )

    @classmethod
    def of_all(cls, errors: Sequence[DataMissingError]) -> DataMissingError:
        """Return one error about all sets, with the failed downloads of the first."""
        files = {name: file for error in errors for name, file in error.files.items()}
        return cls(files, errors[0].cache, errors[0].failures)


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """A two-class data set, unscaled, with the rows in the order of the source.

    ``y`` holds the two labels of the source, ``y_sign`` the same as -1 and +1.  ``strata`` are the labels before they
    were reduced to two (heart disease: 0 to 4); the paper's split is stratified on them.  ``checksum`` is the SHA-256
    of the bytes that were read, ``fingerprint`` that of the numbers alone, so that the same table from two sources has
    the same fingerprint.  ``as_in_paper`` says whether table and order of rows are those of the authors; only then is a
    split that of the paper.
    """

    name: str
    X: FloatArray
    y: NDArray[Any]
    y_sign: FloatArray
    strata: NDArray[Any]
    feature_names: tuple[str, ...]
    class_names: tuple[str, str]
    source: str
    checksum: str
    as_in_paper: bool = False

    def __post_init__(self) -> None:
        """Replace the arrays by read-only copies, and check that their lengths agree."""
        object.__setattr__(self, "X", frozen(self.X, np.float64))
        object.__setattr__(self, "y", frozen(self.y))
        object.__setattr__(self, "y_sign", frozen(self.y_sign, np.float64))
        object.__setattr__(self, "strata", frozen(self.strata))
        lengths = {len(self.X), len(self.y), len(self.y_sign), len(self.strata)}
        if len(lengths) != 1:
            raise ValueError(f"X, y, y_sign and strata must be of one length, got {sorted(lengths)}")
        if len(self.feature_names) != self.X.shape[1]:
            raise ValueError(f"{len(self.feature_names)} feature names for {self.X.shape[1]} columns")

    @property
    def n_samples(self) -> int:
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the features and of ``strata``."""
        return fingerprint(self.X, self.strata)

    def class_counts(self) -> dict[str, int]:
        """The number of samples of the negative and of the positive class, by class name."""
        return {
            self.class_names[0]: int(np.sum(self.y_sign < 0)),
            self.class_names[1]: int(np.sum(self.y_sign > 0)),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainTest:
    """The training and test part of a data set, scaled; test values may be outside [0, 1].

    ``y_train`` and ``y_test`` are -1 and +1.  ``train`` and ``test`` are row numbers of the data set; a scaled feature
    is ``(x - low) / span``.
    """

    name: str
    X_train: FloatArray
    y_train: FloatArray
    X_test: FloatArray
    y_test: FloatArray
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    strata_train: NDArray[Any]
    low: FloatArray
    span: FloatArray
    feature_names: tuple[str, ...]
    class_names: tuple[str, str]
    checksum: str
    as_in_paper: bool

    def __post_init__(self) -> None:
        for field in ("X_train", "y_train", "X_test", "y_test", "train", "test", "strata_train", "low", "span"):
            object.__setattr__(self, field, frozen(getattr(self, field)))


def frozen(a: Any, dtype: Any = None) -> NDArray[Any]:
    """A contiguous, read-only copy of an array."""
    own = np.array(a, dtype=dtype, order="C")
    own.setflags(write=False)
    return own


def fingerprint(X: FloatArray, strata: NDArray[Any]) -> str:
    """SHA-256 of the numbers and labels of a table, independent of the format of its file."""
    digest = hashlib.sha256(str(X.shape).encode())
    digest.update((np.asarray(X, dtype="<f8") + 0.0).tobytes())  # + 0.0 turns -0 into 0
    digest.update("\n".join(map(str, strata.tolist())).encode())
    return digest.hexdigest()
