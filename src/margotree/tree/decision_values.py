"""Samples on their way through a tree, and ``h`` of their splits for all finite values.

A value far beyond the training range may overflow where it is scaled, or its product with a weight may.  The sum of
such terms is then taken with their exponents apart, so that no term overflows, terms of weight 0 count nothing and huge
terms of opposite signs cancel as far as they do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.tree.scaling import FloatArray, Scaling

#: The largest size of an ``h``; larger ones are cut off here, so that differences of two stay finite.
LARGEST = 2.0**1022


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Samples in scaled units; ``given`` are the values in the user's units, kept only if scaling overflows."""

    scaled: FloatArray
    scaling: Scaling
    given: FloatArray | None = None

    @classmethod
    def of(cls, scaling: Scaling, given: FloatArray) -> Rows:
        """Finite samples in the user's units."""
        with np.errstate(over="ignore"):
            scaled = scaling.apply(given)
        return cls(scaled=scaled, scaling=scaling, given=None if np.all(np.isfinite(scaled)) else given)

    @classmethod
    def of_scaled(cls, scaled: FloatArray) -> Rows:
        """Samples in scaled units as they are."""
        return cls(scaled=scaled, scaling=Scaling.identity(scaled.shape[1]))

    def __len__(self) -> int:
        return len(self.scaled)

    def __getitem__(self, which: NDArray[np.int64] | slice) -> Rows:
        given = None if self.given is None else self.given[which]
        return Rows(scaled=self.scaled[which], scaling=self.scaling, given=given)

    @property
    def finite(self) -> FloatArray:
        """The samples in scaled units; values that overflow are cut off at the largest size."""
        return self.scaled if self.given is None else np.clip(self.scaled, -LARGEST, LARGEST)

    def h(self, w: FloatArray, b: float) -> FloatArray:
        """``w.x + b`` of each sample."""
        with np.errstate(over="ignore", invalid="ignore"):
            found: FloatArray = self.scaled @ w + b
        beyond = np.flatnonzero(~np.isfinite(found))
        if len(beyond):
            found[beyond] = self._summed(beyond, w) + b
        return found

    def _summed(self, rows: NDArray[np.int64], w: FloatArray) -> FloatArray:
        """``w.x`` with the exponents of the terms apart, cut off at the largest size."""
        used = np.flatnonzero(w)
        if not len(used):
            return np.zeros(len(rows))
        if self.given is None:
            values, offset, scale = self.scaled[rows][:, used], np.zeros(len(used)), np.ones(len(used))
        else:
            values, offset, scale = self.given[rows][:, used], self.scaling.offset[used], self.scaling.scale[used]
        # Halved, two values of opposite signs have a difference.
        parts = [np.frexp(values / 2 - offset / 2), np.frexp(w[used]), np.frexp(scale)]
        (digits, power), (w_digits, w_power), (s_digits, s_power) = parts
        terms, power = digits * w_digits / s_digits, power + 1 + w_power - s_power
        top = np.max(power, axis=1, where=terms != 0, initial=np.iinfo(power.dtype).min // 2)
        total = np.ldexp(terms, np.maximum(power - top[:, None], -2000)).sum(axis=1)
        return _powered(total, top)


def _powered(total: FloatArray, power: NDArray[np.int32]) -> FloatArray:
    """``total * 2**power``, cut off where that overflows."""
    with np.errstate(over="ignore"):
        return np.clip(np.ldexp(total, power), -LARGEST, LARGEST)
