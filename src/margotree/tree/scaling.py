"""Conversion between the units of the user and the scaled units of a tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: The interquartile range of the standard normal distribution.
_NORMAL_RANGE = 1.349

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


@dataclass(frozen=True, kw_only=True)
class TargetScaling:
    """The conversion of a numeric target: ``scaled = (y - center) / scale``."""

    center: float
    scale: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.center) and np.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"center must be finite, scale positive and finite, got {self.center} and {self.scale}")

    @classmethod
    def robust(cls, y: FloatArray, weight: FloatArray) -> TargetScaling:
        """Return the scaling by median and interquartile range; the range is 1.349 for a normal distribution.

        Where half of the targets are equal, the standard deviation replaces the range; for constant targets the scale
        is 1. A weight counts as repetition.
        """
        order = np.argsort(y, kind="stable")
        values, share = y[order], np.cumsum(weight[order])
        with np.errstate(over="ignore"):
            span = values[-1] - values[0]
        if not np.isfinite(span):
            raise ValueError("the targets lie further apart than the largest float; divide them by a constant first")
        at = np.searchsorted(share, np.array([0.25, 0.5, 0.75]) * share[-1] * (1.0 - 1e-12))
        low, center, high = values[np.minimum(at, len(values) - 1)]
        noise = _NOISE * max(abs(float(values[0])), abs(float(values[-1])), np.finfo(np.float64).tiny)
        scale = (high - low) / _NORMAL_RANGE
        if scale <= noise and span > noise:
            relative = (values - center) / span
            scale = span * np.sqrt(np.average(relative * relative, weights=weight[order]))
        return cls(center=float(center), scale=float(scale) if scale > noise else 1.0)

    def apply(self, y: FloatArray) -> FloatArray:
        """Convert targets from the units of the user to scaled units."""
        scaled: FloatArray = (y - self.center) / self.scale + 0.0  # no -0.0
        return scaled

    def restore(self, h: FloatArray) -> FloatArray:
        """Convert targets in scaled units to the units of the user; numbers beyond the largest float are infinite."""
        with np.errstate(over="ignore"):
            restored: FloatArray = self.center + self.scale * h
        return restored


def _scale(values: FloatArray, offset: FloatArray | float, scale: FloatArray | float) -> FloatArray:
    """Scale ``values`` in place, without a second copy of the samples."""
    values -= offset
    values /= scale
    values += 0.0  # turns -0.0 into 0.0, so that equal samples have equal bytes
    return values
