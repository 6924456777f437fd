"""A tree with its certificate, and the audit that recomputes the claims of the certificate."""

from __future__ import annotations

from dataclasses import dataclass

from margotree.problem import Finding, Splits, TrainingProblem
from margotree.solution.certificate import Certificate

#: The largest relative difference allowed between a claimed and a recomputed objective.
VALUE_TOL = 1e-7


class VerificationError(ValueError):
    """The recomputed objective or feasibility of a tree contradicts its certificate."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """The best tree an engine found, with its certificate."""

    splits: Splits
    certificate: Certificate


def verify(problem: TrainingProblem, solution: Solution) -> Finding:
    """Recompute objective and feasibility of a tree and compare them with its certificate.

    Parameters
    ----------
    problem : TrainingProblem
        The training problem.
    solution : Solution
        The tree with its certificate.

    Returns
    -------
    Finding
        The result of ``problem.evaluate``.

    Raises
    ------
    VerificationError
        If the tree is not feasible, or if the certificate claims another objective or a bound above the objective.
    """
    found = problem.evaluate(solution.splits)
    check_certificate(found, solution.certificate)
    return found


def check_certificate(found: Finding, certificate: Certificate) -> None:
    """Raise :class:`VerificationError` if the result of ``problem.evaluate`` contradicts the certificate."""
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
