"""Compare the claims of the engine about an instance with the interval of the oracle."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from margotree.engines import Limits, solve
from margotree.problem import Problem
from margotree.solution import Certificate, Proved, Solution, Stopped
from oracle.instances import Instance
from oracle.tree import Interval, TreeFacts, optimum, tree_facts
from several import several_classes

#: The faults, with a description.
FAULTS = {
    "bound": "the bound lies above the optimum",
    "optimal": "called optimal, but farther from the optimum than the gap allows",
    "below": "the tree's value lies below the optimum by more than rounding ties explain",
    "band": "a sample lies deeper in the band of an upper node than rounding explains, or a budget or limit is broken",
    "value": "the objective differs from that of the tree in exact arithmetic",
    "unearned": "called optimal, but its own bound is farther away than the gap allows, or a limit cut it short",
    "contradiction": "the bound lies above a tree: its own, or that of the same problem in other units",
    "exception": "the engine raised",
}

#: Four units in the last place, the tolerance on printed numbers.
ULPS = 4 * 2.0**-52
#: A time limit for every instance, far above the time that any of them needs.
PATIENCE = 20.0
#: The same for more than two classes, whose search is written in Python.
PATIENCE_SEVERAL = 200.0


@dataclass(kw_only=True)
class Verdict:
    """The claims, the facts, and the faults found, by the names in :data:`FAULTS`."""

    lower: float = math.nan
    upper: float = math.nan
    objective: float = math.nan
    bound: float = math.nan
    proved: str = ""
    stopped: str = ""
    #: how far the bound lies above the optimum, relative to it
    excess: float = 0.0
    #: optimality was not proved, although no limit was set and the gap is possible in double precision
    open: bool = False
    #: the interval of the oracle is too wide (over 1e-6) for a verdict
    unsure: bool = False
    faults: list[str] = field(default_factory=list)
    note: str = ""
    engine_seconds: float = 0.0
    oracle_seconds: float = 0.0


def problem_of(instance: Instance) -> Problem:
    """The instance as a problem of the package."""
    terms = {
        "depth": instance.depth, "C": instance.C, "weight": instance.weight, "eps": instance.eps,
        "budget": instance.budget, "alpha": instance.alpha,
    }  # fmt: skip
    if instance.n_classes == 2:
        return Problem.make(instance.X, instance.y, max_weight=instance.max_weight, **terms)
    return several_classes(instance.X, instance.y, n_classes=instance.n_classes, **terms)


def judge(instance: Instance, known: Interval | None = None) -> Verdict:
    """Solve with the exact engine and find the faults in its result; ``known`` is the optimum, if computed before."""
    began = time.perf_counter()
    try:
        solution = solved(instance)
        twin = None if instance.twin is None else solved(instance.in_units(instance.twin))
    except Exception as error:
        note = f"{type(error).__name__}: {error}".replace("\n", " ")[:200]
        fault = "contradiction" if "contradict" in note else "exception"
        return Verdict(faults=[fault], note=note, engine_seconds=time.perf_counter() - began)
    took = time.perf_counter() - began
    verdict = examine(instance, solution, twin, known)
    verdict.engine_seconds, verdict.oracle_seconds = took, time.perf_counter() - began - took
    return verdict


def examine(
    instance: Instance, solution: Solution, twin: Solution | None = None, known: Interval | None = None
) -> Verdict:
    """The faults of a solution, and of ``twin``, the solution of the same problem in the units ``instance.twin``."""
    certificate, known = solution.certificate, known or optimum(instance)
    facts = tree_facts(instance, solution.splits.w.tolist(), solution.splits.b.tolist())
    verdict = _filled(instance, certificate, known)
    verdict.faults += _bound_faults(certificate, known, facts)
    verdict.faults += _tree_faults(instance, certificate, known, facts)
    if unearned(certificate):
        verdict.faults.append("unearned")
    pair = twin is not None and _twins_contradict(instance, certificate, twin.certificate, facts)
    if pair or certificate.bound > certificate.objective * (1 + ULPS):
        verdict.faults.append("contradiction")
    return verdict


def solved(instance: Instance) -> Solution:
    patience = PATIENCE if instance.n_classes == 2 else PATIENCE_SEVERAL
    limits = Limits(**{"time": patience, **instance.limits})
    return solve(problem_of(instance), engine="bnb", limits=limits)


def _filled(instance: Instance, certificate: Certificate, known: Interval) -> Verdict:
    limited = bool({"time", "nodes"} & set(instance.limits))
    verdict = Verdict(
        lower=known.lower,
        upper=known.upper,
        objective=certificate.objective,
        bound=certificate.bound,
        proved=str(certificate.proved),
        stopped=str(certificate.stopped),
        open=not limited and certificate.gap_target >= 1e-6 and certificate.proved is not Proved.OPTIMAL,
        unsure=known.width > 1e-6,
    )
    if certificate.bound > known.upper:
        verdict.excess = (certificate.bound - known.upper) / known.upper if known.upper else math.inf
    return verdict


def _bound_faults(certificate: Certificate, known: Interval, facts: TreeFacts) -> list[str]:
    faults = []
    if certificate.bound > known.upper * (1 + ULPS):
        faults.append("bound")
    short = certificate.objective - facts.rounding_error
    if certificate.proved is Proved.OPTIMAL and short * (1 - certificate.gap_target) > known.upper * (1 + ULPS):
        faults.append("optimal")
    return faults


def _tree_faults(instance: Instance, certificate: Certificate, known: Interval, facts: TreeFacts) -> list[str]:
    faults = []
    if abs(certificate.objective - facts.value) > facts.rounding_error:
        faults.append("value")
    if facts.over_budget or any(facts.band[t] > facts.tie_depth[t] for t in facts.band):
        faults.append("band")
    generous = certificate.objective + facts.rounding_error
    # With a rounding tie, a tree may cost less than any tree that obeys the band exactly; the difference is computed
    # as the optimum of the problem with narrower bands.
    if generous < known.lower and generous < optimum(instance, facts.band).lower:
        faults.append("below")
    return faults


def unearned(certificate: Certificate) -> bool:
    """Whether the certificate says "optimal" although its own numbers do not prove it."""
    if certificate.proved is not Proved.OPTIMAL:
        return False
    allowed = certificate.objective * (certificate.gap_target * (1 + 1e-9) + ULPS)
    return certificate.objective - certificate.bound > allowed or certificate.stopped is not Stopped.SOLVED


def _twins_contradict(instance: Instance, one: Certificate, two: Certificate, facts: TreeFacts) -> bool:
    """Whether the bound of one solution is above the tree of the other, in the units of the first."""
    assert instance.twin is not None
    s2 = instance.twin**2
    slack = 2 * facts.rounding_error
    return one.bound > two.objective / s2 + slack or two.bound / s2 > one.objective + slack
