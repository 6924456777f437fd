"""An answer and its audit."""

from __future__ import annotations

from dataclasses import dataclass

from margotree.problem import Finding, Splits, TrainingProblem
from margotree.solution.certificate import Certificate

#: Relative agreement demanded between a claimed and a recomputed objective.
VALUE_TOL = 1e-7


class VerificationError(ValueError):
    """A tree or its certificate does not stand up to being recomputed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """The best tree an engine found, with its certificate."""

    splits: Splits
    certificate: Certificate


def verify(problem: TrainingProblem, solution: Solution) -> Finding:
    """Recompute everything that can be recomputed and raise :class:`VerificationError` if a claim does not hold."""
    found = problem.evaluate(solution.splits)
    check_certificate(found, solution.certificate)
    return found


def check_certificate(found: Finding, certificate: Certificate) -> None:
    """Raise :class:`VerificationError` if the plain value function's finding contradicts the certificate."""
    if not found.feasible:
        raise VerificationError("not an allowed tree: " + "; ".join(found.violations))
    tolerance = VALUE_TOL * abs(found.objective)
    if not abs(found.objective - certificate.objective) <= tolerance:
        raise VerificationError(
            f"the certificate claims the value {certificate.objective!r}, the tree has {found.objective!r}"
        )
    if certificate.bound > found.objective + tolerance:
        raise VerificationError(
            f"the claimed bound {certificate.bound!r} lies above the tree's own value {found.objective!r}"
        )
