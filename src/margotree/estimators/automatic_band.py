"""The parameter ``band``: the width of the band beside upper splits, by default by the number of samples."""

from __future__ import annotations

import warnings
from typing import Any

from margotree.problem.problem import positive_number

#: The largest width, which is that of the paper.
WIDEST = 1e-3

#: The smallest width: 100 times the tolerance on ``h`` in double precision (``margotree.problem.value.TIE``).
NARROWEST = 1e-7

#: The default of ``eps``, the former name of ``band``.
DEPRECATED = "deprecated"


def band_of(estimator: Any) -> Any:
    """The parameter ``band``, or its former name ``eps`` with a warning."""
    eps = getattr(estimator, "eps", DEPRECATED)
    if isinstance(eps, str) and eps == DEPRECATED:
        return estimator.band
    warnings.warn("the parameter eps is deprecated and removed in 0.3; it is called band", FutureWarning, stacklevel=2)
    return eps


def auto_band(n_samples: int) -> float:
    """The width of the band for ``n_samples`` different samples: ``1 / n**2``, at most 1e-3 and at least 1e-7.

    The band replaces a strict inequality: the values of ``w x`` of two consecutive samples must differ by its width
    where a split separates them.  For ``n`` samples these differences are about ``|w| / n``, so a band of width
    ``1 / n**2`` fits between most samples if ``|w|`` is well above ``1 / n``.
    """
    return float(min(WIDEST, max(NARROWEST, 1.0 / n_samples**2)))


def resolve_band(band: Any, n_samples: int) -> float:
    """The width of the band for a value of the parameter; ValueError if there is none."""
    if not isinstance(band, str):
        return positive_number("band", band)
    if band != "auto":
        raise ValueError(f"band must be a positive finite number or 'auto', got {band!r}")
    return auto_band(n_samples)
