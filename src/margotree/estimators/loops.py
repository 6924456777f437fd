"""Whether a fit is one of many that scikit-learn makes: a cut one must not be taken for finished there."""

from __future__ import annotations

import sys

#: Modules of scikit-learn that fit the same estimator again and again and look at no certificate.
_LOOPS = (
    "sklearn.model_selection._validation", "sklearn.ensemble", "sklearn.multiclass", "sklearn.multioutput",
    "sklearn.calibration", "sklearn.feature_selection", "sklearn.semi_supervised", "sklearn.inspection",
)  # fmt: skip


class CutShort(KeyboardInterrupt):
    """Ctrl-C came during a fit that is one of many; it ends the loop that the fit belongs to."""


def in_a_loop() -> bool:
    """Whether the caller was called by such a module, however far up."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(_LOOPS):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
