"""``eps="auto"``: a band beside the upper splits so narrow that it does not decide which tree is best."""

from __future__ import annotations

from typing import Any

#: The paper's width, which few samples keep.
WIDEST = 1e-3

#: Wide enough for double precision: a hundred times the rounding allowed on ``h`` (``margotree.problem.value.TIE``).
NARROWEST = 1e-7


def auto_eps(n_samples: int) -> float:
    """The width for so many different samples: ``1 / n**2``, but at most 1e-3 and at least 1e-7.

    The band stands in for a strict inequality: a gap of ``eps`` must open between the projections of two consecutive
    samples.  Projections of ``n`` samples on a split of length ``|w|`` lie about ``|w| / n`` apart, so that a band of
    width ``1 / n**2`` fits between most of them wherever ``|w|`` is well above ``1 / n``.
    """
    return float(min(WIDEST, max(NARROWEST, 1.0 / n_samples**2)))


def resolve_eps(eps: Any, n_samples: int) -> Any:
    """The number that ``"auto"`` stands for; a number is left to the problem to check."""
    if isinstance(eps, str):
        if eps != "auto":
            raise ValueError(f"eps must be a positive finite number or 'auto', got {eps!r}")
        return auto_eps(n_samples)
    return eps
