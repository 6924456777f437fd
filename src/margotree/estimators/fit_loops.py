"""The exception of an interrupted fit inside a loop of scikit-learn, where its tree must not count as a result."""

from __future__ import annotations


class NestedFitInterrupted(KeyboardInterrupt):
    """Raised after Ctrl-C in a fit inside a loop of fits; it ends the loop."""
