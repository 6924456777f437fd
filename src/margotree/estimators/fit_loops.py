"""Whether a fit is one of many that scikit-learn makes: a cut one must not be taken for finished there."""

from __future__ import annotations


class NestedFitInterrupted(KeyboardInterrupt):
    """Ctrl-C came during a fit that is one of many; it ends the loop that the fit belongs to."""
