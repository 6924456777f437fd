"""``h = w.x + b`` of samples, for all finite values of the features.

A value far beyond the training range, or its product with a weight, may overflow. The terms of such a sum are split
into digits and exponents, so that no term overflows, terms of weight 0 add 0, and huge terms of opposite signs cancel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.tree.scaling import FloatArray, Scaling

#: The largest absolute value of an ``h``; larger ones are clipped, so that the difference of two is finite.
LARGEST = 2.0**1022


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Samples in scaled units; ``given`` has the values in the units of the user, only if scaling overflows."""

    scaled: FloatArray
    scaling: Scaling
    given: FloatArray | None = None

    @classmethod
    def of(cls, scaling: Scaling, given: FloatArray) -> Rows:
        """Make rows from finite samples in the units of the user."""
        with np.errstate(over="ignore"):
            scaled = scaling.apply(given)
        return cls(scaled=scaled, scaling=scaling, given=None if np.all(np.isfinite(scaled)) else given)

    @classmethod
    def of_scaled(cls, scaled: FloatArray) -> Rows:
        """Make rows from samples in scaled units."""
        return cls(scaled=scaled, scaling=Scaling.identity(scaled.shape[1]))

    def __len__(self) -> int:
        return len(self.scaled)

    def __getitem__(self, which: NDArray[np.int64] | slice) -> Rows:
        given = None if self.given is None else self.given[which]
        return Rows(scaled=self.scaled[which], scaling=self.scaling, given=given)

    @property
    def finite(self) -> FloatArray:
        """The samples in scaled units; values that overflow are clipped to :data:`LARGEST`."""
        return self.scaled if self.given is None else np.clip(self.scaled, -LARGEST, LARGEST)

    def h(self, w: FloatArray, b: float) -> FloatArray:
        """Return ``w.x + b`` of each sample."""
        with np.errstate(over="ignore", invalid="ignore"):
            found: FloatArray = self.scaled @ w + b
        beyond = np.flatnonzero(~np.isfinite(found))
        if len(beyond):
            found[beyond] = self._sum_by_exponent(beyond, w) + b
        return found

    def _sum_by_exponent(self, rows: NDArray[np.int64], w: FloatArray) -> FloatArray:
        """Return ``w.x`` of some samples, clipped to :data:`LARGEST`, from digits and exponents of the terms."""
        used = np.flatnonzero(w)
        if not len(used):
            return np.zeros(len(rows))
        if self.given is None:
            values, offset, scale = self.scaled[rows][:, used], np.zeros(len(used)), np.ones(len(used))
        else:
            values, offset, scale = self.given[rows][:, used], self.scaling.offset[used], self.scaling.scale[used]
        # The difference of two halves is finite.
        parts = [np.frexp(values / 2 - offset / 2), np.frexp(w[used]), np.frexp(scale)]
        (digits, power), (w_digits, w_power), (s_digits, s_power) = parts
        terms, power = digits * w_digits / s_digits, power + 1 + w_power - s_power
        top = np.max(power, axis=1, where=terms != 0, initial=np.iinfo(power.dtype).min // 2)
        total = np.ldexp(terms, np.maximum(power - top[:, None], -2000)).sum(axis=1)
        return _ldexp_clipped(total, top)


def _ldexp_clipped(total: FloatArray, power: NDArray[np.int32]) -> FloatArray:
    """Return ``total * 2**power``, clipped to :data:`LARGEST`."""
    with np.errstate(over="ignore"):
        return np.clip(np.ldexp(total, power), -LARGEST, LARGEST)
