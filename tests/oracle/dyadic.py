"""Dyadic numbers, integers times a power of two: every float is one, and sums and products of them are exact."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction


def exponent(values: Iterable[float]) -> int:
    """The smallest ``k`` for which every value times ``2**k`` is an integer (0 if they are integers)."""
    return max((float(v).as_integer_ratio()[1].bit_length() - 1 for v in values), default=0)


def integers(values: Iterable[float], k: int) -> list[int]:
    """The values times ``2**k``, exactly; ``k`` must be at least :func:`exponent`."""
    out = []
    for v in values:
        top, bottom = float(v).as_integer_ratio()
        out.append(top << (k - bottom.bit_length() + 1))
    return out


def rounded(value: float, k: int) -> int:
    """The value times ``2**k`` as an integer, rounded to the nearest one or down."""
    top, bottom = float(value).as_integer_ratio()
    shift = k - bottom.bit_length() + 1
    return top << shift if shift >= 0 else top >> -shift


def magnitude(values: list[float]) -> int:
    """An ``e`` with every ``|value| < 2**e``; 0 if all values are 0."""
    largest = max((abs(v) for v in values), default=0.0)
    return math.frexp(largest)[1] if largest else 0


def real(value: int, k: int) -> Fraction:
    """``value / 2**k``."""
    return Fraction(value, 1 << k) if k >= 0 else Fraction(value << -k)


def ratio(value: int, k: int) -> float:
    """``value / 2**k`` as the nearest float."""
    return value / (1 << k) if k >= 0 else float(value << -k)


def below(value: Fraction) -> float:
    """A float not above the value."""
    near = float(value)
    return near if near <= value else math.nextafter(near, -math.inf)


def above(value: Fraction) -> float:
    """A float not below the value."""
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)
