"""An answer and its audit."""

from __future__ import annotations

from dataclasses import dataclass

from margotree.problem import Evaluation, Problem, Splits, evaluate
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


def verify(problem: Problem, solution: Solution) -> Evaluation:
    """Recompute everything that can be recomputed and raise :class:`VerificationError` if a claim does not hold."""
    found = evaluate(problem, solution.splits)
    certificate = solution.certificate
    if not found.feasible:
        raise VerificationError(_why_infeasible(found))
    tolerance = VALUE_TOL * max(1.0, abs(found.objective))
    if not abs(found.objective - certificate.objective) <= tolerance:
        raise VerificationError(
            f"the certificate claims the value {certificate.objective!r}, the tree has {found.objective!r}"
        )
    if certificate.bound > found.objective + tolerance:
        raise VerificationError(
            f"the claimed bound {certificate.bound!r} lies above the tree's own value {found.objective!r}"
        )
    return found


def _why_infeasible(found: Evaluation) -> str:
    reasons = []
    if found.band:
        reasons.append(f"a training sample lies {found.band:.3g} deep inside the routing band of an upper node")
    if found.over_budget:
        reasons.append(f"a node uses {found.over_budget} features more than its budget")
    if found.over_weight:
        reasons.append(f"a weight exceeds max_weight by {found.over_weight:.3g}")
    return "not an allowed tree: " + "; ".join(reasons)
