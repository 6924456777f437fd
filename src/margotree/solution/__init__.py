"""Answers and what is proved of them."""

from margotree.solution.certificate import Certificate, Proved, Stopped, no_better, relative_gap
from margotree.solution.solution import Solution, VerificationError, hold_against, verify

__all__ = [
    "Certificate",
    "Proved",
    "Solution",
    "Stopped",
    "VerificationError",
    "hold_against",
    "no_better",
    "relative_gap",
    "verify",
]
