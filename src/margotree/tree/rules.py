"""Rules with short numbers: what a rounded tree prints, draws and exports, and the hyperplanes they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from margotree.tree.scaling import FloatArray, Scaling

#: Keeps a term on one line when lines are wrapped; replaced by a space afterwards.
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, kw_only=True)
class RoundedRule:
    """The rule of a node in the units of the user: samples that meet it go right.

    The sum of ``weights`` times ``features`` is compared with ``threshold``: ``<=`` if ``at_most``, else ``>=``. A sum
    equal to the threshold meets the rule in both cases.

    Attributes
    ----------
    features : tuple of int
        Positions of the features, the most important one first.
    weights : tuple of str
        Decimal numbers, the first one positive.
    threshold : str
        A decimal number.
    at_most : bool
        Whether the threshold is an upper limit.
    factor : float
        The hyperplane of the node is the rule times this number: ``h = factor * (sum - threshold)``, or
        ``factor * (threshold - sum)`` if ``at_most``.
    zero_one : bool
        Whether all features of the rule are 0 or 1 in all training samples.
    """

    features: tuple[int, ...]
    weights: tuple[str, ...]
    threshold: str
    at_most: bool
    factor: float
    zero_one: bool = False

    def __post_init__(self) -> None:
        if not self.features or len(self.features) != len(self.weights):
            raise ValueError("a rule has one weight for each of its features, and at least one feature")
        if not (np.isfinite(self.factor) and self.factor > 0):
            raise ValueError(f"the factor of a rule must be positive, got {self.factor!r}")

    def hyperplane(self, scaling: Scaling) -> tuple[FloatArray, float]:
        """Return ``w`` and ``b`` of the rule in scaled units.

        Each number is computed in exact arithmetic and rounded once.
        """
        factor = Fraction(self.factor) * (-1 if self.at_most else 1)
        w, constant = np.zeros(len(scaling.scale)), -Fraction(self.threshold)
        for j, weight in zip(self.features, self.weights, strict=True):
            w[j] = float(factor * Fraction(weight) * Fraction(float(scaling.scale[j])))
            constant += Fraction(weight) * Fraction(float(scaling.offset[j]))
        return w, float(factor * constant)

    def to_record(self) -> dict[str, Any]:
        """Return the rule as JSON values."""
        return {
            "features": list(self.features),
            "weights": list(self.weights),
            "threshold": self.threshold,
            "at_most": self.at_most,
            "factor": self.factor,
            "zero_one": self.zero_one,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> RoundedRule:
        """Make a rule from the result of :meth:`to_record`; ValueError if it is not one."""
        weights, threshold = record["weights"], record["threshold"]
        if not all(isinstance(number, str) and is_decimal(number) for number in [*weights, threshold]):
            raise ValueError(f"the numbers of a rule must be decimal numbers, got {[*weights, threshold]!r:.80}")
        if not all(type(j) is int and j >= 0 for j in record["features"]):
            raise ValueError(f"the features of a rule must be positions, got {record['features']!r:.80}")
        if type(record["at_most"]) is not bool or type(record["zero_one"]) is not bool:
            raise ValueError("at_most and zero_one of a rule must be true or false")
        return cls(
            features=tuple(record["features"]),
            weights=tuple(weights),
            threshold=threshold,
            at_most=record["at_most"],
            factor=float(record["factor"]),
            zero_one=record["zero_one"],
        )


def is_decimal(text: str) -> bool:
    """Whether the text is a finite decimal number without blanks, such as ``-0.25`` or ``1.5e12``."""
    try:
        return "/" not in text and "_" not in text and text == text.strip() and np.isfinite(float(Fraction(text)))
    except (ValueError, OverflowError):
        return False


def decimal_text(x: float, digits: int) -> str:
    """Return ``x`` with this number of significant digits, without zeros at the end."""
    x += 0.0  # no "-0"
    if x != 0 and not 1e-5 <= abs(x) < 1e9:
        return f"{x:.{digits - 1}e}"
    return np.format_float_positional(x, precision=digits, unique=False, fractional=False, trim="-")
