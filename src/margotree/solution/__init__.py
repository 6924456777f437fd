"""The results of engines: trees with their certificates.

- ``certificate``: :class:`Certificate`: objective, bound, gap, and why the search stopped. Start here.
- ``solution``: :class:`Solution`, a tree with its certificate, and the check of both with ``problem.evaluate``
"""

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
