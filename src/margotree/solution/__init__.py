"""Answers and what is proved of them."""

from margotree._moved import renamed
from margotree.solution.certificate import CUT_OFF, Certificate, Proved, Stopped, gap_statement, gap_text, relative_gap
from margotree.solution.solution import Solution, VerificationError, check_certificate, verify

__all__ = [
    "CUT_OFF",
    "Certificate",
    "Proved",
    "Solution",
    "Stopped",
    "VerificationError",
    "check_certificate",
    "gap_statement",
    "gap_text",
    "relative_gap",
    "verify",
]

__getattr__ = renamed(__name__, {"hold_against": "check_certificate", "no_better": "gap_statement"})
