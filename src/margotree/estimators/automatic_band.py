"""``eps="auto"``: the width of the band beside upper splits by the number of samples."""

from __future__ import annotations

from typing import Any

#: The largest width, which is that of the paper.
WIDEST = 1e-3

#: The smallest width: 100 times the tolerance on ``h`` in double precision (``margotree.problem.value.TIE``).
NARROWEST = 1e-7


def auto_eps(n_samples: int) -> float:
    """The width of the band for ``n_samples`` different samples: ``1 / n**2``, at most 1e-3 and at least 1e-7.

    The band replaces a strict inequality: the values of ``w x`` of two consecutive samples must differ by ``eps``
    where a split separates them.  For ``n`` samples these differences are about ``|w| / n``, so a band of width
    ``1 / n**2`` fits between most samples if ``|w|`` is well above ``1 / n``.
    """
    return float(min(WIDEST, max(NARROWEST, 1.0 / n_samples**2)))


def resolve_eps(eps: Any, n_samples: int) -> Any:
    """The width for ``"auto"``; another value is returned unchanged, and the problem checks it."""
    if isinstance(eps, str):
        if eps != "auto":
            raise ValueError(f"eps must be a positive finite number or 'auto', got {eps!r}")
        return auto_eps(n_samples)
    return eps
