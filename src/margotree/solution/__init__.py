"""Answers and what is proved of them."""

from margotree.solution.certificate import CUT_OFF, Certificate, Proved, Stopped, gap_text, no_better, relative_gap
from margotree.solution.solution import Solution, VerificationError, hold_against, verify

__all__ = [
    "CUT_OFF",
    "Certificate",
    "Proved",
    "Solution",
    "Stopped",
    "VerificationError",
    "gap_text",
    "hold_against",
    "no_better",
    "relative_gap",
    "verify",
]
