"""Conversion between the units of the user and the scaled units of a tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: A column whose values differ by no more than this, relatively, is constant.
_NOISE = 8 * np.finfo(np.float64).eps


@dataclass(frozen=True, kw_only=True, eq=False)
class Scaling:
    """An offset and a positive scale per feature: ``scaled = (x - offset) / scale``.

    After :meth:`minmax`, ``offset`` and ``offset + scale`` are the smallest and the largest training value, so that
    training samples lie in [0, 1]; values of new samples may lie outside.
    """

    offset: FloatArray
    scale: FloatArray

    def __post_init__(self) -> None:
        for name in ("offset", "scale"):
            own = np.array(getattr(self, name), dtype=np.float64)
            own.setflags(write=False)
            object.__setattr__(self, name, own)
        if self.offset.ndim != 1 or self.offset.shape != self.scale.shape:
            raise ValueError(f"one offset and one scale a feature, got {self.offset.shape} and {self.scale.shape}")
        if not (np.all(np.isfinite(self.offset)) and np.all(np.isfinite(self.scale)) and np.all(self.scale > 0)):
            raise ValueError("offsets must be finite, scales finite and positive")

    @classmethod
    def identity(cls, n_features: int) -> Scaling:
        """Return the scaling that changes nothing."""
        return cls(offset=np.zeros(n_features), scale=np.ones(n_features))

    @classmethod
    def minmax(cls, X: FloatArray) -> Scaling:
        """Return the scaling that maps each column of ``X`` to [0, 1], and a constant column (up to rounding) to 0."""
        low, high = np.min(X, axis=0), np.max(X, axis=0)
        with np.errstate(over="ignore"):
            span = high - low
        if not np.all(np.isfinite(span)):
            raise ValueError(
                f"the values of feature {int(np.argmax(~np.isfinite(span)))} lie further apart than the largest "
                "float; divide that column by a constant first"
            )
        noise = np.maximum(_NOISE * np.maximum(np.abs(low), np.abs(high)), np.finfo(np.float64).tiny)
        return cls(offset=low, scale=np.where(span > noise, span, 1.0))

    @property
    def is_identity(self) -> bool:
        """Whether the scaling changes nothing."""
        return not np.any(self.offset) and bool(np.all(self.scale == 1))

    def apply(self, X: FloatArray) -> FloatArray:
        """Convert samples from the units of the user to scaled units."""
        return _scale(np.array(X, dtype=np.float64, order="C"), self.offset, self.scale)

    def column(self, X: FloatArray, j: int) -> FloatArray:
        """Return feature ``j`` of all samples in scaled units."""
        return _scale(np.array(X[:, j], dtype=np.float64), self.offset[j], self.scale[j])

    def rows(self, X: FloatArray, which: NDArray[np.int64]) -> FloatArray:
        """Return the samples ``which`` in scaled units, in that order."""
        return _scale(np.ascontiguousarray(X[which]), self.offset, self.scale)

    def to_user(self, w: FloatArray, b: float) -> tuple[FloatArray, float]:
        """Return weights and constant term of a hyperplane in the units of the user."""
        weights = w / self.scale
        return weights, float(b - weights @ self.offset)

    def from_user(self, weights: FloatArray, constant: float) -> tuple[FloatArray, float]:
        """Return weights and constant term in scaled units: the inverse of :meth:`to_user`, up to rounding."""
        return weights * self.scale, float(constant + weights @ self.offset)

    def same_as(self, other: Scaling) -> bool:
        """Whether all offsets and scales are equal."""
        return np.array_equal(self.offset, other.offset) and np.array_equal(self.scale, other.scale)


def _scale(values: FloatArray, offset: FloatArray | float, scale: FloatArray | float) -> FloatArray:
    """Scale ``values`` in place, without a second copy of the samples."""
    values -= offset
    values /= scale
    values += 0.0  # turns -0.0 into 0.0, so that equal samples have equal bytes
    return values
